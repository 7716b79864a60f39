//! One path to one address: what was tried over it, and what came of it.

use braidcast_core::{Instant, Route};
use braidcast_driver::{Trouble, Via};
use braidcast_relay::Reason;
use braidcast_sctp::{AssociationId, PathReport};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The longest IP packet that is sent: what Ethernet carries.
const LONGEST: usize = 1500;

/// Who is at the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Other {
    Receiver,
    PerfServer,
    Relay,
    /// A sender that waits to be called.
    Sender,
    /// It understands no looks: an older version, or a tunnel's server.
    Unknown,
}

/// What became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// Nothing is known yet.
    Waiting,
    /// The other end answers, and a stream could go there.
    Answers,
    /// It answers and says no, for this reason, and what to do about it.
    Refuses(String, String),
    /// It does not answer; the kernel may know why.
    Silent(Option<Trouble>),
    /// It could not even be tried, for this reason.
    Unusable(String),
}

/// What a path carried while it was full.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Carried {
    pub(super) seconds: f64,
    pub(super) bits_per_second: f64,
    /// Share of the packets with data, 0 to 1.
    #[serde(rename = "lost_share")]
    pub(super) loss: f64,
    /// Longest smoothed round trip, ms.
    pub(super) rtt_ms: f64,
}

/// A look that was not answered yet.
struct Look {
    number: u64,
    sent: Instant,
    /// µs since 1970.
    clock: u64,
}

/// The state of a path when it began to be filled.
#[derive(Clone, Copy)]
struct Mark {
    at: Instant,
    report: PathReport,
    longest: Duration,
}

/// A path.
pub(super) struct Tried {
    pub(super) name: String,
    /// What `--via` calls its network.
    pub(super) network: String,
    pub(super) via: Via,
    pub(super) remote: SocketAddr,
    /// It leads to a receiver by a relay, as a ticket says.
    pub(super) by_relay: bool,
    pub(super) local: Option<IpAddr>,
    /// As its socket has it.
    pub(super) route: Option<Route>,
    pub(super) id: Option<AssociationId>,
    pub(super) state: State,
    pub(super) other: Option<Other>,
    /// When the other end answered first.
    pub(super) since: Option<Instant>,
    /// The address of this end as the other one, or the relay, sees it.
    pub(super) seen_as: Option<SocketAddr>,
    pub(super) relay_refused: Option<Reason>,
    pub(super) rtt: Option<Duration>,
    /// The newest report of the association.
    pub(super) report: Option<PathReport>,
    /// Packets with ECT that came there, of those that left here so, as the newest answer says.
    pub(super) ect_there: Option<u64>,
    /// Clock there less clock here, s, and the round trip by which it was measured.
    pub(super) clock: Option<(Duration, f64)>,
    looks: Vec<Look>,
    pub(super) answers: u32,
    /// When the longest packet was another one last.
    step: Instant,
    began: Option<Mark>,
    pub(super) carried: Option<Carried>,
}

impl Tried {
    pub(super) const fn new(name: String, network: String, via: Via, remote: SocketAddr, by_relay: bool) -> Self {
        Self {
            name,
            network,
            via,
            remote,
            by_relay,
            local: None,
            route: None,
            id: None,
            state: State::Waiting,
            other: None,
            since: None,
            seen_as: None,
            relay_refused: None,
            rtt: None,
            report: None,
            ect_there: None,
            clock: None,
            looks: Vec::new(),
            answers: 0,
            step: Instant::ZERO,
            began: None,
            carried: None,
        }
    }

    /// Returns `true` if a stream could go over it.
    pub(super) fn is_of_use(&self) -> bool {
        self.state == State::Answers && self.other != Some(Other::Sender)
    }

    /// The other end answers.
    pub(super) fn answers(&mut self, now: Instant) {
        if matches!(self.state, State::Waiting | State::Silent(_)) {
            self.state = State::Answers;
        }
        self.since.get_or_insert(now);
    }

    /// A look leaves, at `clock` µs since 1970.
    pub(super) fn looks(&mut self, number: u64, sent: Instant, clock: u64) {
        /// Those before were lost.
        const MOST: usize = 64;
        if self.looks.len() >= MOST {
            self.looks.remove(0);
        }
        self.looks.push(Look { number, sent, clock });
    }

    /// The look `number` is answered; the clock there said `clock`.
    pub(super) fn looked(&mut self, now: Instant, number: u64, clock: Option<u64>) {
        let Some(place) = self.looks.iter().position(|look| look.number == number) else { return };
        let look = self.looks.remove(place);
        let rtt = now.since(look.sent);
        self.answers += 1;
        // Data that is repeated takes longer: the quickest one counts (RFC 5905 §10).
        if let Some(there) = clock.filter(|_| self.clock.is_none_or(|(best, _)| rtt < best)) {
            let here = look.clock as f64 / 1e6 + rtt.as_secs_f64() / 2.0;
            self.clock = Some((rtt, there as f64 / 1e6 - here));
        }
    }

    /// How the association does now.
    pub(super) fn note(&mut self, now: Instant, report: PathReport) {
        if self.report.is_none_or(|old| old.sealed_mtu != report.sealed_mtu) {
            self.step = now;
        }
        self.rtt = report.min_rtt.or(self.rtt);
        if let Some(began) = &mut self.began {
            began.longest = began.longest.max(report.srtt.unwrap_or_default());
        }
        self.report = Some(report);
    }

    /// It is filled from now on.
    pub(super) fn fill(&mut self, now: Instant) {
        self.began = self.report.map(|report| Mark { at: now, report, longest: Duration::ZERO });
    }

    /// It was filled until now.
    pub(super) fn filled(&mut self, now: Instant) {
        let (Some(began), Some(report)) = (self.began.take(), self.report) else { return };
        let seconds = now.since(began.at).as_secs_f64();
        let bytes = report.delivered_bytes - began.report.delivered_bytes;
        let sent = report.sent_chunks - began.report.sent_chunks;
        let lost = report.lost_chunks - began.report.lost_chunks;
        self.carried = Some(Carried {
            seconds,
            bits_per_second: bytes as f64 * 8.0 / seconds.max(1e-3),
            loss: lost as f64 / (sent.max(1)) as f64,
            rtt_ms: began.longest.as_secs_f64() * 1e3,
        });
    }

    /// Returns `true` if the longest packets that Braidcast sends get through, or nothing does.
    pub(super) fn is_as_long_as_any(&self) -> bool {
        self.mtu().is_none_or(|mtu| mtu >= LONGEST)
    }

    /// Returns `true` if the search for the longest packet made no step for `span`.
    pub(super) fn is_settled(&self, now: Instant, span: Duration) -> bool {
        now.since(self.step) >= span
    }

    /// The longest IP packet that got through, bytes.
    pub(super) fn mtu(&self) -> Option<usize> {
        let (report, route) = (self.report?, self.route?);
        let header = if self.by_relay { braidcast_relay::HEADER } else { 0 };
        Some(report.sealed_mtu + route.headers() + header)
    }

    /// What becomes of packets that say that they can be marked.
    pub(super) fn ecn(&self) -> Option<Ecn> {
        /// Of fewer answers all may have been repeated as Not-ECT.
        const ENOUGH: u32 = 3;
        let report = self.report?;
        match self.ect_there? {
            _ if !report.takes_ect => Some(Ecn::Dropped),
            0 if self.answers >= ENOUGH => Some(Ecn::Bleached),
            0 => None,
            _ => Some(Ecn::Kept),
        }
    }

    /// What stands before this end.
    pub(super) fn nat(&self) -> Option<Nat> {
        let (seen, local) = (self.seen_as?, self.local?);
        Some(if seen.ip() == local { Nat::None } else { Nat::Some })
    }
}

/// What a path does to ECN.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Ecn {
    Kept,
    Bleached,
    Dropped,
}

/// What is between this end and who sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Nat {
    None,
    /// The kind is not known.
    Some,
    /// One port for all destinations.
    Cone,
    /// A port for each destination.
    Symmetric,
}
