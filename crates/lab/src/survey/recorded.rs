//! Recordings of links that the program has inside, and pieces of them.

use crate::recording::LTE;
use braidcast_core::Rng;
use core::time::Duration;

/// What one link carried over time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Track {
    /// Its letter, if there are several.
    letter: String,
    /// kbit/s at regular times.
    rates: Vec<u64>,
    /// Times in which packets waited, ms from the beginning.
    silences: Vec<(u64, u64)>,
}

/// Links that were measured at the same moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Recording {
    /// Its name.
    name: String,
    /// From one rate to the next, ms.
    step: u64,
    /// The links, all of the same length, which is not 0.
    tracks: Vec<Track>,
}

/// Where a piece of a recording begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    recording: &'a Recording,
    first: usize,
}

/// A piece of a recorded link in the words of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Piece {
    /// `rate`.
    pub(super) rate: String,
    /// Each `outage`.
    pub(super) outages: Vec<String>,
}

/// The rate of a link that carries nothing, kbit/s: a packet takes some seconds.
pub(super) const NOTHING: u64 = 3;
/// `traces/two-operators/README.md` says what the fields are.
const STEP: u64 = 500;
const UNIT_KBIT: u64 = 10;

const OPERATORS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/traces/two-operators/uplink.txt"));
const WIFI: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/traces/wifi/rates.txt"));

/// Two operators at the same moment, from a moving car.
pub(super) fn operators() -> Vec<Recording> {
    read("operators ", OPERATORS)
}

/// Wi-Fi in a café, an office and a restaurant.
pub(super) fn wifi() -> Vec<Recording> {
    read("", WIFI)
}

/// The LTE uplink of [`LTE`], which was made, not recorded.
pub(super) fn lte() -> Vec<Recording> {
    const STEP: u64 = 100;
    /// One line of it is a chance for 1500 bytes.
    const CHANCE_BITS: u64 = 1500 * 8;
    let mut rates: Vec<u64> = Vec::new();
    for ms in LTE.text.lines().filter_map(|line| line.trim().parse::<u64>().ok()) {
        let at = (ms / STEP) as usize;
        rates.resize(rates.len().max(at + 1), 0);
        rates[at] += CHANCE_BITS / STEP;
    }
    let track = Track { rates, ..Track::default() };
    vec![Recording { name: "lte-drive".to_owned(), step: STEP, tracks: vec![track] }]
}

/// Lines `RUN LETTER RATES HANDOVERS`; those of one run follow each other.
fn read(prefix: &str, text: &str) -> Vec<Recording> {
    let mut all: Vec<Recording> = Vec::new();
    for (run, track) in text.lines().filter_map(track) {
        let name = format!("{prefix}{run}");
        match all.last_mut().filter(|it| it.name == name) {
            Some(it) => it.tracks.push(track),
            None => all.push(Recording { name, step: STEP, tracks: vec![track] }),
        }
    }
    for it in &mut all {
        let length = it.tracks.iter().map(|track| track.rates.len()).min().unwrap_or(0);
        it.tracks.iter_mut().for_each(|track| track.rates.truncate(length));
    }
    all
}

/// A line; none if it is not one.
fn track(line: &str) -> Option<(&str, Track)> {
    let mut fields = line.split(' ');
    let (run, letter) = (fields.next()?, fields.next()?.to_owned());
    let rate = |text: &str| text.parse::<u64>().ok().map(|it| it * UNIT_KBIT);
    let rates = fields.next()?.split(',').map(rate).collect::<Option<Vec<_>>>()?;
    let silence = |text: &str| text.split_once('-').and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let silences = match fields.next()? {
        "-" => Vec::new(),
        some => some.split(',').map(silence).collect::<Option<Vec<_>>>()?,
    };
    (!rates.is_empty()).then_some((run, Track { letter, rates, silences }))
}

impl Recording {
    /// A place in it at random.
    pub(super) fn place(&self, draw: &mut Rng) -> Place<'_> {
        Place { recording: self, first: draw.below(self.steps()) as usize }
    }

    fn steps(&self) -> u64 {
        self.tracks[0].rates.len() as u64
    }
}

impl Place<'_> {
    /// How many links were measured there.
    pub(super) const fn links(&self) -> usize {
        self.recording.tracks.len()
    }

    /// What it is called as the beginning of a piece of link `link`.
    pub(super) fn words(&self, link: usize) -> String {
        let Recording { name, step, tracks } = self.recording;
        let letter = if tracks.len() > 1 { format!(" {}", tracks[link].letter) } else { String::new() };
        format!("{name}{letter} at {} s", (self.first as u64 * step) as f64 / 1e3)
    }

    fn rates(&self, link: usize, length: Duration) -> impl Iterator<Item = u64> {
        let steps = (length.as_millis() as u64).div_ceil(self.recording.step) as usize;
        self.recording.tracks[link].rates.iter().copied().cycle().skip(self.first).take(steps)
    }

    /// The mean rate of link `link` for `length`, kbit/s.
    pub(super) fn mean(&self, link: usize, length: Duration) -> f64 {
        let (sum, steps) = self.rates(link, length).fold((0, 0), |(sum, steps), rate| (sum + rate, steps + 1));
        sum as f64 / f64::from(steps.max(1))
    }

    /// Returns link `link` for `length`, after which it begins again, with all rates multiplied by `factor`.
    /// Behind the end of the recording comes its beginning.
    pub(super) fn piece(&self, link: usize, length: Duration, factor: f64) -> Piece {
        let (mut points, mut last) = (Vec::new(), None);
        for (n, rate) in self.rates(link, length).enumerate() {
            let rate = ((rate as f64 * factor).round() as u64).max(NOTHING);
            if last.replace(rate) != Some(rate) {
                points.push(format!("{}ms:{rate}kbit", n as u64 * self.recording.step));
            }
        }
        points.push(format!("repeat:{}ms", self.rates(link, length).count() as u64 * self.recording.step));
        let (begin, whole) = (self.first as u64 * self.recording.step, self.recording.steps() * self.recording.step);
        let mut silences: Vec<(u64, u64)> = Vec::new();
        for &(from, to) in &self.recording.tracks[link].silences {
            let at = if from >= begin { from - begin } else { from + whole - begin };
            if from < to && to <= whole && at < length.as_millis() as u64 {
                silences.push((at, at + to - from));
            }
        }
        silences.sort_unstable();
        let outages = silences.iter().map(|(from, to)| format!("{from}ms-{to}ms,hold")).collect();
        Piece { rate: points.join(","), outages }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_sim::link::{Outage, parse};

    #[test]
    fn what_is_inside_is_read_whole_and_has_the_rates_of_its_sources() {
        let all = [operators(), wifi(), lte()];
        assert_eq!(all.each_ref().map(Vec::len), [OPERATORS.lines().count() / 2, WIFI.lines().count(), 1]);
        assert!(all.iter().flatten().all(|it| it.steps() * it.step >= 59_000), "a piece of a minute fits nearly");
        assert!(all[0].iter().all(|it| it.tracks.len() == 2) && all[1][0].tracks.len() == 1);
        // The medians that the data's README names are 11 and 13 Mbit/s.
        let medians = [0, 1].map(|link| {
            let mut rates: Vec<u64> = all[0].iter().flat_map(|it| it.tracks[link].rates.iter().copied()).collect();
            rates.sort_unstable();
            rates[rates.len() / 2]
        });
        assert!(medians.iter().all(|it| (9_000..15_000).contains(it)), "{medians:?}");
    }

    #[test]
    fn a_line_that_is_none_is_left_out() {
        for text in ["", "x a", "x a 1,b -", "x a 1,2", "x a 1 5"] {
            assert_eq!(track(text), None, "{text}");
        }
        let (run, it) = track("x b 1,0,20 40-90").unwrap();
        assert_eq!((run, &*it.letter, &it.rates[..], &it.silences[..]), ("x", "b", &[10, 0, 200][..], &[(40, 90)][..]));
    }

    #[test]
    fn a_piece_continues_from_the_end_with_the_beginning_and_is_scaled() {
        let silences = vec![(100, 170), (1400, 1450)];
        let track = Track { rates: vec![100, 0, 0, 200], silences, ..Track::default() };
        let it = Recording { name: "x".to_owned(), step: 500, tracks: vec![track] };
        let place = Place { recording: &it, first: 2 };
        let length = Duration::from_millis(2500);
        let Piece { rate, outages } = place.piece(0, length, 2.0);
        assert_eq!(rate, "0ms:3kbit,500ms:400kbit,1000ms:200kbit,1500ms:3kbit,repeat:2500ms");
        assert_eq!(outages, ["400ms-450ms,hold", "1100ms-1170ms,hold"]);
        assert_eq!((place.mean(0, length), place.words(0)), (60.0, "x at 1 s".to_owned()));
        assert!(parse::rate_schedule(&rate).is_ok() && outages.iter().all(|it| it.parse::<Outage>().is_ok()));
    }
}
