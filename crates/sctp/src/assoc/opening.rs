//! An association before the handshake is done: messages are taken, paths are named, INIT and
//! COOKIE ECHO are sent.

use super::control::ControlQueue;
use super::intake::{Desk, Intake};
use super::{Parts, Settled, nonzero};
use crate::api::{CloseReason, Event, Options, PathState};
use crate::auth::AuthKeys;
use crate::capabilities::Offer;
use crate::journal::Journal;
use crate::path::Paths;
use crate::tx::{Books, SendQueue};
use crate::wire::{self, Cause, Header};
use braidcast_core::events::{PacketContent, Purpose, SctpEvent};
use braidcast_core::{Ecn, Instant, Rng, Route, Transmit, Writer};
use braidcast_queue::Outlook;
use core::mem;
use core::time::Duration;
use std::sync::Arc;

/// An association that sent INIT and is not open yet, or was closed before it was.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) options: Arc<Options>,
    rng: Rng,
    pub(super) local_tag: u32,
    pub(super) peer_port: u16,
    pub(super) initial_tsn: u32,
    pub(super) offer: Offer,
    pub(super) stage: Stage,
    /// The route whose answer led nowhere, and until when those of others go first.
    pub(super) misled: Option<(Route, Instant)>,
    pub(super) paths: Paths,
    pub(super) queue: SendQueue,
    pub(super) control: ControlQueue,
    pub(super) journal: Journal,
    /// The last [`send`](Intake::send) found no room.
    starved: bool,
    /// It is to be shut down once it is open and has delivered what waits.
    shutdown: bool,
}

/// How far the handshake is (RFC 9260 §4).
///
/// ```text
///   connect ──> CookieWait ──INIT ACK──> CookieEchoed ──COOKIE ACK──> Open
///                 │    ^                   │   │
///                 │    └──── Stale Cookie ─┘   │     the peer's cookie, from either ──> Open
///                 └────────────> Closed <──────┘
/// ```
#[derive(Debug)]
pub(super) enum Stage {
    /// INIT sent.
    CookieWait(Retry),
    /// COOKIE ECHO sent.
    CookieEchoed {
        retry: Retry,
        /// By which the INIT ACK came.
        route: Route,
        /// COOKIE ECHO and what goes with it, as on the wire.
        echo: Vec<u8>,
        settled: Box<Settled>,
    },
    /// Over. An ABORT may have to be authenticated yet, by what was settled.
    Closed(Option<Box<Settled>>),
}

/// T1-init or T1-cookie (RFC 9260 §5.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Retry {
    /// How often the chunk was sent.
    pub(super) tries: u32,
    /// When it is sent (again).
    pub(super) due: Instant,
    /// When it was to be sent first.
    pub(super) begun: Instant,
    /// How long the answer takes at least, as far as is known.
    pub(super) takes: Duration,
}

impl Retry {
    /// Due now.
    pub(super) const fn new(now: Instant, takes: Duration) -> Self {
        Self { tries: 0, due: now, begun: now, takes }
    }
}

impl Stage {
    pub(super) fn settled(&self) -> Option<&Settled> {
        match self {
            Self::CookieWait(_) | Self::Closed(None) => None,
            Self::CookieEchoed { settled, .. } | Self::Closed(Some(settled)) => Some(settled),
        }
    }

    pub(super) fn keys(&self) -> Option<&AuthKeys> {
        self.settled().and_then(|settled| settled.auth.as_ref())
    }
}

impl Opening {
    /// About to send INIT over `routes` in turn.
    pub(super) fn connect(now: Instant, options: Arc<Options>, mut rng: Rng, peer_port: u16, routes: &[Route]) -> Self {
        let offer = Offer::of(&mut rng, &options);
        let (local_tag, initial_tsn) = (nonzero(&mut rng), rng.u32());
        let mut paths = Paths::new(options.clone());
        for &route in routes {
            paths.add(now, route, PathState::Unconfirmed);
        }
        Self {
            rng,
            local_tag,
            peer_port,
            initial_tsn,
            offer,
            stage: Stage::CookieWait(Retry::new(now, Duration::ZERO)),
            misled: None,
            paths,
            queue: SendQueue::of(&options),
            control: ControlQueue::default(),
            journal: Journal::traced(&options.events, local_tag),
            starved: false,
            shutdown: false,
            options,
        }
    }

    /// All that the association keeps when it opens. Nothing is left here but what says so: no
    /// paths, no messages, no events.
    pub(super) fn hand_over(&mut self) -> Parts {
        let options = &self.options;
        let empty = SendQueue::new(options.queue.stream_order, options.papers.abandonment);
        Parts {
            options: self.options.clone(),
            rng: self.rng.clone(),
            initiator: true,
            local_tag: self.local_tag,
            peer_port: self.peer_port,
            paths: mem::replace(&mut self.paths, Paths::new(self.options.clone())),
            queue: mem::replace(&mut self.queue, empty),
            control: mem::take(&mut self.control),
            journal: mem::take(&mut self.journal),
            starved: self.starved,
            shutdown: self.shutdown,
        }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.stage, Stage::Closed(_))
    }

    /// It is over, for `reason`.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if self.is_closed() {
            return;
        }
        let settled = match mem::replace(&mut self.stage, Stage::Closed(None)) {
            Stage::CookieEchoed { settled, .. } => Some(settled),
            Stage::CookieWait(_) | Stage::Closed(_) => None,
        };
        self.stage = Stage::Closed(settled);
        self.journal.close(self.queue.unsettled(), reason);
    }

    /// ABORT with one cause, if the peer's tag is known.
    pub(super) fn send_abort(&mut self, cause: &Cause<'_>) {
        if self.is_closed() {
            return;
        }
        let mut causes = Vec::new();
        cause.emit(&mut Writer::new(&mut causes));
        self.control.abort(&self.paths, self.stage.settled().map(|settled| settled.peer_tag), &causes);
    }

    /// Nothing to deliver: it is over. Else the association opens first.
    pub(super) fn shutdown(&mut self) {
        self.shutdown = true;
        if self.queue.held_bytes() == 0 {
            self.close(CloseReason::Shutdown);
        }
    }

    pub(super) fn peer_tag(&self) -> u32 {
        self.stage.settled().map_or(0, |settled| settled.peer_tag)
    }

    pub(super) fn interleaves(&self) -> bool {
        self.stage.settled().is_some_and(|settled| settled.agreed.interleaving)
    }

    /// What our INIT says, the initial TSN and the offer, while it counts.
    pub(super) fn said(&self) -> Option<(u32, Offer)> {
        (!self.is_closed()).then_some((self.initial_tsn, self.offer))
    }

    /// One path less, if it is not the last.
    pub(super) fn leave(&mut self, route: Route) {
        let Some(index) = self.paths.by_route(route).filter(|_| self.paths.len() > 1) else { return };
        let Some(path) = self.paths.remove(index) else { return };
        self.control.forget_path(index);
        self.journal.events.push_back(Event::PathRemoved(path.id(), path.route()));
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        match &self.stage {
            Stage::CookieWait(retry) | Stage::CookieEchoed { retry, .. } => Some(retry.due),
            Stage::Closed(_) => None,
        }
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.desk().poll_event()
    }

    /// Writes the next packet into `buf`.
    pub(super) fn transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        let (index, verification_tag) = self.control.next()?;
        let (source_port, destination_port) = (self.options.local_port, self.peer_port);
        wire::begin(buf, Header { source_port, destination_port, verification_tag });
        let keys = self.stage.keys();
        let written = self.control.put(index, self.paths[index].mtu(), keys, buf);
        if let (Some(at), Some(keys)) = (written.auth, keys) {
            keys.seal(&mut buf[at..]);
        }
        wire::seal(buf);
        let path = &mut self.paths[index];
        path.on_packets_sent(now, 1, buf.len());
        let content = PacketContent { purpose: Purpose::Handshake, sack: false, redundancy: false };
        self.journal.tell(|| SctpEvent::PacketSent { path: path.id(), bytes: buf.len() as u32, content });
        Some(Transmit { route: path.route(), ecn: Ecn::NotEct, segment_size: None })
    }
}

impl Intake for Opening {
    fn streams(&self) -> Option<u16> {
        let settled = || self.stage.settled().map(|settled| settled.outbound_streams);
        (!self.is_closed() && !self.shutdown).then(|| settled().unwrap_or(self.options.limits.streams))
    }

    fn prospects(&self, now: Instant) -> Outlook {
        Outlook {
            now,
            one_way_delay: core::time::Duration::ZERO,
            rate: None,
            packet_size: None,
            ahead: 0,
            only_excess: false,
        }
    }

    fn expire(&mut self, now: Instant) {
        while let Some(key) = self.queue.next_expired(now) {
            self.desk().books.give_up_unsent(key);
        }
        if self.shutdown && self.queue.held_bytes() == 0 {
            self.close(CloseReason::Shutdown);
        }
    }

    fn desk(&mut self) -> Desk<'_> {
        let books = Books { queue: &mut self.queue, journal: &mut self.journal };
        Desk { options: &self.options, books, starved: &mut self.starved }
    }
}
