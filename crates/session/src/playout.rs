//! The receiver's buffer: packets wait here, in the order of the input, until they are due.

use crate::options::{SLICE_BYTES, slice_of};
use crate::wire::{Bytes, UnitHeader};
use braidcast_core::Instant;
use braidcast_media::ts::{NULL_PACKET, PACKET, Packet};
use braidcast_media::{Kind, Run};
use core::time::Duration;
use std::collections::BTreeMap;

/// A unit due later than its latency from now, by this much, is of a clock that jumped.
const TOO_EARLY: Duration = Duration::from_secs(2);
/// So late a unit that others need is handed out all the same: the buffer of a player bridges as much.
pub(crate) const GRACE: Duration = Duration::from_millis(50);
/// Elementary streams of which is known how far they were handed out.
const MAX_PIDS: usize = 64;
/// Ranges of packets that will not come that are remembered.
const MAX_GIVEN_UP: usize = 4096;
/// Runs of null packets in a row that are looked behind for one that is due.
const NULL_RUNS: usize = 8;
/// What the index costs for each run, roughly.
const RUN_COST: usize = 64;
/// What a message costs beside its bytes and runs, roughly.
const SLOT_COST: usize = 96;
/// Buffers kept for reuse.
const MAX_SPARE: usize = 64;
/// Larger ones are not.
const MAX_SPARE_BYTES: usize = 256 << 10;

/// When packets leave the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Release {
    /// Each when it is due.
    OnTime,
    /// As soon as everything before is there, at the latest when due.
    Early,
    /// As soon as everything before is there; nothing is ever due.
    InOrder,
    /// Now: what is there is all there will be.
    AtOnce,
}

/// `true` if a unit came in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It waits for its turn.
    OnTime,
    /// Its turn is over, but a decoder still gains by it: it leaves at once.
    LateOfUse,
    /// Its turn is over; it was not taken.
    Late,
    /// It was sent again after an association broke, and was there before, or too late before.
    Again,
}

/// Packets side by side that wait.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    count: u32,
    null: bool,
    slot: usize,
    /// Where the first packet's bytes begin in the slot.
    at: usize,
}

/// The bytes of one message and when they are due.
#[derive(Debug, Default)]
struct Slot {
    bytes: Vec<u8>,
    runs_left: usize,
    plain: bool,
    /// It begins a frame that needs no other.
    entry: bool,
    /// The PID of its first packet; `None` for plain messages.
    pid: Option<u16>,
    first: u64,
    /// Index of the last packet less that of the first.
    distance: u64,
    /// When the first packet is due, in ns of the sender's clock.
    due: i64,
    /// Time from the first packet to the last, ns.
    span: i64,
}

impl Slot {
    /// When packet `index` is due in the receiver's clock, `offset` ns ahead of the sender's.
    fn due(&self, index: u64, offset: i64) -> Instant {
        let into = index.saturating_sub(self.first).min(self.distance);
        let due = i128::from(self.due) + i128::from(self.part(into)) + i128::from(offset);
        Instant::from_nanos(u64::try_from(due.max(0)).unwrap_or(u64::MAX))
    }

    /// The part of the span that has passed `into` packets behind the first, ns. It is asked for with each wake-up, and
    /// a division of 128 bits takes much longer than one of 64, which does but for units that nobody sends.
    fn part(&self, into: u64) -> i64 {
        let span = u64::try_from(self.span).unwrap_or_default();
        let part = match (into, span.checked_mul(into)) {
            (0, _) => 0,
            (_, Some(product)) => product / self.distance.max(1),
            (_, None) => (u128::from(span) * u128::from(into) / u128::from(self.distance.max(1))) as u64,
        };
        i64::try_from(part).unwrap_or(i64::MAX)
    }
}

/// Puts packets back into the order of the input and says when they are due.
///
/// Memory: [`held`](Self::held) bytes, which the caller keeps bounded by inserting no more.
#[derive(Debug)]
pub(crate) struct Playout {
    release: Release,
    /// What is due within the same slice leaves at its beginning, so that a wake-up hands out more
    /// than one packet; and no longer one than this.
    longest_slice: Duration,
    /// As the latency of what came last allows, ns; 0: each packet when it is due.
    slice: u64,
    /// The half slice that was handed out in last, by its number, and the bytes of it.
    last_half: (u64, usize),
    /// Slices are half as long: a whole one would be more than a player's socket holds.
    halved: bool,
    waiting: BTreeMap<u64, Waiting>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    spare: Vec<Vec<u8>>,
    /// Index of the packet after the last one that was handed out.
    next_index: u64,
    /// The same for each elementary stream, by PID.
    next_of: Vec<(u16, u64)>,
    /// Packets further on that will not come, from the first of a range to behind its last. Used
    /// for [`Release::Early`] alone.
    given_up: BTreeMap<u64, u64>,
    held: usize,
    /// What was put out last begins with a frame that needs no other.
    at_entry: bool,
}

impl Playout {
    /// An empty buffer that begins with packet 0.
    pub(crate) fn new(release: Release) -> Self {
        Self {
            release,
            longest_slice: Duration::ZERO,
            slice: 0,
            last_half: (0, 0),
            halved: false,
            waiting: BTreeMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            spare: Vec::new(),
            next_index: 0,
            next_of: Vec::new(),
            given_up: BTreeMap::new(),
            held: 0,
            at_entry: false,
        }
    }

    /// An empty buffer of a reliable stream that goes on with packet `index`.
    pub(crate) fn in_order_from(index: u64) -> Self {
        Self { next_index: index, ..Self::new(Release::InOrder) }
    }

    /// The same, which hands out in slices no longer than `longest`.
    pub(crate) fn in_slices(self, longest: Duration) -> Self {
        Self { longest_slice: longest, ..self }
    }

    /// Nothing more will come: what there is leaves now.
    pub(crate) fn finish(&mut self) {
        self.release = Release::AtOnce;
    }

    /// These packets will not come: what is behind them need not wait for them.
    pub(crate) fn give_up(&mut self, runs: impl Iterator<Item = Run>) {
        if self.release != Release::Early {
            return;
        }
        for run in runs.filter(|run| run.end() > self.next_index) {
            if self.given_up.len() < MAX_GIVEN_UP {
                let end = self.given_up.entry(run.first).or_default();
                *end = run.end().max(*end);
            }
        }
        self.pass_given_up();
    }

    /// What comes next is behind what will not come.
    fn pass_given_up(&mut self) {
        while let Some(range) = self.given_up.first_entry().filter(|range| *range.key() <= self.next_index) {
            self.next_index = self.next_index.max(range.remove());
        }
    }

    /// Returns `true` if what comes next is there, whatever the time.
    pub(crate) fn is_in_turn(&self) -> bool {
        self.head().is_some_and(|(index, _)| self.in_turn(index))
    }

    /// If only missing packets keep what waits from ever leaving, stops waiting for them; `false` if time will tell.
    pub(crate) fn skip_gap(&mut self) -> bool {
        let Some((index, _)) = self.head() else { return false };
        let stuck = self.release == Release::InOrder && !self.in_turn(index);
        if stuck {
            self.next_index = index;
        }
        stuck
    }

    /// Returns `true` if nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes held, including what finding them costs.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }

    /// When the first packet of a unit is due, in the receiver's clock.
    pub(crate) fn due(header: &UnitHeader, offset: i64) -> Instant {
        let slot = Slot { due: due_of(header), ..Slot::default() };
        slot.due(0, offset)
    }

    /// Takes a unit that arrived at `now`, or refuses it because its turn is over.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        offset: i64,
        header: &UnitHeader,
        runs: impl Iterator<Item = Run> + Clone,
        bytes: Bytes<'_>,
    ) -> Arrival {
        // Null packets only travel with a unit; its own packets say when it is due.
        let mut carried = runs.clone().filter(|run| !run.null);
        let first = carried.next().or_else(|| runs.clone().next());
        let last = carried.last().or(first);
        let (Some(first), Some(last)) = (first, last) else { return Arrival::Late };
        let due = Self::due(header, offset);
        let latency = Duration::from_micros(u64::from(header.latency));
        let out_of_time = !header.reliable && (due <= now || due > now + latency + TOO_EARLY);
        let late = first.first < self.next_index || out_of_time;
        let mut buffer = self.spare.pop().unwrap_or_default();
        bytes.append_to(&mut buffer);
        let pid = if header.kind == Kind::Data { None } else { pid_of(&buffer) };
        let is_there = header.again && self.waiting.contains_key(&first.first);
        if is_there || late && !(due <= now + latency + TOO_EARLY && self.is_of_use(now, due, header, pid, first.first))
        {
            self.keep_spare(buffer);
            return if header.again { Arrival::Again } else { Arrival::Late };
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        let (mut at, mut runs_left) = (0, 0);
        for run in runs {
            let waiting = Waiting { count: run.count, null: run.null, slot: id, at };
            at += if run.null { 0 } else { run.count as usize * PACKET };
            // Two units that claim the same place are a fault of the sender; the later one counts.
            if let Some(displaced) = self.waiting.insert(run.first, waiting) {
                self.give_back(displaced.slot);
            }
            runs_left += 1;
        }
        self.slice = u64::try_from(slice_of(self.longest_slice, latency).as_nanos()).unwrap_or_default();
        self.held += SLOT_COST + buffer.len() + runs_left * RUN_COST;
        self.slots[id] = Slot {
            bytes: buffer,
            runs_left,
            plain: header.kind == Kind::Data,
            entry: header.kind == Kind::I && header.part == 0,
            pid,
            first: first.first,
            distance: last.end().saturating_sub(1).saturating_sub(first.first),
            due: due_of(header),
            span: i64::from(header.span) * 1000,
        };
        if late { Arrival::LateOfUse } else { Arrival::OnTime }
    }

    /// Returns `true` if a decoder gains by a unit though its turn is over: others need it, and of its
    /// elementary stream nothing behind it was handed out. A decoder that had begun a later frame
    /// would take it for one of another time.
    fn is_of_use(&self, now: Instant, due: Instant, header: &UnitHeader, pid: Option<u16>, first: u64) -> bool {
        let Some(pid) = pid.filter(|_| header.reference && !header.reliable && now.since(due) <= GRACE) else {
            return false;
        };
        match self.next_of.iter().find(|(known, _)| *known == pid) {
            Some((_, next)) => *next <= first,
            None => self.next_of.len() < MAX_PIDS,
        }
    }

    /// Puts what may leave at `now` into `out`, which is cleared first: packets up to `limit` bytes (at least one), or
    /// one plain message. `false` if nothing may leave yet. A frame that needs no other begins anew.
    pub(crate) fn poll(&mut self, now: Instant, offset: i64, limit: usize, out: &mut Vec<u8>) -> bool {
        out.clear();
        self.at_entry = false;
        while let Some((index, head)) = self.head() {
            if !self.in_turn(index) && self.head_due(offset).is_none_or(|due| self.leaves(index, due) > now) {
                break;
            }
            let slot = &self.slots[head.slot];
            if slot.plain {
                out.extend_from_slice(&slot.bytes);
                self.advance(index, head, 1);
                return true;
            }
            let room = limit.saturating_sub(out.len()) / PACKET;
            let entry = slot.entry && index == slot.first;
            if (room == 0 || entry) && !out.is_empty() {
                break;
            }
            self.at_entry |= entry;
            let wanted = u32::try_from(room.max(1)).unwrap_or(u32::MAX).min(head.count);
            // The first packet may leave; the later ones of its run are due later.
            let due = |n: &u32| self.slice_of(slot.due(index + u64::from(*n), offset)) <= now;
            let count =
                if self.release == Release::OnTime { 1 + (1..wanted).take_while(due).count() as u32 } else { wanted };
            for n in 0..count as usize {
                let packet = slot.bytes.get(head.at + n * PACKET..head.at + (n + 1) * PACKET);
                out.extend_from_slice(if head.null { &NULL_PACKET } else { packet.unwrap_or_default() });
            }
            self.advance(index, head, count);
        }
        self.count(now, out.len());
        !out.is_empty()
    }

    /// Notes that `bytes` are handed out at `now`: how long slices are depends on how much there is in one.
    fn count(&mut self, now: Instant, bytes: usize) {
        let Some(half) = now.as_nanos().checked_div(self.slice / 2) else { return };
        let (last, before) = self.last_half;
        if half == last {
            self.last_half.1 += bytes;
        } else {
            // What a whole one had. It has to be much less before they are long again.
            if self.halved && before < SLICE_BYTES / 4 {
                self.halved = false;
            }
            self.last_half = (half, bytes);
        }
        self.halved |= self.last_half.1 > SLICE_BYTES;
    }

    /// Returns `true` if what was put out last begins with the beginning of a frame that needs no other.
    pub(crate) const fn is_at_entry(&self) -> bool {
        self.at_entry
    }

    /// When [`poll`](Self::poll) next has something; the origin of time if it has already.
    pub(crate) fn next_due(&self, offset: i64) -> Option<Instant> {
        let (index, _) = self.head()?;
        if self.in_turn(index) {
            return Some(Instant::ZERO);
        }
        self.head_due(offset).map(|due| self.leaves(index, due))
    }

    /// When packet `index`, which is due at `due`, leaves: with the others of its slice. Behind a gap it
    /// does not leave early, as what is missing may still come in time.
    fn leaves(&self, index: u64, due: Instant) -> Instant {
        if index <= self.next_index { self.slice_of(due) } else { due }
    }

    /// The beginning of the slice that `due` falls into. They are the same for all streams, which so
    /// share a wake-up.
    fn slice_of(&self, due: Instant) -> Instant {
        let (nanos, slice) = (due.as_nanos(), if self.halved { self.slice / 2 } else { self.slice });
        Instant::from_nanos(nanos - nanos.checked_rem(slice).unwrap_or_default())
    }

    /// The clock of the sender jumped by `nanos`: what waits stays due when it was.
    pub(crate) fn shift(&mut self, nanos: i64) {
        for slot in &mut self.slots {
            slot.due = slot.due.saturating_sub(nanos);
        }
    }

    fn head(&self) -> Option<(u64, Waiting)> {
        self.waiting.first_key_value().map(|(index, waiting)| (*index, *waiting))
    }

    /// Returns `true` if packet `index` may leave whatever the time.
    fn in_turn(&self, index: u64) -> bool {
        match self.release {
            Release::OnTime => false,
            Release::Early | Release::InOrder => index <= self.next_index,
            Release::AtOnce => true,
        }
    }

    /// When the first run's first packet is due; a null packet at the latest with the next one that is none.
    fn head_due(&self, offset: i64) -> Option<Instant> {
        if self.release == Release::InOrder {
            return None;
        }
        let mut runs = self.waiting.iter().map(|(index, run)| (run.null, self.slots[run.slot].due(*index, offset)));
        let (null, due) = runs.next()?;
        let next = runs.take(NULL_RUNS).find(|(null, _)| !null).filter(|_| null);
        Some(next.map_or(due, |(_, next)| due.min(next)))
    }

    /// Takes the first `count` packets off the run at `index`.
    fn advance(&mut self, index: u64, head: Waiting, count: u32) {
        self.waiting.remove(&index);
        let next = index + u64::from(count);
        self.next_index = self.next_index.max(next);
        self.pass_given_up();
        if let Some(pid) = self.slots[head.slot].pid.filter(|_| !head.null) {
            let has_room = self.next_of.len() < MAX_PIDS;
            match self.next_of.iter_mut().find(|(known, _)| *known == pid) {
                Some((_, known)) => *known = next.max(*known),
                None if has_room => self.next_of.push((pid, next)),
                None => {}
            }
        }
        if count >= head.count {
            return self.give_back(head.slot);
        }
        let at = head.at + if head.null { 0 } else { count as usize * PACKET };
        let rest = Waiting { count: head.count - count, at, ..head };
        if let Some(displaced) = self.waiting.insert(index + u64::from(count), rest) {
            self.give_back(displaced.slot);
        }
    }

    /// A run of `slot` is done with.
    fn give_back(&mut self, id: usize) {
        let slot = &mut self.slots[id];
        slot.runs_left = slot.runs_left.saturating_sub(1);
        self.held = self.held.saturating_sub(RUN_COST);
        if slot.runs_left == 0 {
            let bytes = core::mem::take(&mut slot.bytes);
            self.held = self.held.saturating_sub(SLOT_COST + bytes.len());
            self.free.push(id);
            self.keep_spare(bytes);
        }
    }

    /// Keeps a buffer for reuse.
    fn keep_spare(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < MAX_SPARE && bytes.capacity() <= MAX_SPARE_BYTES {
            bytes.clear();
            self.spare.push(bytes);
        }
    }
}

/// The PID of the first packet of a unit.
fn pid_of(bytes: &[u8]) -> Option<u16> {
    Some(Packet::new(bytes.first_chunk()?).pid())
}

/// When a unit's first packet is due in the sender's clock, ns.
fn due_of(header: &UnitHeader) -> i64 {
    i64::try_from(header.captured)
        .unwrap_or(i64::MAX)
        .saturating_mul(1000)
        .saturating_add(i64::from(header.latency) * 1000)
}

#[cfg(test)]
mod tests;
