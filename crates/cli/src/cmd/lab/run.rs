//! `braidcast lab run`.

use super::inside::{self, Seen};
use super::progress::Progress;
use super::{refused, show, store};
use crate::args::{Common, LabRunArgs};
use crate::cmd::interrupt::interrupt_flag;
use crate::failure::{Failure, Outcome, broken};
use crate::out::{json, text};
use braidcast_lab::experiment::Experiment;
use braidcast_lab::results::{Results, Row};
use braidcast_lab::{Job, Request, Scenario, run_all};
use serde::Serialize;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Serialize)]
struct Document<'a> {
    seed: u64,
    rows: Vec<&'a Row>,
    lost_runs: Vec<&'a str>,
    /// Of a run that was looked into.
    #[serde(flatten)]
    seen: Option<Seen>,
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
    let all = args.names.iter().any(|name| name == "all");
    let jobs = scenarios.iter().map(|scenario| {
        // Who asks for all does not mean one that has no other length.
        let keeps = all && Experiment::find(&scenario.experiment).is_some_and(|it| it.fixed_length);
        if keeps && args.duration.is_some() && !common.quiet {
            say!("{} keeps its length of {}s", scenario.name, scenario.duration.as_secs_f64());
        }
        Job::new(scenario, &Request { duration: args.duration.filter(|_| !keeps), ..request.clone() })
    });
    let jobs = jobs.collect::<Result<Vec<_>, _>>();
    let mut jobs = jobs.map_err(|e| refused(&e))?;
    let mut inside = None;
    if args.trace.is_some() || args.viz {
        let (job, traces) = inside::traced(args, common, jobs)?;
        (jobs, inside) = (vec![job], Some(traces));
    }
    let stop = interrupt_flag().map_err(|e| broken(&e))?;
    let one_run = inside.is_some();
    let progress = Progress::new(common.quiet, jobs.iter().map(Job::runs).sum());
    let (finished, unwritten) = (Mutex::new(Vec::new()), Mutex::new(None));
    run_all(&jobs, &stop, &|| progress.step(), &|number, results| {
        progress.note(&scenarios[number].name, &results);
        let kept = if inside.is_none() { store::keep(&args.results, &results) } else { Ok(()) };
        if let Err(failure) = kept {
            // There is no use in running on for nothing.
            stop.store(true, Ordering::Relaxed);
            lock(&unwritten).get_or_insert(failure);
        }
        lock(&finished).push((number, results));
    });
    progress.end();
    let mut finished = core::mem::take(&mut *lock(&finished));
    finished.sort_by_key(|(number, _)| *number);
    let wrong: Vec<_> = finished.iter().flat_map(|(number, results)| jobs[*number].unmeasured(results)).collect();
    let all: Vec<_> = finished.into_iter().map(|(_, results)| results).collect();
    let seen = inside.map(|traces| traces.finish(args, common)).transpose()?;
    let kept = match (&seen, lock(&unwritten).is_some()) {
        (Some(_), _) => "one run, which is not kept".to_owned(),
        (None, true) => "not kept".to_owned(),
        (None, false) => format!("kept in {}", args.results.display()),
    };
    print(args, common, &all, seen, &kept)?;
    if let Some(failure) = lock(&unwritten).take() {
        return Err(failure);
    }
    let lost = all.iter().map(|it| it.lost_runs.len()).sum::<usize>();
    if lost > 0 {
        return Err(Failure::new(
            format!("{lost} runs were lost"),
            "each is named above, with the command that repeats it",
        ));
    }
    if stop.load(Ordering::Relaxed) {
        let (done, runs) = progress.done();
        let what = format!("stopped early, after {done} of {runs} runs");
        let kept = format!("what was done is kept in {}", args.results.display());
        return Err(Failure::new(what, if one_run { "it was one run, and is not kept".to_owned() } else { kept }));
    }
    match &wrong[..] {
        [] => Ok(()),
        [first, others @ ..] => {
            others.iter().for_each(|it| say!("{it}; {}", it.fix));
            Err(refused(first))
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

fn print(args: &LabRunArgs, common: &Common, all: &[Results], seen: Option<Seen>, kept: &str) -> Outcome {
    let lost = all.iter().flat_map(|it| &it.lost_runs).map(String::as_str);
    if common.json {
        let rows = all.iter().flat_map(|it| &it.rows).collect();
        return json::print_exact("lab run", &Document { seed: args.seed, rows, lost_runs: lost.collect(), seen });
    }
    for line in lost {
        say!("lost: {line}");
    }
    if args.csv {
        return text::print(&show::csv(all));
    }
    for results in all {
        show::print(results, kept)?;
    }
    seen.map_or(Ok(()), |seen| seen.files().try_for_each(|path| text::print(&path.display().to_string())))
}
