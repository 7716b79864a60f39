//! Redundancy: whether a session sends any, and how much.

use braidcast_core::{Instant, PathId};
use braidcast_fec::{Auto, Conditions};
use braidcast_sctp::{Artx, Association, Code, FecLosses, FecWindow, PathReport, RedundancyOptions, RtoBounds};
use core::fmt;
use core::str::FromStr;
use core::time::Duration;
use std::collections::BTreeMap;

/// How packets that the network loses are made up for, besides being repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Redundancy {
    /// Not at all.
    #[default]
    None,
    /// By the code that fits what each path loses, how far away the receiver is and the latency;
    /// none where repeating does ([`Conditions::choose`]).
    Auto,
    /// By this code all the time.
    Code(Code),
}

/// What a path is held to lose until it has carried a hundred packets, and how many in a row: a
/// little too much at the beginning does no harm, and a stream's first second counts too.
const UNKNOWN: (f64, f64) = (0.03, 1.0);
/// From then on that guess weighs as much as so many packets: of a hundred over a path that loses 2
/// %, none is lost one time in eight, and the first loss that stays ends slow start. A path that
/// loses nothing is free of redundancy after nine hundred.
const GUESS_WEIGHS: f64 = 30.0;
/// Packets a second that a stream is held to have until then, at least.
const USUAL: f64 = 100.0;
/// Least retransmission timeout of a session that may send redundancy.
const RTO_MIN: Duration = Duration::from_millis(600);
/// Percentage of automatic redundancy that is not sent in overload. 50 and 100 show as much, within chance (decision
/// 44).
const SPARED_IN_A_CROWD: u8 = 75;

impl Redundancy {
    /// What the association has to agree on with its peer, and what goes with a code.
    pub(crate) fn transport(self) -> RedundancyOptions {
        if self == Self::None {
            return RedundancyOptions::default();
        }
        let mut it = RedundancyOptions::default();
        it.fec = if let Self::Code(code) = self { Some(code) } else { None };
        it.fec_receive = true;
        // A code is in use where repeating is too late anyway.
        it.artx = Some(Artx::Slowest);
        // As ECMT has it: inside, the windows that live video leaves are a little small for its
        // largest frames (decision 14).
        it.fec_window = FecWindow::Outside;
        // Told of each loss, windows would not carry live video where it is needed most; of
        // what full queues drop they are told.
        it.fec_losses = FecLosses::Queued;
        it.spared_in_a_crowd = SPARED_IN_A_CROWD;
        it
    }

    /// Limits of the retransmission timeout that go with it.
    pub(crate) fn rto(self, usual: RtoBounds) -> RtoBounds {
        if self == Self::None {
            return usual;
        }
        // A hole stands open for two round trips while the code has its time: a path is not silent
        // because of it. T3-rtx waits by itself, but the probe timeout is the RTO at most.
        RtoBounds::new(usual.initial.max(RTO_MIN), usual.min.max(RTO_MIN), usual.max)
    }
}

impl fmt::Display for Redundancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Auto => f.write_str("auto"),
            Self::Code(code) => code.fmt(f),
        }
    }
}

impl FromStr for Redundancy {
    type Err = String;

    /// `none`, `auto`, or a code's words.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "auto" => Ok(Self::Auto),
            code => code.parse().map(Self::Code).map_err(|why: String| format!("{why}, or none or auto")),
        }
    }
}

/// Chooses the code by what the paths do.
#[derive(Debug)]
pub(crate) struct Chooser {
    deadline: Option<Duration>,
    /// How old units are when they come, each weighing 1/16.
    age: Duration,
    auto: Auto,
    next: Instant,
    /// `true` if some path has carried enough to tell what it loses.
    measured: bool,
    looks: BTreeMap<PathId, Look>,
}

/// What a path had carried when it was last looked at.
#[derive(Debug)]
struct Look {
    chunks: u64,
    at: Instant,
    /// Chunks in a second.
    rate: f64,
}

impl Chooser {
    /// For packets that are of use until `deadline` after they were sent first; `None`: for ever.
    pub(crate) fn new(deadline: Option<Duration>) -> Self {
        let (age, next, auto) = (Duration::ZERO, Instant::ZERO, Auto::default());
        Self { deadline, age, auto, next, measured: false, looks: BTreeMap::new() }
    }

    /// Packets are of use so long from now on.
    pub(crate) const fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = Some(deadline);
    }

    /// The code in use.
    pub(crate) const fn code(&self) -> Option<Code> {
        self.auto.chosen()
    }

    /// A unit was handed over so long after its capture: of its deadline that is gone.
    pub(crate) fn on_unit(&mut self, age: Duration) {
        self.age = (self.age * 15 + age) / 16;
    }

    /// Looks at the paths, once a round trip at most, and changes the code if another one fits clearly better.
    pub(crate) fn update(&mut self, now: Instant, association: &mut Association) {
        if now < self.next {
            return;
        }
        let deadline = self.deadline.map(|deadline| deadline.saturating_sub(self.age));
        self.looks.retain(|id, _| association.paths().any(|path| path.id == *id));
        self.measured |= association.paths().any(|path| association.recent_losses(path.id).is_some());
        let guess = (!self.measured).then_some(UNKNOWN);
        let mut paths = Vec::new();
        for path in association.paths() {
            let losses = association.recent_losses(path.id).map(|it| tempered(it, path.sent_chunks)).or(guess);
            let rate = self.rate(now, &path).filter(|_| self.measured).or_else(|| guess.map(|_| USUAL));
            let (Some((loss, burst)), Some(rtt), Some(rate)) = (losses, path.srtt, rate) else { continue };
            self.next = self.next.max(now + rtt);
            paths.push((path.id, Conditions { loss, burst, rtt, deadline, rate }));
        }
        self.apply(&paths, association);
    }

    /// Has the association send what serves over such `paths`. A receiver that takes none is left alone.
    fn apply(&mut self, paths: &[(PathId, Conditions)], association: &mut Association) {
        let all: Vec<_> = paths.iter().map(|&(_, path)| path).collect();
        let Some(together) = Conditions::merged(&all) else { return };
        let change = self.auto.update(&together);
        let Some(code) = self.auto.chosen() else {
            if change.is_some() {
                association.set_fec(None);
            }
            return;
        };
        let owed = |id| paths.iter().find(|(path, _)| *path == id).map_or(0.0, |(_, path)| path.owed(&together, code));
        association.set_fec_by_path(code, together.patience() / 2, owed);
    }

    /// Data chunks in a second over the path, the latest look weighing 1/8, as the scheduler turns
    /// from one path to another. `None` at the first look.
    fn rate(&mut self, now: Instant, path: &PathReport) -> Option<f64> {
        let look = |rate| Look { chunks: path.sent_chunks, at: now, rate };
        let before = self.looks.insert(path.id, look(0.0))?;
        let seconds = now.since(before.at).as_secs_f64().max(1e-3);
        let latest = path.sent_chunks.saturating_sub(before.chunks) as f64 / seconds;
        let rate = if before.rate > 0.0 { before.rate + (latest - before.rate) / 8.0 } else { latest };
        self.looks.insert(path.id, look(rate));
        Some(rate)
    }
}

/// Losses as measured over so many `chunks`, drawn towards what was guessed at first.
fn tempered((loss, burst): (f64, f64), chunks: u64) -> (f64, f64) {
    let measured = chunks as f64;
    ((loss * measured + UNKNOWN.0 * GUESS_WEIGHS) / (measured + GUESS_WEIGHS), burst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for word in ["none", "auto", "block:10,9", "tetrys:10,9,43"] {
            assert_eq!(word.parse::<Redundancy>().unwrap().to_string(), word);
        }
        for (wrong, why) in
            [("some", "or none or auto"), ("block:9,10", "0 < k < n"), ("raptorq:10,9", "is not a code")]
        {
            assert!(wrong.parse::<Redundancy>().unwrap_err().contains(why), "{wrong}");
        }
    }
}
