//! What a scenario says of its own results: claims with their degrees, and reasons with the points
//! and sizes that they stand for.

use super::{Against, Places, Where};
use core::fmt;
use serde::{Deserialize, Serialize};

/// One name, or a list of them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(from = "OneOrMore")]
pub struct Names(Vec<String>);

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl From<OneOrMore> for Names {
    fn from(names: OneOrMore) -> Self {
        match names {
            OneOrMore::One(name) => Self(vec![name]),
            OneOrMore::More(names) => Self(names),
        }
    }
}

impl Names {
    /// The names, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns `true` if `name` is one of them.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|known| known == name)
    }

    /// Returns `true` if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0[..] {
            [most @ .., last] if !most.is_empty() => write!(f, "{} and {last}", most.join(", ")),
            names => f.write_str(&names.join("")),
        }
    }
}

/// `[[claim]]`: an order that the source claims, and to what degree.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub text: String,
    /// Section or figure that makes it; the scenario's source if left out.
    pub source: Option<String>,
    /// What the source is known for, in a sentence, if this claim tries it: it stands on the report's first page.
    pub headline: Option<String>,
    /// Of which metric.
    pub metric: String,
    /// The metric of the lower one, if it is another: what was measured against what a model says.
    pub lower_metric: Option<String>,
    /// The variants whose values are claimed to be the higher ones.
    pub higher: Names,
    /// The variants whose values are claimed to be the lower ones; each is compared with each of the higher ones.
    pub lower: Names,
    /// At which points.
    #[serde(default, rename = "where")]
    pub at: Where,
    /// Between which factors the higher value is of the lower one, at each point.
    pub factor: Option<[f64; 2]>,
    /// By how much the higher value is above the lower one at each point, in the metric's unit:
    /// minimum and maximum.
    pub by: Option<[f64; 2]>,
    /// The higher one need only not be below this share of the lower one: above 0, at most 1.
    pub margin: Option<f64>,
    /// Keys in which the variants may differ, as the claim is about them: those of links and network at all, others
    /// together with a second one.
    #[serde(default)]
    pub varies: Vec<String>,
    /// Why it came out as it did. `{METRIC | VARIANT}` in it becomes the value of the run.
    #[serde(default)]
    pub reason: String,
    /// Places of its keys in the file.
    #[serde(skip)]
    pub places: Places,
}

impl Claim {
    /// Returns `true` if it says that both are about the same: the degree that it claims holds that of
    /// equals, so that no order is claimed.
    pub fn is_of_sameness(&self) -> bool {
        let holds =
            |range: Option<[f64; 2]>, equal: f64| range.is_some_and(|[least, most]| least < equal && equal < most);
        holds(self.factor, 1.0) || holds(self.by, 0.0)
    }
}

/// How a reason was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Found {
    /// By a run with a switch, or by looking inside one: `shown` has the command.
    Traced,
    /// It follows from the source's own numbers, or from an equation.
    Arithmetic,
    /// The source measured the same thing twice, and its values are as far apart; the text says which they are.
    Noise,
    /// It was not found; the text says what is known.
    Unknown,
}

/// `[[difference]]`: why values are far from a reference, where, and how far.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDifference {
    /// Which metrics.
    pub metric: Names,
    /// Which variants; all if left out.
    pub variant: Option<Names>,
    /// At which points.
    #[serde(default, rename = "where")]
    pub at: Where,
    /// Which reference.
    pub against: Against,
    /// Ours over theirs: minimum and maximum, both above 1 or both below.
    pub ratio: Option<[f64; 2]>,
    /// Ours less theirs: minimum and maximum, both above 0 or both below, but for [`Found::Noise`], which has no
    /// side. For references that may be 0.
    pub by: Option<[f64; 2]>,
    /// In place of `ratio` and `by`: some of these points, each with its own.
    #[serde(default)]
    pub points: Vec<Extent>,
    /// How the reason was found.
    pub found: Found,
    /// The command, or the switch, that shows it.
    pub shown: Option<String>,
    /// The reason. `{METRIC | VARIANT}` in it becomes the value of the run.
    pub text: String,
    /// Places of its keys in the file.
    #[serde(skip)]
    pub places: Places,
}

/// Some of the points of a [`KnownDifference`], and how far the values are from the reference there.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Extent {
    /// Which metrics; those of the whole if left out.
    pub metric: Option<Names>,
    /// Which variants; those of the whole if left out.
    pub variant: Option<Names>,
    /// At which points.
    #[serde(default, rename = "where")]
    pub at: Where,
    /// Ours over theirs.
    pub ratio: Option<[f64; 2]>,
    /// Ours less theirs.
    pub by: Option<[f64; 2]>,
}

/// Returns `true` if a value is as far from a reference, and on the side of it, as `ratio` and `by`
/// say; one of them is there.
fn fits(ratio: Option<[f64; 2]>, by: Option<[f64; 2]>, ours: f64, theirs: f64) -> bool {
    let within = |value: f64, [least, most]: [f64; 2]| (least..=most).contains(&value);
    match (ratio, by) {
        (Some(range), _) => theirs != 0.0 && within(ours / theirs, range),
        (None, Some(range)) => within(ours - theirs, range),
        (None, None) => false,
    }
}

impl Extent {
    fn covers(&self, of: &Compared<'_>) -> bool {
        self.metric.as_ref().is_none_or(|it| it.has(of.metric))
            && self.variant.as_ref().is_none_or(|it| it.has(of.variant))
            && of.point.is_at(&self.at)
            && fits(self.ratio, self.by, of.ours, of.theirs)
    }
}

/// A value beside that of a reference.
pub(crate) struct Compared<'a> {
    pub(crate) point: &'a super::Point,
    pub(crate) metric: &'a str,
    pub(crate) variant: &'a str,
    pub(crate) against: Against,
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
}

impl KnownDifference {
    /// Returns `true` if the reason stands for a value: for its metric, variant and point, and for how far it
    /// is off and to which side.
    pub(crate) fn covers(&self, of: &Compared<'_>) -> bool {
        let speaks_of = self.against == of.against
            && self.metric.has(of.metric)
            && self.variant.as_ref().is_none_or(|it| it.has(of.variant))
            && of.point.is_at(&self.at);
        let by_points = || self.points.iter().any(|it| it.covers(of));
        speaks_of && if self.points.is_empty() { fits(self.ratio, self.by, of.ours, of.theirs) } else { by_points() }
    }
}
