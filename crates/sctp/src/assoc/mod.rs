//! One association. This file holds its data, its public calls and the dispatch; each procedure is a file.
//!
//! The way of a message out: [`Association::send`] puts it into the [`SendQueue`]. When a path has room, `plan` says what leaves next,
//! `transmit` cuts and writes it, and the [`Ledger`] notes it. `sack` tells ledger and paths what was acknowledged, `loss` what is overdue,
//! and `abandon` gives up what is too late. The way in: `receive` dispatches each chunk of a packet, hands data to `rx`, and
//! [`Association::recv`] takes whole messages.
//!
//! Procedures call downwards only (`tools/circles.py`): dispatch, then procedures, then what they share.

mod abandon;
mod asconf;
mod choose;
mod chunk;
mod control;
mod coupled;
mod ecn;
mod end;
mod fec;
mod handshake;
mod heartbeat;
mod loss;
mod paths;
mod plan;
mod receive;
mod sack;
mod schedule;
mod shutdown;
mod slice;
mod split;
mod state;
mod timers;
mod transmit;
mod window;

pub(crate) use handshake::Handshake;
pub(crate) use state::State;

use crate::addresses::Addresses;
use crate::api::{
    BlockingReport, CloseReason, Event, Options, PathReport, PathState, Priority, SackOptions, SendError, SendOptions,
    Spells, Stats,
};
use crate::auth::AuthKeys;
use crate::capabilities::{Agreed, Offer};
use crate::cookie::Cookie;
use crate::journal::Journal;
use crate::path::Paths;
use crate::rx::{AckPolicy, AckTimer, Echoes, Limits, Reassembly, Received, Slices, Tracker};
use crate::tx::{Front, Ledger, SendQueue};
use asconf::Reconfiguration;
use braidcast_core::{Instant, PathId, Rng, Route, Transmit};
use braidcast_mpath::{PathView, Scheduler};
use choose::Avoided;
use control::Control;
use fec::Fec;
use handshake::Settled;
use sack::AckScratch;
use std::collections::VecDeque;
use std::sync::Arc;

/// An SCTP association (RFC 9260), over one path or several at once.
///
/// It belongs to an [`Endpoint`](crate::Endpoint), which drives it. After calling any method that takes `&mut self`, poll the
/// endpoint for what is to be sent.
///
/// Memory: what [`Options`] bounds for both buffers, and about 100 bytes for each chunk that is out, 65,535 at most.
#[derive(Debug)]
pub struct Association {
    options: Arc<Options>,
    rng: Rng,
    state: State,
    /// We sent the INIT, and so name the paths.
    initiator: bool,
    local_tag: u32,
    peer_tag: u32,
    peer_port: u16,
    local_initial_tsn: u32,
    local_offer: Offer,
    peer_addresses: Addresses,
    agreed: Agreed,
    auth: Option<AuthKeys>,
    outbound_streams: u16,
    paths: Paths,
    /// Says which path carries the next packet.
    scheduler: Box<dyn Scheduler>,
    queue: SendQueue,
    /// Paths that new data leaves alone for the moment, for the sake of a queue.
    avoided: Avoided,
    ledger: Ledger,
    /// One packet of lost chunks may leave that no window holds back (RFC 9260 §6.3.3 E3, §7.2.4 3).
    unheld_packet: bool,
    tracker: Tracker,
    reassembly: Reassembly,
    ack: AckTimer,
    echoes: Echoes,
    /// Chunks of which slices came.
    slices: Slices,
    reconfiguration: Reconfiguration,
    control: VecDeque<Control>,
    /// Timeouts in a row over all paths (RFC 9260 §8.1).
    errors: u32,
    /// The last [`send`](Self::send) found no room.
    starved: bool,
    readable_told: bool,
    journal: Journal,
    window_shut: Spells,
    held_by_peer: Spells,
    /// Once both ends agreed on redundancy.
    fec: Option<Box<Fec>>,
    scratch: Scratch,
}

/// Buffers that are kept so that the steady path does not allocate.
#[derive(Debug, Default)]
struct Scratch {
    ack: AckScratch,
    views: Vec<PathView>,
    gaps: Vec<u8>,
    duplicates: Vec<u8>,
    slices: Vec<u8>,
}

impl Association {
    /// The client's side, about to send INIT over `routes` in turn.
    pub(crate) fn connect(now: Instant, options: Arc<Options>, mut rng: Rng, peer_port: u16, routes: &[Route]) -> Self {
        let offer = Offer::of(&mut rng, &options);
        let (local_tag, initial_tsn) = (nonzero(&mut rng), rng.u32());
        let mut association = Self::new(options, rng, local_tag, peer_port, initial_tsn, offer);
        for &route in routes {
            association.paths.add(now, route, PathState::Unconfirmed);
        }
        association.initiator = true;
        association.state = State::CookieWait(Handshake::new(now));
        association
    }

    /// The server's side, from a cookie that came back over `route`.
    pub(crate) fn accept(now: Instant, options: Arc<Options>, rng: Rng, cookie: &Cookie, route: Route) -> Self {
        let mut association =
            Self::new(options, rng, cookie.local_tag, cookie.peer_port, cookie.local_initial_tsn, cookie.local_offer);
        association.paths.add(now, route, PathState::Active);
        association.settle(&Settled::from(cookie));
        association.establish(now);
        association
    }

    fn new(options: Arc<Options>, rng: Rng, local_tag: u32, peer_port: u16, initial_tsn: u32, offer: Offer) -> Self {
        let SackOptions { every, delay, dac, path } = options.sack;
        let policy = AckPolicy { every, delay, dac, path };
        let limits =
            Limits { streams: options.limits.streams, interleaving: false, max_message: options.limits.max_message };
        Self {
            rng,
            state: State::Closed,
            initiator: false,
            local_tag,
            peer_tag: 0,
            peer_port,
            local_initial_tsn: initial_tsn,
            local_offer: offer,
            peer_addresses: Addresses::default(),
            agreed: Agreed::default(),
            auth: None,
            outbound_streams: options.limits.streams,
            paths: Paths::new(options.clone()),
            scheduler: options.paths.scheduler.scheduler(),
            queue: SendQueue::new(options.papers.stream_order, options.papers.abandonment).behind(Front::new(&options)),
            avoided: Avoided::default(),
            ledger: Ledger::new(&options, initial_tsn, 0),
            unheld_packet: false,
            tracker: Tracker::new(0),
            reassembly: Reassembly::new(limits),
            ack: AckTimer::new(policy),
            echoes: Echoes::default(),
            slices: Slices::default(),
            reconfiguration: Reconfiguration::new(initial_tsn),
            control: VecDeque::new(),
            errors: 0,
            starved: false,
            readable_told: false,
            journal: Journal::default(),
            window_shut: Spells::default(),
            held_by_peer: Spells::default(),
            fec: None,
            scratch: Scratch::default(),
            options,
        }
    }

    /// Takes a message of 1 to [`LimitOptions::max_message`](crate::LimitOptions::max_message) bytes. May be called before [`Event::Connected`].
    ///
    /// # Errors
    /// [`SendError`]; nothing was taken then.
    pub fn send(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        if !self.state.takes_messages() {
            return Err(SendError::Closing);
        }
        let (len, limit) = (payload.len(), self.options.limits.max_message);
        if len == 0 {
            return Err(SendError::Empty);
        }
        if len > limit {
            return Err(SendError::TooLong { len, limit });
        }
        if how.stream >= self.outbound_streams {
            return Err(SendError::NoSuchStream { stream: how.stream, count: self.outbound_streams });
        }
        if self.queue.front().is_some() {
            return self.enqueue(now, payload, how);
        }
        if len > self.send_room() {
            self.expire(now);
        }
        if len > self.send_room() {
            self.starved = true;
            return Err(SendError::BufferFull {
                needed: len,
                free: self.send_room(),
                limit: self.options.limits.send_buffer,
            });
        }
        self.queue.push(now, payload, how);
        self.journal.stats.messages_sent += 1;
        Ok(())
    }

    /// Exchanges the storage of `buf` for that of the next message, so that no byte is copied and none allocated.
    pub fn recv(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Received> {
        let before = self.receive_window();
        let received = self.reassembly.recv(buf);
        if received.is_some() {
            self.journal.stats.messages_received += 1;
            self.note_window(now);
            self.reopen_window(now, before);
        } else {
            self.readable_told = false;
        }
        received
    }

    /// Streams of a lower number in `priority` go first. For messages waiting and to come; what waits in a queue keeps its place.
    pub fn set_priority(&mut self, stream: u16, priority: Priority) {
        self.queue.set_priority(stream, priority);
        self.ledger.sort_repeats(&self.queue);
    }

    /// Sends each chunk of `stream` over a second path as well, where there is one, outside of its congestion window: for
    /// what is small and must not wait for a loss to be noticed. For messages to come.
    pub fn set_copied(&mut self, stream: u16, copied: bool) {
        self.queue.set_copied(stream, copied);
    }

    /// Makes the path over `route` the primary one, which carries new data where one path is used at a time
    /// ([`PathOptions::concurrent`](crate::PathOptions::concurrent)). At first it is the path of the handshake. Whether there is such a path.
    pub fn set_primary(&mut self, route: Route) -> bool {
        let index = self.paths.by_route(route);
        if let Some(index) = index {
            self.paths.set_primary(index);
        }
        index.is_some()
    }

    /// Ends the association once everything promised is delivered, in both directions.
    pub fn shutdown(&mut self, now: Instant) {
        self.begin_shutdown(now);
    }

    /// Ends the association at once; `reason` is told to the peer.
    pub fn abort(&mut self, _now: Instant, reason: &str) {
        self.send_abort(&crate::wire::Cause::UserInitiatedAbort(reason.as_bytes()));
        self.close(CloseReason::Aborted);
    }

    /// Bytes of messages that wait or are not yet acknowledged.
    pub const fn buffered(&self) -> usize {
        self.queue.held_bytes()
    }

    /// Bytes of messages that wait and of which nothing was sent yet.
    pub const fn waiting(&self) -> usize {
        self.queue.waiting_bytes()
    }

    /// Bytes that [`send`](Self::send) would still take; with a queue, on any stream and without discarding a message.
    pub fn send_room(&self) -> usize {
        match self.queue.front() {
            Some(front) => front.room(),
            None => self.options.limits.send_buffer.saturating_sub(self.queue.held_bytes()),
        }
    }

    /// The paths as they are now.
    pub fn paths(&self) -> impl Iterator<Item = PathReport> + '_ {
        self.paths.enumerate().map(|(index, path)| path.report(self.ledger.in_flight_over(index)))
    }

    /// What the path `id` lost of late of the data chunks sent over it, whether repeated or made up for: the share, 0 to 1, and the
    /// mean number in a row. `None` before enough were sent, or if there is no such path.
    pub fn recent_losses(&self, id: PathId) -> Option<(f64, f64)> {
        self.paths[self.paths.by_id(id)?].losses().fit()
    }

    /// Counts so far.
    pub const fn stats(&self) -> Stats {
        self.journal.stats
    }

    /// How long data stood still for the sake of other data.
    pub const fn blocking(&self) -> BlockingReport {
        BlockingReport {
            assembling: self.reassembly.assembling(),
            ordering: self.reassembly.ordering(),
            window_shut: self.window_shut.past(),
            held_by_peer: self.held_by_peer.past(),
        }
    }

    /// Whether data may flow: after [`Event::Connected`], before the shutdown.
    pub const fn is_established(&self) -> bool {
        matches!(self.state, State::Established)
    }

    /// Whether the association is over.
    pub const fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Whether I-DATA is in use (RFC 8260).
    pub const fn interleaves(&self) -> bool {
        self.agreed.interleaving
    }

    pub(crate) const fn local_tag(&self) -> u32 {
        self.local_tag
    }

    pub(crate) const fn peer_tag(&self) -> u32 {
        self.peer_tag
    }

    /// What our INIT says: the initial TSN and the offer.
    pub(crate) const fn opening(&self) -> (u32, Offer) {
        (self.local_initial_tsn, self.local_offer)
    }

    /// ABORT with our own tag sent back: the peer knows no association (RFC 9260 §8.5.1 B).
    pub(crate) fn handle_reflected_abort(&mut self, causes: crate::wire::Causes<'_>) {
        // To one that has sent SHUTDOWN ACK it says no more than the SHUTDOWN COMPLETE that was lost.
        let done = matches!(self.state, State::ShutdownAckSent(_));
        self.close(if done { CloseReason::Shutdown } else { CloseReason::by_peer(causes) });
    }

    /// SHUTDOWN COMPLETE from a peer that has forgotten us already (RFC 9260 §8.5.1 C).
    pub(crate) fn handle_reflected_shutdown_complete(&mut self) {
        self.handle_shutdown_complete();
    }

    pub(crate) const fn peer_port(&self) -> u16 {
        self.peer_port
    }

    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    /// Routes that became or ceased to be paths since the last call.
    pub(crate) fn take_route_changes(&mut self) -> impl Iterator<Item = (Route, bool)> + '_ {
        self.paths.take_changes()
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        if self.reassembly.is_readable() && !self.readable_told {
            self.readable_told = true;
            self.journal.events.push_back(Event::Readable);
        }
        let whole = self.queue.front().map_or(self.options.limits.send_buffer, |front| front.longest());
        if self.starved && self.send_room() >= whole / 4 {
            self.starved = false;
            self.journal.events.push_back(Event::Writable);
        }
        self.journal.events.pop_front()
    }

    /// Writes the next packets, all for one route, into `buf`.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.expire(now);
        self.transmit(now, buf)
    }
}

/// A random number that is not 0, for verification tags (RFC 9260 §3.3.2).
pub(crate) fn nonzero(rng: &mut Rng) -> u32 {
    loop {
        let number = rng.u32();
        if number != 0 {
            return number;
        }
    }
}
