//! Bulk transfers: is it ever slower over all links than over the best subset?

use super::SetResult;
use super::judge::{Estimate, Figure, Share, Value, Worst};
use crate::stats::mean_ci95;
use serde::Serialize;

/// Slower is what has less than this of the best subset's goodput, %.
const SLOWER: f64 = 98.0;
/// At most so many of the sets are to be slower, %: 1 of 40.
const AIM: f64 = 2.5;

const GOODPUT: &str = "goodput";

/// A set, judged by goodput.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BulkJudged {
    /// Goodput over all links, kbit/s.
    pub all_kbit: f64,
    /// The best subset.
    pub best_subset: String,
    /// Goodput over that, kbit/s.
    pub best_kbit: f64,
    /// The sum of goodputs over each link alone, kbit/s.
    pub sum_kbit: f64,
    /// `all_kbit` of `best_kbit`, %.
    pub of_best_percent: f64,
    /// Half the 95 % interval of that over the runs; none of a single one.
    pub of_best_ci95: Option<f64>,
    /// `all_kbit` of `sum_kbit`, %.
    pub of_sum_percent: f64,
}

impl BulkJudged {
    pub(super) fn of(result: &SetResult) -> Option<Self> {
        let (all, subsets) = result.subsets.split_first()?;
        let best = subsets.iter().reduce(|a, b| if b.mean(GOODPUT) > a.mean(GOODPUT) { b } else { a })?;
        let alone = subsets.iter().filter(|it| !it.name.contains('+'));
        let (all_kbit, best_kbit) = (all.mean(GOODPUT), best.mean(GOODPUT));
        let sum_kbit: f64 = alone.map(|it| it.mean(GOODPUT)).sum();
        let percent = |of: f64| if of > 0.0 { 100.0 * all_kbit / of } else { 100.0 };
        let runs = all.values(GOODPUT).iter().map(|it| 100.0 * it / best_kbit.max(1.0));
        Some(Self {
            all_kbit,
            best_subset: best.name.clone(),
            best_kbit,
            sum_kbit,
            of_best_percent: percent(best_kbit),
            of_best_ci95: mean_ci95(&runs.collect::<Vec<_>>()).1,
            of_sum_percent: percent(sum_kbit),
        })
    }

    pub(super) fn cells(&self) -> Vec<(&'static str, String)> {
        let mbit = |kbit: f64| format!("{:.2}", kbit / 1e3);
        vec![
            ("of best, %", format!("{:.1}", self.of_best_percent)),
            ("of sum, %", format!("{:.1}", self.of_sum_percent)),
            ("all, Mbit/s", mbit(self.all_kbit)),
            ("best", mbit(self.best_kbit)),
            ("best subset", self.best_subset.clone()),
            ("sum", mbit(self.sum_kbit)),
        ]
    }
}

/// What all sets come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BulkSums {
    /// Sets that were judged.
    pub sets: usize,
    /// All links have less than 98 % of the best subset's goodput.
    pub slower: Share,
    /// The set that has least of the best subset's goodput, %; none without sets.
    pub worst: Option<Worst>,
    /// Goodput of the best subset's, %.
    pub of_best: Estimate,
    /// Goodput of the sum over each link alone, %.
    pub of_sum: Estimate,
    /// The median of that over the sets, %.
    pub median_of_sum: f64,
}

impl BulkSums {
    pub(super) fn of(sets: &[(u32, &BulkJudged)]) -> Self {
        let worst = sets.iter().min_by(|(_, a), (_, b)| a.of_best_percent.total_cmp(&b.of_best_percent));
        let mut shares: Vec<f64> = sets.iter().map(|(_, it)| it.of_sum_percent).collect();
        shares.sort_by(f64::total_cmp);
        let at = |n: usize| shares.get(n).copied().unwrap_or(0.0);
        Self {
            sets: sets.len(),
            slower: Share::of(sets, |(_, it)| it.of_best_percent < SLOWER),
            worst: worst.map(|&(index, it)| Worst { index, value: it.of_best_percent, ci95: it.of_best_ci95 }),
            of_best: Estimate::of(sets, |(_, it)| it.of_best_percent),
            of_sum: Estimate::of(sets, |(_, it)| it.of_sum_percent),
            median_of_sum: (at(shares.len().saturating_sub(1) / 2) + at(shares.len() / 2)) / 2.0,
        }
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let mean = |head, metric, mean| Figure { head, metric, unit: "%", value: Value::Mean(mean), is_good: None };
        let median = Estimate { mean: self.median_of_sum, ci95: None };
        vec![
            Figure {
                head: "slower, %",
                metric: "sets slower than their best subset",
                unit: "%",
                value: Value::Share(self.slower),
                is_good: Some(self.slower.percent <= AIM),
            },
            Figure {
                head: "worst, % of best",
                metric: "worst set, goodput of the best subset's",
                unit: "%",
                value: Value::Worst(self.worst),
                is_good: None,
            },
            mean("of best, %", "goodput of the best subset's", self.of_best),
            mean("of sum, %", "goodput of the sum", self.of_sum),
            mean("median", "goodput of the sum, median", median),
        ]
    }
}
