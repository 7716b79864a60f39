//! A neighbour's stream in one of our rooms: who sends it, and how it goes in the words of our own streams.

use super::gate::Gate;
use crate::cmd::neighbour::{Figures, LinkFigures, Seen};
use braidcast_core::Instant;
use braidcast_gateway::srt::ConnectionId;
use braidcast_session::{KindReport, PathReport, RecentKind, Report};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Interval at which it is looked at.
pub(super) const LOOK: Duration = Duration::from_millis(200);
/// A link that was silent for this long is inactive: senders say each second that they are there.
const INACTIVE: Duration = Duration::from_secs(3);
/// Rates are taken over at least this time.
const RATE: Duration = Duration::from_secs(1);
/// Span of the recent figures, and the interval of the counts that they are made of.
const RECENT: Duration = Duration::from_secs(10);
const EACH: Duration = Duration::from_secs(1);
/// Links that are remembered; SRTLA's groups have 16 at a time.
const LINKS: usize = 64;
/// The kind in whose name packets are counted: what is in them is not looked at.
const KIND: &str = "data";

/// The stream of a neighbour.
pub(super) struct Guest {
    /// Its gate, and its connection there; the last one if it is gone.
    pub(super) from: (usize, ConnectionId),
    /// Since when it is gone, and `true` if it said so.
    pub(super) gone: Option<(Instant, bool)>,
    protocol: &'static str,
    title: String,
    seen: Option<Seen>,
    /// Its address, where that is known without a connection of SRT.
    remote: Option<String>,
    /// Where the same packets come in twice.
    networks: Vec<LinkFigures>,
    began: Instant,
    heard: Instant,
    looked: Instant,
    returns: u64,
    /// Packets that came out, and that did not, by the connections before this one.
    before: Counts,
    now: Counts,
    lately: VecDeque<(Instant, Counts)>,
    links: BTreeMap<String, Link>,
}

/// What is kept of one that is over.
pub(super) struct Kept {
    pub(super) report: Report,
    pub(super) figures: Figures,
    pub(super) protection: String,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    skipped: u64,
}

impl Counts {
    const fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            skipped: self.skipped + other.skipped,
        }
    }
}

/// One of its links, or its only one.
struct Link {
    bytes: u64,
    packets: u64,
    heard: Instant,
    /// When the rate was taken last, and what had come by then.
    mark: (Instant, u64),
    rate: f64,
}

impl Guest {
    pub(super) fn new(now: Instant, from: (usize, ConnectionId), gate: &Gate) -> Self {
        Self {
            from,
            gone: None,
            protocol: gate.protocol(),
            title: gate.title.clone(),
            seen: None,
            remote: None,
            networks: Vec::new(),
            began: now,
            heard: now,
            looked: Instant::ZERO,
            returns: 0,
            before: Counts::default(),
            now: Counts::default(),
            lately: VecDeque::from([(now, Counts::default())]),
            links: BTreeMap::new(),
        }
    }

    /// It is back, perhaps through another gate.
    pub(super) fn back(&mut self, now: Instant, from: (usize, ConnectionId), gate: &Gate) {
        self.before = self.before.add(std::mem::take(&mut self.now));
        (self.from, self.gone, self.seen) = (from, None, None);
        (self.protocol, self.title) = (gate.protocol(), gate.title.clone());
        (self.heard, self.looked) = (now, Instant::ZERO);
        self.returns += 1;
        self.look(now, gate);
    }

    /// Returns `true` if it is there.
    pub(super) const fn is_there(&self) -> bool {
        self.gone.is_none()
    }

    /// When something came out last.
    pub(super) const fn heard(&self) -> Instant {
        self.heard
    }

    /// Payloads came out.
    pub(super) fn count(&mut self, now: Instant, packets: u64, bytes: usize) {
        self.heard = now;
        self.now.packets += packets;
        self.now.bytes += bytes as u64;
    }

    /// Looks after its connection, now and then.
    pub(super) fn look(&mut self, now: Instant, gate: &Gate) {
        if now.since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        if let Some(seen) = gate.look(self.from.1) {
            self.now.skipped = seen.report.received.skipped;
            for link in &seen.links {
                self.link(now, link.remote.to_string(), link.bytes, link.packets, link.heard);
            }
            if seen.links.is_empty() {
                let received = &seen.report.received;
                self.link(now, seen.report.peer.to_string(), received.bytes, received.packets, self.heard);
            }
            self.seen = Some(seen);
        } else {
            let (skipped, remote) = gate.skipped();
            self.now.skipped = skipped;
            self.remote = remote.map(|remote| remote.to_string());
            let networks = gate.networks();
            if networks.len() > 1 {
                self.networks = networks.iter().map(LinkFigures::of_network).collect();
                for network in networks {
                    self.link(now, network.name.clone(), network.bytes, network.packets, network.heard);
                }
            } else {
                let name = self.remote.clone().unwrap_or_else(|| self.title.clone());
                self.link(now, name, self.now.bytes, self.now.packets, self.heard);
            }
        }
        let total = self.before.add(self.now);
        if self.lately.back().is_none_or(|(at, _)| now.since(*at) >= EACH) {
            self.lately.push_back((now, total));
        }
        while self.lately.get(1).is_some_and(|(at, _)| now.since(*at) >= RECENT) {
            self.lately.pop_front();
        }
    }

    fn link(&mut self, now: Instant, remote: String, bytes: u64, packets: u64, heard: Instant) {
        if self.links.len() >= LINKS && !self.links.contains_key(&remote) {
            return;
        }
        let fresh = || Link { bytes, packets, heard, mark: (now, bytes), rate: 0.0 };
        let link = self.links.entry(remote).or_insert_with(fresh);
        (link.bytes, link.packets, link.heard) = (bytes, packets, heard);
        let (since, had) = link.mark;
        if now.since(since) >= RATE {
            link.rate = bytes.saturating_sub(had) as f64 * 8.0 / now.since(since).as_secs_f64();
            link.mark = (now, bytes);
        }
    }

    /// How it goes, as a session says it: links are paths, and packets units.
    pub(super) fn report(&self, now: Instant) -> Report {
        let total = self.before.add(self.now);
        let (since, then) = self.lately.front().copied().unwrap_or((now, total));
        let (lately, missed) = (total.packets - then.packets, total.skipped.saturating_sub(then.skipped));
        let all = total.packets + total.skipped;
        let mut kind = KindReport::default();
        (kind.kind, kind.captured, kind.on_time, kind.missing) = (KIND, all, total.packets, total.skipped);
        kind.on_time_share = (all > 0).then(|| total.packets as f64 / all as f64);
        kind.bytes = total.bytes;
        let mut recent = RecentKind::default();
        (recent.kind, recent.captured, recent.on_time, recent.missing) = (KIND, lately + missed, lately, missed);
        let mut report = Report::default();
        report.seconds = now.since(self.began).as_secs_f64();
        (report.kinds, report.recent) = (vec![kind], vec![recent]);
        report.recent_seconds = now.since(since).as_secs_f64();
        report.unheard_seconds = Some(now.since(self.heard).as_secs_f64());
        report.paths = self.links.iter().map(|(remote, link)| self.path(now, remote, link)).collect();
        report.restarts = self.returns;
        report
    }

    fn path(&self, now: Instant, remote: &str, link: &Link) -> PathReport {
        let silence = now.since(link.heard);
        let there = silence < INACTIVE && self.is_there();
        let mut path = PathReport::default();
        path.remote = remote.to_owned();
        path.state = if there { "active" } else { "inactive" };
        path.state_seconds = if there { now.since(self.began) } else { silence }.as_secs_f64();
        path.receive_rate = if there { link.rate } else { 0.0 };
        (path.received_bytes, path.received_packets) = (link.bytes, link.packets);
        path.rtt_ms = self.seen.as_ref().map(|seen| seen.report.rtt.as_secs_f64() * 1e3);
        path
    }

    /// How its connection goes, in the words of its protocol.
    pub(super) fn figures(&self) -> Figures {
        if matches!(self.protocol, "rtp" | "rtmp") {
            return Figures {
                protocol: self.protocol,
                remote: self.remote.clone(),
                links: self.networks.clone(),
                connected: self.is_there(),
                received_packets: self.now.packets,
                received_bytes: self.now.bytes,
                skipped_packets: self.now.skipped,
                ..Figures::default()
            };
        }
        Seen::figures(self.seen.as_ref(), self.protocol, self.is_there())
    }

    /// What is kept of it.
    pub(super) fn keep(&self, now: Instant) -> Kept {
        Kept { report: self.report(now), figures: self.figures(), protection: self.protection() }
    }

    /// How it was protected, for people.
    pub(super) fn protection(&self) -> String {
        match self.seen.as_ref().map_or(0, |seen| seen.report.key_bytes) {
            0 => format!("{}: not encrypted, anybody may be the sender", self.title),
            bytes if self.protocol == "rist" => {
                format!(
                    "{}: encrypted (AES-{} by RIST, which does not authenticate what it encrypts)",
                    self.title,
                    bytes * 8
                )
            }
            bytes => format!("{}: encrypted (AES-{} by SRT), authenticated by its passphrase", self.title, bytes * 8),
        }
    }
}
