//! The files that results are kept in.

use crate::args::{Common, LabReportArgs};
use crate::failure::{Failure, Outcome};
use crate::out::{json, text};
use braidcast_lab::Scenario;
use braidcast_lab::results::Results;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Writes `results` to its file in `dir`.
pub(super) fn keep(dir: &Path, results: &Results) -> Outcome {
    let path = dir.join(format!("{}.json", results.experiment));
    let cannot = |e: &dyn std::fmt::Display| {
        Failure::new(format!("cannot write {}: {e}", path.display()), "choose another folder with --results")
    };
    let text = serde_json::to_string_pretty(results).map_err(|e| cannot(&e))?;
    std::fs::create_dir_all(dir).map_err(|e| cannot(&e))?;
    std::fs::write(&path, text + "\n").map_err(|e| cannot(&e))
}

#[derive(Serialize)]
struct Written<'a> {
    out: &'a Path,
    experiments: Vec<&'a str>,
}

/// `braidcast lab report`.
pub(super) fn report(args: &LabReportArgs, common: &Common) -> Outcome {
    let all = load(&args.results)?;
    std::fs::write(&args.out, braidcast_lab::report::html(&all)).map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", args.out.display()), "choose another file with --out")
    })?;
    if common.json {
        let experiments = all.iter().map(|it| it.experiment.as_str()).collect();
        return json::print("lab report", &Written { out: &args.out, experiments });
    }
    text::print(&format!("{} experiments in {}", all.len(), args.out.display()))
}

/// All results in `dir`: those of our own experiments in the order of `lab list`, then the others by name.
fn load(dir: &Path) -> Outcome<Vec<Results>> {
    let none = |why: String| Failure::new(why, "run `braidcast lab run all` first, or name the folder with --results");
    let entries = std::fs::read_dir(dir).map_err(|e| none(format!("cannot read the folder {}: {e}", dir.display())))?;
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "json"));
    if paths.is_empty() {
        return Err(none(format!("there are no results in {}", dir.display())));
    }
    let read = |path: &PathBuf| {
        let wrong = |e: &dyn std::fmt::Display| {
            Failure::new(
                format!("{} holds no results: {e}", path.display()),
                "run that experiment again, or delete the file",
            )
        };
        let text = std::fs::read_to_string(path).map_err(|e| wrong(&e))?;
        serde_json::from_str::<Results>(&text).map_err(|e| wrong(&e))
    };
    let mut all = paths.iter().map(read).collect::<Outcome<Vec<_>>>()?;
    let known = Scenario::all().map_err(|e| super::refused(&e))?;
    let place = |it: &Results| known.iter().position(|scenario| scenario.name == it.experiment).unwrap_or(known.len());
    all.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.experiment.cmp(&b.experiment)));
    Ok(all)
}
