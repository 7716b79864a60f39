//! Scenarios: what a file says, and the runs that follow from it.

mod check;
mod dccp;
mod file;
mod findings;
mod flow;
mod keys;
mod link;
mod live;
mod network;
mod sctp;
mod tcp;
mod value;
mod wrong;

pub use findings::{Claim, Extent, Found, KnownDifference, Names};
pub use flow::{Agent, FlowSpec, Traffic};
pub use link::LinkSpec;
pub use live::{Encoding, LiveSpec};
pub use network::{NetworkSpec, Wrap};
pub use value::{Setting, Settings, Value};
pub use wrong::{Places, Wrong};

pub(crate) use findings::Compared;
pub(crate) use wrong::did_you_mean;

use link::Traces;
use live::Clips;

use crate::results::{Params, Plot};
use core::time::Duration;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Most points that a sweep may have, times variants.
const MAX_POINTS: usize = 10_000;
/// Most bytes that all points may take.
const MAX_BYTES: usize = 256 << 20;

/// A scenario file that was read.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The file's name, for messages.
    pub file: String,
    /// Folder of traces and references.
    pub folder: PathBuf,
    /// Places of the tables and keys at its top.
    pub places: Places,
    /// The name that `lab run` knows.
    pub name: String,
    /// One line.
    pub title: String,
    /// Document, section and figure.
    pub source: String,
    /// What it shows.
    pub text: String,
    /// The name of the code behind it; [`Job::new`](crate::Job::new) looks it up.
    pub experiment: String,
    /// Runs at each point if nobody says otherwise.
    pub runs: u32,
    /// How long each run measures.
    pub duration: Duration,
    /// What all runs have in common.
    pub settings: Settings,
    /// The parameters whose product is run.
    pub sweep: Vec<(String, Vec<Value>)>,
    /// Points that are listed one by one; each is combined with the whole sweep.
    pub cases: Vec<Case>,
    /// What is compared.
    pub variants: Vec<Variant>,
    /// What the source claims.
    pub claims: Vec<Claim>,
    /// Reasons for differences.
    pub differences: Vec<KnownDifference>,
    /// Values to compare with.
    pub references: Vec<Reference>,
    /// Plots of the report.
    pub plots: Vec<Plot>,
    /// Places of the keys of each of them.
    pub plot_places: Vec<Places>,
}

/// A point listed by hand.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its parameters.
    pub params: Vec<(String, Value)>,
    /// What it sets otherwise.
    pub settings: Settings,
}

/// One of the things compared.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// What it sets otherwise.
    pub settings: Settings,
    /// `FILE:LINE` of its name.
    pub place: String,
}

/// At which points something holds: the values of parameters; a list means any of them.
pub type Where = BTreeMap<String, Value>;

/// Whose values ours are compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Against {
    /// The source's.
    Published,
    /// ns-2.35's.
    Ns2,
}

impl Against {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Ns2 => "ns2",
        }
    }
}

/// `[[reference]]`: a CSV file of values to compare with, and how its columns relate to rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Whose values they are.
    pub against: Against,
    /// The file: an embedded one by its name, or one beside the scenario.
    pub file: String,
    /// What the table is called where it is published; the file's name if left out.
    pub table: Option<String>,
    /// The column that names the variant, if there is one.
    pub variant: Option<String>,
    /// What the file calls our variants, if the names differ.
    #[serde(default)]
    pub variants: BTreeMap<String, String>,
    /// Our parameter: its column.
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    /// Columns that must have a certain value.
    #[serde(default, rename = "where")]
    pub at: Where,
    /// Our metric: its column.
    pub metrics: BTreeMap<String, Column>,
    /// Places of its keys in the file.
    #[serde(skip)]
    pub places: Places,
}

/// A column of values.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Column {
    /// In our unit.
    Plain(String),
    /// In another one.
    Scaled {
        /// The column.
        column: String,
        /// What its values are multiplied with to have our unit.
        factor: f64,
    },
}

/// A point of the sweep for one variant: what is run, once for each seed.
#[derive(Clone, Debug)]
pub struct Point {
    /// Name of the variant.
    pub variant: String,
    /// The parameters, in the order of the file.
    pub params: Vec<(String, Value)>,
    /// The network as a whole.
    pub network: NetworkSpec,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
}

impl Point {
    /// The parameters as results have them.
    pub fn json_params(&self) -> Params {
        self.params.iter().map(|(name, value)| (name.clone(), value.json())).collect()
    }

    /// Bits that its flows could carry in a run that measures for `duration`: how much work it is, about.
    pub(crate) fn bits(&self, duration: Duration) -> u64 {
        let rate = |&link: &usize| self.links[link].there.rate.mean_bits_per_second();
        let of_flow = |flow: &FlowSpec| {
            let time = (flow.traffic.start + flow.traffic.warmup + duration).as_secs();
            let rate: u64 = flow.paths.iter().filter_map(|links| links.iter().filter_map(rate).min()).sum();
            rate.saturating_mul(time)
        };
        self.flows.iter().map(of_flow).fold(0, u64::saturating_add)
    }

    /// Bytes that it takes, about.
    fn size(&self) -> usize {
        let paths = self.flows.iter().flat_map(|flow| &flow.paths);
        let paths: usize = paths.map(|links| size_of_val(&**links) + size_of::<Vec<usize>>()).sum();
        paths + size_of_val(&*self.links) + size_of_val(&*self.flows)
    }

    /// Returns `true` if the point is among those that `at` describes.
    pub fn is_at(&self, at: &Where) -> bool {
        at.iter().all(|(name, wanted)| {
            let value = self.params.iter().find(|(known, _)| known == name).map(|(_, value)| value);
            value.is_some_and(|value| keys::each(wanted).iter().any(|one| value.says(&one.to_string())))
        })
    }
}

/// A file of the folder `scenarios`.
macro_rules! embedded {
    ($name:literal) => {
        ($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/", $name)))
    };
}

/// The scenarios that the program has inside, by file name.
const EMBEDDED: &[(&str, &str)] = &[
    embedded!("live-two.toml"),
    embedded!("live-s3.toml"),
    embedded!("live-s4.toml"),
    embedded!("live-s5.toml"),
    embedded!("cmt-rtt-asymmetry.toml"),
    embedded!("cmt-bandwidth-asymmetry.toml"),
    embedded!("cmt-loss-asymmetry.toml"),
    embedded!("cmt-loss.toml"),
    embedded!("sctp-loss.toml"),
    embedded!("cmt-wifi-3g.toml"),
    embedded!("cmt-wifi-3g-ns2.toml"),
    embedded!("cmt-blocking.toml"),
    embedded!("cmt-sack-reordering.toml"),
    embedded!("cmt-rtt-estimate.toml"),
    embedded!("daps-table.toml"),
    embedded!("daps-goodput.toml"),
    embedded!("daps-delay-error.toml"),
    embedded!("daps-buffer.toml"),
    embedded!("daps-live.toml"),
    embedded!("paths-dispersion.toml"),
    embedded!("paths-echo.toml"),
    embedded!("paths-hysteresis.toml"),
    embedded!("paths-mos.toml"),
    embedded!("paths-one-way.toml"),
    embedded!("paths-one-way-traffic.toml"),
    embedded!("paths-stability.toml"),
    embedded!("rtx-policies.toml"),
    embedded!("prcmt-cwnd.toml"),
    embedded!("prcmt-throughput.toml"),
    embedded!("prcmt-video.toml"),
    embedded!("sctp-multistreaming.toml"),
    embedded!("sctp-failover.toml"),
    embedded!("sctp-retransmission-policies.toml"),
    embedded!("sctp-interleaving.toml"),
    embedded!("fairness.toml"),
    embedded!("ccid-equation.toml"),
    embedded!("dccp-reordering.toml"),
    embedded!("dccp-reorder-buffer.toml"),
    embedded!("dccp-reorder-delay.toml"),
    embedded!("dccp-reorder-mos.toml"),
    embedded!("dccp-satellite-voice.toml"),
    embedded!("dccp-rtt-loss.toml"),
    embedded!("dccp-slow-start.toml"),
    embedded!("dccp-download.toml"),
    embedded!("dccp-fairness.toml"),
    embedded!("dccp-idle.toml"),
    embedded!("dccp-admission.toml"),
    embedded!("ecmt-goodput.toml"),
    embedded!("ecmt-goodput-ecn.toml"),
    embedded!("ecmt-video.toml"),
    embedded!("ecmt-jitter.toml"),
    embedded!("ecmt-residual-loss.toml"),
    embedded!("ecmt-model.toml"),
    embedded!("ecmt-bursts.toml"),
    embedded!("ecmt-choices.toml"),
    embedded!("ecmt-fairness.toml"),
    embedded!("sbpn-loss.toml"),
    embedded!("sbpn-baseline.toml"),
    embedded!("sbpn-congestion.toml"),
    embedded!("sbpn-faster-restart.toml"),
    embedded!("sbpn-lifo.toml"),
    embedded!("sbpn-ring.toml"),
    embedded!("sbpn-ring-sbpn2.toml"),
    embedded!("sbpn-best.toml"),
    embedded!("sbpn-changing-rate.toml"),
    embedded!("sbpn-layers.toml"),
    embedded!("sbpn-never-discard.toml"),
    embedded!("sbpn-rfc5348.toml"),
    embedded!("sbpn-codecs.toml"),
    embedded!("sbpn-messengers.toml"),
    embedded!("sbpn-kohler-lai.toml"),
    embedded!("sbpn-bonded.toml"),
    embedded!("xstream-film.toml"),
    embedded!("xstream-sequences.toml"),
];

/// For the manual: each section, and what its keys take.
pub(crate) fn accepted() -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    let [flow, traffic] = flow::accepted();
    vec![
        ("network", network::accepted()),
        ("link.NAME", link::accepted()),
        ("flow.NAME", flow),
        ("traffic", traffic),
        ("live", live::accepted()),
        ("sctp", sctp::accepted()),
        ("dccp", dccp::accepted()),
        ("tcp", tcp::accepted()),
    ]
}

impl Scenario {
    /// All that the program has inside.
    ///
    /// # Errors
    /// If one of them is wrong, which a test rules out.
    pub fn all() -> Result<Vec<Self>, Wrong> {
        EMBEDDED.iter().map(|(file, text)| Self::read(file, text, Path::new("."))).collect()
    }

    /// The scenario of this name, or in the file at this path.
    ///
    /// # Errors
    /// [`Wrong`], with the line.
    pub fn find(name: &str) -> Result<Self, Wrong> {
        if let Some((file, text)) = EMBEDDED.iter().find(|(file, _)| file.strip_suffix(".toml") == Some(name)) {
            return Self::read(file, text, Path::new("."));
        }
        let path = Path::new(name);
        if path.extension().is_none_or(|it| it != "toml") && !path.exists() {
            let known = EMBEDDED.iter().filter_map(|(file, _)| file.strip_suffix(".toml"));
            return Err(Wrong::new(name, "there is no such experiment", did_you_mean(name, known)));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|e| Wrong::new(name, format!("cannot be read: {e}"), "check the path of the scenario file"))?;
        Self::read(name, &text, path.parent().unwrap_or(Path::new(".")))
    }

    /// Reads a scenario and checks every point of it. `file` is for messages, `folder` where traces and references lie.
    ///
    /// # Errors
    /// [`Wrong`], with the line.
    pub fn read(file: &str, text: &str, folder: &Path) -> Result<Self, Wrong> {
        let scenario = file::read(file, text, folder)?;
        scenario.points()?;
        scenario.check_names()?;
        Ok(scenario)
    }

    /// What `lab run` finds the scenario by: its name if the program has it inside, else its file.
    pub fn address(&self) -> &str {
        let inside = EMBEDDED.iter().any(|(file, _)| *file == self.file);
        if inside { &self.name } else { &self.file }
    }

    /// Every point of the sweep for every variant.
    ///
    /// # Errors
    /// [`Wrong`] if there are too many, all of them are too large, or a setting means nothing.
    pub fn points(&self) -> Result<Vec<Point>, Wrong> {
        let lists = self.sweep.iter().map(|(_, values)| values.len());
        let count = lists.chain([self.cases.len().max(1), self.variants.len()]).try_fold(1_usize, usize::checked_mul);
        if count.is_none_or(|count| count > MAX_POINTS) {
            let what = format!("sweep, cases and variants make more than {MAX_POINTS} points");
            return Err(Wrong::new(self.many(), what, "shorten the lists in [sweep]"));
        }
        let none = [Case { params: Vec::new(), settings: Settings::default() }];
        let cases = if self.cases.is_empty() { &none[..] } else { &self.cases };
        let (mut points, mut size) = (Vec::new(), 0);
        let mut files = Files { traces: Traces::new(&self.folder), clips: Clips::new(&self.folder) };
        for case in cases {
            for swept in product(&self.sweep) {
                let params: Vec<_> = case.params.iter().cloned().chain(swept).collect();
                for variant in &self.variants {
                    let settings = self.settings(case, variant, &params)?;
                    let point = point(variant, &params, &settings, &mut files).map_err(|wrong| self.placed(wrong))?;
                    size += settings.size() + point.size();
                    if size > MAX_BYTES {
                        let what = format!("all points together need more than {} MiB", MAX_BYTES >> 20);
                        return Err(Wrong::new(self.many(), what, "use fewer points, flows or links"));
                    }
                    points.push(point);
                }
            }
        }
        Ok(points)
    }

    /// What is missing has no line of its own: nearest is that of the links.
    fn placed(&self, wrong: Wrong) -> Wrong {
        if wrong.place.is_empty() { Wrong { place: self.places.of("link").to_owned(), ..wrong } } else { wrong }
    }

    /// The place that is to blame for many points.
    fn many(&self) -> &str {
        ["sweep", "case", "variant"]
            .map(|key| self.places.of(key))
            .into_iter()
            .find(|it| !it.is_empty())
            .unwrap_or(&self.file)
    }

    /// What is set at one point for one variant.
    fn settings(&self, case: &Case, variant: &Variant, params: &[(String, Value)]) -> Result<Settings, Wrong> {
        let mut settings = self.settings.clone();
        settings.overlay(&case.settings);
        settings.overlay(&variant.settings);
        settings.filled(params)
    }
}

/// Files beside the scenario that its points use.
struct Files<'a> {
    traces: Traces<'a>,
    clips: Clips<'a>,
}

fn point(
    variant: &Variant,
    params: &[(String, Value)],
    settings: &Settings,
    files: &mut Files<'_>,
) -> Result<Point, Wrong> {
    let table = settings.table("link");
    if let Some(loose) = table.0.iter().find(|setting| !setting.key.contains('.')) {
        let what = format!("'{}' stands in [link] itself", loose.key);
        return Err(Wrong::new(&loose.place, what, "links have names: [link.NAME]"));
    }
    let links = LinkSpec::all(&table, &mut files.traces)?;
    let network = NetworkSpec::new(&settings.table("network"))?;
    let flows = FlowSpec::all(settings, &links, &mut files.clips)?;
    Ok(Point { variant: variant.name.clone(), params: params.to_vec(), network, links, flows })
}

/// Every combination of one value from each list, the last list turning fastest.
fn product(lists: &[(String, Vec<Value>)]) -> Vec<Vec<(String, Value)>> {
    lists.iter().fold(vec![Vec::new()], |all, (name, values)| {
        let longer = |head: &Vec<_>, value: &Value| {
            head.iter().cloned().chain([(name.clone(), value.clone())]).collect::<Vec<_>>()
        };
        all.iter().flat_map(|head| values.iter().map(move |value| longer(head, value))).collect()
    })
}
