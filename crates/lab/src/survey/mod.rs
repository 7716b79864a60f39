//! The survey: does one more link ever hurt, on links that nobody chose?
//!
//! Sets of links are drawn at random. An experiment runs over all links of a set, over each alone, and over
//! each two if there are three or more. [`Sums`] count the sets in which all links did worse than the best of
//! these subsets.
//!
//! A set depends on the seed and its number alone: set 7 is the same among 10 and among 1000.

mod bulk;
mod clip;
mod draw;
mod encoder;
mod judge;
mod recorded;
mod report;
mod run;
#[cfg(test)]
mod tests;
mod what;

pub use bulk::{BulkJudged, BulkSums};
pub use clip::{ClipJudged, ClipSums};
pub use draw::{Kind, Link, Set, Without};
pub use encoder::{EncoderJudged, EncoderSums};
pub use judge::{Estimate, Figure, Judged, Share, Sums, Value, Worst};
pub use run::{SetResult, Subset};
pub use what::What;

use crate::clip::Clip;
use crate::scenario::{Scenario, Wrong, did_you_mean};
use core::time::Duration;
use draw::{NAMES, Source};
use std::path::Path;

/// Most links of a set.
pub const MAX_LINKS: usize = NAMES.len();

/// What is drawn, and what is run over it.
#[derive(Clone, PartialEq, Debug)]
pub struct Survey {
    /// What is run.
    pub what: What,
    /// The seed of all that is drawn.
    pub seed: u64,
    /// Fewest and most links of a set, 2 to [`MAX_LINKS`]; the number is drawn.
    pub links: (usize, usize),
    /// The stream's rate over that of the first link, from and to, above 0.
    pub load: (f64, f64),
    /// Where links come from: one of these for each set. Not empty.
    pub kinds: Vec<Kind>,
    /// What the links are spared after they were drawn: the same sets without it.
    pub without: Vec<Without>,
    /// The clip, one of [`Clip::names`].
    pub clip: String,
    /// From capture to display.
    pub latency: Duration,
    /// How long each run measures.
    pub duration: Duration,
    /// Runs over each subset, each with a seed of its own.
    pub runs: u32,
    /// What is compared, each with its own settings.
    pub settings: Vec<Settings>,
}

/// Settings that all subsets are run with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// What tables call them.
    pub name: String,
    /// Lines of a scenario with their whole keys: `live.scheduler = "ecf"`.
    lines: Vec<String>,
}

impl Settings {
    /// The defaults, as `default`.
    pub fn none() -> Self {
        Self { name: "default".to_owned(), lines: Vec::new() }
    }

    /// Reads `lines`, each `KEY = VALUE`, for a survey of `what`. A key without a point is one of `[live]`, or of
    /// `[sctp]` for a bulk transfer. Text needs no quotes.
    ///
    /// # Errors
    /// [`Wrong`] if a scenario refuses one of them.
    pub fn read<'a>(what: What, lines: impl IntoIterator<Item = &'a str>) -> Result<Self, Wrong> {
        let (mut names, mut all) = (Vec::new(), Vec::new());
        for line in lines {
            let wrong = |what: String, fix: &str| Wrong::new(format!("'{line}'"), what, fix);
            let (key, value) = line.split_once('=').map_or((line, ""), |(key, value)| (key.trim(), value.trim()));
            if value.is_empty() {
                return Err(wrong("this is no setting".to_owned(), "write for example 'scheduler = \"ecf\"'"));
            }
            let is_value =
                |text: &str| toml::from_str::<toml::Table>(&format!("x = {text}")).is_ok_and(|it| it.len() == 1);
            let quoted = if is_value(value) { value.to_owned() } else { toml::Value::from(value).to_string() };
            let whole = if key.contains('.') { key.to_owned() } else { format!("{}.{key}", what.section()) };
            all.push(format!("{whole} = {quoted}"));
            names.push(format!("{key} {}", quoted.trim_matches('"')));
            let alone = Self { name: String::new(), lines: all[all.len() - 1..].to_vec() };
            let survey = Survey { what, ..Survey::default() };
            if let Err(it) = survey.scenario(&survey.set(0), &alone) {
                return Err(wrong(it.what, &it.fix));
            }
        }
        Ok(if all.is_empty() { Self::none() } else { Self { name: names.join(", "), lines: all } })
    }
}

impl Settings {
    /// The same under another name.
    pub fn called(self, name: String) -> Self {
        Self { name, ..self }
    }
}

impl Default for Survey {
    fn default() -> Self {
        Self {
            what: What::Clip,
            seed: 1,
            links: (2, 2),
            load: (0.45, 1.0),
            kinds: vec![Kind::Drawn],
            without: Vec::new(),
            clip: "test-3.6".to_owned(),
            latency: Duration::from_millis(500),
            duration: Duration::from_secs(60),
            runs: 3,
            settings: vec![Settings::none()],
        }
    }
}

impl Survey {
    /// Says what is wrong with it, if something is.
    ///
    /// # Errors
    /// [`Wrong`], with what would be right.
    pub fn check(&self) -> Result<(), Wrong> {
        let wrong = |what: &str, value: String, fix: String| Err(Wrong::new(what, value, fix));
        if Clip::embedded(&self.clip).is_none() {
            let what = format!("there is no clip '{}'", self.clip);
            return wrong("clip", what, did_you_mean(&self.clip, Clip::names()));
        }
        let (least, most) = self.links;
        if !(2..=MAX_LINKS).contains(&least) || !(least..=MAX_LINKS).contains(&most) {
            return wrong("links", format!("{least} to {most}"), format!("write 2 to {MAX_LINKS}"));
        }
        let (low, high) = self.load;
        if !(0.01..=100.0).contains(&low) || !(low..=100.0).contains(&high) {
            return wrong("load", format!("{low} to {high}"), "write 0.01 to 100, the lower one first".to_owned());
        }
        for settings in &self.settings {
            self.scenario(&self.set(0), settings)?;
        }
        Ok(())
    }

    /// What the clip takes of links, kbit/s: its transport stream, and 5 % for headers of packets.
    pub fn stream_kbit(&self) -> f64 {
        Clip::embedded(&self.clip).map_or(1e3, |clip| clip.bits_per_second() * 1.05 / 1e3)
    }

    /// The sets of these numbers.
    pub fn sets(&self, numbers: &[u32]) -> Vec<Set> {
        let source = Source::of(self);
        numbers.iter().map(|&index| draw::set(self, &source, index)).collect()
    }

    /// Set number `index`.
    pub fn set(&self, index: u32) -> Set {
        draw::set(self, &Source::of(self), index)
    }

    /// The subsets that are run besides all of `set`: each link, and each two of three links or more.
    fn subsets(set: &Set) -> Vec<Vec<usize>> {
        let count = set.links.len();
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| vec![a, b]));
        (0..count).map(|n| vec![n]).chain(pairs.filter(|_| count > 2)).collect()
    }

    /// `all`, or the names of the links.
    fn subset_name(set: &Set, subset: &[usize]) -> String {
        if subset.len() == set.links.len() {
            return "all".to_owned();
        }
        subset.iter().map(|&n| set.links[n].name.as_str()).collect::<Vec<_>>().join("+")
    }

    fn scenario(&self, set: &Set, settings: &Settings) -> Result<Scenario, Wrong> {
        Scenario::read("survey.toml", &self.scenario_text(set, settings), Path::new("."))
    }
}
