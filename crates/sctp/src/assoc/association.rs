//! The public face of an association, and what the endpoint calls: every call is handed on to what
//! the association is at the moment.

use super::intake::Intake;
use super::receive::Inbound;
use super::{Open, Opening};
use crate::api::{
    Abandoned, AbandonmentPolicy, BlockingReport, CloseReason, Event, JoinError, Options, PathReport, Priority,
    ReconfigureError, SendError, SendOptions, Stats, StreamRequest,
};
use crate::capabilities::Offer;
use crate::cookie::Cookie;
use crate::path::Paths;
use crate::rx::Received;
use crate::wire::{Causes, Packet};
use braidcast_core::{Ecn, Instant, PathId, Reason, Rng, Route, Transmit};
use braidcast_fec::Code;
use braidcast_mpath::SchedulerKind;
use braidcast_rate::RateGuide;
use braidcast_secure::{Alias, Inquiry, Standing};
use core::num::NonZeroU16;
use core::time::Duration;
use std::net::IpAddr;
use std::sync::Arc;

/// An SCTP association (RFC 9260), over one path or several at once.
///
/// It belongs to an [`Endpoint`](crate::Endpoint), which drives it. After calling any method that
/// takes `&mut self`, poll the endpoint for what is to be sent.
///
/// Memory: what [`Options`] bounds for both buffers, and about 100 bytes for each chunk that is
/// out, 65,535 at most.
#[derive(Debug)]
pub struct Association {
    pub(super) life: Life,
    /// Where the application asked for it.
    pub(super) guide: Option<Box<RateGuide>>,
}

/// What an association is: until the handshake is done, and from then on. Each keeps its data when
/// it is closed.
#[derive(Debug)]
pub(super) enum Life {
    Opening(Box<Opening>),
    Open(Box<Open>),
}

/// The same call of the one or the other.
macro_rules! either {
    ($life:expr, $it:ident => $call:expr) => {
        match $life {
            Life::Opening($it) => $call,
            Life::Open($it) => $call,
        }
    };
}

impl Association {
    /// The client's side, about to send INIT over `routes` in turn.
    pub(crate) fn connect(now: Instant, options: Arc<Options>, rng: Rng, peer_port: u16, routes: &[Route]) -> Self {
        Self { life: Life::Opening(Box::new(Opening::connect(now, options, rng, peer_port, routes))), guide: None }
    }

    /// The same only to find out who is there: whatever messages come, none is taken.
    pub(crate) fn ask(now: Instant, options: Arc<Options>, rng: Rng, peer_port: u16, routes: &[Route]) -> Self {
        let mut opening = Opening::connect(now, options, rng, peer_port, routes);
        opening.asks = true;
        Self { life: Life::Opening(Box::new(opening)), guide: None }
    }

    /// The server's side, from a cookie that came back over `route`.
    pub(crate) fn accept(now: Instant, options: Arc<Options>, rng: Rng, cookie: &Cookie, route: Route) -> Self {
        Self { life: Life::Open(Open::accept(now, options, rng, cookie, route)), guide: None }
    }

    /// Takes a message of 1 to [`LimitOptions::max_message`](crate::LimitOptions::max_message)
    /// bytes. May be called before [`Event::Connected`].
    ///
    /// # Errors
    /// [`SendError`]; nothing was taken then.
    pub fn send(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        self.trace_at(now);
        self.look(now);
        either!(&mut self.life, it => it.send(now, payload, how))?;
        self.count(now, payload.len());
        Ok(())
    }

    /// Exchanges the storage of `buf` for that of the next message, so that no byte is copied and
    /// none allocated.
    pub fn recv(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Received> {
        match &mut self.life {
            Life::Opening(_) => None,
            Life::Open(open) => open.recv(now, buf),
        }
    }

    /// The same with the first message that is `wanted`, before others that came earlier; `None` if there is
    /// none. Ask for the same each time: a message that was not wanted once is not looked at again.
    pub fn recv_where(&mut self, now: Instant, wanted: impl Fn(&[u8]) -> bool, buf: &mut Vec<u8>) -> Option<Received> {
        match &mut self.life {
            Life::Opening(_) => None,
            Life::Open(open) => open.recv_where(now, wanted, buf),
        }
    }

    /// Streams of a lower number in `priority` go first. For messages waiting and to come; what
    /// waits in a queue keeps its place.
    pub fn set_priority(&mut self, stream: u16, priority: Priority) {
        match &mut self.life {
            Life::Opening(opening) => opening.queue.set_priority(stream, priority),
            Life::Open(open) => open.set_priority(stream, priority),
        }
    }

    /// Lets `stream` have `weight` times the capacity of one of weight 1, if streams share it by
    /// weight ([`StreamOrder::WeightedFair`](crate::StreamOrder)). Default 1.
    pub fn set_weight(&mut self, stream: u16, weight: NonZeroU16) {
        either!(&mut self.life, it => it.queue.set_weight(stream, weight));
    }

    /// Has another scheduler say from now on which path carries what, instead of that of the
    /// options. Whether that is possible: the association must be open.
    pub fn set_scheduler(&mut self, kind: SchedulerKind) -> bool {
        match &mut self.life {
            Life::Opening(_) => false,
            Life::Open(open) => {
                open.set_scheduler(kind);
                true
            }
        }
    }

    /// Sends each chunk of `stream` over a second path as well, where there is one, outside of its
    /// congestion window: for what is small and must not wait for a loss to be noticed. With a
    /// queue that chooses, while more than 4 KiB wait, it goes once if a repeat would be in time:
    /// copies would delay what waits. For messages to come.
    pub fn set_copied(&mut self, stream: u16, copied: bool) {
        either!(&mut self.life, it => it.queue.set_copied(stream, copied));
    }

    /// Sends redundancy by `code` from now on, or none, over what is sent from now on. Whether that
    /// is possible: the association must be open, and both ends must have
    /// [`RedundancyOptions::fec`](crate::RedundancyOptions::fec) or
    /// [`RedundancyOptions::fec_receive`](crate::RedundancyOptions::fec_receive).
    pub fn set_fec(&mut self, code: Option<Code>) -> bool {
        match &mut self.life {
            Life::Opening(_) => false,
            Life::Open(open) => open.set_fec(code),
        }
    }

    /// Sends redundancy by `code`, convolutional or Tetrys, from now on, as much as the paths call
    /// for: each chunk that is sent for the first time over a path owes `owed` repairs of it, which
    /// may be none. They leave when nothing more can be sent at present, so that all of a burst is
    /// covered by all of its redundancy, or after `hold`; the rate in `code` does not count.
    /// Returns `true` if that is possible, as for [`set_fec`](Self::set_fec).
    pub fn set_fec_by_path(&mut self, code: Code, hold: Duration, owed: impl Fn(PathId) -> f64) -> bool {
        match &mut self.life {
            Life::Opening(_) => false,
            Life::Open(open) => open.set_fec_by_path(code, hold, owed),
        }
    }

    /// Makes the path over `route` the primary one, which carries new data where one path is used
    /// at a time ([`PathOptions::concurrent`](crate::PathOptions::concurrent)). At first it is the
    /// path of the handshake. Whether there is such a path.
    pub fn set_primary(&mut self, route: Route) -> bool {
        let paths = either!(&mut self.life, it => &mut it.paths);
        let index = paths.by_route(route);
        if let Some(index) = index {
            paths.set_primary(index);
        }
        index.is_some()
    }

    /// Asks the peer to make the path over `route` its primary one, the one that it sends new data
    /// over if it uses one path at a time (RFC 5061 §4.2.4). It goes as soon as that path works; a
    /// later wish takes the place of an earlier one. Whether it can be asked: the association is
    /// open, there is such a path, and the peer is not known to have no set-primary. What the peer
    /// makes of it is its own affair.
    pub fn ask_primary(&mut self, now: Instant, route: Route) -> bool {
        match &mut self.life {
            Life::Opening(_) => false,
            Life::Open(open) => open.ask_primary(now, route),
        }
    }

    /// Asks the peer for a change of streams (RFC 6525); one request after the other goes.
    /// [`Event::StreamsChanged`] says when it is in force, [`Event::StreamsRefused`] that it will
    /// not be. What has not been asked for when the association shuts down is not done.
    ///
    /// # Errors
    /// [`ReconfigureError`]; nothing was asked for then.
    pub fn reconfigure(&mut self, now: Instant, request: StreamRequest) -> Result<(), ReconfigureError> {
        self.trace_at(now);
        match &mut self.life {
            Life::Opening(_) => Err(ReconfigureError::NotOpen),
            Life::Open(open) => open.ask_for_streams(now, request),
        }
    }

    /// Adds a path over `route`: at once if the association is up, else when it is.
    /// [`Event::PathUp`] follows when it can carry data; a join that gets no answer is tried again.
    ///
    /// # Errors
    /// [`JoinError`].
    pub fn join(&mut self, now: Instant, route: Route) -> Result<PathId, JoinError> {
        either!(&mut self.life, it => it.join(now, route))
    }

    /// Sends no more than `limit` over `route` from now on, also if it becomes a path later: bits per
    /// second with the headers of IP and UDP. `None`, as at first: as much as it carries.
    ///
    /// Data, repeats, copies and redundancy keep to it over any second; heartbeats and acknowledgements come on top.
    pub fn set_limit(&mut self, route: Route, limit: Option<u64>) {
        either!(&mut self.life, it => it.paths.set_limit(route, limit.map(|bits| bits as f64 / 8.0)));
    }

    /// Takes the path over `route` out. What it owes goes over the others, or waits for one to
    /// [`join`](Self::join); the peer is told from another path, as this one may be gone. The last
    /// path stays where the peer cannot be told of a new one, and at the end that was called.
    pub fn leave(&mut self, now: Instant, route: Route) {
        match &mut self.life {
            Life::Opening(opening) => opening.leave(route),
            Life::Open(open) => open.leave(now, route),
        }
    }

    /// Ends the association once everything promised is delivered, in both directions.
    pub fn shutdown(&mut self, now: Instant) {
        match &mut self.life {
            Life::Opening(opening) => opening.shutdown(),
            Life::Open(open) => open.begin_shutdown(now),
        }
    }

    /// Ends the association at once; the peer is told `reason`, [`CloseReason::MAX_TEXT`] bytes of
    /// it at most.
    pub fn abort(&mut self, now: Instant, reason: impl Into<Reason>) {
        self.trace_at(now);
        let reason = reason.into().emit(CloseReason::MAX_TEXT);
        either!(&mut self.life, it => {
            it.send_abort(&crate::wire::Cause::UserInitiatedAbort(&reason));
            it.close(CloseReason::Aborted);
        });
    }

    /// Bytes of messages that wait or are not yet acknowledged.
    pub const fn buffered(&self) -> usize {
        either!(&self.life, it => it.queue.held_bytes())
    }

    /// Bytes of messages that wait and of which nothing was sent yet.
    pub const fn waiting(&self) -> usize {
        either!(&self.life, it => it.queue.waiting_bytes() + it.queue.paused_bytes())
    }

    /// Bytes that [`send`](Self::send) would still take; with a queue, on any stream and without
    /// discarding a message.
    pub fn send_room(&self) -> usize {
        either!(&self.life, it => it.queue.room(it.options.limits.send_buffer))
    }

    /// The paths as they are now.
    pub fn paths(&self) -> impl Iterator<Item = PathReport> + '_ {
        let ledger = match &self.life {
            Life::Opening(_) => None,
            Life::Open(open) => Some(&open.ledger),
        };
        let reports = self.all_paths().enumerate();
        reports.map(move |(index, path)| path.report(ledger.map_or(0, |ledger| ledger.in_flight_over(index))))
    }

    /// What the path `id` lost of late of the data chunks sent over it, whether repeated or made up
    /// for: the share, 0 to 1, and the mean number in a row. `None` before enough were sent, or if
    /// there is no such path.
    pub fn recent_losses(&self, id: PathId) -> Option<(f64, f64)> {
        let paths = self.all_paths();
        paths[paths.by_id(id)?].losses().fit()
    }

    /// Counts so far.
    pub const fn stats(&self) -> Stats {
        either!(&self.life, it => it.journal.stats)
    }

    /// How many messages of an outgoing stream, or of all, were abandoned by a rule, or by any (RFC
    /// 7496 §4.3, §4.4). What a queue discarded for want of room, though nothing said that it may
    /// be abandoned, is in [`stats`](Self::stats) alone.
    pub fn abandoned(&self, stream: Option<u16>, policy: Option<AbandonmentPolicy>) -> Abandoned {
        either!(&self.life, it => it.journal.abandoned_by(stream, policy))
    }

    /// How long data stood still for the sake of other data.
    pub const fn blocking(&self) -> BlockingReport {
        match &self.life {
            Life::Opening(_) => BlockingReport::NONE,
            Life::Open(open) => open.blocking(),
        }
    }

    /// Returns `true` if data may flow: after [`Event::Connected`], before the shutdown.
    pub const fn is_established(&self) -> bool {
        match &self.life {
            Life::Opening(_) => false,
            Life::Open(open) => open.is_established(),
        }
    }

    /// How it is protected and who is at the other end, once the key handshake says so; `None` also
    /// where nothing is protected.
    pub fn standing(&self) -> Option<Standing> {
        match &self.life {
            Life::Opening(_) => None,
            Life::Open(open) => open.standing(),
        }
    }

    /// Returns `true` if messages wait to be taken.
    pub(crate) fn is_readable(&self) -> bool {
        matches!(&self.life, Life::Open(open) if open.reassembly.is_readable())
    }

    /// Returns `true` if the association is over.
    pub const fn is_closed(&self) -> bool {
        either!(&self.life, it => it.is_closed())
    }

    /// Returns `true` if I-DATA is in use (RFC 8260).
    pub fn interleaves(&self) -> bool {
        either!(&self.life, it => it.interleaves())
    }

    pub(crate) const fn local_tag(&self) -> u32 {
        either!(&self.life, it => it.local_tag)
    }

    /// The tag in our packets: the peer's, or 0 as in INIT while that is not known.
    pub(crate) fn peer_tag(&self) -> u32 {
        match &self.life {
            Life::Opening(opening) => opening.peer_tag(),
            Life::Open(open) => open.peer_tag,
        }
    }

    pub(crate) const fn peer_port(&self) -> u16 {
        either!(&self.life, it => it.peer_port)
    }

    /// What our INIT says, the initial TSN and the offer, while the handshake is under way.
    pub(crate) fn opening(&self) -> Option<(u32, Offer)> {
        match &self.life {
            Life::Opening(opening) => opening.said(),
            Life::Open(_) => None,
        }
    }

    /// Returns `true` if we wait for SHUTDOWN COMPLETE.
    pub(crate) const fn awaits_shutdown_complete(&self) -> bool {
        match &self.life {
            Life::Opening(_) => false,
            Life::Open(open) => open.awaits_shutdown_complete(),
        }
    }

    /// A packet with our verification tag came over `route`; `bytes` is all of it.
    pub(crate) fn handle_packet(&mut self, now: Instant, route: Route, ecn: Ecn, packet: &Packet<'_>, bytes: &[u8]) {
        self.trace_at(now);
        if !packet.has_checksum() && !self.takes_zero_checksum() {
            return either!(&mut self.life, it => it.journal.stats.dropped_packets += 1);
        }
        let mut inbound = Inbound::new(route, ecn, packet, bytes);
        if let Life::Opening(opening) = &mut self.life {
            let Some(open) = opening.handle_packet(now, &mut inbound) else { return };
            self.life = Life::Open(open);
        }
        // What is bundled behind COOKIE ACK: data, perhaps.
        if let Life::Open(open) = &mut self.life {
            open.handle_packet(now, inbound);
            open.advance_shutdown(now); // It may have been asked for before there was anything to send it with.
        }
        self.watch();
        self.look(now);
    }

    /// Returns `true` if a record needs no checksum.
    const fn takes_zero_checksum(&self) -> bool {
        matches!(&self.life, Life::Open(open) if open.zero_checksum.taken)
    }

    /// A valid COOKIE ECHO for this association came over `route` (RFC 9260 §5.2.4). `restart`:
    /// case A, the peer lost its state. Whether a COOKIE ACK goes out over a path; else the caller
    /// answers.
    pub(crate) fn handle_cookie_echo(&mut self, now: Instant, route: Route, cookie: &Cookie, restart: bool) -> bool {
        match &mut self.life {
            Life::Opening(opening) => {
                if let Some(open) = opening.handle_cookie_echo(now, route, cookie) {
                    self.life = Life::Open(open);
                }
                true
            }
            Life::Open(open) => open.handle_cookie_echo(now, route, cookie, restart),
        }
    }

    /// ABORT over `route` with our own tag sent back: the peer knows no association (RFC 9260
    /// §8.5.1 B).
    pub(crate) fn handle_reflected_abort(&mut self, now: Instant, route: Route, causes: Causes<'_>) {
        match &mut self.life {
            Life::Opening(opening) => opening.close(CloseReason::by_peer(causes, false)),
            Life::Open(open) => open.handle_reflected_abort(now, route, causes),
        }
    }

    /// Returns whether keys protect all that comes and goes.
    pub(crate) fn is_protected(&self) -> bool {
        matches!(&self.life, Life::Open(open) if open.is_protected())
    }

    /// Returns whether the handshake has yet to be done.
    pub(crate) const fn is_opening(&self) -> bool {
        matches!(&self.life, Life::Opening(opening) if !opening.is_closed())
    }

    /// A newcomer at the same address proved by its key handshake to be the same peer.
    pub(crate) fn succeed(&mut self, now: Instant, lasting: bool) {
        if let Life::Open(open) = &mut self.life {
            open.succeed(now, lasting);
        }
    }

    /// The newcomer said that its end has not this association.
    pub(crate) fn deny(&mut self, now: Instant) {
        if let Life::Open(open) = &mut self.life {
            open.deny(now);
        }
    }

    /// What both ends call it, once it is protected.
    pub(crate) fn alias(&self) -> Option<Alias> {
        match &self.life {
            Life::Opening(_) => None,
            Life::Open(open) => open.alias(),
        }
    }

    /// Asks the peer about another association with it, or answers.
    pub(crate) fn inquire(&mut self, now: Instant, inquiry: Inquiry) {
        if let Life::Open(open) = &mut self.life {
            open.inquire(now, inquiry);
        }
    }

    /// What the peer asked, or answered.
    pub(crate) fn take_inquiry(&mut self) -> Option<Inquiry> {
        match &mut self.life {
            Life::Opening(_) => None,
            Life::Open(open) => open.take_inquiry(),
        }
    }

    /// The newcomer is gone, or has this one as well: nothing is doubted any more.
    pub(crate) fn trust(&mut self) {
        if let Life::Open(open) = &mut self.life {
            open.trust();
        }
    }

    /// Returns whether another association with the same peer is to be asked now, if there is one.
    pub(crate) fn look_around(&mut self) -> bool {
        match &mut self.life {
            Life::Opening(_) => false,
            Life::Open(open) => open.look_around(),
        }
    }

    /// Returns whether another association is to ask now who is there.
    pub(crate) fn take_question(&mut self, now: Instant) -> bool {
        match &mut self.life {
            Life::Opening(_) => false,
            Life::Open(open) => open.take_question(now),
        }
    }

    /// The association that asked came to nothing.
    pub(crate) fn ask_again(&mut self, now: Instant) {
        if let Life::Open(open) = &mut self.life {
            open.ask_again(now);
        }
    }

    /// Returns whether it is not known at present if the peer still has its state.
    pub(crate) fn is_doubted(&self) -> bool {
        matches!(&self.life, Life::Open(open) if open.is_doubted())
    }

    /// SHUTDOWN COMPLETE from a peer that has forgotten us already (RFC 9260 §8.5.1 C).
    pub(crate) fn handle_reflected_shutdown_complete(&mut self) {
        if let Life::Open(open) = &mut self.life {
            open.end_by_word_in_clear();
        }
    }

    /// Returns `true` if the peer has listed `address`, or is reached at it.
    pub(crate) fn knows_address(&self, address: IpAddr) -> bool {
        let listed = match &self.life {
            Life::Opening(opening) => opening.stage.settled().is_some_and(|it| it.peer_addresses.contains(address)),
            Life::Open(open) => open.peer_addresses.contains(address),
        };
        listed || either!(&self.life, it => &it.paths).iter().any(|path| path.route().remote.ip() == address)
    }

    /// INIT while we wait for SHUTDOWN COMPLETE: the peer never got our SHUTDOWN ACK (RFC 9260
    /// §9.2).
    pub(crate) fn repeat_shutdown_ack(&mut self) {
        if let Life::Open(open) = &mut self.life {
            open.send_shutdown();
        }
    }

    /// Routes that became or ceased to be paths since the last call.
    pub(crate) fn take_route_changes(&mut self) -> impl Iterator<Item = (Route, bool)> + '_ {
        either!(&mut self.life, it => &mut it.paths).take_changes()
    }

    /// We did not run for `late`, until `now`, as the machine was busy or asleep.
    pub(crate) fn handle_late_wake(&mut self, now: Instant, late: Duration) {
        either!(&mut self.life, it => it.paths.on_late_wake(now, late));
    }

    /// Works off all timers that have expired by `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.trace_at(now);
        either!(&mut self.life, it => it.handle_timeout(now));
        self.watch();
        self.look(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do next.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        either!(&self.life, it => it.poll_timeout())
    }

    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        either!(&mut self.life, it => it.poll_event())
    }

    /// Writes the next packets, all for one route, into `buf`.
    pub(crate) fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.trace_at(now);
        self.watch();
        either!(&mut self.life, it => {
            it.expire(now);
            it.transmit(now, buf)
        })
    }

    /// What is told from here on happens at `now`.
    const fn trace_at(&mut self, now: Instant) {
        either!(&mut self.life, it => it.journal.trace.at(now));
    }

    /// Informs what has changed about the paths.
    fn watch(&mut self) {
        match &mut self.life {
            Life::Opening(opening) => opening.journal.watch(&opening.paths, |_| 0),
            Life::Open(open) => open.journal.watch(&open.paths, |index| open.ledger.in_flight_over(index)),
        }
    }

    const fn all_paths(&self) -> &Paths {
        either!(&self.life, it => &it.paths)
    }
}
