//! Runs sets, on all cores.

use super::draw::Source;
use super::{Link, Set, Survey, draw};
use crate::results::Row;
use crate::run::{Job, Request};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What came of one set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SetResult {
    /// Its number in the survey, from 0.
    pub index: u32,
    /// The seed of its first run.
    pub seed: u64,
    /// The links.
    pub links: Vec<Link>,
    /// What was measured over all links, then over each subset; empty if a run was lost.
    pub subsets: Vec<Subset>,
    /// Runs that failed, each with why.
    pub lost_runs: Vec<String>,
}

/// What was measured over some links of a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Subset {
    /// `all`, or the names of the links with `+` between them.
    pub name: String,
    /// Each metric's values, one for each run, to the sixth digit.
    pub values: BTreeMap<String, Vec<f64>>,
}

impl Subset {
    /// The values of a metric, one for each run; empty if it was not measured.
    pub fn values(&self, metric: &str) -> &[f64] {
        self.values.get(metric).map_or(&[], Vec::as_slice)
    }

    /// The mean of a metric over the runs; 0 if it was not measured.
    pub fn mean(&self, metric: &str) -> f64 {
        let values = self.values(metric);
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }
}

impl Survey {
    /// Runs each of `sets` with each of the settings, but for what is `known`, by number of settings and set.
    /// Calls `progress` after each run, and `finished` with the number of the settings and the results of a set.
    /// After `stop` sets that are not done are abandoned.
    pub fn run(
        &self,
        sets: &[u32],
        known: &(dyn Fn(usize, u32) -> bool + Sync),
        stop: &AtomicBool,
        progress: &(dyn Fn() + Sync),
        finished: &(dyn Fn(usize, SetResult) + Sync),
    ) {
        let source = Source::of(self);
        let all = sets.iter().flat_map(|&index| (0..self.settings.len()).map(move |settings| (index, settings)));
        let all: Vec<(u32, usize)> = all.filter(|&(index, settings)| !known(settings, index)).collect();
        let next = AtomicUsize::new(0);
        rayon::broadcast(|_| {
            while let Some(&(index, settings)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                let set = draw::set(self, &source, index);
                let Some(result) = self.run_set(&set, settings, stop, progress) else { return };
                finished(settings, result);
            }
        });
    }

    /// How many runs a set takes.
    pub fn runs_of(&self, set: &Set) -> usize {
        (1 + Self::subsets(set).len()) * self.runs as usize
    }

    /// Runs `set` with the settings of this number on this thread; none if it was stopped.
    fn run_set(&self, set: &Set, settings: usize, stop: &AtomicBool, progress: &dyn Fn()) -> Option<SetResult> {
        let mut result = SetResult {
            index: set.index,
            seed: set.seed,
            links: set.links.clone(),
            subsets: Vec::new(),
            lost_runs: Vec::new(),
        };
        let request = Request { seed: set.seed, ..Request::default() };
        let scenario = self.scenario(set, &self.settings[settings]);
        match scenario.and_then(|it| Ok(Job::new(&it, &request)?.run_here(stop, progress))) {
            Ok(None) => return None,
            Ok(Some(results)) => {
                // That scenario is in no file: whoever reports it knows the command that repeats the set.
                let why = |text: &String| text.split("; run it again").next().unwrap_or(text).to_owned();
                result.lost_runs = results.lost_runs.iter().map(why).collect();
                if result.lost_runs.is_empty() {
                    result.subsets = subsets(results.rows, self.what.metrics());
                }
            }
            Err(wrong) => result.lost_runs.push(wrong.to_string()),
        }
        Some(result)
    }
}

/// The rows by variant, in their order.
fn subsets(rows: Vec<Row>, kept: &[&str]) -> Vec<Subset> {
    let mut all: Vec<Subset> = Vec::new();
    for row in rows.into_iter().filter(|row| kept.contains(&row.metric.as_str())) {
        // So many digits are the same bits again when they are read from a file.
        let values = row.values.iter().map(|value| (value * 1e6).round() / 1e6).collect();
        if all.last().is_none_or(|it| it.name != row.variant) {
            all.push(Subset { name: row.variant, values: BTreeMap::new() });
        }
        if let Some(subset) = all.last_mut() {
            subset.values.insert(row.metric, values);
        }
    }
    all
}
