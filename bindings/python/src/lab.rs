use crate::errors::{Error, Misuse};
use braidcast_lab::results::{Results, Row};
use braidcast_lab::{Job, Request, Scenario, Wrong, run_all};
use pyo3::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often Python's signals are looked at while runs go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A row, with the value of each run.
#[derive(Serialize)]
struct FullRow<'a> {
    #[serde(flatten)]
    row: &'a Row,
    values: &'a [f64],
}

#[derive(Serialize)]
struct Document<'a> {
    scenario: &'a str,
    seed: u64,
    rows: Vec<FullRow<'a>>,
    #[serde(flatten)]
    rest: serde_json::Value,
}

/// The names of the scenarios inside, and what each is about.
#[pyfunction]
pub(crate) fn scenario_names() -> PyResult<Vec<(String, String)>> {
    let all = Scenario::all().map_err(|wrong| refused(&wrong))?;
    Ok(all.into_iter().map(|it| (it.name, it.title)).collect())
}

/// Returns `true` if a scenario can be read, by its name, its file, or its text.
#[pyfunction]
#[pyo3(signature = (name, text=None))]
pub(crate) fn find_scenario(name: &str, text: Option<&str>) -> PyResult<String> {
    scenario(name, text).map(|it| it.name)
}

/// Runs a scenario and returns its results as JSON. `progress` is called with the number of runs
/// that are done, and of all.
#[pyfunction]
#[pyo3(signature = (name, text=None, runs=None, seed=1, duration=None, variant=None, params=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "keywords in Python")]
pub(crate) fn run_scenario(
    py: Python<'_>,
    name: &str,
    text: Option<&str>,
    runs: Option<u32>,
    seed: u64,
    duration: Option<f64>,
    variant: Option<String>,
    params: Option<BTreeMap<String, String>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let scenario = scenario(name, text)?;
    let duration = duration.map(|seconds| match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err(Misuse::new_err(format!("duration is {seconds}; give seconds above 0"))),
    });
    let request = Request {
        runs,
        seed,
        duration: duration.transpose()?,
        variant,
        real_time: false,
        params: params.unwrap_or_default().into_iter().collect(),
    };
    let job = [Job::new(&scenario, &request).map_err(|wrong| refused(&wrong))?];
    let (all, done, stop) = (job[0].runs(), AtomicUsize::new(0), AtomicBool::new(false));
    let finished: Mutex<Option<Results>> = Mutex::new(None);
    let step = || {
        done.fetch_add(1, Ordering::Relaxed);
    };
    let keep = |_, results| *finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(results);
    std::thread::scope(|scope| {
        let runner = scope.spawn(|| run_all(&job, &stop, &step, &keep));
        let watched = watch(py, || runner.is_finished(), || (done.load(Ordering::Relaxed), all), progress.as_ref());
        // After Ctrl-C, or an error of the caller's `progress`, what runs ends soon.
        stop.store(watched.is_err(), Ordering::Relaxed);
        watched
    })?;
    let results = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
    let results = results.ok_or_else(|| Error::new_err("there are no results"))?;
    if let [first, ..] = &results.lost_runs[..] {
        return Err(Error::new_err(format!("{} runs were lost; the first: {first}", results.lost_runs.len())));
    }
    let json = |error: serde_json::Error| Error::new_err(error.to_string());
    let mut rest = serde_json::to_value(&results).map_err(json)?;
    if let Some(map) = rest.as_object_mut() {
        ["rows", "seed"].iter().for_each(|key| {
            map.remove(*key);
        });
    }
    let rows = results.rows.iter().map(|row| FullRow { row, values: &row.values }).collect();
    serde_json::to_string(&Document { scenario: &scenario.name, seed, rows, rest }).map_err(json)
}

/// Mean, and half the width of its 95 % confidence interval (Student's t); None for fewer than two
/// values.
#[pyfunction]
pub(crate) fn mean_ci95(values: Vec<f64>) -> (f64, Option<f64>) {
    braidcast_lab::mean_ci95(&values)
}

/// Waits until it is over, for Python's signals too, and reports how far it is.
fn watch(
    py: Python<'_>,
    is_over: impl Fn() -> bool,
    how_far: impl Fn() -> (usize, usize),
    progress: Option<&Py<PyAny>>,
) -> PyResult<()> {
    while !is_over() {
        py.detach(|| std::thread::sleep(LOOK_EVERY));
        py.check_signals()?;
        if let Some(progress) = progress {
            progress.call1(py, how_far())?;
        }
    }
    Ok(())
}

fn scenario(name: &str, text: Option<&str>) -> PyResult<Scenario> {
    match text {
        Some(text) => Scenario::read(name, text, Path::new(".")),
        None => Scenario::find(name),
    }
    .map_err(|wrong| refused(&wrong))
}

fn refused(wrong: &Wrong) -> PyErr {
    Error::new_err(format!("{wrong}; {}", wrong.fix))
}
