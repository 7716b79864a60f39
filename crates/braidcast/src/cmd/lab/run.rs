//! `braidcast lab run`.

use super::{refused, show, store};
use crate::args::{Common, LabRunArgs};
use crate::cmd::common::broken;
use crate::failure::{Failure, Outcome};
use crate::out::{json, text};
use braidcast_lab::results::{Results, Row};
use braidcast_lab::{Job, Request, Scenario};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[derive(Serialize)]
struct Document<'a> {
    seed: u64,
    rows: Vec<&'a Row>,
    lost_runs: Vec<&'a str>,
}

pub(super) fn run(args: &LabRunArgs, common: &Common) -> Outcome {
    let scenarios = scenarios(&args.names)?;
    let request = Request {
        runs: args.runs,
        seed: args.seed,
        duration: args.duration,
        variant: args.variant.clone(),
        real_time: args.real_time,
        params: args.param.clone(),
    };
    let jobs = scenarios.iter().map(|scenario| Job::new(scenario, &request)).collect::<Result<Vec<_>, _>>();
    let jobs = jobs.map_err(|e| refused(&e))?;
    let stop = braidcast_driver::interrupt_flag().map_err(|e| broken(&e))?;
    let bar = progress(common.quiet, jobs.iter().map(Job::runs).sum());
    let mut all = Vec::new();
    for (job, scenario) in jobs.iter().zip(&scenarios) {
        bar.set_message(scenario.name.clone());
        let results = job.run(&stop, &|| bar.inc(1));
        let stopped = stop.load(Ordering::Relaxed);
        if !results.rows.is_empty() || !stopped {
            store::keep(&args.results, &results)?;
            all.push(results);
        }
        if stopped {
            break;
        }
    }
    bar.finish_and_clear();
    print(args, common, &all)?;
    let (wanted, lost) = (scenarios.len(), all.iter().map(|it| it.lost_runs.len()).sum::<usize>());
    if lost > 0 {
        return Err(Failure::new(
            format!("{lost} runs were lost"),
            "each is named above, with the command that repeats it",
        ));
    }
    if stop.load(Ordering::Relaxed) {
        let what = format!("stopped early, with {} of {wanted} experiments begun", all.len());
        return Err(Failure::new(what, format!("what was done is kept in {}", args.results.display())));
    }
    Ok(())
}

/// The scenarios of these names; `all` is every one that the program has inside.
fn scenarios(names: &[String]) -> Outcome<Vec<Scenario>> {
    let mut found: Vec<Scenario> = Vec::new();
    for name in names {
        let more = if name == "all" { Scenario::all() } else { Scenario::find(name).map(|it| vec![it]) };
        for scenario in more.map_err(|e| refused(&e))? {
            if !found.iter().any(|known| known.name == scenario.name) {
                found.push(scenario);
            }
        }
    }
    Ok(found)
}

fn progress(quiet: bool, runs: usize) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{msg} [{bar:30}] {pos}/{len} runs, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn print(args: &LabRunArgs, common: &Common, all: &[Results]) -> Outcome {
    let lost = all.iter().flat_map(|it| &it.lost_runs).map(String::as_str);
    if common.json {
        let rows = all.iter().flat_map(|it| &it.rows).collect();
        return json::print("lab run", &Document { seed: args.seed, rows, lost_runs: lost.collect() });
    }
    for line in lost {
        eprintln!("lost: {line}");
    }
    if args.csv {
        return text::print(&show::csv(all));
    }
    for results in all {
        show::print(results, &args.results)?;
    }
    Ok(())
}
