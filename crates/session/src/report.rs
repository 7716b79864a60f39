//! What a session has done, as plain data.

use crate::account::{KindReport, RecentKind};
use braidcast_core::Instant;
use braidcast_rate::RateReport;
use braidcast_sctp::{Association, KeyKind, PathReport as Path, Standing};
use core::time::Duration;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Rates are taken over this time.
const RATE_WINDOW: Duration = Duration::from_secs(1);
/// Measurements of a path within the window at most.
const MAX_SAMPLES: usize = 16;
/// A path that was full so long ago may carry more, or less, by now.
const FULL_OF_LATE: Duration = Duration::from_secs(10);
/// Paths of earlier associations that are remembered, and of this one those that have left: a peer may have
/// paths come and go as long as it likes.
const MAX_FORMER: usize = 32;

/// What a session has done so far. Fields that this end cannot know are zero or `None`.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Seconds since the association was set up.
    pub seconds: f64,
    /// Units since the stream began, by kind, in the order of [`Kind::ALL`](braidcast_media::Kind::ALL);
    /// kinds that never occurred are left out.
    pub kinds: Vec<KindReport>,
    /// What became known in the last ten seconds, by kind.
    pub recent: Vec<RecentKind>,
    /// The span of `recent` in seconds: ten once the stream is as old, at most 11.
    pub recent_seconds: f64,
    /// Seconds since the other end last said anything of what it counts; `None` before it did.
    pub unheard_seconds: Option<f64>,
    /// The paths in the order in which they joined, including those that left.
    pub paths: Vec<PathReport>,
    /// Times that the sender's clock jumped.
    pub clock_jumps: u64,
    /// At the receiver: times that a sender took the place of another, or began anew. At the
    /// sender: times that it reconnected.
    pub restarts: u64,
    /// Messages that made no sense.
    pub malformed: u64,
    /// How the association is protected, or the last one was; `None` without encryption, and before there was any.
    pub security: Option<SecurityReport>,
    /// At the sender: bytes that came in, of units of every kind.
    pub input_bytes: u64,
    /// At the sender: bytes of messages that were acknowledged, each once. What was copied, or made
    /// up for by redundancy, counts here and for no path.
    pub acked_bytes: u64,
    /// Redundancy as it is sent now; `None` where there is none.
    pub redundancy: Option<String>,
    /// At the receiver: chunks that redundancy made up for.
    pub recovered_chunks: u64,
    /// Bytes that wait: at the sender unsent or unacknowledged, at the receiver until they are due.
    pub buffered_bytes: u64,
    /// At the sender of a live stream: what an encoder may make now.
    pub encoder: Option<RateReport>,
}

/// How an association is protected.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct SecurityReport {
    /// The cipher suite.
    pub cipher: String,
    /// `true` if the other end showed a key that was expected. If not, anybody may be there.
    pub authenticated: bool,
    /// Of the key that this end showed, in hexadecimal digits.
    pub fingerprint: Option<String>,
    /// Of the key that the other end showed.
    pub peer_fingerprint: Option<String>,
    /// Which sort of key the other end says that is: "shared", "own", "certified" by an authority, or
    /// "ephemeral", which lasts no longer than this run.
    pub peer_key: Option<&'static str>,
}

impl From<&Standing> for SecurityReport {
    fn from(standing: &Standing) -> Self {
        Self {
            cipher: standing.suite.to_string(),
            authenticated: standing.peer.authenticated,
            fingerprint: standing.fingerprint.map(|it| it.to_string()),
            peer_fingerprint: standing.peer.fingerprint.map(|it| it.to_string()),
            peer_key: standing.shows.map(|kind| match kind {
                KeyKind::Shared => "shared",
                KeyKind::Own => "own",
                KeyKind::Ephemeral => "ephemeral",
                KeyKind::Certified => "certified",
            }),
        }
    }
}

/// How a path does.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct PathReport {
    /// Its number, by order of joining.
    pub id: u16,
    /// The number of our socket.
    pub socket: u16,
    /// The address at the other end.
    pub remote: String,
    /// "unconfirmed", "active", "potentially failed", "inactive", or "left".
    pub state: &'static str,
    /// For so long, s.
    pub state_seconds: f64,
    /// Payload and protocol bytes sent in the last second, in bit/s.
    #[serde(rename = "send_bits_per_second")]
    pub send_rate: f64,
    /// The same for bytes received.
    #[serde(rename = "receive_bits_per_second")]
    pub receive_rate: f64,
    /// Payload that was acknowledged in the last second, in bit/s.
    #[serde(rename = "delivered_bits_per_second")]
    pub delivered_rate: f64,
    /// Payload that the path could carry, in bit/s, as the sender measures it; `None` before it is known.
    #[serde(rename = "capacity_bits_per_second")]
    pub capacity: Option<f64>,
    /// The path was never full of late: it may carry more than [`capacity`](Self::capacity).
    pub capacity_is_floor: bool,
    /// Smoothed round trip time, ms.
    pub rtt_ms: Option<f64>,
    /// The smallest round trip time, ms.
    pub min_rtt_ms: Option<f64>,
    /// How long packets stood in queues of late, ms.
    pub queued_ms: f64,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight_bytes: u64,
    /// Datagrams sent.
    pub sent_packets: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Datagrams received.
    pub received_packets: u64,
    /// Bytes received.
    pub received_bytes: u64,
    /// Payload acknowledged, of what went over this path alone.
    pub delivered_bytes: u64,
    /// Chunks sent, repeats included.
    pub sent_chunks: u64,
    /// Chunks sent as copies of what another path carries.
    pub copied_chunks: u64,
    /// Redundancy chunks sent.
    pub redundancy_chunks: u64,
    /// Chunks found lost.
    pub lost_chunks: u64,
    /// Chunks sent again.
    pub retransmitted_chunks: u64,
    /// Chunks found lost of those sent, 0 to 1; `None` if none were sent.
    pub loss_share: Option<f64>,
    /// Units that came over this path on time, of those that came over it, 0 to 1; the receiver knows.
    pub on_time_share: Option<f64>,
}

impl PathReport {
    /// It is no path any more.
    fn leave(&mut self) {
        (self.state, self.send_rate, self.receive_rate, self.delivered_rate) = ("left", 0.0, 0.0, 0.0);
        self.capacity = None;
    }

    /// Adds what went over the same addresses before.
    fn add(&mut self, old: &Self) {
        self.sent_packets += old.sent_packets;
        self.sent_bytes += old.sent_bytes;
        self.received_packets += old.received_packets;
        self.received_bytes += old.received_bytes;
        self.delivered_bytes += old.delivered_bytes;
        self.sent_chunks += old.sent_chunks;
        self.copied_chunks += old.copied_chunks;
        self.redundancy_chunks += old.redundancy_chunks;
        self.lost_chunks += old.lost_chunks;
        self.retransmitted_chunks += old.retransmitted_chunks;
        self.loss_share = self.loss_share.or(old.loss_share);
        self.on_time_share = self.on_time_share.or(old.on_time_share);
    }
}

/// What a path had sent and received at some time.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: Instant,
    sent: u64,
    received: u64,
    delivered: u64,
}

#[derive(Clone, Debug)]
struct PathHistory {
    last: PathReport,
    /// When the path was first seen in this state.
    since: Instant,
    samples: VecDeque<Sample>,
    on_time: u64,
    late: u64,
}

/// Follows the paths of an association, so that rates can be told and those that left are not forgotten.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathHistories {
    paths: BTreeMap<u16, PathHistory>,
    measured_at: Instant,
    /// Bytes acknowledged over the association, and over those before it.
    acked: (u64, u64),
    /// Paths of earlier associations, each pair of addresses once.
    former: Vec<PathReport>,
}

impl PathHistories {
    /// Takes a measurement; call it about five times a second.
    pub(crate) fn measure(&mut self, now: Instant, association: &Association) {
        self.measured_at = now;
        self.acked.0 = association.stats().acked_bytes;
        for history in self.paths.values_mut() {
            let is_there = association.paths().any(|path| path.id.0 == history.last.id);
            if !is_there && history.last.state != "left" {
                (history.last.state, history.since) = ("left", now);
            }
        }
        for path in association.paths() {
            let report = describe(now, &path);
            let (sent, received, delivered) = (report.sent_bytes, report.received_bytes, report.delivered_bytes);
            let sample = Sample { at: now, sent, received, delivered };
            let history = self.paths.entry(report.id).or_insert_with(|| PathHistory {
                last: report.clone(),
                since: now,
                samples: VecDeque::new(),
                on_time: 0,
                late: 0,
            });
            if history.last.state != report.state {
                history.since = now;
            }
            history.last = report;
            while history.samples.len() >= MAX_SAMPLES
                || history.samples.get(1).is_some_and(|sample| now.since(sample.at) >= RATE_WINDOW)
            {
                history.samples.pop_front();
            }
            history.samples.push_back(sample);
        }
        self.forget();
    }

    /// Counts what left first with the paths of earlier associations, if too many have left.
    fn forget(&mut self) {
        let left = |(id, it): (&u16, &PathHistory)| (it.last.state == "left").then_some((it.since, *id));
        while self.paths.iter().filter_map(left).count() > MAX_FORMER {
            let Some((_, first)) = self.paths.iter().filter_map(left).min() else { return };
            let Some(history) = self.paths.remove(&first) else { return };
            merge(&mut self.former, history.report(self.measured_at));
            self.trim();
        }
    }

    fn trim(&mut self) {
        let surplus = self.former.len().saturating_sub(MAX_FORMER);
        self.former.drain(..surplus);
    }

    /// A unit came over path `id`.
    pub(crate) fn arrived(&mut self, id: u16, on_time: bool) {
        if let Some(history) = self.paths.get_mut(&id) {
            *(if on_time { &mut history.on_time } else { &mut history.late }) += 1;
        }
    }

    /// A new association takes the place of the old one; its paths are counted together with those
    /// of the same addresses.
    pub(crate) fn restart(&mut self) {
        self.former = self.reports();
        self.former.iter_mut().for_each(PathReport::leave);
        self.trim();
        self.paths.clear();
        self.acked = (0, self.acked.0 + self.acked.1);
    }

    /// Bytes that were acknowledged, each once.
    pub(crate) const fn acked_bytes(&self) -> u64 {
        self.acked.0 + self.acked.1
    }

    /// The report's lines.
    pub(crate) fn reports(&self) -> Vec<PathReport> {
        let mut reports = self.former.clone();
        self.paths.values().for_each(|path| merge(&mut reports, path.report(self.measured_at)));
        reports
    }
}

/// Adds a path, which takes the place of one that went over the same addresses before.
fn merge(reports: &mut Vec<PathReport>, mut report: PathReport) {
    match reports.iter_mut().find(|old| (old.socket, &old.remote) == (report.socket, &report.remote)) {
        Some(old) => {
            report.add(old);
            *old = report;
        }
        None => reports.push(report),
    }
}

impl PathHistory {
    fn report(&self, now: Instant) -> PathReport {
        let (first, last) = (self.samples.front(), self.samples.back());
        let rate = |count: fn(&Sample) -> u64| match (first, last) {
            (Some(first), Some(last)) if last.at > first.at && self.last.state != "left" => {
                count(last).saturating_sub(count(first)) as f64 * 8.0 / last.at.since(first.at).as_secs_f64()
            }
            _ => 0.0,
        };
        let arrived = self.on_time + self.late;
        let delivered_rate = rate(|sample| sample.delivered);
        PathReport {
            send_rate: rate(|sample| sample.sent),
            receive_rate: rate(|sample| sample.received),
            delivered_rate,
            // What it carried in a whole second, it can carry.
            capacity: self.last.capacity.map(|capacity| capacity.max(delivered_rate)),
            state_seconds: now.since(self.since).as_secs_f64(),
            on_time_share: (arrived > 0).then(|| self.on_time as f64 / arrived as f64),
            ..self.last.clone()
        }
    }
}

fn describe(now: Instant, path: &Path) -> PathReport {
    use braidcast_sctp::PathState as State;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    PathReport {
        id: path.id.0,
        socket: path.route.socket.0,
        remote: path.route.remote.to_string(),
        state: match path.state {
            State::Unconfirmed => "unconfirmed",
            State::Active => "active",
            State::PotentiallyFailed => "potentially failed",
            State::Inactive => "inactive",
        },
        state_seconds: 0.0,
        send_rate: 0.0,
        receive_rate: 0.0,
        delivered_rate: 0.0,
        capacity: path.capacity.map(|bytes| bytes as f64 * 8.0),
        capacity_is_floor: path.full_at.is_none_or(|at| now.since(at) > FULL_OF_LATE),
        rtt_ms: path.srtt.map(ms),
        min_rtt_ms: path.min_rtt.map(ms),
        queued_ms: ms(path.queued),
        cwnd_bytes: path.cwnd as u64,
        in_flight_bytes: path.in_flight as u64,
        sent_packets: path.sent_packets,
        sent_bytes: path.sent_bytes,
        received_packets: path.received_packets,
        received_bytes: path.received_bytes,
        delivered_bytes: path.delivered_bytes,
        sent_chunks: path.sent_chunks,
        copied_chunks: path.copied_chunks,
        redundancy_chunks: path.redundancy_chunks,
        lost_chunks: path.lost_chunks,
        retransmitted_chunks: path.retransmitted_chunks,
        loss_share: (path.sent_chunks > 0).then(|| (path.lost_chunks as f64 / path.sent_chunks as f64).min(1.0)),
        on_time_share: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_paths_that_come_and_go_without_end_a_few_are_remembered() {
        let (mut histories, now) = (PathHistories::default(), Instant::from_millis);
        for id in 0..2000_u16 {
            // Half of them over addresses that were there before.
            let remote = format!("10.0.0.1:{}", if id % 2 == 0 { 0 } else { id });
            let last = PathReport { id, remote, state: "left", sent_bytes: 1, ..PathReport::default() };
            let history = PathHistory { last, since: now(id.into()), samples: VecDeque::new(), on_time: 0, late: 0 };
            histories.paths.insert(id, history);
            histories.forget();
            assert!(histories.paths.len() <= MAX_FORMER && histories.former.len() <= MAX_FORMER);
        }
        let reports = histories.reports();
        let again = reports.iter().find(|report| report.remote == "10.0.0.1:0").map(|report| report.sent_bytes);
        assert!(again >= Some(16), "{again:?}");
        assert_eq!(histories.paths.keys().copied().collect::<Vec<_>>(), (1968..2000).collect::<Vec<_>>());
    }
}
