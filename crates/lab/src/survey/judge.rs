//! How sets are judged, and what all of them come to.

use super::bulk::{BulkJudged, BulkSums};
use super::clip::{ClipJudged, ClipSums};
use super::encoder::{EncoderJudged, EncoderSums};
use super::{SetResult, What};
use crate::stats::{mean_ci95, ratio_ci95, share_ci95};
use serde::Serialize;

/// A set, judged.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Judged {
    /// A clip.
    Clip(ClipJudged),
    /// An encoder that follows.
    Encoder(EncoderJudged),
    /// A bulk transfer.
    Bulk(BulkJudged),
}

/// What all sets come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Sums {
    /// Of a clip.
    Clip(ClipSums),
    /// Of an encoder that follows.
    Encoder(EncoderSums),
    /// Of bulk transfers.
    Bulk(BulkSums),
}

impl Judged {
    /// Returns what `result`, of a survey of `what`, says; none if a run was lost.
    pub fn of(what: What, result: &SetResult) -> Option<Self> {
        match what {
            What::Clip => ClipJudged::of(result).map(Self::Clip),
            What::Encoder => EncoderJudged::of(result).map(Self::Encoder),
            What::Bulk { .. } => BulkJudged::of(result).map(Self::Bulk),
        }
    }

    /// Returns what sets are ordered by, the worst one first.
    pub const fn rank(&self) -> f64 {
        match self {
            Self::Clip(it) => it.difference,
            Self::Encoder(it) => it.rank(),
            Self::Bulk(it) => it.of_best_percent,
        }
    }

    /// Returns what a table says of the set: the head of each column, and its cell.
    pub fn cells(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Clip(it) => it.cells(),
            Self::Encoder(it) => it.cells(),
            Self::Bulk(it) => it.cells(),
        }
    }
}

impl Sums {
    /// Returns the sums of `sets`, each with its number, of a survey of `what`.
    pub fn of(what: What, sets: &[(u32, Judged)]) -> Self {
        // All are of one survey.
        macro_rules! those {
            ($kind:ident) => {
                sets.iter()
                    .filter_map(|(index, it)| if let Judged::$kind(it) = it { Some((*index, it)) } else { None })
                    .collect::<Vec<_>>()
            };
        }
        match what {
            What::Clip => Self::Clip(ClipSums::of(&those!(Clip))),
            What::Encoder => Self::Encoder(EncoderSums::of(&those!(Encoder))),
            What::Bulk { .. } => Self::Bulk(BulkSums::of(&those!(Bulk))),
        }
    }

    /// Returns the figures of a table, from left to right.
    pub fn figures(&self) -> Vec<Figure> {
        match self {
            Self::Clip(it) => it.figures(),
            Self::Encoder(it) => it.figures(),
            Self::Bulk(it) => it.figures(),
        }
    }

    /// Returns the number of sets that were judged.
    pub const fn sets(&self) -> usize {
        match self {
            Self::Clip(it) => it.sets,
            Self::Encoder(it) => it.sets,
            Self::Bulk(it) => it.sets,
        }
    }
}

/// A figure of a table.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Figure {
    /// The head of its column.
    pub head: &'static str,
    /// The metric's name in results.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value.
    pub value: Value,
    /// `true` if it reaches its aim; none if it has no aim.
    pub is_good: Option<bool>,
}

/// The value of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A share of the sets.
    Share(Share),
    /// A mean over the sets.
    Mean(Estimate),
    /// The worst set; none without sets.
    Worst(Option<Worst>),
}

impl Value {
    /// Returns the value and half its 95 % interval, as results have them; none without sets.
    pub fn mean_ci95(self) -> Option<(f64, Option<f64>)> {
        match self {
            Self::Share(it) => Some((it.percent, Some((it.ci95_percent[1] - it.ci95_percent[0]) / 2.0))),
            Self::Mean(it) => Some((it.mean, it.ci95)),
            Self::Worst(it) => it.map(|it| (it.value, it.ci95)),
        }
    }
}

/// In how many sets something is so.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Share {
    /// In so many.
    pub sets: usize,
    /// Of so many.
    pub of: usize,
    /// The share, %.
    pub percent: f64,
    /// From and to with 95 % (Wilson), %.
    pub ci95_percent: [f64; 2],
}

impl Share {
    pub(super) fn of<T>(sets: &[T], is_so: impl Fn(&T) -> bool) -> Self {
        let (hits, of) = (sets.iter().filter(|it| is_so(it)).count(), sets.len());
        let (low, high) = share_ci95(hits, of);
        let percent = 100.0 * hits as f64 / of.max(1) as f64;
        Self { sets: hits, of, percent, ci95_percent: [100.0 * low, 100.0 * high] }
    }
}

/// A mean over the sets.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half its 95 % interval; none of a single set.
    pub ci95: Option<f64>,
}

impl Estimate {
    pub(super) fn of<T>(sets: &[T], value: impl Fn(&T) -> f64) -> Self {
        let (mean, ci95) = mean_ci95(&sets.iter().map(value).collect::<Vec<_>>());
        Self { mean, ci95 }
    }

    /// The sum of `above` over that of `below`, %.
    pub(super) fn ratio<T>(sets: &[T], above: impl Fn(&T) -> f64, below: impl Fn(&T) -> f64) -> Self {
        let (ratio, ci95) = ratio_ci95(&sets.iter().map(|it| (below(it), above(it))).collect::<Vec<_>>());
        Self { mean: 100.0 * ratio, ci95: ci95.map(|it| 100.0 * it) }
    }
}

/// The set that is worst.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Worst {
    /// Its number.
    pub index: u32,
    /// Its value.
    pub value: f64,
    /// Half its 95 % interval over the runs; none of a single one.
    pub ci95: Option<f64>,
}
