//! Sets of links at random.

use super::Survey;
use super::recorded::{self, Piece, Place, Recording};
use super::what::one;
use braidcast_core::{Rng, named};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Where links come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A steady rate, or one that steps.
    Drawn,
    /// Pieces of what two operators carried at the same moment.
    Operators,
    /// Pieces of an LTE uplink from a moving car.
    Lte,
    /// Pieces of Wi-Fi in cafés, offices and restaurants.
    Wifi,
}

named! {
    /// Every kind, by its name.
    Kind, "kind of links" {
        "drawn" => Drawn,
        "operators" => Operators,
        "lte" => Lte,
        "wifi" => Wifi,
    }
}

/// Names of the links of a set, in their order.
pub(super) const NAMES: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];

/// What links may be spared, to see what it costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Without {
    /// They lose nothing.
    Loss,
    /// Each has its mean rate all the time, and no outages.
    Changes,
    /// Each is 10 ms away.
    Distance,
}

named! {
    /// Every one, by its name.
    Without, "property of links" {
        "loss" => Loss,
        "changes" => Changes,
        "distance" => Distance,
    }
}

/// One link of a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Link {
    /// `first`, `second`, …
    pub name: String,
    /// `steady`, `steps`, or which piece of which recording.
    pub kind: String,
    /// Mean rate, kbit/s.
    pub mean_kbit: u64,
    /// One-way delay, the same in both directions, ms.
    pub delay_ms: u64,
    /// Mean loss towards the receiver, %.
    pub loss_percent: f64,
    /// The rate in the words of a scenario; only of a set that is to be run.
    #[serde(skip)]
    pub(super) rate: String,
    /// And its outages.
    #[serde(skip)]
    pub(super) outages: Vec<String>,
}

impl Link {
    /// `5.0 Mbit/s 30 ms 1 %`, with what it is unless it is steady.
    pub fn words(&self) -> String {
        let kind = if self.kind == STEADY { String::new() } else { format!("{} ", self.kind) };
        format!("{kind}{:.2} Mbit/s {} ms {} %", self.mean_kbit as f64 / 1e3, self.delay_ms, self.loss_percent)
    }

    /// The same link without these properties.
    fn without(mut self, spared: &[Without]) -> Self {
        for it in spared {
            match it {
                Without::Loss => self.loss_percent = 0.0,
                Without::Changes => {
                    (self.kind, self.rate) = (STEADY.to_owned(), steady(self.mean_kbit as f64));
                    self.outages.clear();
                }
                Without::Distance => self.delay_ms = 10,
            }
        }
        self
    }

    /// Returns `true` if it is farther than 80 ms.
    pub const fn is_far(&self) -> bool {
        self.delay_ms > 80
    }

    /// Returns `true` if its rate never changes.
    pub fn is_steady(&self) -> bool {
        self.kind == STEADY
    }
}

const STEADY: &str = "steady";

/// Links drawn at random.
#[derive(Clone, PartialEq, Debug)]
pub struct Set {
    /// Its number in the survey, from 0.
    pub index: u32,
    /// The links.
    pub links: Vec<Link>,
    /// The seed of its first run.
    pub seed: u64,
}

/// Beyond what is measured a recording lasts so much longer: the session's beginning and end.
const BEYOND: Duration = Duration::from_secs(10);
/// A piece of a recording whose mean is below this is not scaled up, kbit/s: another one is drawn.
const LEAST_MEAN: f64 = 300.0;

/// What sets are drawn from, read once.
pub(super) struct Source {
    /// What the clip takes of links, kbit/s.
    pub(super) stream_kbit: f64,
    /// The recordings of each kind.
    kinds: Vec<Vec<Recording>>,
}

impl Source {
    pub(super) fn of(survey: &Survey) -> Self {
        let read = |kind: &Kind| match kind {
            Kind::Drawn => Vec::new(),
            Kind::Operators => recorded::operators(),
            Kind::Lte => recorded::lte(),
            Kind::Wifi => recorded::wifi(),
        };
        Self { stream_kbit: survey.stream_kbit(), kinds: survey.kinds.iter().map(read).collect() }
    }
}

/// Returns set number `index` of `survey`. It depends on the seed, its number and what is drawn from, not on
/// the number of sets.
pub(super) fn set(survey: &Survey, source: &Source, index: u32) -> Set {
    let mut draw = Rng::from_seed(survey.seed).stream(&format!("set {index}"));
    // What `lab run --seed` takes as well, and JSON holds to the digit.
    let seed = draw.u64() >> 32;
    let (least, most) = survey.links;
    let count = least + draw.below((most - least + 1) as u64) as usize;
    let recordings = &source.kinds[draw.below(source.kinds.len() as u64) as usize];
    let length = survey.duration + survey.latency + BEYOND;
    let (mut moment, mut first_kbit) = (None, 0.0);
    let link = |(n, name): (usize, &&str)| {
        let (kbit, delay_ms, loss_percent) =
            survey.what.draw(&mut draw, (source.stream_kbit, survey.load), n, first_kbit);
        if n == 0 {
            first_kbit = kbit;
        }
        let (kind, Piece { rate, outages }, kbit) = match recordings.is_empty() {
            true => drawn(&mut draw, n > 0 && survey.what.may_step(), kbit),
            false => recording(&mut draw, recordings, &mut moment, kbit, length),
        };
        let mean_kbit = kbit.round() as u64;
        Link { name: (*name).to_owned(), kind, mean_kbit, delay_ms, loss_percent, rate, outages }
            .without(&survey.without)
    };
    Set { index, links: NAMES[..count].iter().enumerate().map(link).collect(), seed }
}

/// A steady rate in the words of a scenario.
fn steady(kbit: f64) -> String {
    format!("{kbit:.0}kbit")
}

/// A steady rate, or, if it may step, one of five steps in a third of the cases.
fn drawn(draw: &mut Rng, may_step: bool, kbit: f64) -> (String, Piece, f64) {
    let piece = |rate| Piece { rate, outages: Vec::new() };
    if !may_step || !draw.chance(1.0 / 3.0) {
        return (STEADY.to_owned(), piece(steady(kbit)), kbit);
    }
    let (mut at, mut sum, mut points) = (0, 0.0, Vec::new());
    for _ in 0..5 {
        let rate = (kbit * one(draw, &[0.02, 0.3, 0.6, 1.0, 1.4])).round() + recorded::NOTHING as f64;
        let seconds = 2 + draw.below(5);
        points.push(format!("{at}s:{rate}kbit"));
        at += seconds;
        sum += rate * seconds as f64;
    }
    ("steps".to_owned(), piece(format!("{},repeat:{at}s", points.join(","))), sum / at as f64)
}

/// A moment of a recording from which links are taken one by one.
#[derive(Clone, Copy)]
struct Moment<'a> {
    place: Place<'a>,
    /// The link that comes next, and the number of links that are left.
    next: usize,
    left: usize,
    /// Its rates are multiplied by this.
    factor: f64,
}

/// Returns the next link of `moment`, in proportion to the others; if none is left, a link of another moment,
/// whose mean becomes `kbit`.
fn recording<'a>(
    draw: &mut Rng,
    all: &'a [Recording],
    moment: &mut Option<Moment<'a>>,
    kbit: f64,
    length: Duration,
) -> (String, Piece, f64) {
    let Moment { place, next, left, factor } = moment.take().unwrap_or_else(|| {
        let mut anywhere = || {
            let place = all[draw.below(all.len() as u64) as usize].place(draw);
            (place, draw.below(place.links() as u64) as usize)
        };
        let mut found = anywhere();
        // A hole that lasts all the time is no link: scaled up it would be noise.
        for _ in 0..100 {
            if found.0.mean(found.1, length) >= LEAST_MEAN {
                break;
            }
            found = anywhere();
        }
        let (place, next) = found;
        Moment { place, next, left: place.links(), factor: kbit / place.mean(next, length).max(1.0) }
    });
    let following = Moment { place, next: (next + 1) % place.links(), left: left - 1, factor };
    *moment = (left > 1).then_some(following);
    (place.words(next), place.piece(next, length, factor), place.mean(next, length) * factor)
}
