use super::{Books, Chunk, ChunkState, Ledger, LossCause, Repeat};
use crate::Priority;
use crate::number::{Order, Tsn};
use crate::path::PathIndex;
use crate::tx::{Piece, SendQueue};
use braidcast_cc::Stamp;
use braidcast_core::Instant;

/// When and over which path a chunk is to leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leave {
    pub(crate) now: Instant,
    pub(crate) path: PathIndex,
    pub(crate) stamp: Stamp,
}

/// A chunk that leaves now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) tsn: Tsn,
    pub(crate) chunk: Chunk,
    /// How it was lost before, if it is sent again.
    pub(crate) again: Option<LossCause>,
    /// It is sent again, and is the oldest of its path that is out.
    pub(crate) oldest: bool,
}

impl Departure {
    /// The oldest chunk of its path leaves anew after a fast retransmit: its timer starts anew too (RFC 9260 §7.2.4 4).
    pub(crate) fn restarts_timer(&self) -> bool {
        self.oldest && self.again == Some(LossCause::Reported)
    }
}

impl Ledger {
    /// A piece of a message leaves for the first time.
    pub(crate) fn send(&mut self, books: Books<'_>, leave: Leave, piece: Piece) -> Departure {
        let tsn = self.give_tsn(books.queue, Chunk::new(piece, ChunkState::Lost));
        let stats = &mut books.journal.stats;
        stats.new_chunks += 1;
        stats.new_bytes += u64::from(piece.len);
        self.leave(books, leave, tsn, None)
    }

    /// The chunk that [`repeats`](Self::repeats) names leaves again.
    pub(crate) fn repeat(&mut self, books: Books<'_>, leave: Leave, (origin, priority, tsn): Repeat) -> Departure {
        self.repeats.remove(origin, priority, tsn);
        let chunk = self.chunks[(tsn - self.base()) as usize];
        if let Some(before) = chunk.path {
            self.lane_mut(before).unacked -= chunk.len();
        }
        self.sent_again.note(tsn);
        let stats = &mut books.journal.stats;
        stats.retransmissions += 1;
        stats.fast_retransmissions += u64::from(chunk.lost_by == LossCause::Reported);
        stats.timeout_retransmissions += u64::from(chunk.lost_by == LossCause::Timeout);
        self.leave(books, leave, tsn, Some(chunk.lost_by))
    }

    /// What both have in common: the chunk `tsn` is in flight from now on.
    fn leave(&mut self, books: Books<'_>, leave: Leave, tsn: Tsn, again: Option<LossCause>) -> Departure {
        let Leave { now, path, stamp } = leave;
        let index = (tsn - self.base()) as usize;
        let len = self.chunks[index].len();
        let oldest = again.is_some() && self.sent_over(path).next().is_none_or(|(first, ..)| tsn < first);
        let lane = self.lane_mut(path);
        let order = lane.next_order;
        lane.next_order = order.next();
        lane.sent.push_back((tsn, order));
        lane.in_flight += len;
        lane.unacked += len;
        lane.first_sent += if again.is_none() { len } else { 0 };
        if again.is_some() {
            lane.cumack.on_repeat(tsn);
        }
        self.in_flight += len;
        self.peer_room = self.peer_room.saturating_sub(len);
        let chunk = &mut self.chunks[index];
        debug_assert_eq!(chunk.state, ChunkState::Lost, "{tsn:?} is not to be sent");
        chunk.state = ChunkState::InFlight;
        chunk.path = Some(path);
        chunk.first_path.get_or_insert(path);
        chunk.order = order;
        chunk.sent = now;
        chunk.repeats += u16::from(again.is_some());
        chunk.missing = 0;
        chunk.held_until = None;
        // It stays `copied` if it was: what is acknowledged from now on may be the copy, which
        // proves nothing of what was sent after it here.
        chunk.stamp = stamp;
        let chunk = *chunk;
        books.journal.chunk_sent(tsn, &chunk, books.queue.get(chunk.piece.message), again);
        self.check(books.queue);
        Departure { tsn, chunk, again, oldest }
    }

    /// Assigns the next TSN to `chunk`, and so to its message.
    pub(super) fn give_tsn(&mut self, queue: &mut SendQueue, chunk: Chunk) -> Tsn {
        let tsn = self.next_tsn();
        self.chunks.push_back(chunk);
        queue.get_mut(chunk.piece.message).on_chunk(tsn);
        tsn
    }

    /// The chunk `tsn`, which has just left, goes over a second path too.
    pub(crate) fn owe_copy(&mut self, tsn: Tsn) {
        self.copies.push_back(tsn);
    }

    /// Returns `true` if a copy of the chunk `tsn` has still to leave.
    pub(crate) fn owes_copy(&self, tsn: Tsn) -> bool {
        self.copies.contains(&tsn)
    }

    /// The next chunk of which a copy is owed, and the path that `carrier` names for it. Where it
    /// names none there is no copy.
    pub(crate) fn next_copy(
        &mut self,
        carrier: impl Fn(PathIndex, &Chunk) -> Option<PathIndex>,
    ) -> Option<(Tsn, PathIndex)> {
        while let Some(&tsn) = self.copies.front() {
            let chunk = self.get(tsn).filter(|chunk| chunk.is_in_flight());
            if let Some(path) = chunk.and_then(|chunk| carrier(chunk.path?, chunk)) {
                return Some((tsn, path));
            }
            self.copies.pop_front();
        }
        None
    }

    /// The copy of [`next_copy`](Self::next_copy) leaves.
    pub(crate) fn copy(&mut self) -> Option<(Tsn, Chunk)> {
        let tsn = self.copies.pop_front()?;
        let chunk = self.get_mut(tsn)?;
        (chunk.copied, chunk.copy_answers) = (true, Instant::ZERO);
        Some((tsn, *chunk))
    }

    /// What goes over two paths, and waits for an answer over another one than `path`, is to go
    /// over `path` too: it is back, and whatever was sent over it before may be lost.
    pub(crate) fn copy_urgent(&mut self, queue: &SendQueue, path: PathIndex) {
        let base = self.base();
        let urgent = self.chunks.iter().enumerate().filter(|(_, chunk)| {
            chunk.is_in_flight() && chunk.path != Some(path) && queue.get(chunk.piece.message).copied
        });
        self.copies.extend(urgent.map(|(index, _)| base + index as u64));
    }

    /// What is in flight over `path`, has a deadline for which `late` says that it should, and was
    /// not copied before, is to go over another path too: the oldest first, until `bytes` are
    /// reached. `late` is asked of all that is in flight, in its order. Returns the bytes of the
    /// copies.
    pub(crate) fn copy_late(
        &mut self,
        queue: &SendQueue,
        path: PathIndex,
        bytes: f64,
        mut late: impl FnMut(&Chunk, Priority, Instant) -> bool,
    ) -> usize {
        let (from, mut sum) = (self.copies.len(), 0);
        let mut copies = core::mem::take(&mut self.copies);
        for (tsn, _, chunk) in self.sent_over(path).filter(|(_, _, chunk)| chunk.has_message()) {
            if sum as f64 >= bytes {
                break;
            }
            let message = queue.get(chunk.piece.message);
            if message.expiry().is_some_and(|expiry| late(chunk, message.priority, expiry)) && !chunk.copied {
                copies.push_back(tsn);
                sum += chunk.len();
            }
        }
        self.copies = copies;
        for n in from..self.copies.len() {
            let tsn = self.copies[n];
            if let Some(chunk) = self.get_mut(tsn) {
                chunk.copied = true;
            }
        }
        sum
    }

    /// The fast retransmission of the chunk `tsn` is due, and waits for the code until `until`.
    pub(crate) fn hold(&mut self, tsn: Tsn, until: Instant) {
        if let Some(chunk) = self.get_mut(tsn) {
            chunk.held_until = Some(until);
        }
    }

    /// The priorities of messages changed: lost chunks stand under the rank of theirs.
    pub(crate) fn sort_repeats(&mut self, queue: &SendQueue) {
        for tsn in self.repeats.take() {
            self.queue_repeat(queue, tsn);
        }
        self.check(queue);
    }

    /// Puts the lost chunk `tsn` among those to be sent again.
    pub(super) fn queue_repeat(&mut self, queue: &SendQueue, tsn: Tsn) {
        if let Some(chunk) = self.get(tsn) {
            let (origin, priority) = (chunk.origin(), queue.get(chunk.piece.message).priority);
            self.repeats.insert(origin, priority, tsn);
        }
    }

    /// The place in the order that the last chunk over `path` got.
    pub(crate) fn last_order(&self, path: PathIndex) -> Order {
        self.next_order(path).before()
    }
}
