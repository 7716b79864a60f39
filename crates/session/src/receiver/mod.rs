//! The receiving end.

mod admit;
mod call;
mod channel;
mod elsewhere;
mod guest;
mod names;
mod permit;
mod stream;

use crate::account::Counts;
use crate::event::Event;
use crate::farewell::Farewell;
use crate::identity::Content;
use crate::log::LogEntry;
use crate::mapping::control;
use crate::options::{Admission, ReceiverOptions};
use crate::report::Report;
use crate::serve::Pieces;
use crate::tell;
use crate::wire::{self, Ask, Feedback, SESSION_VERSION, Seen, Welcome, Written};
use braidcast_core::{Datagram, Heard, Instant, Machine, Misuse, PathId, Rng, Transmit};
use braidcast_sctp::{AssociationId, CloseReason, Endpoint, Event as Sctp, Reliability, SendOptions};
use call::Call;
use channel::Channel;
pub use channel::ChannelId;
use core::time::Duration;
use guest::Guest;
pub use permit::Permit;
use std::collections::{BTreeMap, VecDeque};
use stream::Stream;

/// How often the paths are measured.
const TICK: Duration = Duration::from_millis(200);
/// Ticks between two messages to the sender about what came on time.
const FEEDBACK_TICKS: u64 = 5;
/// Associations that have no stream yet, or wait for their turn.
const MAX_GUESTS: usize = 32;
/// Log entries that are kept for the caller.
const MAX_LOG: usize = 1 << 16;

/// The receiving end of a session: accepts senders and plays their streams, one at a time on each channel.
///
/// A stream outlives its association: a sender that was lost is waited for, and goes on where it
/// was. Whoever does not say hello as a sender does is no concern of a stream.
///
/// Memory: the buffer (see [`ReceiverOptions::buffer`]), shared by the streams that there are; 2
/// MiB for each of at most 32 associations that have none; the receive buffers of all associations;
/// 65,536 log entries.
pub struct Receiver {
    options: ReceiverOptions,
    endpoint: Endpoint,
    /// Of a receiver that dials.
    call: Option<Call>,
    channels: BTreeMap<ChannelId, Channel>,
    next_channel: u32,
    /// In the order in which they came.
    guests: Vec<Guest>,
    log: VecDeque<LogEntry>,
    /// What came since it was last taken, for those whom it is served to.
    pieces: Pieces,
    next_tick: Instant,
    ticks: u64,
    now: Instant,
    malformed: u64,
    message: Vec<u8>,
    events: VecDeque<(Option<ChannelId>, Event)>,
}

impl Receiver {
    /// A receiver that waits for senders.
    ///
    /// # Errors
    /// [`Misuse`]: the options cannot work.
    pub fn new(options: ReceiverOptions, rng: Rng) -> Result<Self, Misuse> {
        let transport = options.transport();
        Self::with_transport(options, transport, rng)
    }

    /// The same over SCTP as `transport` has it, which is taken as it is:
    /// [`ReceiverOptions::transport`] with changes, for experiments.
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
        let names = match &options.admission {
            Admission::One => vec![String::new()],
            Admission::Named(names) => names.clone(),
            Admission::Each(_) => Vec::new(),
        };
        let channels: BTreeMap<_, _> = (0..).map(ChannelId).zip(names.iter().map(|name| Channel::new(name))).collect();
        Ok(Self {
            next_channel: channels.len() as u32,
            options,
            endpoint,
            call: None,
            channels,
            guests: Vec::new(),
            log: VecDeque::new(),
            pieces: Pieces::default(),
            next_tick: Instant::ZERO,
            ticks: 0,
            now: Instant::ZERO,
            malformed: 0,
            message: Vec::new(),
            events: VecDeque::new(),
        })
    }

    /// The channels that there are: with [`Admission::Each`] one for each name so far, as far as
    /// there is room for them.
    pub fn channels(&self) -> impl Iterator<Item = (ChannelId, &str)> {
        self.channels.iter().map(|(id, channel)| (*id, channel.name.as_str()))
    }

    /// Returns `true` if the channel has a stream, its sender present or waited for.
    pub fn is_taken(&self, channel: ChannelId) -> bool {
        self.channels.get(&channel).is_some_and(|channel| channel.stream.is_some())
    }

    /// Returns `true` if there is neither a stream nor anybody who waits for its turn.
    pub fn is_idle(&self) -> bool {
        self.channels.values().all(Channel::is_free) && self.guests.iter().all(|it| it.hello.is_none())
    }

    /// Puts what is due of a channel into `out`, which is cleared first: packets of a transport stream up to
    /// [`ReceiverOptions::output_size`], or one plain message. `false` if nothing is due; otherwise call it again.
    pub fn poll_output(&mut self, now: Instant, channel: ChannelId, out: &mut Vec<u8>) -> bool {
        out.clear();
        let limit = self.options.output_size;
        let Some(stream) = self.channels.get_mut(&channel).and_then(|channel| channel.stream.as_mut()) else {
            return false;
        };
        let any = stream.poll_output(now, limit, out);
        if !any {
            // There may be room again for messages that stayed in the association.
            self.pump(now);
        }
        any
    }

    /// Returns `true` if what [`poll_output`](Self::poll_output) returned last begins with a video frame that needs
    /// no other.
    pub fn is_at_entry(&self, channel: ChannelId) -> bool {
        let stream = self.channels.get(&channel).and_then(|channel| channel.stream.as_ref());
        stream.is_some_and(Stream::is_at_entry)
    }

    /// While paused, output of the channel that is due does not make the timer run: the place where it goes takes none.
    pub fn pause_output(&mut self, channel: ChannelId, paused: bool) {
        if let Some(channel) = self.channels.get_mut(&channel) {
            channel.paused = paused;
        }
    }

    /// The answer to [`Event::Offered`] where the stream is reliable: `content` of it is there already, or none.
    pub fn accept(&mut self, now: Instant, channel: ChannelId, content: Content) {
        if let Some(stream) = self.stream_mut(channel).filter(|it| it.reliable && it.progress.content.is_none()) {
            stream.progress.written = content.len();
            stream.progress.content = Some(content);
            self.tell_progress(now, channel);
        }
        self.pump(now);
    }

    /// Ends a channel's stream, with the reason for its sender.
    pub fn refuse(&mut self, now: Instant, channel: ChannelId, why: Farewell) {
        let Some(stream) = self.stream_mut(channel) else { return };
        let id = stream.id;
        stream.give_up();
        if !stream.is_closed() {
            stream.close(now, CloseReason::Aborted);
        }
        if let Some(association) = id.and_then(|id| self.endpoint.association_mut(id)) {
            association.abort(now, why);
        }
        self.pump(now);
    }

    /// The application has written so many bytes of a reliable stream, those included that it had at its beginning.
    pub fn written(&mut self, now: Instant, channel: ChannelId, bytes: u64) {
        let Some(stream) = self.stream_mut(channel).filter(|stream| stream.reliable) else { return };
        stream.progress.written = bytes;
        if stream.has_much_to_tell() {
            self.tell_written(now, channel);
        }
    }

    /// The answer to [`Event::Flush`]: everything is written and flushed to where it stays.
    pub fn flushed(&mut self, now: Instant, channel: ChannelId) {
        if let Some(stream) = self.stream_mut(channel).filter(|stream| stream.progress.flush_asked) {
            stream.progress.flushed = true;
            self.tell_written(now, channel);
        }
        self.pump(now);
    }

    /// Takes the log entries since the last call, oldest first; the oldest are lost if 65,536 have piled up.
    pub fn take_log(&mut self) -> impl Iterator<Item = LogEntry> + '_ {
        self.log.drain(..)
    }

    /// Takes what came of live streams since the last call, in place of what `pieces` holds: for a
    /// [`Server`](crate::Server). Nothing unless [`ReceiverOptions::pieces`] says so.
    pub fn take_pieces(&mut self, pieces: &mut Pieces) {
        pieces.clear();
        core::mem::swap(&mut self.pieces, pieces);
    }

    /// Ends all streams at once; `why` is told to their senders, and to those who wait. What has
    /// arrived still comes out when it is due.
    pub fn abort(&mut self, now: Instant, why: Farewell) {
        let ids: Vec<_> = self.channels.keys().copied().collect();
        ids.into_iter().for_each(|id| self.refuse(now, id, why));
        for guest in core::mem::take(&mut self.guests) {
            if let Some(association) = self.endpoint.association_mut(guest.id) {
                association.abort(now, why);
            }
        }
        self.endpoint.stop_listening();
        self.pump(now);
    }

    /// What has arrived comes out at once from now on, whenever it is due, and what has not is not
    /// waited for: for the end, where latencies are longer than the application may take.
    pub fn hurry(&mut self, now: Instant) {
        self.channels.values_mut().filter_map(|channel| channel.stream.as_mut()).for_each(Stream::hurry);
        self.pump(now);
    }

    /// What has been done so far on a channel. Paths are those of the present sender, or of the last one.
    pub fn report(&self, now: Instant, channel: ChannelId) -> Report {
        self.channels.get(&channel).map_or_else(Report::default, |channel| channel.report(now, self.malformed))
    }

    /// How long after its capture what comes out of a channel does so, as its sender has it; `None`
    /// before anything came and where the stream is reliable.
    pub fn latency(&self, channel: ChannelId) -> Option<Duration> {
        self.channels.get(&channel)?.stream.as_ref()?.latency
    }

    /// The SCTP endpoint, for statistics that the report leaves out.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn stream_mut(&mut self, channel: ChannelId) -> Option<&mut Stream> {
        self.channels.get_mut(&channel)?.stream.as_mut()
    }

    fn channel_of(&self, id: AssociationId) -> Option<ChannelId> {
        let has = |channel: &Channel| channel.stream.as_ref().is_some_and(|stream| stream.id == Some(id));
        self.channels.iter().find(|(_, channel)| has(channel)).map(|(id, _)| *id)
    }

    /// Brings everything up to date after any call.
    fn pump(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.take_events(now);
        self.read(now);
        self.admit(now);
        self.dial(now);
        if self.is_busy() && now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(now);
            self.check_rates(now);
        }
        self.end_if_over(now);
    }

    fn is_busy(&self) -> bool {
        !self.guests.is_empty() || self.channels.values().any(|channel| channel.stream.is_some())
    }

    fn take_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            match event {
                Sctp::Connected => {
                    self.ask(now, id);
                    let mut guest = Guest::new(now, id);
                    guest.events = self.call_is_up(now, id);
                    self.welcome_guest(now, guest);
                }
                Sctp::Restarted => self.restarted(now, id),
                Sctp::Closed(reason) => self.closed(now, id, reason),
                event => self.note(id, &event),
            }
        }
        while let Some((_, reason)) = self.endpoint.poll_turned_away() {
            self.events.push_back((None, Event::Insecure(reason)));
        }
    }

    /// Says which stream is wanted, if this end dials.
    fn ask(&mut self, now: Instant, id: AssociationId) {
        if self.call.is_none() {
            return;
        }
        let has = self.channels.values().find_map(|channel| channel.stream.as_ref());
        let identity = has.filter(|stream| !stream.reliable).map(|stream| stream.identity);
        let (latency, name) = (self.options.latency, self.options.name.clone());
        wire::write_ask(&mut self.message, &Ask { session: SESSION_VERSION, latency, identity, name });
        self.send_message(now, id);
    }

    fn note(&mut self, id: AssociationId, event: &Sctp) {
        let event = match *event {
            Sctp::PathUp(path, route) => Event::PathUp(path, route),
            Sctp::PathDown(path, route) => Event::PathDown(path, route),
            Sctp::PathRemoved(path, route) => Event::PathRemoved(path, route),
            _ => return,
        };
        if let Some(guest) = self.guests.iter_mut().find(|guest| guest.id == id) {
            guest.note(event);
        } else if let Some(channel) = self.channel_of(id) {
            self.events.push_back((Some(channel), event));
        } else {
            self.note_of_call(id, event);
        }
    }

    /// The peer of an association began anew over the same addresses: it says hello again.
    fn restarted(&mut self, now: Instant, id: AssociationId) {
        if let Some(channel) = self.channel_of(id) {
            self.lose(now, channel, CloseReason::PeerRestarted);
        }
        self.guests.retain(|guest| guest.id != id);
        self.ask(now, id);
        self.welcome_guest(now, Guest::new(now, id));
    }

    fn closed(&mut self, now: Instant, id: AssociationId, reason: CloseReason) {
        // The association is about to go, and with it what has not been read: now or never.
        self.read_guests(now);
        self.admit(now);
        let known = self.guests.len();
        self.guests.retain(|guest| guest.id != id);
        let was_guest = self.guests.len() < known;
        if let Some(channel) = self.channel_of(id) {
            self.read_channel(now, channel, usize::MAX);
            if let (Some(stream), Some(association)) =
                (self.channels.get_mut(&channel).and_then(|it| it.stream.as_mut()), self.endpoint.association(id))
            {
                stream.measure(now, association);
            }
            self.lose(now, channel, reason.clone());
            self.call_is_over(now, id, &reason);
        } else if self.call.is_some() {
            self.call_is_over(now, id, &reason);
        } else if !was_guest && matches!(reason, CloseReason::Insecure(_) | CloseReason::AbortedByPeer(_)) {
            self.events.push_back((None, Event::Insecure(reason)));
        }
    }

    fn lose(&mut self, now: Instant, channel: ChannelId, reason: CloseReason) {
        let Some(stream) = self.stream_mut(channel) else { return };
        stream.close(now, reason.clone());
        if stream.is_lost() {
            self.events.push_back((Some(channel), Event::Lost(reason)));
        }
    }

    /// Reads the messages that have arrived, as far as there is room for them.
    fn read(&mut self, now: Instant) {
        self.read_guests(now);
        let taken = self.channels.values().filter(|channel| channel.stream.is_some()).count();
        let limit = self.options.buffer / taken.max(1);
        let mut next = self.channels.keys().next().copied();
        while let Some(id) = next {
            self.read_channel(now, id, limit);
            next = self.channels.range(ChannelId(id.0 + 1)..).next().map(|(id, _)| *id);
        }
    }

    fn read_guests(&mut self, now: Instant) {
        for guest in &mut self.guests {
            if let Some(association) = self.endpoint.association_mut(guest.id) {
                self.malformed += guest.read(now, association, &mut self.message);
                let seen_by = |look: (u64, PathId)| {
                    let (number, path) = look;
                    association.paths().find(|it| it.id == path).map(|path| (number, path))
                };
                if let Some((number, path)) = guest.look.take().and_then(seen_by) {
                    let (ect_packets, from) = (path.ect_packets, path.route.remote);
                    let seen = Seen { number, clock: None, ect_packets, from, measures: false };
                    wire::write_seen(&mut self.message, &seen);
                    // One that goes away needs no answer.
                    let _closing = association.send(now, &self.message, control());
                }
            }
        }
    }

    /// Reads a stream's messages while it holds less than `limit` bytes.
    fn read_channel(&mut self, now: Instant, id: ChannelId, limit: usize) {
        while let Some(stream) = self.channels.get_mut(&id).and_then(|channel| channel.stream.as_mut())
            && (stream.held() < limit || stream.skip_if_stuck())
            && let Some(association) = stream.id.and_then(|id| self.endpoint.association_mut(id))
            && let Some(received) = association.recv(now, &mut self.message)
        {
            let message = core::mem::take(&mut self.message);
            self.take(now, id, received.path, &message);
            self.message = message;
        }
    }

    /// Takes one message of a channel's stream.
    fn take(&mut self, now: Instant, id: ChannelId, path: PathId, message: &[u8]) {
        let Some(channel) = self.channels.get_mut(&id) else { return };
        let Some(stream) = &mut channel.stream else { return };
        let Ok(taken) = stream.take(now, path, message) else {
            self.malformed += 1;
            return;
        };
        if taken.clock_jumped {
            channel.clock_jumps += 1;
            self.events.push_back((Some(id), Event::ClockJumped));
        }
        if taken.anew {
            self.events.push_back((Some(id), Event::Anew));
        }
        if let Some(due) = taken.piece.filter(|_| self.options.pieces && !stream.reliable) {
            self.pieces.push(id, (stream.identity, stream.incarnation), due, message);
        }
        if let Some(entry) = &taken.entry {
            self.options.events.tell(now, tell::number(&stream.identity), || tell::arrived(entry));
        }
        if let Some(entry) = taken.entry.filter(|_| self.options.log) {
            if self.log.len() >= MAX_LOG {
                self.log.pop_front();
            }
            self.log.push_back(entry);
        }
        if taken.is_plain {
            // Half of a stream may be stuffing, which costs nothing once the sender has heard of us.
            (self.ticks, self.next_tick) = (FEEDBACK_TICKS - 1, now);
        }
        if taken.asks {
            self.tell_written(now, id);
        }
    }

    fn tick(&mut self, now: Instant) {
        self.ticks += 1;
        let ids: Vec<_> = self.channels.keys().copied().collect();
        for id in ids {
            let Some(stream) = self.channels.get_mut(&id).and_then(|channel| channel.stream.as_mut()) else { continue };
            stream.account.tick(now, stream.settles());
            let Some(association) = stream.id.and_then(|id| self.endpoint.association(id)) else { continue };
            stream.measure(now, association);
            let untold = stream.reliable && stream.progress.written != stream.progress.told;
            if self.ticks.is_multiple_of(FEEDBACK_TICKS) {
                let Counts { captured, on_time, late, .. } = stream.account.counts;
                let association = stream.id;
                let early = self.options.early && !stream.reliable;
                wire::write_feedback(&mut self.message, &Feedback { captured, on_time, late, early, unpacks: true });
                self.send_feedback(now, association);
            }
            if untold {
                self.tell_written(now, id);
            }
        }
    }

    fn send_feedback(&mut self, now: Instant, id: Option<AssociationId>) {
        let how = SendOptions { reliability: Reliability::Lifetime(TICK), ..control() };
        if let Some(association) = id.and_then(|id| self.endpoint.association_mut(id)) {
            // A sender that is closing takes no more; its report then ends with the feedback before.
            let _refused = association.send(now, &self.message, how);
        }
    }

    /// Sends what was written into `message`. Returns `true` if there was room.
    fn send_message(&mut self, now: Instant, id: AssociationId) -> bool {
        self.endpoint.association_mut(id).is_some_and(|it| it.send(now, &self.message, control()).is_ok())
    }

    /// Informs a reliable sender what there is of its stream, once the application has said so.
    fn tell_progress(&mut self, now: Instant, channel: ChannelId) {
        let Some(stream) = self.stream_mut(channel) else { return };
        let (Some(content), Some(id)) = (&stream.progress.content, stream.id) else { return };
        let welcome = Welcome::GoOn { offset: content.len(), digest: content.digest() };
        wire::write_welcome(&mut self.message, &welcome);
        self.send_message(now, id);
    }

    fn tell_written(&mut self, now: Instant, channel: ChannelId) {
        let Some(stream) = self.stream_mut(channel) else { return };
        let (written, complete, id) = (stream.progress.written, stream.progress.flushed, stream.id);
        let Some(id) = id else { return };
        wire::write_written(&mut self.message, &Written { offset: written, complete });
        if self.send_message(now, id)
            && let Some(stream) = self.stream_mut(channel)
        {
            stream.progress.told = written;
        }
    }

    /// Once a stream is over and everything has been handed out, the next sender has its turn.
    fn end_if_over(&mut self, now: Instant) {
        let mut any = false;
        for (id, channel) in &mut self.channels {
            let Some(stream) = &mut channel.stream else { continue };
            if stream.wants_flush() {
                stream.progress.flush_asked = true;
                self.events.push_back((Some(*id), Event::Flush));
            }
            if let Some((complete, reason)) = stream.over(now, self.options.give_up) {
                channel.end(now);
                self.events.push_back((Some(*id), Event::Ended { complete, reason }));
                any = true;
            }
        }
        if any {
            if !self.options.keep {
                self.hang_up();
            }
            self.admit(now);
        }
    }
}

impl Machine for Receiver {
    type Event = (Option<ChannelId>, Event);

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

    /// Includes the time when output is next due, unless [paused](Self::pause_output).
    fn poll_timeout(&self) -> Option<Instant> {
        let tick = self.is_busy().then_some(self.next_tick);
        let due = |channel: &Channel| channel.stream.as_ref().filter(|_| !channel.paused).and_then(Stream::next_output);
        let output = self.channels.values().filter_map(due).min();
        let call = self.call.as_ref().and_then(|call| call.attempts.due());
        Instant::first_of([self.endpoint.poll_timeout(), tick, output, call])
    }

    fn poll_event(&mut self) -> Option<(Option<ChannelId>, Event)> {
        self.take_events(self.now);
        self.events.pop_front()
    }
}
