use super::{Books, Chunk, ChunkState, Ledger, LossCause};
use crate::api::CwndUpdate;
use crate::number::{Order, Tsn};
use crate::path::PathIndex;
use crate::rx::TsnRing;
use crate::tx::{MessageKey, SendQueue};
use crate::wire::chunk::{GapBlock, GapBlocks};
use braidcast_cc::Stamp;
use braidcast_core::Instant;

/// What a SACK says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    /// All up to here arrived, as on the wire.
    pub(crate) cumulative: u32,
    /// Bytes that the peer has room for, what is in flight included.
    pub(crate) window: u32,
    /// What arrived above it, and may be withdrawn.
    pub(crate) gaps: GapBlocks<'a>,
    /// What arrived above it, and may not (NR-SACK).
    pub(crate) kept: GapBlocks<'a>,
}

/// What an acknowledgement brought; kept between calls so that nothing is allocated.
#[derive(Debug, Default)]
pub(crate) struct AckReport {
    /// What was acknowledged for the first time, in the order in which the SACK names it.
    pub(crate) chunks: Vec<Acked>,
    /// Of each path, by its index: bytes in flight before.
    pub(crate) in_flight_before: Vec<usize>,
    /// Of each path, by its index: the cumulative acknowledgement passed what last went over it.
    pub(crate) passed: Vec<bool>,
    /// The cumulative acknowledgement moved.
    pub(crate) moved: bool,
    /// The highest TSN newly acknowledged.
    pub(crate) highest: Option<Tsn>,
}

/// A chunk that was acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acked {
    pub(crate) tsn: Tsn,
    /// The path that it was last sent over, if there still is one, and its place in the order
    /// there.
    pub(crate) place: Option<(PathIndex, Order)>,
    /// Bytes of payload.
    pub(crate) len: usize,
    /// When it was last sent.
    pub(crate) sent: Instant,
    /// It was sent more than once.
    pub(crate) repeated: bool,
    /// By the cumulative acknowledgement, not by a gap block.
    pub(crate) cumulative: bool,
    /// A copy of it went over another path since it was last sent, and cannot have been
    /// acknowledged before then.
    pub(crate) copied: Option<Instant>,
    /// What the path had delivered when it left.
    pub(crate) stamp: Stamp,
    pub(crate) was: Was,
}

/// What a chunk was when its acknowledgement came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Was {
    InFlight {
        /// Its path's window waited for it ([`CwndUpdate`]).
        awaited: bool,
    },
    /// Taken for lost; it was in flight after all.
    Lost(LossCause),
    /// Abandoned while in flight: it earns no credit (PRCMT fig. 6, RFC 3758 §3.5 A2).
    GivenUp,
}

impl Ledger {
    /// Gap blocks with which the smallest packet may be full.
    const FULL: usize = 64;

    /// The peer acknowledged (RFC 9260 §6.2.1; NR-SACK). Whether that was news: not of what was
    /// never sent, nor overtaken by later news on another return path.
    pub(crate) fn acknowledge(&mut self, mut books: Books<'_>, ack: &Ack<'_>, report: &mut AckReport) -> bool {
        let cumulative = self.unwrap(ack.cumulative);
        if cumulative >= self.next_tsn() {
            return false; // Beyond what was ever sent: nonsense.
        }
        if cumulative.next() < self.base() {
            books.journal.stats.overtaken_sacks += 1;
            return false; // Older than what is known (RFC 9260 §6.2.1 D i).
        }
        if self.is_lie(cumulative, ack) {
            return false;
        }
        self.unwrapper.unwrap(u64::from(ack.cumulative));
        report.moved = cumulative >= self.base();
        report.chunks.clear();
        report.in_flight_before.clear();
        report.in_flight_before.extend(self.lanes.iter().map(|lane| lane.in_flight));
        report.passed.clear();
        report.passed.resize(self.lanes.len(), false);
        self.find_cumacks();
        let mut newly = core::mem::take(&mut self.newly);
        newly.clear();
        let last = self.next_tsn().get().saturating_sub(1);
        let blocks = |gaps: GapBlocks<'_>, each: &mut dyn FnMut(u64, u64)| {
            // Blocks that lie apart cover no more than the window; those of a peer that has us walk
            // over it again and again are cut off.
            let mut budget = 2 * TsnRing::SPAN;
            for GapBlock { start, end } in gaps.iter().filter(|gap| gap.start <= gap.end) {
                let Some(left) = budget.checked_sub(u64::from(end - start) + 1) else { break };
                budget = left;
                each(cumulative.get() + u64::from(start), (cumulative.get() + u64::from(end)).min(last));
            }
        };
        self.acked.set_range(self.acked.base(), cumulative.get(), |tsn| newly.push(tsn));
        let mut covered = |from, to| self.acked.set_range(from, to, |tsn| newly.push(tsn));
        blocks(ack.gaps, &mut covered);
        blocks(ack.kept, &mut covered);
        for tsn in newly.iter().copied().map(Tsn::new) {
            self.chunk_acked(&mut books, tsn, tsn <= cumulative, report);
        }
        let brings_news = report.moved || !newly.is_empty();
        report.highest = newly.iter().copied().max().map(Tsn::new);
        self.find_decoy(report.highest);
        while self.base() <= cumulative {
            let path = self.pop(books.queue).and_then(|chunk| chunk.path);
            if let Some(passed) = path.and_then(|path| report.passed.get_mut(path.get())) {
                *passed = true;
            }
        }
        newly.clear();
        blocks(ack.kept, &mut |from, to| self.kept.set_range(from, to, |tsn| newly.push(tsn)));
        newly.iter().for_each(|&tsn| self.chunk_kept(books.queue, Tsn::new(tsn)));
        self.newly = newly;
        if brings_news || !self.is_overtaken(ack) {
            self.peer_window = ack.window as usize;
        }
        self.peer_room = self.peer_window.saturating_sub(self.in_flight);
        if self.chunks.is_empty() {
            for lane in &mut self.lanes {
                lane.sent.clear();
                lane.cumack.clear();
            }
        }
        self.advance_forward();
        self.check(books.queue);
        true
    }

    /// Returns `true` if an acknowledgement that brought nothing new lacks something that an
    /// earlier one named: that one overtook it on another return path, and its window is the newer
    /// one.
    ///
    /// One with many blocks may leave out the highest for want of room (RFC 9260 §6.7), and is
    /// taken for the newest.
    fn is_overtaken(&self, ack: &Ack<'_>) -> bool {
        if ack.gaps.len() + ack.kept.len() >= Self::FULL {
            return false;
        }
        let named = ack.gaps.iter().chain(ack.kept.iter()).filter(|gap| gap.start <= gap.end);
        let named: u64 = named.map(|GapBlock { start, end }| u64::from(end - start) + 1).sum();
        let known: u64 = self.acked.runs().map(|(first, last)| last - first + 1).sum();
        named < known
    }

    /// Drops what is not out any more from the front of the send order of `path`. Returns whether
    /// there was any: the oldest chunk was acknowledged.
    pub(crate) fn oldest_is_gone(&mut self, path: PathIndex) -> bool {
        let mut any = false;
        while let Some((tsn, order)) = self.lane(path).and_then(|lane| lane.sent.front()).copied() {
            if self.get(tsn).is_some_and(|chunk| chunk.is_at(path, order)) {
                break;
            }
            self.lane_mut(path).sent.pop_front();
            any = true;
        }
        any
    }

    /// Has each path look for what it waits to see acknowledged, among its chunks in flight.
    fn find_cumacks(&mut self) {
        if self.window_waits_for == CwndUpdate::Plain {
            return;
        }
        for index in 0..self.lanes.len() {
            let path = PathIndex::new(index);
            let mut cumack = core::mem::take(&mut self.lanes[index].cumack);
            // Chunks sent once leave in the order of their TSNs.
            let sent_once = || self.sent_over(path).find(|(.., chunk)| chunk.repeats == 0).map(|(tsn, ..)| tsn);
            cumack.find(self.window_waits_for, sent_once);
            self.lanes[index].cumack = cumack;
        }
    }

    /// `tsn` was acknowledged for the first time; `cumulative`: not by a gap block.
    fn chunk_acked(&mut self, books: &mut Books<'_>, tsn: Tsn, cumulative: bool, report: &mut AckReport) {
        // One that was left out stays what it is until it is popped.
        let Some(chunk) = self.get_mut(tsn).filter(|chunk| chunk.has_message()) else { return };
        let state = core::mem::replace(&mut chunk.state, ChunkState::Acked);
        let chunk = *chunk;
        let len = chunk.len();
        let was = match state {
            ChunkState::InFlight => {
                self.in_flight -= len;
                books.journal.stats.acked_bytes += len as u64;
                let lane = chunk.path.map(|path| self.lane_mut(path));
                let awaited = lane.is_some_and(|lane| {
                    lane.in_flight -= len;
                    lane.cumack.on_acked(tsn, cumulative)
                });
                Was::InFlight { awaited }
            }
            ChunkState::Lost => {
                let priority = books.queue.get(chunk.piece.message).priority;
                self.repeats.remove(chunk.origin(), priority, tsn);
                books.journal.stats.acked_bytes += len as u64;
                Was::Lost(chunk.lost_by)
            }
            ChunkState::AbandonedInFlight => {
                self.in_flight -= len;
                if let Some(path) = chunk.path {
                    self.lane_mut(path).in_flight -= len;
                }
                self.forward.no_longer_given_up(tsn);
                Was::GivenUp
            }
            ChunkState::Abandoned => return self.forward.no_longer_given_up(tsn),
            ChunkState::Acked | ChunkState::Kept | ChunkState::Decoy | ChunkState::Void => return,
        };
        books.journal.chunk_acked(tsn, &chunk, matches!(was, Was::Lost(_)));
        let &Chunk { sent, stamp, .. } = &chunk;
        let copied = chunk.copied.then_some(chunk.copy_answers);
        let (place, repeated) = (chunk.place(), chunk.repeats > 0);
        report.chunks.push(Acked { tsn, place, len, sent, repeated, cumulative, copied, stamp, was });
    }

    /// The peer has `tsn`, above a gap, and promised not to drop it: nothing of it need be held
    /// here.
    fn chunk_kept(&mut self, queue: &mut SendQueue, tsn: Tsn) {
        let Some(chunk) = self.get_mut(tsn).filter(|chunk| chunk.state == ChunkState::Acked) else { return };
        chunk.state = ChunkState::Kept;
        let chunk = *chunk;
        if let Some(path) = chunk.path {
            self.lane_mut(path).non_renegable += chunk.len();
        }
        release_piece(queue, chunk.piece.message);
    }

    /// Takes the lowest chunk out: the cumulative acknowledgement covers it, or nothing that is out
    /// is of use any more.
    pub(super) fn pop(&mut self, queue: &mut SendQueue) -> Option<Chunk> {
        let tsn = self.base();
        let chunk = self.chunks.pop_front()?;
        self.acked.clear_below(tsn.get() + 1);
        self.kept.clear_below(tsn.get() + 1);
        if chunk.is_abandoned() {
            self.forward.no_longer_given_up(tsn);
        }
        self.forward.end = self.forward.end.max(tsn.next());
        if let Some(path) = chunk.path {
            let lane = self.lane_mut(path);
            lane.unacked -= chunk.len();
            lane.non_renegable -= if chunk.is_kept() { chunk.len() } else { 0 };
        }
        if chunk.has_message() {
            release_piece(queue, chunk.piece.message);
        }
        Some(chunk)
    }
}

/// A chunk of the message `key` need not be held any more.
fn release_piece(queue: &mut SendQueue, key: MessageKey) {
    if queue.get_mut(key).chunk_gone() {
        queue.settle_message(key);
    }
}
