//! `braidcast lab check`: verdicts beside a list of what they were.

use super::progress::Progress;
use super::refused;
use crate::args::{Common, LabCheckArgs};
use crate::cmd::interrupt::interrupt_flag;
use crate::failure::{Failure, Outcome, broken};
use crate::out::{json, text};
use braidcast_lab::check::{self, Changed, Expected, FURTHER_TRIES};
use braidcast_lab::results::Results;
use braidcast_lab::{Job, Request, Scenario, run_all};
use serde::Serialize;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Distance between the first seeds of two tries, so that no two tries share a seed.
const SEEDS_APART: u64 = 1000;

#[derive(Serialize)]
struct Document {
    experiments: usize,
    claims: usize,
    changed: Vec<Told>,
    /// Claims whose verdict was another one at first, and the expected one in a further try.
    chance: Vec<Told>,
}

/// A verdict that is another one.
#[derive(Serialize)]
struct Told {
    experiment: String,
    claim: String,
    expected: Option<braidcast_lab::results::Outcome>,
    found: Option<braidcast_lab::results::Outcome>,
    again: String,
}

pub(super) fn run(args: &LabCheckArgs, common: &Common) -> Outcome {
    let file = args.list.display().to_string();
    let read = std::fs::read_to_string(&args.list).map_err(|e| {
        Failure::usage(
            format!("cannot read {file}: {e}"),
            "name the list of verdicts, for example crates/lab/verdicts.toml",
        )
    })?;
    let mut list = check::read(&file, &read).map_err(|e| refused(&e))?;
    for name in &args.names {
        if list.iter().any(|it| it.experiment == *name) {
            continue;
        }
        if !args.update {
            return Err(Failure::usage(
                format!("{file} has no [{name}]"),
                "name experiments of the list, or none for all; --update adds one",
            ));
        }
        check::add(&mut list, name).map_err(|e| refused(&e))?;
    }
    let is_wanted = |it: &Expected| args.names.is_empty() || args.names.contains(&it.experiment);
    let wanted: Vec<Expected> = list.iter().filter(|it| is_wanted(it)).cloned().collect();
    let stop = interrupt_flag().map_err(|e| broken(&e))?;
    let seed_of = |nth: u32| args.seed.wrapping_add(u64::from(nth) * SEEDS_APART);
    let results = try_all(&wanted, seed_of(0), common, &stop)?;
    if args.update {
        let mut tries = vec![results];
        for nth in 1..=FURTHER_TRIES {
            tries.push(try_all(&wanted, seed_of(nth), common, &stop)?);
        }
        for (nth, expected) in wanted.iter().enumerate() {
            let of = tries.iter().filter_map(|results| results.get(nth)).collect::<Vec<_>>();
            if let Some(place) = list.iter().position(|it| it.experiment == expected.experiment) {
                list[place] = expected.updated(&of);
            }
        }
        std::fs::write(&args.list, check::write(&list))
            .map_err(|e| Failure::new(format!("cannot write {file}: {e}"), "check its permissions"))?;
        return text::print(&format!("{} experiments in {file}", wanted.len()));
    }
    let (mut changed, mut chance) = (Vec::new(), Vec::new());
    for (expected, results) in wanted.iter().zip(&results) {
        let first = expected.changed(results);
        let mut still = first.clone();
        for nth in 1..=FURTHER_TRIES {
            if still.is_empty() {
                break;
            }
            let more = try_all(core::slice::from_ref(expected), seed_of(nth), common, &stop)?;
            let again: Vec<Changed> = more.iter().flat_map(|results| expected.changed(results)).collect();
            still.retain(|it| again.iter().any(|other| other.claim == it.claim));
        }
        for it in first {
            let stays = still.contains(&it);
            let told = told(expected, it, expected.command(args.seed));
            if stays { changed.push(told) } else { chance.push(told) }
        }
    }
    let claims = wanted.iter().map(|it| it.claims.len()).sum();
    let document = Document { experiments: wanted.len(), claims, changed, chance };
    if common.json {
        json::print("lab check", &document)?;
    } else {
        text::print(&words(&document))?;
    }
    match document.changed.len() {
        0 => Ok(()),
        1 => Err(Failure::new("a verdict has changed", fix(&file))),
        n => Err(Failure::new(format!("{n} verdicts have changed"), fix(&file))),
    }
}

fn fix(file: &str) -> String {
    format!("if it was meant, `braidcast lab check --list {file} --update` writes the list anew; say in the commit why")
}

fn told(expected: &Expected, changed: Changed, again: String) -> Told {
    let Changed { claim, expected: was, found } = changed;
    Told { experiment: expected.experiment.clone(), claim, expected: was, found, again }
}

fn words(document: &Document) -> String {
    let mut lines = Vec::new();
    let word = |outcome: Option<braidcast_lab::results::Outcome>| outcome.map_or("not there", |it| it.words());
    for (what, all) in [("changed", &document.changed), ("by chance", &document.chance)] {
        for it in all {
            lines.push(format!(
                "{what}: {}: {}: was {}, is {}",
                it.experiment,
                it.claim,
                word(it.expected),
                word(it.found)
            ));
            lines.push(format!("  {}", it.again));
        }
    }
    lines.push(format!(
        "{} claims of {} experiments: {} changed, {} by chance only",
        document.claims,
        document.experiments,
        document.changed.len(),
        document.chance.len()
    ));
    lines.join("\n")
}

/// The results of each of `list`.
fn try_all(list: &[Expected], seed: u64, common: &Common, stop: &AtomicBool) -> Outcome<Vec<Results>> {
    let scenarios = list.iter().map(|it| Scenario::find(&it.experiment)).collect::<Result<Vec<_>, _>>();
    let scenarios = scenarios.map_err(|e| refused(&e))?;
    let jobs = scenarios.iter().zip(list).map(|(scenario, it)| {
        let request = Request { runs: Some(it.runs), seed, duration: Some(it.duration), ..Request::default() };
        Job::new(scenario, &request)
    });
    let jobs = jobs.collect::<Result<Vec<_>, _>>().map_err(|e| refused(&e))?;
    let progress = Progress::new(common.quiet, jobs.iter().map(Job::runs).sum());
    let finished = Mutex::new(Vec::new());
    run_all(&jobs, stop, &|| progress.step(), &|number, results| {
        progress.note(&list[number].experiment, &results);
        finished.lock().unwrap_or_else(PoisonError::into_inner).push((number, results));
    });
    progress.end();
    let mut finished = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    finished.sort_by_key(|(number, _)| *number);
    if stop.load(Ordering::Relaxed) || finished.len() != list.len() {
        let (done, runs) = progress.done();
        return Err(Failure::new(format!("stopped early, after {done} of {runs} runs"), "run it again"));
    }
    let lost: Vec<&String> = finished.iter().flat_map(|(_, results)| &results.lost_runs).collect();
    if let Some(first) = lost.first() {
        return Err(Failure::new(
            format!("{} runs were lost, the first: {first}", lost.len()),
            "a failed run is a fault of the lab: please report it",
        ));
    }
    Ok(finished.into_iter().map(|(_, results)| results).collect())
}
