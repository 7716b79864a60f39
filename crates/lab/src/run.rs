//! Runs the points of a scenario over seeds, on all cores, and makes results of what they measured.

use crate::experiment::{Curve, Experiment, Measures};
use crate::judge;
use crate::plan::{Done, Listeners, Run};
use crate::plots;
use crate::real_time;
use crate::reference::References;
use crate::results::{Results, Row, Series};
use crate::scenario::{Against, Point, Scenario, Value, Wrong, did_you_mean};
use crate::simulate::{Failed, simulate};
use crate::stats::mean_ci95;
use braidcast_core::events::Tracer;
use core::cmp::Reverse;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    experiment: &'a Experiment,
    points: Vec<Point>,
    references: References<'a>,
    runs: u32,
    seed: u64,
    duration: Duration,
    real_time: bool,
    /// `true` if it is all of the scenario, for as long as that says.
    whole: bool,
    listeners: Listeners,
}

/// What came of one run.
type Single = Result<Measures, String>;

/// Most runs of a scenario.
const MAX_RUNS: usize = 1_000_000;

/// Runs all `jobs` on all cores, one after the other, but the next one begins while the last runs of the one before it
/// still go on. Calls `progress` after each run and `finished` with the number of a job and its results; of jobs that
/// `stop` interrupts with what is done, unless that is nothing.
pub fn run_all(
    jobs: &[Job<'_>],
    stop: &AtomicBool,
    progress: &(dyn Fn() + Sync),
    finished: &(dyn Fn(usize, Results) + Sync),
) {
    let order =
        |(number, job): (usize, &Job<'_>)| job.order().into_iter().map(move |(point, run)| (number, point, run));
    let order: Vec<_> = jobs.iter().enumerate().flat_map(order).collect();
    let singles = |job: &Job<'_>| Mutex::new((job.runs(), vec![None; job.runs()]));
    let singles: Vec<Mutex<(usize, Vec<Option<Single>>)>> = jobs.iter().map(singles).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&(number, point, run)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let job = &jobs[number];
            let Some(single) = job.single(&job.points[point], run, stop) else { continue };
            progress();
            let mut all = lock(&singles[number]);
            let (left, all) = &mut *all;
            all[point * job.runs as usize + run as usize] = Some(single);
            *left -= 1;
            if *left == 0 {
                finished(number, job.results(&core::mem::take(all)));
            }
        }
    };
    if jobs.iter().any(|job| job.real_time) {
        work();
    } else {
        rayon::broadcast(|_| work());
    }
    for (number, (job, singles)) in jobs.iter().zip(&singles).enumerate() {
        let all = core::mem::take(&mut lock(singles).1);
        if all.iter().any(Option::is_some) {
            finished(number, job.results(&all));
        }
    }
}

/// A run that panics is caught before it could leave a lock behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Job<'a> {
    /// The runs of `scenario` that `request` asks for, by the experiment that the scenario names.
    ///
    /// # Errors
    /// [`Wrong`] if there is no such experiment, a variant or parameter that `request` names is
    /// none, it has a fixed length and `request` another, or a reference cannot be read.
    pub fn new(scenario: &'a Scenario, request: &Request) -> Result<Self, Wrong> {
        let name = &scenario.experiment;
        let experiment = Experiment::find(name).ok_or_else(|| {
            let fix = did_you_mean(name, Experiment::ALL.iter().map(|it| it.name));
            Wrong::new(scenario.places.of("experiment"), format!("no experiment is called '{name}'"), fix)
        })?;
        Self::by(experiment, scenario, request)
    }

    /// The same by an experiment that need not be among [`Experiment::ALL`], whatever the scenario names.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn by(experiment: &'a Experiment, scenario: &'a Scenario, request: &Request) -> Result<Self, Wrong> {
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
                let fix = match params.iter().any(|(known, _)| known == name) {
                    true => format!("its values are: {}", values(&points, name)),
                    false => did_you_mean(name, params.iter().map(|(known, _)| known.as_str())),
                };
                return Err(Wrong::new(&scenario.name, what, fix));
            }
            points.retain(has);
        }
        let references = References::read(scenario)?;
        let runs = request.runs.unwrap_or(scenario.runs).max(1);
        if points.len().saturating_mul(runs as usize) > MAX_RUNS {
            let what = format!("{runs} runs at each of {} points are more than {MAX_RUNS}", points.len());
            return Err(Wrong::new(
                &scenario.file,
                what,
                "run less often, or choose points with --param and --variant",
            ));
        }
        let duration = request.duration.unwrap_or(scenario.duration);
        if experiment.fixed_length && duration != scenario.duration {
            let what =
                format!("its runs always last {}s: its values are those of moments", scenario.duration.as_secs_f64());
            return Err(Wrong::new(&scenario.name, what, "leave out --duration"));
        }
        let whole = request.variant.is_none() && request.params.is_empty() && duration >= scenario.duration;
        let (seed, real_time) = (request.seed, request.real_time);
        let listeners = Listeners::new();
        Ok(Self { scenario, experiment, points, references, runs, seed, duration, real_time, whole, listeners })
    }

    /// What the scenario says of metrics and curves that nothing in `results`, those of all runs,
    /// has: slips of the pen. Nothing is said if they may be missing for another reason: only
    /// some of the points, less time than the scenario says, or runs that were lost.
    pub fn unmeasured(&self, results: &Results) -> Vec<Wrong> {
        if self.whole && results.lost_runs.is_empty() { self.scenario.unmeasured(results) } else { Vec::new() }
    }

    /// Only the first run of the first point that it would run, with `listener` asked who is told
    /// of what happens inside a host, by the host's name. Hosts of TCP and of bare datagrams tell
    /// nothing.
    ///
    /// # Errors
    /// Those of `listener`.
    pub fn traced<E>(mut self, mut listener: impl FnMut(&str) -> Result<Tracer, E>) -> Result<Self, E> {
        self.points.truncate(1);
        (self.runs, self.whole) = (1, false);
        let flows = self.points.iter().flat_map(|point| &point.flows);
        for flow in flows.filter(|flow| flow.agent.tells_events()) {
            for end in ["sender", "receiver"] {
                let name = format!("{}.{end}", flow.name);
                let tracer = listener(&name)?;
                self.listeners.insert(name, tracer);
            }
        }
        Ok(self)
    }

    /// The command line of its first run.
    pub fn first_command(&self) -> Option<String> {
        self.points.first().map(|point| self.command(point, self.seed, "--runs 1"))
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.points.len() * self.runs as usize
    }

    /// The scenario that it runs.
    pub const fn scenario(&self) -> &Scenario {
        self.scenario
    }

    /// Runs everything, until `stop`; what is done by then is kept. Calls `progress` after each run.
    pub fn run(&self, stop: &AtomicBool, progress: &(dyn Fn() + Sync)) -> Results {
        let singles = Mutex::new(Vec::new());
        run_all(core::slice::from_ref(self), stop, progress, &|_, results| lock(&singles).push(results));
        lock(&singles).pop().unwrap_or_else(|| self.results(&[]))
    }

    /// Runs everything on this thread, one run after the other. Calls `progress` after each. None if `stop` ended it.
    pub(crate) fn run_here(&self, stop: &AtomicBool, progress: &dyn Fn()) -> Option<Results> {
        let all = (0..self.points.len()).flat_map(|point| (0..self.runs).map(move |run| (point, run)));
        let one = |(point, run): (usize, u32)| {
            let single = self.single(&self.points[point], run, stop)?;
            progress();
            Some(Some(single))
        };
        let singles = all.map(one).collect::<Option<Vec<_>>>()?;
        Some(self.results(&singles))
    }

    /// All its runs, the longest first, so that the cores have work to the end.
    fn order(&self) -> Vec<(usize, u32)> {
        let mut points: Vec<usize> = (0..self.points.len()).collect();
        points.sort_by_key(|&point| Reverse(self.points[point].bits(self.duration)));
        points.into_iter().flat_map(|point| (0..self.runs).map(move |run| (point, run))).collect()
    }

    /// One run; none if it was stopped.
    fn single(&self, point: &Point, run: u32, stop: &AtomicBool) -> Option<Single> {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        let seed = self.seed.wrapping_add(u64::from(run));
        let it = Run { point, seed, duration: self.duration, listeners: &self.listeners };
        let experiment = self.experiment;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let (plan, measure) = ((experiment.build)(&it), |done: &Done<'_>| (experiment.measure)(&it, done));
            if self.real_time { real_time::run(plan, seed, stop, measure) } else { simulate(plan, seed, stop, measure) }
        }));
        let outcome = outcome.unwrap_or_else(|panic| Err(Failed::Broken(format!("panic: {}", message(&*panic)))));
        match outcome {
            Ok(measures) if run == 0 => Some(Ok(measures)),
            Ok(measures) => Some(Ok(Measures { curves: Vec::new(), ..measures })),
            Err(Failed::Stopped) => None,
            Err(why) => Some(Err(format!("{why}; run it again with: {}", self.command(point, seed, "--runs 1")))),
        }
    }

    /// The command line that runs one seed of one point, with `flags`.
    fn command(&self, point: &Point, seed: u64, flags: &str) -> String {
        let quote = |text: String| {
            let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,=%/".contains(c));
            if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
        };
        let params = point.params.iter().map(|(name, value)| format!(" --param {}", quote(format!("{name}={value}"))));
        let duration = match self.duration == self.scenario.duration {
            true => String::new(),
            false => format!(" --duration {}s", self.duration.as_secs_f64()),
        };
        let (name, variant) = (quote(self.scenario.address().to_owned()), quote(point.variant.clone()));
        let params: String = params.collect();
        let real = if self.real_time { " --real-time" } else { "" };
        format!("braidcast lab run {name} --variant {variant}{params} --seed {seed} {flags}{duration}{real}")
    }

    /// What came of the runs in `singles`: those of the first point by seed, then those of the second, and so on.
    fn results(&self, singles: &[Option<Single>]) -> Results {
        let (mut rows, mut series, mut lost_runs) = (Vec::new(), Vec::new(), Vec::new());
        for (point, singles) in self.points.iter().zip(singles.chunks(self.runs as usize)) {
            let done: Vec<&Measures> = singles.iter().flatten().filter_map(|single| single.as_ref().ok()).collect();
            rows.extend(self.rows(point, &done).into_iter().map(|row| (point, row)));
            series.extend(done.iter().flat_map(|measures| &measures.curves).map(|curve| named(point, curve)));
            lost_runs.extend(singles.iter().flatten().filter_map(|single| single.as_ref().err()).cloned());
        }
        let scenario = self.scenario;
        let placed: Vec<_> = rows.iter().map(|(point, row)| (*point, row)).collect();
        let look_inside = |point: &Point| {
            let tells = point.flows.iter().any(|flow| flow.agent.tells_events());
            tells.then(|| self.command(point, self.seed, "--viz"))
        };
        let verdicts = judge::verdicts(scenario, &placed, &look_inside);
        let differences = judge::differences(scenario, &placed);
        let tables = judge::tables(scenario, &placed, &verdicts, &differences);
        let rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
        let plots = match &scenario.plots[..] {
            [] => plots::without_asking(&rows, &series),
            plots => plots.to_vec(),
        };
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
            rows,
            series,
            verdicts,
            differences,
            tables,
            plots,
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
            let published = self.references.value(Against::Published, point, name);
            Row {
                experiment: self.scenario.name.clone(),
                variant: point.variant.clone(),
                params: point.json_params(),
                metric: name.to_owned(),
                unit: unit.to_owned(),
                mean,
                ci95,
                n: values.len() as u32,
                published: published.map(|(value, _)| value),
                table: published.map(|(_, table)| table.to_owned()),
                ns2: self.references.value(Against::Ns2, point, name).map(|(value, _)| value),
                source: self.scenario.source.clone(),
                values: if values.len() == self.runs as usize { values } else { Vec::new() },
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
