//! The sending end.

mod association;
mod ending;
mod given_up;
mod guide;
mod recent;
mod transfer;
mod transmit;

use crate::account::{Account, Counts, Settles};
use crate::attempts::Attempts;
use crate::event::Event;
use crate::farewell::Farewell;
use crate::identity::{Content, Digest, Identity};
use crate::mapping;
use crate::options::SenderOptions;
use crate::redundancy::{Chooser, Redundancy};
use crate::report::{PathHistories, Report, SecurityReport};
use crate::start_error::StartError;
use crate::tell;
use crate::wire::{Message, Welcome};
use braidcast_core::{Datagram, Heard, Instant, Machine, Misuse, Rng, Route, Transmit};
use braidcast_media::Unit;
use braidcast_rate::RateGuide;
use braidcast_sctp::{Association, AssociationId, CloseReason, Code, Endpoint, Event as Sctp};
use core::time::Duration;
pub(crate) use given_up::Counted;
use given_up::GivenUp;
use recent::{Newest, Recent};
use std::collections::VecDeque;
use transfer::{Resumption, Transfer};
use transmit::Named;

/// How often the clock is told and the paths are measured.
const TICK: Duration = Duration::from_millis(200);
/// Bytes of a reliable stream that are kept until they are written, in send buffers.
const KEPT: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No association; the next attempt is due.
    Waiting,
    Connecting,
    Up,
    /// The last message is sent and the association shuts down.
    Closing,
    Closed,
}

/// The sending end of a session.
///
/// A session is more than an association: when one ends for any reason but the user's own end, the
/// next one is tried, at once and then up to a second apart, and the stream goes on over it. A
/// [`Farewell`] ends a reliable session; a live one only before a receiver has taken it, if it says
/// that the two ends cannot work together, or with
/// [`end_with_receiver`](SenderOptions::end_with_receiver).
///
/// Memory: the association's send buffer ([`SenderOptions::buffer`]) and one unit; of a live stream
/// as much again, for what a new association could still deliver in time; of a reliable one four
/// times as much, for what is not known to be written.
pub struct Sender {
    options: SenderOptions,
    identity: Identity,
    incarnation: u64,
    endpoint: Endpoint,
    id: Option<AssociationId>,
    /// Receivers that called, and about which the application has yet to say something.
    callers: Vec<AssociationId>,
    phase: Phase,
    attempts: Attempts,
    /// The maximum rate over a route, bits per second.
    limits: Vec<(Route, u64)>,
    finishing: bool,
    /// When [`stop`](Self::stop) or [`finish`](Self::finish) was called, and which.
    finish_at: Option<Instant>,
    stopping: bool,
    /// Bytes of a unit that was given back.
    wanted_room: Option<usize>,
    next_sequence: u64,
    given_up: GivenUp,
    counted: Counted,
    /// The receiver understands packets that are packed.
    packs: bool,
    frames: mapping::Frames,
    turns: mapping::Turns,
    newest: Newest,
    transfer: Transfer,
    account: Account,
    input_bytes: u64,
    paths: PathHistories,
    chooser: Option<Chooser>,
    /// What an encoder may make; a reliable session has none.
    guide: Option<RateGuide>,
    connected_at: Option<Instant>,
    /// A receiver has taken the stream, or will when its turn comes.
    met: bool,
    security: Option<SecurityReport>,
    ended_at: Option<Instant>,
    next_tick: Instant,
    /// Packets that came from the receiver, and when their number last grew.
    heard: (u64, Instant),
    last_reason: Option<CloseReason>,
    now: Instant,
    malformed: u64,
    reconnections: u64,
    message: Vec<u8>,
    received: Vec<u8>,
    events: VecDeque<Event>,
}

impl Sender {
    /// Begins a session with the receiver that `routes` lead to; `remote_port` is its SCTP port. The first route that
    /// answers sets up the association, the others join it. Without routes it waits for the first one that
    /// [joins](Self::join).
    ///
    /// # Errors
    /// [`StartError`]: there are too many routes, the port is 0, or the options cannot work.
    pub fn new(
        now: Instant,
        options: SenderOptions,
        rng: Rng,
        remote_port: u16,
        routes: &[Route],
    ) -> Result<Self, StartError> {
        let transport = options.transport();
        Self::with_transport(now, options, transport, rng, remote_port, routes)
    }

    /// The same over SCTP as `transport` has it, which is taken as it is:
    /// [`SenderOptions::transport`] with changes, for experiments.
    ///
    /// # Errors
    /// [`StartError`], as for [`new`](Self::new).
    pub fn with_transport(
        now: Instant,
        options: SenderOptions,
        transport: braidcast_sctp::Options,
        rng: Rng,
        remote_port: u16,
        routes: &[Route],
    ) -> Result<Self, StartError> {
        let mut sender = Self::begin(now, options, transport, rng, Attempts::new(now, remote_port, routes))?;
        if !routes.is_empty() {
            sender.dial(now, remote_port, routes)?;
        }
        Ok(sender)
    }

    /// Begins a session with whichever receiver [calls](crate::Receiver::call) at
    /// [`SenderOptions::local_port`]. One at a time is served; the next one takes over once this one
    /// has been silent for a second, and only this end's own user ends the session.
    ///
    /// # Errors
    /// [`Misuse`]: the options cannot work.
    pub fn listen(now: Instant, options: SenderOptions, rng: Rng) -> Result<Self, Misuse> {
        let transport = options.transport();
        let mut sender = Self::begin(now, options, transport, rng, Attempts::none(now))?;
        sender.endpoint.listen();
        Ok(sender)
    }

    fn begin(
        now: Instant,
        options: SenderOptions,
        transport: braidcast_sctp::Options,
        rng: Rng,
        attempts: Attempts,
    ) -> Result<Self, Misuse> {
        // What is reliable is worth something however late it comes.
        let deadline = (!options.reliable).then_some(options.latency);
        let chooser = (options.redundancy == Redundancy::Auto).then(|| Chooser::new(deadline));
        let guide = deadline.map(|latency| RateGuide::new(now, latency, options.encoder));
        let mut names = rng.stream("session");
        let identity = options.identity.unwrap_or_else(|| Identity::random(&mut names));
        Ok(Self {
            options,
            identity,
            incarnation: names.u64(),
            endpoint: Endpoint::new(transport, rng)?,
            id: None,
            callers: Vec::new(),
            phase: Phase::Waiting,
            attempts,
            limits: Vec::new(),
            finishing: false,
            finish_at: None,
            stopping: false,
            wanted_room: None,
            next_sequence: 0,
            given_up: GivenUp::default(),
            counted: Counted::default(),
            packs: false,
            turns: mapping::Turns::default(),
            frames: mapping::Frames::default(),
            newest: Newest::default(),
            transfer: Transfer::default(),
            account: Account::default(),
            input_bytes: 0,
            paths: PathHistories::default(),
            chooser,
            guide,
            connected_at: None,
            met: false,
            security: None,
            ended_at: None,
            next_tick: now,
            heard: (0, now),
            last_reason: None,
            now,
            malformed: 0,
            reconnections: 0,
            message: Vec::new(),
            received: Vec::new(),
            events: VecDeque::new(),
        })
    }

    /// Hands a unit to the transport, which sends it in time or reports that it could not.
    ///
    /// In a reliable session, and only there, the unit comes back if there is no room for it, or no
    /// receiver that has said where the stream goes on: push it again after [`Event::Room`]. After
    /// [`finish`](Self::finish) and after the end, units are counted as unsent.
    #[must_use = "a unit that comes back has not been sent"]
    pub fn push(&mut self, now: Instant, mut unit: Unit) -> Option<Unit> {
        self.now = self.now.max(now);
        let over = self.finishing || matches!(self.phase, Phase::Closing | Phase::Closed);
        let parts = mapping::parts(&unit);
        if self.options.reliable && !over {
            let bytes = transmit::most_bytes(&unit, parts.as_deref());
            if !self.takes(bytes) {
                self.wanted_room = Some(bytes);
                return Some(unit);
            }
        }
        self.frames.adopt(&mut unit);
        let kind = unit.kind.index();
        self.account.counts.captured[kind] += u64::from(!unit.continues);
        self.input_bytes += unit.bytes.len() as u64;
        if let Some(chooser) = &mut self.chooser {
            chooser.on_unit(now.since(unit.first_captured));
        }
        self.look_at(now, &unit);
        let sequence = self.next_sequence;
        let stream = tell::number(&self.identity);
        let count = parts.as_ref().map_or(1, Vec::len);
        if !unit.continues {
            self.options.events.tell(now, stream, || {
                let latency = (!self.options.reliable).then_some(self.options.latency);
                tell::captured(sequence, &unit, count, latency)
            });
        }
        let due = Some(unit.first_captured + self.options.latency);
        let place = self.frames.next(sequence, &unit, u16::try_from(count).unwrap_or(u16::MAX), due);
        self.next_sequence += 1;
        let named = Named { sequence, place: Some(place) };
        let taken = if over { None } else { self.transmit(now, &unit, parts.as_deref(), named, false).ok() };
        let handed = taken.is_some();
        if handed || (self.phase == Phase::Waiting && !over) {
            // What nobody misses, as it is carried: stuffing is packed away.
            let bytes = taken.filter(|_| mapping::is_missed_by_none(unit.kind, unit.reference));
            self.account.counts.bytes[kind] += bytes.unwrap_or(unit.bytes.len()) as u64;
            self.keep(now, Recent { sequence, place, handed, unit });
        } else {
            // A part may have been taken.
            if self.counted.is_first(place.frame.id) {
                self.account.counts.unsent[kind] += 1;
                self.options.events.tell(now, stream, || tell::unsent(place.frame.id, unit.kind));
            }
            self.given_up.note(&unit);
        }
        self.pump(now);
        None
    }

    /// Returns `true` if a unit of a reliable session can go now.
    fn takes(&self, bytes: usize) -> bool {
        self.phase == Phase::Up
            && self.transfer.is_going()
            && self.transfer.is_all_sent()
            && self.transfer.kept_bytes() <= KEPT * self.options.buffer as u64
            && self.has_room(bytes)
    }

    /// Returns `true` if the association takes messages of `bytes`, or will never have more room than now.
    fn has_room(&self, bytes: usize) -> bool {
        let association = self.id.and_then(|id| self.endpoint.association(id));
        association.is_none_or(|association| association.send_room() >= bytes || association.buffered() == 0)
    }

    /// Ends the session once everything promised is delivered; [`Event::Ended`] says when. What is
    /// reliable is delivered when the receiver has written and flushed it.
    pub fn finish(&mut self, now: Instant) {
        self.finishing = true;
        self.finish_at.get_or_insert(now);
        self.pump(now);
    }

    /// The same on behalf of a user who will not wait for what can't be: ends without success as
    /// soon as the receiver has been silent for the latency and half a second, or 2 s in a reliable
    /// session.
    pub fn stop(&mut self, now: Instant) {
        self.stopping = true;
        self.finish_at = Some(now);
        self.finish(now);
    }

    /// Ends the session at once; the receiver is told why.
    pub fn abort(&mut self, now: Instant, why: Farewell) {
        self.now = self.now.max(now);
        self.finishing = true;
        self.end(false, CloseReason::Aborted, Some(why));
    }

    /// The answer to [`Event::Resume`]: `before` is what the application has gone past; what it
    /// pushes next goes behind that. Empty content begins anew. Ignored if nothing was asked.
    pub fn resume(&mut self, now: Instant, before: Content) {
        self.now = self.now.max(now);
        if self.transfer.go_on(before) {
            self.begin_transfer(now);
        }
        self.pump(now);
    }

    /// Bytes of a reliable stream that the receiver has written, as far as is known.
    pub const fn written_bytes(&self) -> u64 {
        self.transfer.written_bytes()
    }

    /// What has been done so far.
    pub fn report(&self, now: Instant) -> Report {
        let in_association =
            self.id.and_then(|id| self.endpoint.association(id)).map_or(0, Association::buffered) as u64;
        let waiting = if self.phase == Phase::Waiting { self.newest.bytes() as u64 } else { 0 };
        let settles = self.settles();
        let (recent_seconds, recent) = self.account.recent(now, settles);
        Report {
            seconds: self.connected_at.map_or(0.0, |at| self.ended_at.unwrap_or(now).since(at).as_secs_f64()),
            kinds: self.account.kinds(now, settles, &Counts::default()),
            recent,
            recent_seconds,
            unheard_seconds: self.account.unheard_for(now).map(|it| it.as_secs_f64()),
            paths: self.paths.reports(),
            clock_jumps: 0,
            restarts: self.reconnections,
            malformed: self.malformed,
            security: self.security.clone(),
            input_bytes: self.input_bytes,
            acked_bytes: self.paths.acked_bytes(),
            redundancy: self.code().map(|code| code.to_string()),
            recovered_chunks: 0,
            buffered_bytes: in_association + waiting,
            encoder: self.rate_report(now),
        }
    }

    /// The code that is in use now.
    fn code(&self) -> Option<Code> {
        match (&self.chooser, self.options.redundancy) {
            (Some(chooser), _) => chooser.code(),
            (None, Redundancy::Code(code)) => Some(code),
            (None, _) => None,
        }
    }

    /// The SCTP endpoint, for statistics that the report leaves out.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Brings everything up to date after any call.
    fn pump(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.take_events();
        self.take_messages(now);
        if self.phase != Phase::Closed && now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(now);
        }
        if matches!(self.phase, Phase::Waiting | Phase::Connecting) && self.attempts.due().is_some_and(|at| at <= now) {
            self.attempt(now);
        }
        self.tell_given_up(now);
        if self.phase == Phase::Up {
            if self.options.reliable { self.advance_transfer(now) } else { self.end_stream(now) }
        }
        if self.wanted_room.is_some_and(|bytes| self.takes(bytes) || self.phase == Phase::Closed) {
            self.wanted_room = None;
            self.events.push_back(Event::Room);
        }
    }

    /// A live stream that is to end: the last message, and no more.
    fn end_stream(&mut self, now: Instant) {
        if self.finishing && self.send_clock(now, true) {
            self.shut_down(now);
        }
    }

    /// Sends again what a new association has to, then the end, and shuts down once all is written.
    fn advance_transfer(&mut self, now: Instant) {
        while self.transfer.is_going()
            && let Some(unit) = self.transfer.next()
            && self.has_room(transmit::most_bytes(unit, None))
        {
            let unit = unit.clone();
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            if self.transmit(now, &unit, None, Named { sequence, place: None }, true).is_err() {
                break;
            }
            self.transfer.advance();
        }
        let told_all = self.transfer.is_going() && self.transfer.is_all_sent();
        if self.finishing && told_all && !self.transfer.end_told {
            self.transfer.end_told = self.send_clock(now, true);
        }
        if self.transfer.confirmed {
            self.shut_down(now);
        }
    }

    fn shut_down(&mut self, now: Instant) {
        self.phase = Phase::Closing;
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            association.shutdown(now);
        }
        self.take_events();
    }

    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Up | Phase::Closing)
    }

    /// When the outcome of units that did not come is known.
    fn settles(&self) -> Settles {
        Settles::at_sender((!self.options.reliable).then_some(self.options.latency))
    }

    fn tick(&mut self, now: Instant) {
        self.account.tick(now, self.settles());
        if self.phase == Phase::Up {
            // Without room for it, the next one will do.
            let _sent = self.send_clock(now, false);
        }
        if self.is_open()
            && let Some(association) = self.id.and_then(|id| self.endpoint.association(id))
        {
            self.paths.measure(now, association);
            let heard = association.paths().map(|path| path.received_packets).sum();
            if heard != self.heard.0 {
                self.heard = (heard, now);
            }
        }
        if let (Some(chooser), Some(association)) =
            (&mut self.chooser, self.id.and_then(|id| self.endpoint.association_mut(id)))
        {
            chooser.update(now, association);
        }
        self.end_if_hopeless(now);
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if Some(id) == self.id {
                self.take_event(event);
            } else if self.attempts.is_called() {
                self.take_call(id, event);
            }
        }
        while let Some((_, reason)) = self.endpoint.poll_turned_away() {
            self.events.push_back(Event::Insecure(reason));
        }
    }

    fn take_event(&mut self, event: Sctp) {
        match event {
            Sctp::Connected => self.connected(),
            Sctp::Restarted if self.attempts.is_called() => self.restarted(),
            Sctp::PathUp(path, route) => self.events.push_back(Event::PathUp(path, route)),
            Sctp::PathDown(path, route) => self.events.push_back(Event::PathDown(path, route)),
            Sctp::PathNarrow(path, route) => self.events.push_back(Event::PathNarrow(path, route)),
            Sctp::PathSelected(path, route) => self.events.push_back(Event::PathSelected(path, route)),
            Sctp::PathRemoved(path, route) => self.events.push_back(Event::PathRemoved(path, route)),
            Sctp::Abandoned { ppid, context, sent, why, .. } => self.abandoned(ppid, context, sent, why),
            Sctp::Closed(reason) => self.closed(reason),
            _ => {} // `Readable` and `Writable` are asked for in any case.
        }
    }

    fn take_messages(&mut self, now: Instant) {
        while let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id))
            && association.recv(now, &mut self.received).is_some()
        {
            match Message::parse(&self.received) {
                Ok(Message::Feedback(feedback)) => {
                    self.met = true;
                    self.given_up.want(feedback.early);
                    self.packs = feedback.unpacks;
                    self.account.hear(now, &feedback);
                }
                Ok(Message::Welcome(Welcome::Wait)) => {
                    self.met = true;
                    self.events.push_back(Event::InLine);
                }
                Ok(Message::Welcome(Welcome::GoOn { offset, digest })) => self.welcomed(now, offset, digest),
                Ok(Message::Written(written)) if self.options.reliable => {
                    self.transfer.written(written.offset);
                    let all = self.transfer.end_told && written.offset >= self.transfer.end();
                    self.transfer.confirmed |= written.complete && all;
                }
                Ok(Message::Ask(ask)) => self.asked(now, ask),
                Ok(_) | Err(_) => self.malformed += 1,
            }
        }
    }

    /// The receiver says what it has of a reliable stream.
    fn welcomed(&mut self, now: Instant, offset: u64, digest: Digest) {
        if !self.options.reliable || !self.transfer.is_asking() {
            return;
        }
        match self.transfer.resume(offset, digest) {
            Resumption::From(_) => self.begin_transfer(now),
            Resumption::Ask => self.events.push_back(Event::Resume { offset, digest }),
        }
    }
}

impl Machine for Sender {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
        self.pump(now);
        self.look_ahead(now);
    }

    fn heard(&self) -> Heard {
        self.endpoint.heard()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.pump(now);
        self.look_ahead(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let tick = (self.phase != Phase::Closed).then_some(self.next_tick);
        let attempt = self.attempts.due().filter(|_| matches!(self.phase, Phase::Waiting | Phase::Connecting));
        [self.endpoint.poll_timeout(), tick, attempt].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.take_events();
        self.events.pop_front()
    }
}
