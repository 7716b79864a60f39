//! What a neighbour speaks, SRT or RIST, behind one interface with SRT's words.

use braidcast_core::{Datagram, Instant, Machine, Transmit};
use braidcast_gateway::rist;
use braidcast_gateway::srt::{self, ConnectionId, Delivered, Ended, Passphrase, Report};
use braidcast_gateway::srtla::LinkReport;
use std::net::SocketAddr;

/// The machine of a neighbour.
pub(super) enum Spoken {
    Srt(Box<srt::Endpoint>),
    Rist {
        machine: Box<rist::Endpoint>,
        /// It takes what comes out.
        is_sink: bool,
    },
}

/// What happened.
pub(crate) enum Event {
    /// A connection is up.
    Connected(ConnectionId),
    /// It is over.
    Ended(ConnectionId, Ended),
    /// Somebody was refused.
    Refused {
        /// Who it was.
        peer: SocketAddr,
        /// Why.
        why: String,
        /// The stream that was meant, of SRT.
        stream_id: Option<String>,
    },
    /// The other end refused us.
    RefusedByPeer(String),
    /// Nobody answers.
    NoAnswer,
}

impl Spoken {
    pub(super) fn handle(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Srt(it) => it.handle_datagram(now, datagram),
            Self::Rist { machine, .. } => machine.handle_datagram(now, datagram),
        }
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        match self {
            Self::Srt(it) => it.poll_timeout(),
            Self::Rist { machine, .. } => machine.poll_timeout(),
        }
    }

    pub(super) fn tick(&mut self, now: Instant) {
        match self {
            Self::Srt(it) => it.handle_timeout(now),
            Self::Rist { machine, .. } => machine.handle_timeout(now),
        }
    }

    pub(super) fn transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Srt(it) => it.poll_transmit(now, buf),
            Self::Rist { machine, .. } => machine.poll_transmit(now, buf),
        }
    }

    pub(super) fn event(&mut self) -> Option<Event> {
        match self {
            Self::Srt(it) => it.poll_event().map(|event| match event {
                srt::Event::Connected(id) => Event::Connected(id),
                srt::Event::Ended(id, why) => Event::Ended(id, why),
                srt::Event::Refused { peer, why, stream_id } => {
                    Event::Refused { peer, why: why.to_string(), stream_id: Some(stream_id) }
                }
                srt::Event::RefusedByPeer(why) => Event::RefusedByPeer(why.to_string()),
                srt::Event::NoAnswer => Event::NoAnswer,
            }),
            Self::Rist { machine, .. } => machine.poll_event().map(|event| match event {
                rist::Event::Came(stream) => Event::Connected(ConnectionId(stream)),
                rist::Event::Went(stream) => Event::Ended(ConnectionId(stream), Ended::Silent),
                rist::Event::Replaced(stream) => Event::Ended(ConnectionId(stream), Ended::Replaced),
                rist::Event::Refused { peer, why } => Event::Refused { peer, why: why.to_string(), stream_id: None },
            }),
        }
    }

    pub(super) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Delivered> {
        match self {
            Self::Srt(it) => it.deliver(now, buf),
            Self::Rist { machine, .. } => {
                machine.deliver(now, buf).map(|(stream, due)| Delivered { connection: ConnectionId(stream), due })
            }
        }
    }

    pub(super) fn push(&mut self, now: Instant, bytes: &[u8]) {
        match self {
            Self::Srt(it) => it.push(now, bytes),
            Self::Rist { machine, .. } => machine.push(now, bytes),
        }
    }

    /// Takes another list of passphrases. RIST has none.
    pub(super) fn set_keys(&mut self, now: Instant, keys: Vec<(String, Passphrase)>) {
        if let Self::Srt(it) = self {
            it.set_keys(now, keys);
        }
    }

    /// Has who sends hear how much the path behind us carries, bit/s. RIST has no word for it.
    pub(super) fn tell_capacity(&mut self, bits_per_second: u64) {
        if let Self::Srt(it) = self {
            it.tell_capacity(bits_per_second);
        }
    }

    /// RIST has no word for it.
    pub(super) fn disconnect(&mut self, now: Instant, connection: ConnectionId) {
        if let Self::Srt(it) = self {
            it.disconnect(now, connection);
        }
    }

    pub(super) fn close(&mut self, now: Instant) {
        if let Self::Srt(it) = self {
            it.close(now);
        }
    }

    /// How each connection goes.
    pub(super) fn reports(&self) -> Vec<(ConnectionId, Report)> {
        match self {
            Self::Srt(it) => it.reports().collect(),
            Self::Rist { machine, is_sink } => {
                machine.report().map(|report| translated(&report, *is_sink)).into_iter().collect()
            }
        }
    }

    /// How the one goes that has been there for the longest.
    pub(super) fn first_report(&self) -> Option<Report> {
        match self {
            Self::Srt(it) => it.reports().next().map(|(_, report)| report),
            Self::Rist { .. } => self.reports().pop().map(|(_, report)| report),
        }
    }

    /// How this one goes.
    pub(super) fn report(&self, connection: ConnectionId) -> Option<Report> {
        match self {
            Self::Srt(it) => it.report(connection),
            Self::Rist { .. } => self.reports().into_iter().find(|(id, _)| *id == connection).map(|(_, report)| report),
        }
    }

    /// The profile of RIST that is spoken.
    pub(super) fn profile(&self) -> Option<rist::Profile> {
        if let Self::Rist { machine, .. } = self { machine.report().map(|report| report.profile) } else { None }
    }

    pub(super) fn bonded(&self, caller: SocketAddr) -> Vec<LinkReport> {
        if let Self::Srt(it) = self { it.bonded(caller) } else { Vec::new() }
    }

    pub(super) fn is_connected(&self) -> bool {
        match self {
            Self::Srt(it) => it.is_connected(),
            Self::Rist { machine, .. } => machine.report().is_some(),
        }
    }

    /// RIST sends everything at once, and is asked for some of it again.
    pub(super) fn is_drained(&self) -> bool {
        if let Self::Srt(it) = self { it.is_drained() } else { true }
    }
}

/// A report of RIST in SRT's words.
fn translated(report: &rist::Report, is_sink: bool) -> (ConnectionId, Report) {
    let of = |is_ours| if is_ours { report.latency } else { std::time::Duration::ZERO };
    let words = Report {
        // There is always one.
        peer: report.remotes.first().copied().unwrap_or_else(|| SocketAddr::from(([0; 4], 0))),
        stream_id: report.name.clone(),
        peer_version: 0,
        key_bytes: report.key_bytes,
        rtt: report.rtt,
        latency: of(!is_sink),
        peer_latency: of(is_sink),
        reordering: report.reordering,
        waiting: 0,
        received: report.received,
        sent: report.sent,
        told_capacity: None,
    };
    (ConnectionId(report.stream), words)
}
