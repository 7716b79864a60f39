//! What a stream is doing, in one word: the page, `--stats`, Prometheus and the terminal have the
//! same one.

use super::figures::Health;
use crate::out::session::End;
use braidcast_core::Instant;
use braidcast_session::{PathReport, Report};
use serde::Serialize;
use std::time::Duration;

/// Silence of an input after which it counts as none: an encoder pauses for a second at most.
const SILENT: Duration = Duration::from_secs(3);
/// Silence of the other end, in seconds, after which it is not there. It speaks each second.
const UNHEARD: f64 = 3.5;
/// Share of frames not on time from which a stream is degraded, and from which people notice.
const DEGRADED: f64 = 0.03;
const BAD: f64 = 0.1;

/// The states of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Debug, Default)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// Nothing comes in at the sender.
    NoInput,
    /// A receiver without a sender, or a sender whose turn it is not yet.
    Waiting,
    /// No other end has answered yet.
    #[default]
    Connecting,
    /// All is well: frames are on time.
    Live,
    /// More than 3 % of the frames of the last ten seconds were not on time, a path is silent, or
    /// more comes in than the paths carry.
    Degraded,
    /// The other end was there, and no path reaches it now.
    Dark,
    /// The stream ended.
    Ended,
}

impl State {
    pub(crate) const ALL: [Self; 7] =
        [Self::NoInput, Self::Waiting, Self::Connecting, Self::Live, Self::Degraded, Self::Dark, Self::Ended];

    /// The word in figures for programs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NoInput => "no_input",
            Self::Waiting => "waiting",
            Self::Connecting => "connecting",
            Self::Live => "live",
            Self::Degraded => "degraded",
            Self::Dark => "dark",
            Self::Ended => "ended",
        }
    }

    /// The same for people, before the line of a stream; nothing of one that is live.
    pub(crate) const fn note(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::NoInput => "no input: ",
            Self::Waiting => "waiting: ",
            Self::Connecting => "connecting: ",
            Self::Degraded => "degraded: ",
            Self::Dark => "dark: ",
            Self::Ended => "ended: ",
        }
    }
}

/// One stream as it is seen from outside its session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream<'a> {
    pub(crate) name: &'a str,
    pub(crate) connected: bool,
    pub(crate) end: End,
    /// The last stream is over, and no other one has begun.
    pub(crate) ended: bool,
}

/// Follows a stream's input, to tell a pause from nothing.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    captured: u64,
    /// When that grew last.
    grew_at: Option<Instant>,
    was_connected: bool,
}

impl Pulse {
    /// The state by the report of `now`, how it goes, and why it is not well. `overload` says what
    /// is wrong if more comes in than the paths carry; `name` names a path.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        stream: Stream<'_>,
        report: &Report,
        overload: Option<String>,
        name: impl Fn(&PathReport) -> String,
    ) -> (State, Health, Vec<String>) {
        self.was_connected |= stream.connected || report.seconds > 0.0;
        let captured: u64 = report.kinds.iter().map(|kind| kind.captured).sum();
        if captured != self.captured || self.grew_at.is_none() {
            (self.captured, self.grew_at) = (captured, Some(now));
        }
        let still = self.grew_at.is_some_and(|at| now.since(at) >= SILENT);
        let paths = || report.paths.iter().filter(|path| path.state != "left");
        let none_answers = paths().count() > 0 && paths().all(|path| path.state != "active");
        let unheard = report.unheard_seconds.is_some_and(|seconds| seconds > UNHEARD);
        let sends = stream.end == End::Sender;
        if stream.ended {
            return (State::Ended, Health::Doubtful, vec!["the stream ended".into()]);
        }
        if !stream.connected && !self.was_connected {
            return if sends {
                (State::Connecting, Health::Doubtful, vec!["no receiver has answered yet".into()])
            } else {
                (State::Waiting, Health::Doubtful, vec!["no sender is there yet".into()])
            };
        }
        if !stream.connected || none_answers || unheard {
            let who = if sends { "receiver" } else { "sender" };
            let why = match report.unheard_seconds {
                _ if !stream.connected => "not connected".to_owned(),
                Some(seconds) => format!("nothing from the {who} for {seconds:.0} s"),
                None => "no path answers".to_owned(),
            };
            return (State::Dark, Health::Bad, vec![why]);
        }
        if still {
            let why = if sends { "nothing comes in" } else { "nothing comes in at the sender" };
            return (State::NoInput, Health::Doubtful, vec![why.into()]);
        }
        let (mut health, mut reasons) = (Health::Good, Vec::new());
        let mut say = |how: Health, why: String| {
            health = health.max(how);
            reasons.push(why);
        };
        if let Some(words) = overload {
            say(Health::Bad, words);
        }
        let silent: Vec<String> = paths().filter(|path| path.state != "active").map(name).collect();
        if !silent.is_empty() {
            say(Health::Doubtful, format!("{} does not answer", silent.join(", ")));
        }
        let (of, on_time) = report.recent.iter().fold((0, 0), |(a, b), it| (a + it.captured, b + it.on_time));
        let missed = (of - on_time) as f64 / f64::max(of as f64, 1.0);
        if missed > DEGRADED {
            let how = if missed > BAD { Health::Bad } else { Health::Doubtful };
            let share = crate::out::units::share(missed);
            say(how, format!("{share} of the frames of the last ten seconds are not on time"));
        }
        (if health == Health::Good { State::Live } else { State::Degraded }, health, reasons)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_session::{KindReport, RecentKind};

    fn report(captured: u64, recent: (u64, u64)) -> Report {
        let (mut kind, mut lately, mut report) = (KindReport::default(), RecentKind::default(), Report::default());
        (kind.kind, kind.captured) = ("P", captured);
        (lately.kind, lately.captured, lately.on_time) = ("P", recent.0, recent.1);
        (report.kinds, report.recent, report.unheard_seconds) = (vec![kind], vec![lately], Some(0.5));
        report
    }

    fn stream(end: End, connected: bool, ended: bool) -> Stream<'static> {
        Stream { name: "", connected, end, ended }
    }

    #[test]
    fn a_stream_goes_through_all_seven_states() {
        let at = Instant::from_millis;
        let mut pulse = Pulse::default();
        let mut seen = Vec::new();
        let mut look = |now, stream, report: &Report, overload: Option<&str>| {
            let judged = pulse.judge(at(now), stream, report, overload.map(Into::into), |_| String::new());
            assert_eq!(judged.1 == Health::Good, judged.0 == State::Live, "{judged:?}");
            assert_eq!(judged.2.is_empty(), judged.0 == State::Live, "{judged:?}");
            seen.push(judged.0);
        };
        let sender = |connected, ended| stream(End::Sender, connected, ended);
        look(0, sender(false, false), &report(0, (0, 0)), None);
        look(1_000, sender(true, false), &report(25, (20, 20)), None);
        look(2_000, sender(true, false), &report(50, (40, 38)), None);
        look(3_000, sender(true, false), &report(75, (40, 40)), Some("lower the encoder"));
        look(7_000, sender(true, false), &report(75, (40, 40)), None);
        let mut unheard = report(100, (40, 40));
        unheard.unheard_seconds = Some(9.0);
        look(8_000, sender(true, false), &unheard, None);
        look(9_000, sender(false, false), &report(120, (40, 40)), None);
        look(10_000, sender(false, true), &report(120, (40, 40)), None);
        look(11_000, stream(End::Receiver, true, false), &report(121, (40, 40)), None);
        use State::{Connecting, Dark, Degraded, Ended, Live, NoInput};
        assert_eq!(seen, [Connecting, Live, Degraded, Degraded, NoInput, Dark, Dark, Ended, Live]);
        let first =
            Pulse::default()
                .judge(at(0), stream(End::Receiver, false, false), &Report::default(), None, |_| String::new());
        assert_eq!(first.0, State::Waiting);
    }

    #[test]
    fn names_are_those_in_the_documents() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.name());
        }
    }
}
