mod renumber;

use super::fragment::{Fragment, Key, ReassemblyError};
use super::peer_clock::PeerClock;
use super::pool::Pool;
use super::runs::{Label, Message, Piece, Runs, idata_position};
use super::streams::Streams;
use crate::api::{Timing, Waits};
use crate::number::Tsn;
use crate::wire::Times;
use braidcast_core::{Instant, PathId};
use core::mem;
use core::time::Duration;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// What an association agreed on, as far as receiving is concerned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// How many incoming streams there are.
    pub(crate) streams: u16,
    /// I-DATA was negotiated (RFC 8260): no DATA may come. Otherwise no I-DATA may.
    pub(crate) interleaving: bool,
    /// The longest message accepted, in bytes.
    pub(crate) max_message: usize,
}

/// What a delivered message was sent with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// The stream it came on.
    pub stream: u16,
    /// The payload protocol identifier that the sender gave it.
    pub ppid: u32,
    /// `true` if it was sent outside the order of its stream.
    pub unordered: bool,
    /// The path of the fragment that completed it.
    pub path: PathId,
    /// When that fragment came; a later delivery waited for the message's turn in its stream.
    pub whole: Instant,
    /// If it came by its deadline. `None`: it has none, or one more than half an hour ahead; the two ends
    /// did not agree on that ([`Options::timed_messages`](crate::Options)); or no round trip was measured
    /// yet.
    pub timing: Option<Timing>,
}

/// Puts fragments together to messages and delivers them in the order that each stream asks for (RFC 9260
/// §6.5, §6.6, §6.9; RFC 8260 §2.2.3; RFC 3758 §3.6).
///
/// It does not bound what it holds: the caller drops new data when [`buffered`](Self::buffered) reaches the
/// receive window (RFC 9260 §6.2). Duplicates are the [`Tracker`](super::Tracker)'s business and must not get here.
#[derive(Debug)]
pub(crate) struct Reassembly {
    limits: Limits,
    streams: Streams,
    /// Incomplete messages.
    runs: Runs,
    /// Complete ordered messages that wait for an earlier one, by stream and number.
    waiting: BTreeMap<(u16, u64), Message>,
    /// Messages to deliver, in order.
    ready: VecDeque<Message>,
    /// How many of `ready`, from its front, are not what [`take`](Self::take) looks for.
    looked: usize,
    /// How many of `ready`, from its front, are not what [`recv_where`](Self::recv_where) looks for.
    passed: usize,
    /// Streams that began anew, and the last TSN of before: what skips messages up to there is of before too.
    renumbered: BTreeMap<u16, Tsn>,
    pool: Pool,
    /// The peer's, as far as its timestamps tell.
    clock: PeerClock,
    buffered: usize,
    assembling: Waits,
    ordering: Waits,
}

impl Reassembly {
    /// Nothing received yet.
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            streams: Streams::new(limits.streams, limits.interleaving),
            runs: Runs::new(limits.interleaving),
            waiting: BTreeMap::new(),
            ready: VecDeque::new(),
            looked: 0,
            passed: 0,
            renumbered: BTreeMap::new(),
            pool: Pool::default(),
            clock: PeerClock::default(),
            buffered: 0,
            assembling: Waits::default(),
            ordering: Waits::default(),
        }
    }

    /// Starts over after the peer restarted, perhaps with other limits. Messages that were complete and due
    /// are still delivered.
    pub(crate) fn reset(&mut self, limits: Limits) {
        self.runs.drop_range(0..=u128::MAX, &mut self.pool);
        for message in mem::take(&mut self.waiting).into_values() {
            self.pool.release(message.buffer);
        }
        self.renumbered.clear();
        self.limits = limits;
        self.streams = Streams::new(limits.streams, limits.interleaving);
        self.runs = Runs::new(limits.interleaving);
        self.clock = PeerClock::default();
        self.buffered = self.ready.iter().map(Message::charge).sum();
    }

    /// A packet came that had left at `sent` by the peer's clock.
    pub(crate) fn observe_clock(&mut self, now: Instant, sent: u32, round_trip: Option<Duration>) {
        self.clock.observe(now, sent, round_trip);
    }

    /// Returns `true` if the peer may send on `stream`.
    pub(crate) const fn has_stream(&self, stream: u16) -> bool {
        stream < self.limits.streams
    }

    /// Bytes held: payload plus [`Fragment::OVERHEAD`] for each fragment, until
    /// [`recv`](Self::recv) takes the message. To be taken off the advertised window.
    pub(crate) const fn buffered(&self) -> usize {
        self.buffered
    }

    /// How long messages took from their first fragment to their last.
    pub(crate) const fn assembling(&self) -> Waits {
        self.assembling
    }

    /// How long whole messages waited for their turn.
    pub(crate) const fn ordering(&self) -> Waits {
        self.ordering
    }

    /// Returns `true` if [`recv`](Self::recv) has a message.
    pub(crate) fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes in a fragment with a new TSN. A fragment of a message that was skipped is ignored.
    pub(crate) fn insert(&mut self, fragment: Fragment<'_>) -> Result<(), ReassemblyError> {
        let Some(piece) = self.place(fragment)? else { return Ok(()) };
        // If a message begins before the one under way has ended, the sender abandoned the rest before
        // it had a TSN; dcSCTP does so. The FORWARD-TSN may come later.
        if !self.limits.interleaving {
            let is_given_up = !piece.last && self.runs.begins_after(piece.at);
            if piece.first || is_given_up {
                self.buffered -= self.runs.drop_unfinished_before(piece.at, &mut self.pool);
            }
            if is_given_up {
                return Ok(());
            }
        }
        let charge = piece.payload.len() + Fragment::OVERHEAD;
        let max_len = self.limits.max_message;
        if piece.first && piece.last {
            if self.runs.is_empty() {
                if piece.payload.len() > max_len {
                    return Err(ReassemblyError::TooLong { limit: max_len });
                }
            } else {
                self.runs.neighbours(&piece, max_len)?;
            }
            let message = piece.message(&mut self.pool, false);
            self.buffered += charge;
            return self.deliver(message);
        }
        let (message, dropped) = self.runs.insert(&piece, max_len, &mut self.pool)?;
        self.buffered += charge;
        self.buffered -= dropped;
        message.map_or(Ok(()), |message| self.deliver(message))
    }

    /// FORWARD-TSN: ordered DATA messages of `stream` up to `ssn` will not come. Releases what waited for them.
    pub(crate) fn skip_ssn(&mut self, now: Instant, stream: u16, ssn: u16) {
        if !self.limits.interleaving {
            self.skip_ordered(now, stream, u32::from(ssn));
        }
    }

    /// I-FORWARD-TSN: messages of `stream` up to `mid` will not come, as far as they are incomplete (RFC 8260
    /// §2.3.1). Releases what waited for them.
    pub(crate) fn skip_mid(&mut self, now: Instant, stream: u16, unordered: bool, mid: u32) {
        if !self.limits.interleaving {
            return;
        }
        let number = if unordered {
            self.streams.get(stream).map(|state| state.pass_unordered(mid))
        } else {
            self.skip_ordered(now, stream, mid)
        };
        if let Some(number) = number {
            let first = idata_position(Label { stream, unordered, number: 0 }, 0);
            let last = idata_position(Label { stream, unordered, number }, u32::MAX);
            self.buffered -= self.runs.drop_range(first..=last, &mut self.pool);
        }
    }

    /// FORWARD-TSN, after [`skip_ssn`](Self::skip_ssn) for its streams: drops parts of DATA messages that miss
    /// a TSN at or below `new_cumulative`. Nothing to do with I-DATA, where MIDs say it all.
    pub(crate) fn forward_tsn(&mut self, new_cumulative: Tsn) {
        if !self.limits.interleaving {
            let streams = &self.streams;
            let skipped = |label: Label| !label.unordered && streams.has_passed(label.stream, label.number);
            self.buffered -= self.runs.forward(new_cumulative, skipped, &mut self.pool);
        }
    }

    /// Moves the next message into `buf`, whose old content is lost and whose storage is kept for messages to come.
    pub(crate) fn recv(&mut self, buf: &mut Vec<u8>) -> Option<Received> {
        self.hand_out(0, buf)
    }

    /// The same with the first message that is `wanted`, before others that came earlier. It is the same `wanted` each
    /// time: what waits is looked at once.
    pub(crate) fn recv_where(&mut self, wanted: impl Fn(&[u8]) -> bool, buf: &mut Vec<u8>) -> Option<Received> {
        let new = self.ready.range(self.passed..).position(|message| wanted(message.buffer.bytes()));
        self.passed = new.map_or(self.ready.len(), |at| self.passed + at);
        self.hand_out(self.passed, buf)
    }

    /// Takes message `place` of `ready` out of it.
    fn remove(&mut self, place: usize) -> Option<Message> {
        let message = self.ready.remove(place)?;
        for looked in [&mut self.looked, &mut self.passed] {
            *looked -= usize::from(place < *looked);
        }
        self.buffered -= message.charge();
        Some(message)
    }

    /// Moves message `place` of `ready` into `buf`.
    fn hand_out(&mut self, place: usize, buf: &mut Vec<u8>) -> Option<Received> {
        let Message { label, ppid, path, buffer, arrived: (_, whole), ready, timed, .. } = self.remove(place)?;
        let bytes = self.pool.detach(buffer);
        self.pool.keep(mem::replace(buf, bytes));
        let timing = if timed { self.take_times(ready, buf) } else { None };
        Some(Received { stream: label.stream, ppid, unordered: label.unordered, path, whole, timing })
    }

    /// Takes the times off the end of `message`, which could be received at `ready`.
    fn take_times(&self, ready: Instant, message: &mut Vec<u8>) -> Option<Timing> {
        let (payload, times) = Times::split(message).ok()?;
        let len = payload.len();
        message.truncate(len);
        self.clock.timing(ready, times)
    }

    /// Takes the next whole message that has `ppid` out of turn; `None` if there is none. It is the
    /// same `ppid` each time: what waits is looked at once.
    pub(crate) fn take(&mut self, ppid: u32) -> Option<Vec<u8>> {
        let new = self.ready.range(self.looked..).position(|message| message.ppid == ppid);
        self.looked = new.map_or(self.ready.len(), |at| self.looked + at);
        let message = self.remove(self.looked)?;
        Some(self.pool.detach(message.buffer))
    }

    /// Forgets all that is here, whole or not; its place in streams is kept.
    pub(crate) fn forget_all(&mut self) {
        self.runs.drop_range(0..=u128::MAX, &mut self.pool);
        let waiting = mem::take(&mut self.waiting).into_values();
        for message in waiting.chain(self.ready.drain(..)) {
            self.pool.release(message.buffer);
        }
        (self.buffered, self.looked, self.passed) = (0, 0, 0);
    }

    /// Finds the place of a fragment; `None` if its message was skipped.
    fn place<'a>(&mut self, fragment: Fragment<'a>) -> Result<Option<Piece<'a>>, ReassemblyError> {
        let Fragment { tsn, stream, unordered, first, last, timed, ppid, key, payload, path, arrived } = fragment;
        if !self.streams.accepts(key) {
            return Err(ReassemblyError::WrongKind);
        }
        let state = self.streams.get(stream).ok_or(ReassemblyError::InvalidStream(stream))?;
        let (wire, fsn) = match key {
            Key::Ssn(ssn) => (u32::from(ssn), None),
            Key::Mid { mid, fsn } => (mid, Some(fsn)),
        };
        if fsn.is_some_and(|fsn| (fsn == 0) != first) {
            return Err(ReassemblyError::FirstFsn);
        }
        let number = match (unordered, fsn) {
            (false, _) => Some(state.number(wire)).filter(|number| *number >= state.next()),
            (true, Some(_)) => state.unordered_number(wire),
            (true, None) => Some(0),
        };
        Ok(number.map(|number| {
            let label = Label { stream, unordered, number };
            let at = fsn.map_or(u128::from(tsn.get()), |fsn| idata_position(label, fsn));
            Piece { at, first, last, timed, label, ppid, path, arrived, payload }
        }))
    }

    /// Delivers a complete message, at once or when its turn comes. It is not below `next`: `place` saw to that
    /// for its last fragment.
    fn deliver(&mut self, message: Message) -> Result<(), ReassemblyError> {
        let Label { stream, unordered, number } = message.label;
        let now = message.arrived.1;
        if message.timed && message.buffer.len() <= Times::LEN {
            self.buffered -= message.charge();
            self.pool.release(message.buffer);
            return Err(ReassemblyError::NothingButTimes);
        }
        if unordered {
            self.hand_over(now, message);
            return Ok(());
        }
        let Some(state) = self.streams.get(stream) else { return Ok(()) };
        if number == state.next() {
            state.pass(number);
            self.hand_over(now, message);
            self.release(now, stream);
            return Ok(());
        }
        match self.waiting.entry((stream, number)) {
            Entry::Vacant(entry) => {
                entry.insert(message);
                Ok(())
            }
            Entry::Occupied(_) => {
                self.buffered -= message.charge();
                self.pool.release(message.buffer);
                Err(ReassemblyError::RepeatedMessage)
            }
        }
    }

    /// Passes over the ordered messages up to `wire`, delivering those that are complete; returns its number.
    fn skip_ordered(&mut self, now: Instant, stream: u16, wire: u32) -> Option<u64> {
        let state = self.streams.get(stream)?;
        let number = state.number(wire);
        if number < state.next() {
            return None;
        }
        state.pass(number);
        while let Some((&key, _)) = self.waiting.range((stream, 0)..=(stream, number)).next() {
            if let Some(message) = self.waiting.remove(&key) {
                self.hand_over(now, message);
            }
        }
        self.release(now, stream);
        Some(number)
    }

    /// Delivers the messages of `stream` whose turn has come.
    fn release(&mut self, now: Instant, stream: u16) {
        while !self.waiting.is_empty()
            && let Some(state) = self.streams.get(stream)
            && let Some(message) = self.waiting.remove(&(stream, state.next()))
        {
            state.pass(message.label.number);
            self.hand_over(now, message);
        }
    }

    /// The application may have `message`.
    fn hand_over(&mut self, now: Instant, mut message: Message) {
        message.ready = now;
        let (first, last) = message.arrived;
        self.assembling.add(last - first);
        self.ordering.add(now - last);
        self.ready.push_back(message);
    }
}

#[cfg(test)]
mod tests;
