//! Runs the points of a scenario over seeds, on all cores, and makes results of what they measured.

use crate::experiment::{Curve, Measures};
use crate::judge;
use crate::plan::{Done, Run};
use crate::real_time;
use crate::reference::References;
use crate::results::{Results, Row, Series};
use crate::scenario::{Against, Point, Scenario, Value, Wrong, did_you_mean};
use crate::simulate::{Failed, simulate};
use crate::stats::mean_ci95;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What to run of a scenario, and how often.
#[derive(Clone, Debug)]
pub struct Request {
    /// Runs at each point; none is what the scenario says.
    pub runs: Option<u32>,
    /// Seed of the first run; the others count up from it.
    pub seed: u64,
    /// How long each run measures; none is what the scenario says.
    pub duration: Option<Duration>,
    /// Only this variant.
    pub variant: Option<String>,
    /// On real sockets in real time, one run after the other, instead of in the simulator.
    pub real_time: bool,
    /// Only points where these parameters have these values.
    pub params: Vec<(String, String)>,
}

impl Default for Request {
    fn default() -> Self {
        Self { runs: None, seed: 1, duration: None, variant: None, real_time: false, params: Vec::new() }
    }
}

/// A scenario and what is wanted of it: [`runs`](Self::runs) and [`run`](Self::run).
#[derive(Debug)]
pub struct Job<'a> {
    scenario: &'a Scenario,
    points: Vec<Point>,
    references: References<'a>,
    runs: u32,
    seed: u64,
    duration: Duration,
    real_time: bool,
}

/// What came of one run.
type Single = Result<Measures, String>;

impl<'a> Job<'a> {
    /// The runs of `scenario` that `request` asks for.
    ///
    /// # Errors
    /// [`Wrong`] if a variant or parameter that it names is none, or a reference cannot be read.
    pub fn new(scenario: &'a Scenario, request: &Request) -> Result<Self, Wrong> {
        let mut points = scenario.points()?;
        if let Some(variant) = &request.variant {
            let names = || scenario.variants.iter().map(|it| it.name.as_str());
            if !names().any(|name| name == variant) {
                let what = format!("there is no variant '{variant}'");
                return Err(Wrong::new(&scenario.name, what, did_you_mean(variant, names())));
            }
            points.retain(|point| point.variant == *variant);
        }
        for (name, value) in &request.params {
            let has = |point: &Point| point.params.iter().any(|(known, it)| known == name && it.says(value));
            if !points.iter().any(has) {
                let what = format!("no point has {name}={value}");
                let params = points.first().map_or(&[][..], |point| &point.params);
                let mend = match params.iter().any(|(known, _)| known == name) {
                    true => format!("its values are: {}", values(&points, name)),
                    false => did_you_mean(name, params.iter().map(|(known, _)| known.as_str())),
                };
                return Err(Wrong::new(&scenario.name, what, mend));
            }
            points.retain(has);
        }
        Ok(Self {
            scenario,
            points,
            references: References::read(scenario)?,
            runs: request.runs.unwrap_or(scenario.runs).max(1),
            seed: request.seed,
            duration: request.duration.unwrap_or(scenario.duration),
            real_time: request.real_time,
        })
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.points.len() * self.runs as usize
    }

    /// Runs everything, until `stop`; what is done by then is kept. Calls `progress` after each run.
    pub fn run(&self, stop: &AtomicBool, progress: &(dyn Fn() + Sync)) -> Results {
        let jobs: Vec<(usize, u32)> =
            (0..self.points.len()).flat_map(|point| (0..self.runs).map(move |run| (point, run))).collect();
        let one = |&(point, run): &(usize, u32)| {
            let single = self.single(&self.points[point], run, stop);
            if single.is_some() {
                progress();
            }
            single
        };
        let singles: Vec<Option<Single>> =
            if self.real_time { jobs.iter().map(one).collect() } else { jobs.par_iter().map(one).collect() };
        let mut by_point = singles.chunks(self.runs as usize);
        self.results(self.points.iter().map(|point| (point, by_point.next().unwrap_or_default())))
    }

    /// One run; none if it was stopped.
    fn single(&self, point: &Point, run: u32, stop: &AtomicBool) -> Option<Single> {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let seed = self.seed.wrapping_add(u64::from(run));
        let it = Run { point, seed, duration: self.duration };
        let experiment = self.scenario.experiment;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (plan, measure) = ((experiment.build)(&it), |done: &Done<'_>| (experiment.measure)(&it, done));
            if self.real_time { real_time::run(plan, seed, stop, measure) } else { simulate(plan, seed, stop, measure) }
        }));
        let outcome = outcome.unwrap_or_else(|panic| Err(Failed::Broken(format!("panic: {}", message(&*panic)))));
        match outcome {
            Ok(measures) if run == 0 => Some(Ok(measures)),
            Ok(measures) => Some(Ok(Measures { curves: Vec::new(), ..measures })),
            Err(Failed::Stopped) => None,
            Err(why) => Some(Err(format!("{why}; run it again with: {}", self.command(point, seed)))),
        }
    }

    /// The command line that runs one seed of one point.
    fn command(&self, point: &Point, seed: u64) -> String {
        let quote = |text: String| {
            let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,=%/".contains(c));
            if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
        };
        let params = point.params.iter().map(|(name, value)| format!(" --param {}", quote(format!("{name}={value}"))));
        let duration = self.duration.as_secs_f64();
        let (name, variant) = (quote(self.scenario.address().to_owned()), quote(point.variant.clone()));
        let params: String = params.collect();
        let real = if self.real_time { " --real-time" } else { "" };
        format!(
            "braidcast lab run {name} --variant {variant}{params} --seed {seed} --runs 1 --duration {duration}s{real}"
        )
    }

    fn results<'b>(&'b self, points: impl Iterator<Item = (&'b Point, &'b [Option<Single>])>) -> Results {
        let (mut rows, mut series, mut lost_runs) = (Vec::new(), Vec::new(), Vec::new());
        for (point, singles) in points {
            let done: Vec<&Measures> = singles.iter().flatten().filter_map(|single| single.as_ref().ok()).collect();
            rows.extend(self.rows(point, &done).into_iter().map(|row| (point, row)));
            series.extend(done.iter().flat_map(|measures| &measures.curves).map(|curve| named(point, curve)));
            lost_runs.extend(singles.iter().flatten().filter_map(|single| single.as_ref().err()).cloned());
        }
        let scenario = self.scenario;
        let placed: Vec<_> = rows.iter().map(|(point, row)| (*point, row)).collect();
        let (verdicts, differences) = (judge::verdicts(scenario, &placed), judge::differences(scenario, &placed));
        Results {
            experiment: scenario.name.clone(),
            title: scenario.title.clone(),
            source: scenario.source.clone(),
            text: scenario.text.trim().to_owned(),
            seed: self.seed,
            runs: self.runs,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            duration_s: self.duration.as_secs_f64(),
            real_time: self.real_time,
            rows: rows.into_iter().map(|(_, row)| row).collect(),
            series,
            verdicts,
            differences,
            plots: scenario.plots.clone(),
            lost_runs,
        }
    }

    /// A row for each metric, in the order in which the experiment names them.
    fn rows(&self, point: &Point, done: &[&Measures]) -> Vec<Row> {
        let mut names: Vec<(&str, &str)> = Vec::new();
        for metric in done.iter().flat_map(|measures| &measures.metrics) {
            if !names.iter().any(|(name, _)| *name == metric.name) {
                names.push((&metric.name, metric.unit));
            }
        }
        let row = |(name, unit): (&str, &str)| {
            let all = done.iter().flat_map(|measures| &measures.metrics).filter(|metric| metric.name == name);
            let values: Vec<f64> = all.map(|metric| metric.value).collect();
            let (mean, ci95) = mean_ci95(&values);
            Row {
                experiment: self.scenario.name.clone(),
                variant: point.variant.clone(),
                params: point.json_params(),
                metric: name.to_owned(),
                unit: unit.to_owned(),
                mean,
                ci95,
                n: values.len() as u32,
                published: self.references.value(Against::Published, point, name),
                ns2: self.references.value(Against::Ns2, point, name),
                source: self.scenario.source.clone(),
            }
        };
        names.into_iter().map(row).collect()
    }
}

fn named(point: &Point, curve: &Curve) -> Series {
    Series {
        name: curve.name.clone(),
        variant: point.variant.clone(),
        params: point.json_params(),
        x: curve.x.to_owned(),
        y: curve.y.to_owned(),
        points: curve.points.clone(),
    }
}

fn values(points: &[Point], name: &str) -> String {
    let mut all: Vec<&Value> = Vec::new();
    for (_, value) in points.iter().flat_map(|point| &point.params).filter(|(known, _)| known == name) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn message(panic: &(dyn core::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("without a message").to_owned()
}
