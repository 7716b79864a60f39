use crate::event::Event;
use crate::log::LogEntry;
use crate::mapping::CONTROL;
use crate::options::ReceiverOptions;
use crate::report::{Counts, Report};
use crate::stream::Stream;
use crate::wire::{self, Feedback, PPID};
use braidcast_core::{Datagram, Instant, Machine, Misuse, Rng, Transmit};
use braidcast_sctp::{AssociationId, CloseReason, Endpoint, Event as Sctp, Reliability, SendOptions};
use core::time::Duration;
use std::collections::VecDeque;

/// How often the paths are measured.
const TICK: Duration = Duration::from_millis(200);
/// A sender that was silent for this long makes room for the next; one that lives tells its clock five times a second.
const SILENT: Duration = Duration::from_secs(3);
/// Ticks between two messages to the sender about what came on time.
const FEEDBACK_TICKS: u64 = 5;
/// Senders that may wait for their turn.
const MAX_WAITING: usize = 4;
/// Bytes that are kept for each of them, beyond those in its association.
const WAITING_BUFFER: usize = 4 << 20;
/// Log entries that are kept for the caller.
const MAX_LOG: usize = 1 << 16;

/// The receiving end of a session: accepts one sender at a time and plays its stream.
///
/// Memory: the buffer (see [`ReceiverOptions::buffer`]), 4 MiB for each of at most 4 senders that wait, the receive
/// buffers of their associations, and 65,536 log entries.
pub struct Receiver {
    options: ReceiverOptions,
    endpoint: Endpoint,
    /// The first one is being played, the others wait for their turn.
    streams: VecDeque<Stream>,
    /// What the streams before this one did.
    earlier: Counts,
    log: VecDeque<LogEntry>,
    connected_at: Option<Instant>,
    next_tick: Instant,
    ticks: u64,
    now: Instant,
    paused: bool,
    clock_jumps: u64,
    restarts: u64,
    malformed: u64,
    message: Vec<u8>,
    scratch: Vec<u8>,
    last: Option<Report>,
    events: VecDeque<Event>,
}

impl Receiver {
    /// A receiver that waits for a sender.
    ///
    /// # Errors
    /// [`Misuse`]: the options cannot work.
    pub fn new(options: ReceiverOptions, rng: Rng) -> Result<Self, Misuse> {
        let transport = options.transport();
        Self::with_transport(options, transport, rng)
    }

    /// The same over SCTP as `transport` has it, which is taken as it is: [`ReceiverOptions::transport`] with changes, for
    /// experiments.
    ///
    /// # Errors
    /// [`Misuse`], as for [`new`](Self::new).
    pub fn with_transport(
        options: ReceiverOptions,
        transport: braidcast_sctp::Options,
        rng: Rng,
    ) -> Result<Self, Misuse> {
        let mut endpoint = Endpoint::new(transport, rng)?;
        endpoint.listen();
        Ok(Self {
            options,
            endpoint,
            streams: VecDeque::new(),
            earlier: Counts::default(),
            log: VecDeque::new(),
            connected_at: None,
            next_tick: Instant::ZERO,
            ticks: 0,
            now: Instant::ZERO,
            paused: false,
            clock_jumps: 0,
            restarts: 0,
            malformed: 0,
            message: Vec::new(),
            scratch: Vec::new(),
            last: None,
            events: VecDeque::new(),
        })
    }

    /// Puts what is due into `out`, which is cleared first: packets of a transport stream up to
    /// [`ReceiverOptions::output_size`], or one plain message. `false` if nothing is due; otherwise call it again.
    pub fn poll_output(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let Some(stream) = self.streams.front_mut() else {
            out.clear();
            return false;
        };
        let any = stream.poll_output(now, self.options.output_size, out);
        if !any {
            // There may be room again for messages that stayed in the association.
            self.pump(now);
        }
        any
    }

    /// While paused, output that is due does not make the timer run: the place where it goes takes none.
    pub fn pause_output(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Takes the log entries since the last call, oldest first; the oldest are lost if 65,536 have piled up.
    pub fn take_log(&mut self) -> impl Iterator<Item = LogEntry> + '_ {
        self.log.drain(..)
    }

    /// Ends the session at once; `reason` is told to the sender. What has arrived still comes out when it is due.
    pub fn abort(&mut self, now: Instant, reason: &str) {
        for stream in &self.streams {
            if let Some(association) = self.endpoint.association_mut(stream.id) {
                association.abort(now, reason);
            }
        }
        self.pump(now);
    }

    /// What has been done so far. Paths are those of the present sender, or of the last one.
    pub fn report(&self, now: Instant) -> Report {
        let Some(stream) = self.streams.front() else {
            return Report {
                restarts: self.restarts,
                malformed: self.malformed,
                ..self.last.clone().unwrap_or_default()
            };
        };
        let mut counts = self.earlier;
        counts.add(&stream.counts);
        Report {
            seconds: self.connected_at.map_or(0.0, |at| now.since(at).as_secs_f64()),
            kinds: counts.kinds_received(),
            paths: stream.paths.reports(),
            clock_jumps: self.clock_jumps,
            restarts: self.restarts,
            malformed: self.malformed,
            buffered_bytes: stream.held() as u64,
        }
    }

    /// The SCTP endpoint, for statistics that the report leaves out.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Brings everything up to date after any call.
    fn pump(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.take_events(now);
        self.read(now, None);
        if !self.streams.is_empty() && now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(now);
        }
        self.end_if_over(now);
    }

    fn take_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            if event == Sctp::Connected {
                self.admit(now, id);
            } else if let Some(place) = self.streams.iter().position(|stream| stream.id == id) {
                self.take_event(now, place, event);
            } else if let Sctp::Closed(reason @ (CloseReason::Insecure(_) | CloseReason::AbortedByPeer(_))) = event {
                self.events.push_back(Event::Insecure(reason));
            }
        }
    }

    /// A sender is there: it begins, waits, or is turned away.
    fn admit(&mut self, now: Instant, id: AssociationId) {
        let silent =
            self.streams.front().filter(|stream| now.since(stream.last_heard) >= SILENT).map(|stream| stream.id);
        if let Some(association) = silent.and_then(|id| self.endpoint.association_mut(id)) {
            association.abort(now, "silent for three seconds while another sender waits");
        }
        // One that is closed already only plays what is left.
        let ending = silent.is_some() || self.streams.front().is_some_and(Stream::is_closed);
        let wait = self.options.keep || ending;
        if self.streams.is_empty() || (wait && self.streams.len() <= MAX_WAITING) {
            self.streams.push_back(Stream::new(now, id, self.options.early));
            if self.streams.len() == 1 {
                self.begin(now);
            }
            return;
        }
        if let Some(association) = self.endpoint.association_mut(id) {
            association.abort(now, "another sender is being received");
        }
        self.events.push_back(Event::Refused);
    }

    /// The first stream has its turn from now on.
    fn begin(&mut self, now: Instant) {
        self.connected_at.get_or_insert(now);
        self.next_tick = now;
        self.events.push_back(Event::Connected);
    }

    /// An event of the stream at `place`.
    fn take_event(&mut self, now: Instant, place: usize, event: Sctp) {
        match event {
            Sctp::Restarted => {
                let stream = &mut self.streams[place];
                self.earlier.add(&stream.counts);
                stream.restart(now, self.options.early);
                self.restarts += 1;
                self.events.push_back(Event::Restarted);
            }
            Sctp::Closed(reason) => {
                // The association is about to go, and with it what has not been read: now or never.
                self.read(now, Some(place));
                let stream = &mut self.streams[place];
                if let Some(association) = self.endpoint.association(stream.id) {
                    stream.paths.measure(now, association);
                }
                stream.close(reason);
            }
            Sctp::PathUp(path, route) if place == 0 => self.events.push_back(Event::PathUp(path, route)),
            Sctp::PathDown(path, route) if place == 0 => self.events.push_back(Event::PathDown(path, route)),
            Sctp::PathRemoved(path, route) if place == 0 => self.events.push_back(Event::PathRemoved(path, route)),
            _ => {}
        }
    }

    /// Reads the messages that have arrived, as far as there is room for them; of the stream at `last` all, which is
    /// at most an association's receive buffer.
    fn read(&mut self, now: Instant, last: Option<usize>) {
        for (place, stream) in self.streams.iter_mut().enumerate() {
            let Some(association) = self.endpoint.association_mut(stream.id) else { continue };
            let limit = match place {
                _ if last == Some(place) => usize::MAX,
                0 => self.options.buffer,
                _ => WAITING_BUFFER,
            };
            while stream.held() < limit || stream.skip_if_stuck() {
                let Some(received) = association.recv(now, &mut self.message) else { break };
                let Ok(taken) = stream.take(now, received.path, &self.message) else {
                    self.malformed += 1;
                    continue;
                };
                if taken.clock_jumped {
                    self.clock_jumps += 1;
                    self.events.push_back(Event::ClockJumped);
                }
                if let Some(entry) = taken.entry.filter(|_| self.options.log) {
                    if self.log.len() >= MAX_LOG {
                        self.log.pop_front();
                    }
                    self.log.push_back(entry);
                }
            }
            if place > 0 {
                stream.pass(now, &mut self.scratch);
            }
        }
    }

    fn tick(&mut self, now: Instant) {
        self.ticks += 1;
        let Some(stream) = self.streams.front_mut() else { return };
        let Some(association) = self.endpoint.association_mut(stream.id) else { return };
        stream.paths.measure(now, association);
        if self.ticks.is_multiple_of(FEEDBACK_TICKS) && !stream.is_closed() {
            let Counts { captured, on_time, late, .. } = stream.counts;
            let feedback = Feedback { captured, on_time, late };
            wire::write_feedback(&mut self.message, &feedback);
            let reliability = Reliability::Lifetime(TICK);
            let how = SendOptions {
                stream: CONTROL,
                ppid: PPID,
                unordered: true,
                reliability,
                context: u64::MAX,
                ..SendOptions::default()
            };
            // A sender that is closing takes no more; its report then ends with the feedback before.
            let _refused = association.send(now, &self.message, how);
        }
    }

    /// Once the association is closed and everything has been handed out, the next sender has its turn.
    fn end_if_over(&mut self, now: Instant) {
        while let Some((complete, reason)) = self.streams.front().and_then(Stream::over) {
            self.last = Some(self.report(now));
            if let Some(stream) = self.streams.pop_front() {
                self.earlier.add(&stream.counts);
            }
            self.events.push_back(Event::Ended { complete, reason });
            if !self.streams.is_empty() {
                self.begin(now);
            }
        }
    }
}

impl Machine for Receiver {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
        self.pump(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.pump(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    /// Includes the time when output is next due, unless [paused](Self::pause_output).
    fn poll_timeout(&self) -> Option<Instant> {
        let stream = self.streams.front();
        let tick = stream.map(|_| self.next_tick);
        let output = stream.filter(|_| !self.paused).and_then(Stream::next_output);
        [self.endpoint.poll_timeout(), tick, output].into_iter().flatten().min()
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.take_events(self.now);
        self.events.pop_front()
    }
}
