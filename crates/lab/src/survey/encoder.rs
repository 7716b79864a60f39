//! Video whose encoder follows what the sender says: is it on time, does it freeze, does it use the links?

use super::SetResult;
use super::judge::{Estimate, Figure, Share, Value};
use serde::Serialize;

/// Aims: frames on time, %; the longest freeze, s; share of the rate that foresight could have had, %.
const ON_TIME: f64 = 99.0;
const FREEZE: f64 = 0.3;
const RATE: f64 = 85.0;
/// All three are to be met in this share of the sets, %.
const AIM: f64 = 85.0;

/// A set, judged by what an encoder makes of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EncoderJudged {
    /// Frames on time over all links, %.
    pub on_time: f64,
    /// The longest freeze of all runs, s.
    pub longest_freeze_s: f64,
    /// The rate of frames on time over that which foresight could have had, %.
    pub of_oracle: f64,
    /// That rate over all links, kbit/s.
    pub rate_kbit: f64,
    /// With foresight, kbit/s.
    pub oracle_kbit: f64,
    /// The link that alone has the highest rate.
    pub best_alone: String,
    /// That rate, kbit/s.
    pub alone_kbit: f64,
    /// With foresight over that link, kbit/s.
    pub alone_oracle_kbit: f64,
    /// With foresight frames could be on time, and without a freeze.
    pub is_possible: bool,
}

impl EncoderJudged {
    pub(super) fn of(result: &SetResult) -> Option<Self> {
        let (all, subsets) = result.subsets.split_first()?;
        let alone = subsets.iter().filter(|it| !it.name.contains('+'));
        let best = alone.reduce(|a, b| if b.mean("rate") > a.mean("rate") { b } else { a })?;
        let longest = |metric: &str| all.values(metric).iter().copied().fold(0.0, f64::max);
        Some(Self {
            on_time: all.mean("on time"),
            longest_freeze_s: longest("longest freeze"),
            of_oracle: all.mean("share of the oracle rate"),
            rate_kbit: all.mean("rate"),
            oracle_kbit: all.mean("oracle rate"),
            best_alone: best.name.clone(),
            alone_kbit: best.mean("rate"),
            alone_oracle_kbit: best.mean("oracle rate"),
            is_possible: all.mean("oracle on time") >= ON_TIME && longest("oracle longest freeze") <= FREEZE,
        })
    }

    /// Returns `true` if all three aims are met.
    pub const fn is_met(&self) -> bool {
        self.on_time >= ON_TIME && self.longest_freeze_s <= FREEZE && self.of_oracle >= RATE
    }

    /// How much is missing to the aim that is missed most, as a share of that aim, below 0; above 0 where all are met.
    pub(super) const fn rank(&self) -> f64 {
        let late = (self.on_time - ON_TIME) / (100.0 - ON_TIME);
        let frozen = (FREEZE - self.longest_freeze_s) / FREEZE;
        late.min(frozen).min((self.of_oracle - RATE) / RATE)
    }

    pub(super) fn cells(&self) -> Vec<(&'static str, String)> {
        vec![
            ("on time", format!("{:.1}", self.on_time)),
            ("freeze, ms", format!("{:.0}", self.longest_freeze_s * 1e3)),
            ("rate of oracle", format!("{:.1}", self.of_oracle)),
            ("kbit/s", format!("{:.0}", self.rate_kbit)),
            ("best alone", format!("{} {:.0}", self.best_alone, self.alone_kbit)),
            ("possible", if self.is_possible { "yes" } else { "no" }.to_owned()),
        ]
    }
}

/// What all sets come to.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EncoderSums {
    /// Sets that were judged.
    pub sets: usize,
    /// All three aims are met.
    pub met: Share,
    /// At least 99 % of the frames are on time.
    pub on_time: Share,
    /// No freeze is longer than 300 ms.
    pub smooth: Share,
    /// The rate is at least 85 % of what foresight could have had.
    pub full: Share,
    /// With foresight frames could be on time, and without a freeze.
    pub possible: Share,
    /// The sum of the rates of that with foresight, %.
    pub of_oracle: Estimate,
    /// The sum of the rates of that over the best link alone, %.
    pub of_alone: Estimate,
    /// The same with foresight, %.
    pub possible_of_alone: Estimate,
}

impl EncoderSums {
    pub(super) fn of(sets: &[(u32, &EncoderJudged)]) -> Self {
        Self {
            sets: sets.len(),
            met: Share::of(sets, |(_, it)| it.is_met()),
            on_time: Share::of(sets, |(_, it)| it.on_time >= ON_TIME),
            smooth: Share::of(sets, |(_, it)| it.longest_freeze_s <= FREEZE),
            full: Share::of(sets, |(_, it)| it.of_oracle >= RATE),
            possible: Share::of(sets, |(_, it)| it.is_possible),
            of_oracle: Estimate::ratio(sets, |(_, it)| it.rate_kbit, |(_, it)| it.oracle_kbit),
            of_alone: Estimate::ratio(sets, |(_, it)| it.rate_kbit, |(_, it)| it.alone_kbit),
            possible_of_alone: Estimate::ratio(sets, |(_, it)| it.oracle_kbit, |(_, it)| it.alone_oracle_kbit),
        }
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let share = |head, metric, share: Share| Figure {
            head,
            metric,
            unit: "%",
            value: Value::Share(share),
            is_good: Some(share.percent >= AIM),
        };
        let mean = |head, metric, mean| Figure { head, metric, unit: "%", value: Value::Mean(mean), is_good: None };
        vec![
            share("all aims, %", "sets with all three aims", self.met),
            share("on time, %", "sets with 99 % on time", self.on_time),
            share("no freeze, %", "sets without a freeze over 300 ms", self.smooth),
            share("85 % rate, %", "sets with 85 % of the rate that foresight has", self.full),
            mean("of oracle, %", "rate, share of the oracle", self.of_oracle),
            mean("of best alone, %", "rate, share of the best link alone", self.of_alone),
            mean("possible, %", "rate with foresight, share of the best link alone", self.possible_of_alone),
        ]
    }
}
