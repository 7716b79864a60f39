//! The results of an experiment: the form of `lab-results/NAME.json` and of `lab run --json`, and
//! all that the report reads.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub use crate::scenario::Found;

/// The values of the swept parameters, by name.
pub type Params = BTreeMap<String, Value>;

/// One metric of one variant at one point of the sweep, over all runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the variant.
    pub variant: String,
    /// The point of the sweep.
    pub params: Params,
    /// What was measured.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// Mean over the runs.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); none for a single run.
    pub ci95: Option<f64>,
    /// How many runs the mean is of.
    pub n: u32,
    /// The value that the source publishes.
    pub published: Option<f64>,
    /// The published table that `published` stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The value of ns-2.
    pub ns2: Option<f64>,
    /// Document, section and figure of the experiment.
    pub source: String,
    /// The value of each run, by seed, if none was lost; not kept in files.
    #[serde(skip)]
    pub values: Vec<f64>,
}

/// Something over something else, from the first run of a variant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Series {
    /// What it shows.
    pub name: String,
    /// Name of the variant.
    pub variant: String,
    /// The point of the sweep.
    pub params: Params,
    /// Label of the horizontal axis, with its unit.
    pub x: String,
    /// Label of the vertical axis, with its unit.
    pub y: String,
    /// The points, by x.
    pub points: Vec<[f64; 2]>,
}

/// What became of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It holds here too.
    Confirmed,
    /// The opposite holds here.
    Refuted,
    /// It holds at some points and not at others, or not to the degree claimed.
    Mixed,
    /// The confidence intervals do not tell.
    #[serde(rename = "not distinguishable")]
    NotDistinguishable,
    /// There is no interval: a single run, or none at its points.
    #[serde(rename = "no verdict")]
    NoVerdict,
}

impl Outcome {
    /// Its name in results.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Refuted => "refuted",
            Self::Mixed => "mixed",
            Self::NotDistinguishable => "not distinguishable",
            Self::NoVerdict => "no verdict",
        }
    }
}

/// A claim of the source and what the runs say about it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Verdict {
    /// The claim in words.
    pub claim: String,
    /// Section or figure of the source that makes it.
    pub source: String,
    /// What the source is known for, in a sentence, if this claim tries it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headline: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
    /// The numbers behind the outcome.
    pub evidence: String,
    /// Why it came out so, written by a person.
    pub reason: String,
    /// The command lines that show a run of each of the two that are compared, at a point where the
    /// claim does not hold if there is one.
    #[serde(default)]
    pub inside: Vec<String>,
}

/// A row that is more than 15 % away from a reference value.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Difference {
    /// What was measured.
    pub metric: String,
    /// Name of the variant.
    pub variant: String,
    /// The point of the sweep.
    pub params: Params,
    /// `published` or `ns2`.
    pub against: String,
    /// Our mean.
    pub ours: f64,
    /// The reference value.
    pub theirs: f64,
    /// Why, written by a person; none is a gap that the report shows.
    pub reason: Option<String>,
    /// How the reason was found; none if there is none.
    #[serde(default)]
    pub found: Option<Found>,
    /// The command, or the switch, that shows the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<String>,
}

/// A published table: how many of its values ours are near to, how the others are explained, and
/// what became of the claims about what it shows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Source and number, for example `SBPN table 5.3`.
    pub name: String,
    /// Values that rows stand beside.
    pub rows: usize,
    /// Of those, within 15 %.
    pub near: usize,
    /// Farther off, for a reason that a run shows.
    pub traced: usize,
    /// Farther off, for a reason that follows from numbers or an equation.
    pub arithmetic: usize,
    /// Farther off, but no farther than the source's own values of one thing are apart.
    #[serde(default)]
    pub noise: usize,
    /// Farther off, and nobody found why.
    pub unknown: usize,
    /// Farther off, and no reason stands for that point and size.
    pub unexplained: usize,
    /// What became of each claim that compares values of it.
    pub claims: Vec<Outcome>,
}

/// Kind of a plot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlotKind {
    /// Metrics over a swept parameter, a line for each variant.
    Line,
    /// A bar for each variant and point.
    Bars,
    /// [`Series`] as they are; `metrics` names them.
    Series,
    /// The distribution of the values of [`Series`]; `metrics` names them.
    Cdf,
}

/// A plot that the report draws.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// Its kind.
    pub kind: PlotKind,
    /// Names of the metrics or series in it.
    pub metrics: Vec<String>,
    /// The parameter along the horizontal axis; empty for series.
    #[serde(default)]
    pub x: String,
    /// `true` if the vertical axis is logarithmic.
    #[serde(default)]
    pub log_y: bool,
}

/// Everything about one experiment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Results {
    /// Its name.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// Document, section and figure.
    pub source: String,
    /// What it shows.
    pub text: String,
    /// Seed of the first run; the others count up from it.
    pub seed: u64,
    /// Runs asked for at each point.
    pub runs: u32,
    /// Version of the program.
    pub version: String,
    /// Seconds that each run measures.
    pub duration_s: f64,
    /// `true` if it ran on real sockets in real time.
    #[serde(default)]
    pub real_time: bool,
    /// The means.
    pub rows: Vec<Row>,
    /// Curves of the first runs.
    pub series: Vec<Series>,
    /// The claims.
    pub verdicts: Vec<Verdict>,
    /// Rows far from their references.
    pub differences: Vec<Difference>,
    /// The published tables that rows stand beside.
    #[serde(default)]
    pub tables: Vec<Table>,
    /// Plots to draw.
    pub plots: Vec<Plot>,
    /// Runs that failed, each with why and the command that runs it again.
    pub lost_runs: Vec<String>,
}
