//! `braidcast lab survey`.

mod kept;
mod show;

use super::progress::Progress;
use super::{refused, store};
use crate::args::{Common, LabSurveyArgs, SurveyEncoder as Encoder};
use crate::cmd::interrupt::interrupt_flag;
use crate::failure::{Failure, Outcome, broken};
use crate::out::{json, text};
use braidcast_lab::survey::{Judged, SetResult, Settings, Sums, Survey, What};
use kept::Kept;
use serde::Serialize;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

#[derive(Serialize)]
struct Document<'a> {
    what: What,
    seed: u64,
    links: (usize, usize),
    load: (f64, f64),
    kinds: &'a [braidcast_lab::survey::Kind],
    without: &'a [braidcast_lab::survey::Without],
    clip: &'a str,
    latency_ms: u64,
    duration_s: f64,
    runs: u32,
    surveys: &'a [Of<'a>],
}

/// What one line of settings came to.
#[derive(Serialize)]
struct Of<'a> {
    settings: &'a str,
    #[serde(flatten)]
    sums: Sums,
    results: Vec<Told>,
}

/// A set, what was measured, and how it is judged.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    result: SetResult,
    /// None if a run was lost.
    judged: Option<Judged>,
    /// The command that repeats it.
    again: String,
}

pub(super) fn run(args: &LabSurveyArgs, common: &Common) -> Outcome {
    let survey = survey(args)?;
    if let (Some(index), Some(file)) = (args.set_index, &args.scenario) {
        return write_scenario(&survey, index, file);
    }
    let sets: Vec<u32> = args.set_index.map_or_else(|| (0..args.sets).collect(), |index| vec![index]);
    let stop = interrupt_flag().map_err(|e| broken(&e))?;
    let kept = Kept::open(&args.results, &survey)?;
    let drawn = survey.sets(&sets);
    let (mut runs, mut before) = (0, 0);
    for set in &drawn {
        let known = (0..survey.settings.len()).filter(|&settings| kept.has(settings, set.index)).count();
        runs += survey.runs_of(set) * (survey.settings.len() - known);
        before += known;
    }
    if before > 0 && !common.quiet {
        let all = drawn.len() * survey.settings.len();
        say!("{before} of {all} sets are there from a run that was ended early");
    }
    let progress = Progress::new(common.quiet, runs);
    let failed = Mutex::new(None);
    // What is added meanwhile is not asked for any more.
    let known = |settings: usize, index: u32| kept.has(settings, index);
    survey.run(&sets, &known, &stop, &|| progress.step(), &|settings, result| {
        if let Err(failure) = kept.add(settings, result) {
            // There is no use in running on for nothing.
            stop.store(true, Ordering::Relaxed);
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        }
    });
    progress.end();
    let of = |number: usize| {
        let told = |result: SetResult| {
            let again = again(args, settings_of(args, number), result.index);
            Told { judged: Judged::of(survey.what, &result), again, result }
        };
        let results: Vec<Told> = kept.results(number, &sets).into_iter().map(told).collect();
        let judged: Vec<_> = results.iter().filter_map(|it| Some((it.result.index, it.judged.clone()?))).collect();
        (Sums::of(survey.what, &judged), results)
    };
    let sums: Vec<(Sums, Vec<Told>)> = (0..survey.settings.len()).map(of).collect();
    let named = survey.settings.iter().zip(sums);
    let surveys: Vec<Of<'_>> =
        named.map(|(settings, (sums, results))| Of { settings: &settings.name, sums, results }).collect();
    if common.json {
        let Survey { what, seed, links, load, ref kinds, ref without, ref clip, runs, .. } = survey;
        let (latency_ms, duration_s) = (survey.latency.as_millis() as u64, survey.duration.as_secs_f64());
        let surveys = &surveys;
        let document =
            Document { what, seed, links, load, kinds, without, clip, latency_ms, duration_s, runs, surveys };
        json::print("lab survey", &document)?;
    } else {
        show::print(&survey, &surveys, args)?;
    }
    if let Some(failure) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(failure);
    }
    if stop.load(Ordering::Relaxed) {
        let (done, runs) = progress.done();
        let fix = format!("the same command goes on from what is kept in {}", args.results.display());
        return Err(Failure::new(format!("stopped early, after {done} of {runs} runs"), fix));
    }
    kept.remove();
    if args.set_index.is_none() {
        let sums: Vec<Sums> = surveys.iter().map(|it| it.sums.clone()).collect();
        let lost = surveys.iter().flat_map(|it| &it.results).filter(|it| it.judged.is_none());
        let lost = lost.map(|it| format!("set {}: {}; {}", it.result.index, it.result.lost_runs.join(", "), it.again));
        store::keep(&args.results, &survey.results(&sums, lost.collect()))?;
    }
    let lost = surveys.iter().flat_map(|it| &it.results).filter(|it| it.judged.is_none());
    let lost: Vec<&Told> = lost.collect();
    match lost.first() {
        None => Ok(()),
        Some(first) => {
            let why = first.result.lost_runs.first().map_or("nothing was measured", String::as_str);
            let what =
                format!("{} sets have lost runs and do not count; set {}: {why}", lost.len(), first.result.index);
            Err(Failure::new(
                what,
                format!("a failed run is a fault of the lab: please report it, with {}", first.again),
            ))
        }
    }
}

/// What the flags ask for.
fn survey(args: &LabSurveyArgs) -> Outcome<Survey> {
    let what = match args.encoder {
        Some(Encoder::Follow) => What::Encoder,
        None if args.bulk => What::Bulk { receive_buffer: args.buffer },
        None => What::Clip,
    };
    let read = |number: usize| {
        let (set, beside) = settings_of(args, number);
        let beside = beside.into_iter().flat_map(|it| it.split(';')).map(str::trim).filter(|it| !it.is_empty());
        let own: Vec<&str> = beside.collect();
        let all =
            Settings::read(what, set.iter().map(String::as_str).chain(own.iter().copied())).map_err(|e| refused(&e))?;
        // What all have in common needs no name.
        let name = if own.is_empty() { "default".to_owned() } else { own.join(", ") };
        Ok(if number == 0 { all } else { all.called(name) })
    };
    let survey = Survey {
        what,
        seed: args.seed,
        links: args.links,
        load: args.load,
        kinds: args.kinds.clone(),
        without: args.without.clone(),
        clip: args.clip.clone(),
        latency: args.latency,
        duration: args.duration,
        runs: args.runs,
        settings: (0..=args.beside.len()).map(read).collect::<Outcome<_>>()?,
    };
    survey.check().map_err(|e| refused(&e))?;
    Ok(survey)
}

/// The settings of line `number`: those for all, and what comes on top.
fn settings_of(args: &LabSurveyArgs, number: usize) -> (&[String], Option<&String>) {
    (&args.set, number.checked_sub(1).and_then(|number| args.beside.get(number)))
}

/// The command that runs one set again.
fn again(args: &LabSurveyArgs, (set, beside): (&[String], Option<&String>), index: u32) -> String {
    let default = Survey::default();
    let what = match args.encoder {
        Some(Encoder::Follow) => " --encoder follow",
        None if args.bulk => " --bulk",
        None => "",
    };
    let mut line = format!("braidcast lab survey{what} --seed {}", args.seed);
    let mut flag = |is_new: bool, name: &str, value: String| {
        if is_new {
            line += &format!(" --{name} {}", text::quoted(&value));
        }
    };
    let (least, most) = args.links;
    let links = if least == most { least.to_string() } else { format!("{least}..{most}") };
    flag(args.links != default.links, "links", links);
    flag(args.buffer.is_some(), "buffer", args.buffer.unwrap_or(0).to_string());
    flag(args.load != default.load, "load", format!("{},{}", args.load.0, args.load.1));
    let kinds: Vec<String> = args.kinds.iter().map(ToString::to_string).collect();
    flag(args.kinds != default.kinds, "kinds", kinds.join(","));
    let without: Vec<String> = args.without.iter().map(ToString::to_string).collect();
    flag(args.without != default.without, "without", without.join(","));
    flag(args.latency != default.latency, "latency", format!("{}ms", args.latency.as_secs_f64() * 1e3));
    flag(args.clip != default.clip, "clip", args.clip.clone());
    flag(args.runs != default.runs, "runs", args.runs.to_string());
    flag(args.duration != default.duration, "duration", format!("{}s", args.duration.as_secs_f64()));
    let beside = beside.into_iter().flat_map(|it| it.split(';')).map(str::trim).filter(|it| !it.is_empty());
    set.iter().map(String::as_str).chain(beside).for_each(|it| flag(true, "set", it.to_owned()));
    flag(true, "set-index", index.to_string());
    line
}

fn write_scenario(survey: &Survey, index: u32, file: &Path) -> Outcome {
    let set = survey.set(index);
    std::fs::write(file, survey.scenario_text(&set, &survey.settings[0])).map_err(|e| {
        Failure::new(format!("cannot write {}: {e}", file.display()), "choose another file with --scenario")
    })?;
    let name = text::quoted(&file.display().to_string());
    text::print(&format!("braidcast lab run {name} --variant all --seed {} --viz", set.seed))
}
