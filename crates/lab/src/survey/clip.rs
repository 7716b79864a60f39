//! A clip over the links: frames that can be shown.

use super::SetResult;
use super::judge::{Estimate, Figure, Share, Value, Worst};
use crate::stats::mean_ci95;
use serde::Serialize;

/// A set is hurt if all links are further than this below the best subset, in points of playable frames.
const HURT: f64 = 1.0;
/// A set is hurt much further below than this.
const MUCH: f64 = 5.0;
/// If a subset shows this share, more links can only do harm, %.
const ENOUGH: f64 = 99.0;
/// The share of sets that may be hurt, %.
const AIM: f64 = 2.0;

const PLAYABLE: &str = "playable";

/// A set, judged by the frames of a clip that can be shown.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClipJudged {
    /// Playable frames over all links, %.
    pub all: f64,
    /// The best subset.
    pub best_subset: String,
    /// Playable frames over that, %.
    pub best: f64,
    /// What foresight has over all links, %.
    pub oracle: f64,
    /// `all` less `best`, points.
    pub difference: f64,
    /// Half the 95 % interval of that over the runs; none of a single one.
    pub difference_ci95: Option<f64>,
}

impl ClipJudged {
    pub(super) fn of(result: &SetResult) -> Option<Self> {
        let (all, subsets) = result.subsets.split_first()?;
        let best = subsets.iter().reduce(|a, b| if b.mean(PLAYABLE) > a.mean(PLAYABLE) { b } else { a })?;
        let runs = all.values(PLAYABLE).iter().zip(best.values(PLAYABLE)).map(|(all, best)| all - best);
        let (difference, difference_ci95) = mean_ci95(&runs.collect::<Vec<_>>());
        Some(Self {
            all: all.mean(PLAYABLE),
            best_subset: best.name.clone(),
            best: best.mean(PLAYABLE),
            oracle: all.mean("oracle playable"),
            difference,
            difference_ci95,
        })
    }

    pub(super) fn cells(&self) -> Vec<(&'static str, String)> {
        let ci95 = self.difference_ci95.map_or_else(String::new, |it| format!(" ± {it:>4.1}"));
        vec![
            ("all less best", format!("{:.1}{ci95}", self.difference)),
            ("all", format!("{:.1}", self.all)),
            ("best", format!("{:.1}", self.best)),
            ("best subset", self.best_subset.clone()),
            ("oracle", format!("{:.1}", self.oracle)),
        ]
    }
}

/// What all sets come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ClipSums {
    /// Sets that were judged.
    pub sets: usize,
    /// All links are more than 1 point worse than the best subset.
    pub hurt: Share,
    /// More than 5 points worse.
    pub hurt_much: Share,
    /// More than 1 point better.
    pub helped: Share,
    /// Hurt of those where a subset has 99 %.
    pub hurt_where_enough: Share,
    /// The set that loses most, points; none without sets.
    pub worst: Option<Worst>,
    /// Playable frames over all links, %.
    pub all: Estimate,
    /// Over each set's best subset, %.
    pub best: Estimate,
    /// With foresight, %.
    pub oracle: Estimate,
    /// All links less the best subset, points.
    pub difference: Estimate,
    /// The sum over all links of that with foresight, %.
    pub of_oracle: Estimate,
    /// The sum over all links of that over the best subsets, %.
    pub of_best: Estimate,
}

impl ClipSums {
    pub(super) fn of(sets: &[(u32, &ClipJudged)]) -> Self {
        let worst = sets.iter().min_by(|(_, a), (_, b)| a.difference.total_cmp(&b.difference));
        let enough: Vec<_> = sets.iter().copied().filter(|(_, it)| it.best >= ENOUGH).collect();
        Self {
            sets: sets.len(),
            hurt: Share::of(sets, |(_, it)| it.difference < -HURT),
            hurt_much: Share::of(sets, |(_, it)| it.difference < -MUCH),
            helped: Share::of(sets, |(_, it)| it.difference > HURT),
            hurt_where_enough: Share::of(&enough, |(_, it)| it.difference < -HURT),
            worst: worst.map(|&(index, it)| Worst { index, value: it.difference, ci95: it.difference_ci95 }),
            all: Estimate::of(sets, |(_, it)| it.all),
            best: Estimate::of(sets, |(_, it)| it.best),
            oracle: Estimate::of(sets, |(_, it)| it.oracle),
            difference: Estimate::of(sets, |(_, it)| it.difference),
            of_oracle: Estimate::ratio(sets, |(_, it)| it.all, |(_, it)| it.oracle),
            of_best: Estimate::ratio(sets, |(_, it)| it.all, |(_, it)| it.best),
        }
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let share = |head, metric, share: Share, aim: f64| Figure {
            head,
            metric,
            unit: "%",
            value: Value::Share(share),
            is_good: Some(share.percent <= aim),
        };
        let mean = |head, metric, mean| Figure { head, metric, unit: "%", value: Value::Mean(mean), is_good: None };
        let (head, metric) = ("worst", "worst set, all links less the best subset");
        vec![
            share("hurt, %", "sets hurt by over 1 point", self.hurt, AIM),
            share("by > 5, %", "sets hurt by over 5 points", self.hurt_much, 0.0),
            Figure { head, metric, unit: "points", value: Value::Worst(self.worst), is_good: None },
            mean("of oracle, %", "playable, share of the oracle", self.of_oracle),
            mean("of best, %", "playable, share of the best subset", self.of_best),
            mean("playable, %", "playable", self.all),
        ]
    }
}
