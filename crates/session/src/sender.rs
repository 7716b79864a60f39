use crate::event::Event;
use crate::mapping::{self, CONTROL, Part, STREAMS};
use crate::options::SenderOptions;
use crate::redundancy::{Chooser, Redundancy};
use crate::report::{Counts, PathHistories, Report};
use crate::start_error::StartError;
use crate::wire::{self, Clock, Feedback, Message, PPID, UnitHeader};
use braidcast_core::{Datagram, Heard, Instant, Machine, PathId, Rng, Route, Transmit};
use braidcast_media::ts::PACKET;
use braidcast_media::{Kind, Run, Unit};
use braidcast_sctp::{
    Association, AssociationId, CloseReason, Endpoint, Event as Sctp, JoinError, MessagePriority, Reliability,
    SendError, SendOptions,
};
use core::time::Duration;
use std::collections::VecDeque;

/// How often the clock is told and the paths are measured.
const TICK: Duration = Duration::from_millis(200);
/// A clock message older than this would tell nothing new.
const CLOCK_LIFETIME: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Connecting,
    Up,
    /// The last message is sent and the association shuts down.
    Closing,
    Closed,
}

/// What the messages of one unit share, and which of them this is.
#[derive(Clone, Copy, Debug)]
struct Envelope {
    sequence: u64,
    part: u16,
    parts: u16,
}

/// The sending end of a session.
///
/// Memory: the association's send buffer ([`SenderOptions::buffer`]), and one unit.
pub struct Sender {
    options: SenderOptions,
    endpoint: Endpoint,
    id: AssociationId,
    phase: Phase,
    finishing: bool,
    /// Bytes of a unit that was given back.
    wanted_room: Option<usize>,
    next_sequence: u64,
    last_abandoned: Option<u64>,
    counts: Counts,
    feedback: Option<Feedback>,
    paths: PathHistories,
    chooser: Option<Chooser>,
    connected_at: Option<Instant>,
    ended_at: Option<Instant>,
    next_tick: Instant,
    now: Instant,
    malformed: u64,
    restarts: u64,
    message: Vec<u8>,
    received: Vec<u8>,
    events: VecDeque<Event>,
}

impl Sender {
    /// Begins a session with the receiver that `routes` lead to; `remote_port` is its SCTP port. The first route that
    /// answers sets up the association, the others join it.
    ///
    /// # Errors
    /// [`StartError`]: there are no routes, too many, the port is 0, or the options cannot work.
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

    /// The same over SCTP as `transport` has it, which is taken as it is: [`SenderOptions::transport`] with changes, for experiments.
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
        // What is reliable is worth something however late it comes.
        let deadline = (!options.reliable).then_some(options.latency);
        let chooser = (options.redundancy == Redundancy::Auto).then(|| Chooser::new(deadline));
        let mut endpoint = Endpoint::new(transport, rng)?;
        let id = endpoint.connect(now, remote_port, routes)?;
        if let Some(association) = endpoint.association_mut(id) {
            for stream in 0..STREAMS {
                association.set_priority(stream, mapping::priority(stream));
                association.set_copied(stream, !options.reliable && mapping::copied(stream));
            }
        }
        Ok(Self {
            options,
            endpoint,
            id,
            phase: Phase::Connecting,
            finishing: false,
            wanted_room: None,
            next_sequence: 0,
            last_abandoned: None,
            counts: Counts::default(),
            feedback: None,
            paths: PathHistories::default(),
            chooser,
            connected_at: None,
            ended_at: None,
            next_tick: now,
            now,
            malformed: 0,
            restarts: 0,
            message: Vec::new(),
            received: Vec::new(),
            events: VecDeque::new(),
        })
    }

    /// Hands a unit to the transport, which sends it in time or tells that it could not.
    ///
    /// In a reliable session, and only there, the unit comes back if there is no room for it: push it again after
    /// [`Event::Room`]. After [`finish`](Self::finish) and after the end, units are counted as unsent.
    #[must_use = "a unit that comes back has not been sent"]
    pub fn push(&mut self, now: Instant, unit: Unit) -> Option<Unit> {
        self.now = self.now.max(now);
        let over = self.finishing || matches!(self.phase, Phase::Closing | Phase::Closed);
        let parts = mapping::parts(&unit);
        if self.options.reliable && !over {
            let bytes = most_bytes(&unit, parts.as_deref());
            if !self.has_room(bytes) {
                self.wanted_room = Some(bytes);
                return Some(unit);
            }
        }
        let kind = unit.kind.index();
        self.counts.captured[kind] += 1;
        if let Some(chooser) = &mut self.chooser {
            chooser.on_unit(now.since(unit.first_captured));
        }
        if over || self.transmit(now, &unit, parts.as_deref()).is_err() {
            self.counts.unsent[kind] += 1;
            // A part may have been taken.
            self.last_abandoned = self.next_sequence.checked_sub(1);
        } else {
            self.counts.bytes[kind] += unit.bytes.len() as u64;
        }
        self.pump(now);
        None
    }

    /// Whether the association takes messages of so many bytes, or will never have more room than now.
    fn has_room(&self, bytes: usize) -> bool {
        let association = self.endpoint.association(self.id);
        association.is_none_or(|association| association.send_room() >= bytes || association.buffered() == 0)
    }

    /// Adds a path; gives its number, which events and the report use.
    ///
    /// # Errors
    /// [`JoinError`]: the session is over, or no more paths can join.
    pub fn join(&mut self, now: Instant, route: Route) -> Result<PathId, JoinError> {
        self.endpoint.association_mut(self.id).ok_or(JoinError::Closing)?.join(now, route)
    }

    /// Takes a path away.
    pub fn leave(&mut self, now: Instant, route: Route) {
        if let Some(association) = self.endpoint.association_mut(self.id) {
            association.leave(now, route);
        }
    }

    /// Ends the session once everything promised is delivered; [`Event::Ended`] says when.
    pub fn finish(&mut self, now: Instant) {
        self.finishing = true;
        self.pump(now);
    }

    /// Ends the session at once; `reason` is told to the receiver.
    pub fn abort(&mut self, now: Instant, reason: &str) {
        self.finishing = true;
        if let Some(association) = self.endpoint.association_mut(self.id) {
            association.abort(now, reason);
        }
        self.take_events();
    }

    /// What has been done so far.
    pub fn report(&self, now: Instant) -> Report {
        let in_association = self.endpoint.association(self.id).map_or(0, Association::buffered);
        Report {
            seconds: self.connected_at.map_or(0.0, |at| self.ended_at.unwrap_or(now).since(at).as_secs_f64()),
            kinds: self.counts.kinds_sent(self.feedback.as_ref()),
            paths: self.paths.reports(),
            clock_jumps: 0,
            restarts: self.restarts,
            malformed: self.malformed,
            buffered_bytes: in_association as u64,
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
        self.take_feedback(now);
        if self.is_open() && now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(now);
        }
        if self.phase == Phase::Up && self.finishing && self.send_clock(now, true) {
            self.phase = Phase::Closing;
            if let Some(association) = self.endpoint.association_mut(self.id) {
                association.shutdown(now);
            }
            self.take_events();
        }
        if self.wanted_room.is_some_and(|bytes| self.has_room(bytes)) {
            self.wanted_room = None;
            self.events.push_back(Event::Room);
        }
    }

    fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Up | Phase::Closing)
    }

    fn tick(&mut self, now: Instant) {
        if self.phase == Phase::Up {
            // Without room for it, the next one will do.
            let _sent = self.send_clock(now, false);
        }
        if let Some(association) = self.endpoint.association(self.id) {
            self.paths.measure(now, association);
        }
        if let (Some(chooser), Some(association)) = (&mut self.chooser, self.endpoint.association_mut(self.id)) {
            chooser.update(now, association);
        }
    }

    fn take_events(&mut self) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if id == self.id {
                self.take_event(event);
            }
        }
    }

    fn take_event(&mut self, event: Sctp) {
        match event {
            Sctp::Connected => self.connected(),
            Sctp::PathUp(path, route) => self.events.push_back(Event::PathUp(path, route)),
            Sctp::PathDown(path, route) => self.events.push_back(Event::PathDown(path, route)),
            Sctp::PathNarrow(path, route) => self.events.push_back(Event::PathNarrow(path, route)),
            Sctp::PathRemoved(path, route) => self.events.push_back(Event::PathRemoved(path, route)),
            Sctp::Abandoned { ppid, context, sent, .. } => self.abandoned(ppid, context, sent),
            Sctp::Restarted => {
                self.restarts += 1;
                self.events.push_back(Event::Restarted);
            }
            Sctp::Closed(reason) => self.closed(reason),
            _ => {} // `Readable` and `Writable` are asked for in any case.
        }
    }

    fn connected(&mut self) {
        self.phase = Phase::Up;
        self.connected_at = Some(self.now);
        self.next_tick = self.now;
        self.events.push_back(Event::Connected);
    }

    fn closed(&mut self, reason: CloseReason) {
        let complete = self.phase == Phase::Closing && reason == CloseReason::Shutdown;
        if let Some(association) = self.endpoint.association(self.id) {
            self.paths.measure(self.now, association);
        }
        self.phase = Phase::Closed;
        self.ended_at = Some(self.now);
        if self.connected_at.is_none() {
            self.counts.nothing_sent();
        }
        self.events.push_back(Event::Ended { complete, reason });
    }

    /// SCTP gave up a message of ours. A unit of several parts counts once.
    fn abandoned(&mut self, ppid: u32, context: u64, sent: bool) {
        let (sequence, kind) = (context >> 8, (context & 0xff) as usize);
        if ppid == PPID && kind < Kind::ALL.len() && self.last_abandoned.replace(sequence) != Some(sequence) {
            *(if sent { &mut self.counts.abandoned[kind] } else { &mut self.counts.unsent[kind] }) += 1;
        }
    }

    fn take_feedback(&mut self, now: Instant) {
        let Some(association) = self.endpoint.association_mut(self.id) else { return };
        while association.recv(now, &mut self.received).is_some() {
            match Message::parse(&self.received) {
                Ok(Message::Feedback(feedback)) => self.feedback = Some(feedback),
                Ok(_) | Err(_) => self.malformed += 1,
            }
        }
    }

    /// Sends the clock and the counts, or with `end` says that nothing comes after; `false` if there was no room.
    fn send_clock(&mut self, now: Instant, end: bool) -> bool {
        let Some(association) = self.endpoint.association_mut(self.id) else { return false };
        let rtt = association.paths().filter_map(|path| path.min_rtt.or(path.srtt)).min().unwrap_or_default();
        let clock = Clock { sent: now.as_micros(), rtt: micros(rtt), captured: self.counts.captured };
        wire::write_clock(&mut self.message, &clock, end);
        let reliability = if end { Reliability::Reliable } else { Reliability::Lifetime(CLOCK_LIFETIME) };
        let how = SendOptions {
            stream: CONTROL,
            ppid: PPID,
            unordered: true,
            reliability,
            context: u64::MAX,
            ..SendOptions::default()
        };
        association.send(now, &self.message, how).is_ok()
    }

    /// Hands the messages of a unit to the association: one, or one for each of the `parts`.
    fn transmit(&mut self, now: Instant, unit: &Unit, parts: Option<&[Part]>) -> Result<(), SendError> {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let Some(parts) = parts else {
            return self.transmit_part(now, &Envelope { sequence, part: 0, parts: 1 }, unit, &unit.runs, &unit.bytes);
        };
        let count = u16::try_from(parts.len()).unwrap_or(u16::MAX);
        for (part, piece) in (0..count).zip(parts) {
            let envelope = Envelope { sequence, part, parts: count };
            self.transmit_part(now, &envelope, unit, &piece.runs, &unit.bytes[piece.bytes.clone()])?;
        }
        Ok(())
    }

    fn transmit_part(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        unit: &Unit,
        runs: &[Run],
        bytes: &[u8],
    ) -> Result<(), SendError> {
        let (captured, span) = capture_times(unit, runs);
        let header = UnitHeader {
            kind: unit.kind,
            reference: unit.reference,
            reliable: self.options.reliable,
            sequence: envelope.sequence as u32,
            part: envelope.part,
            parts: envelope.parts,
            captured: captured.as_micros(),
            span: micros(span),
            latency: if self.options.reliable { 0 } else { micros(self.options.latency) },
            pts: unit.pts,
        };
        wire::write_unit(&mut self.message, &header, runs, bytes);
        let stream = if self.options.reliable { CONTROL } else { mapping::stream(unit.kind, unit.reference) };
        let how = SendOptions {
            stream,
            ppid: PPID,
            unordered: !self.options.reliable,
            deadline: (!self.options.reliable).then(|| unit.first_captured + self.options.latency),
            context: envelope.sequence << 8 | unit.kind.index() as u64,
            priority: MessagePriority::new(mapping::priority(stream).index() as u8).unwrap_or(MessagePriority::LAST),
            ..SendOptions::default()
        };
        let association = self.endpoint.association_mut(self.id).ok_or(SendError::Closing)?;
        association.send(now, &self.message, how)
    }
}

impl Machine for Sender {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
        self.pump(now);
    }

    fn heard(&self) -> Heard {
        self.endpoint.heard()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.pump(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let tick = self.is_open().then_some(self.next_tick);
        [self.endpoint.poll_timeout(), tick].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.take_events();
        self.events.pop_front()
    }
}

/// When the part of `unit` that holds `runs` began, and how long it took, by the places of its packets in the whole.
fn capture_times(unit: &Unit, runs: &[Run]) -> (Instant, Duration) {
    let ends = |runs: &[Run]| (runs.first().map_or(0, |run| run.first), runs.last().map_or(0, |run| run.end() - 1));
    let ((from, to), (first, last)) = (ends(&unit.runs), ends(runs));
    let span = unit.last_captured.since(unit.first_captured);
    let place = |index: u64| span.mul_f64((index - from) as f64 / (to - from).max(1) as f64);
    (unit.first_captured + place(first), place(last).saturating_sub(place(first)))
}

/// Bytes of the messages that make up a unit, or these parts of it, at most.
fn most_bytes(unit: &Unit, parts: Option<&[Part]>) -> usize {
    let nulls = match parts {
        None => wire::literal_nulls(&unit.runs),
        Some(parts) => parts.iter().map(|part| wire::literal_nulls(&part.runs)).sum(),
    };
    let parts = parts.map_or(1, <[Part]>::len);
    unit.bytes.len() + nulls as usize * PACKET + parts * wire::UNIT_HEADER + (unit.runs.len() + 2 * parts) * wire::RUN
}

/// µs of `d`, at most 71 minutes.
fn micros(d: Duration) -> u32 {
    u32::try_from(d.as_micros()).unwrap_or(u32::MAX)
}
