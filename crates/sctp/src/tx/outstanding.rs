use crate::rx::TsnRing;
use crate::tx::{Origin, Piece};
use braidcast_core::Instant;
use std::collections::VecDeque;

/// A chunk that has a TSN and that the peer's cumulative acknowledgement has not reached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(crate) piece: Piece,
    pub(crate) state: ChunkState,
    /// Where the path that it was last sent over stands among the paths.
    pub(crate) slot: u8,
    /// Place in the send order of that path.
    pub(crate) order: u64,
    /// When it was last sent.
    pub(crate) sent: Instant,
    /// How often it was sent again.
    pub(crate) repeats: u16,
    /// How it was lost last; meaningful once it was.
    pub(crate) lost_by: LossCause,
    /// A copy of it went over another path since it was last sent.
    pub(crate) copied: bool,
    /// Reports that it is missing, for [`LossDetection::Count`](crate::LossDetection).
    pub(crate) missing: u8,
    /// Its fast retransmission is due, and waits for the code until then ([`Artx`](crate::Artx)).
    pub(crate) held_until: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkState {
    /// Sent, no word yet.
    InFlight,
    /// A gap ack block covered it.
    Acked,
    /// So did one that cannot be withdrawn (NR-SACK): its message may be gone, so [`Piece::message`] means nothing any more.
    Kept,
    /// Taken for lost; waits to be sent again.
    Lost,
    /// Lost and given up: FORWARD-TSN will tell (RFC 3758 §3.5).
    Abandoned,
    /// Given up while in flight, and still counted there: nobody knows what became of it.
    AbandonedInFlight,
}

/// What made a chunk count as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LossCause {
    /// Acknowledgements of others.
    Reported,
    /// The retransmission timer.
    Timeout,
    /// The path fell silent, or left.
    Silence,
}

impl Chunk {
    /// A chunk that is about to leave over the path in `slot` for the first time.
    pub(crate) const fn new(piece: Piece, state: ChunkState, slot: u8, sent: Instant) -> Self {
        let lost_by = LossCause::Reported;
        Self { piece, state, slot, order: 0, sent, repeats: 0, lost_by, missing: 0, held_until: None, copied: false }
    }

    /// In flight on the path in `slot`, as number `order` there.
    pub(crate) fn is_at(&self, slot: usize, order: u64) -> bool {
        self.state == ChunkState::InFlight && usize::from(self.slot) == slot && self.order == order
    }

    /// FORWARD-TSN may skip it.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(self.state, ChunkState::Abandoned | ChunkState::AbandonedInFlight)
    }

    /// For the choice of the path to send it again over.
    pub(crate) fn origin(&self) -> Origin {
        Origin { slot: self.slot, timed_out: self.lost_by != LossCause::Reported }
    }

    /// Whether reports about later chunks may make it count as lost: only once, after that the timer must
    /// (RFC 9260 §7.2.4 5).
    pub(crate) fn may_be_reported(&self) -> bool {
        self.repeats == 0 || self.lost_by != LossCause::Reported
    }
}

/// The chunks that are out, by TSN, from the cumulative acknowledgement up.
#[derive(Debug)]
pub(crate) struct Outstanding {
    chunks: VecDeque<Chunk>,
    acked: TsnRing,
    /// Those of [`ChunkState::Kept`].
    kept: TsnRing,
    /// Bytes in flight over all paths.
    pub(crate) in_flight: usize,
}

impl Outstanding {
    /// Nothing is out; the next chunk gets `next_tsn`.
    pub(crate) const fn new(next_tsn: u64) -> Self {
        Self { chunks: VecDeque::new(), acked: TsnRing::new(next_tsn), kept: TsnRing::new(next_tsn), in_flight: 0 }
    }

    /// The TSN after the cumulative acknowledgement.
    pub(crate) const fn base(&self) -> u64 {
        self.acked.base()
    }

    /// The TSN that the next new chunk gets.
    pub(crate) fn next_tsn(&self) -> u64 {
        self.base() + self.chunks.len() as u64
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Whether one more chunk would lie beyond what a SACK can report.
    pub(crate) fn is_full(&self) -> bool {
        self.chunks.len() as u64 >= TsnRing::SPAN
    }

    pub(crate) fn push(&mut self, chunk: Chunk) -> u64 {
        let tsn = self.next_tsn();
        self.chunks.push_back(chunk);
        tsn
    }

    /// The chunk `tsn`, if it is out.
    pub(crate) fn get_mut(&mut self, tsn: u64) -> Option<&mut Chunk> {
        let index = tsn.checked_sub(self.base())?;
        self.chunks.get_mut(usize::try_from(index).ok()?)
    }

    /// The chunk `tsn`, if it is out.
    pub(crate) fn get(&self, tsn: u64) -> Option<&Chunk> {
        let index = tsn.checked_sub(self.base())?;
        self.chunks.get(usize::try_from(index).ok()?)
    }

    /// The chunks from the lowest TSN up.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Chunk)> {
        (self.base()..).zip(&self.chunks)
    }

    /// Takes the lowest chunk out if the cumulative acknowledgement `cumulative` covers it.
    pub(crate) fn pop_acked(&mut self, cumulative: u64) -> Option<(u64, Chunk)> {
        let tsn = self.base();
        if tsn > cumulative {
            return None;
        }
        let chunk = self.chunks.pop_front()?;
        self.acked.clear_below(tsn + 1);
        self.kept.clear_below(tsn + 1);
        Some((tsn, chunk))
    }

    /// Chunks that were given up in flight on the path in `slot` are no longer counted there; how many bytes.
    pub(crate) fn release_abandoned(&mut self, slot: usize) -> usize {
        let there =
            |chunk: &&mut Chunk| chunk.state == ChunkState::AbandonedInFlight && usize::from(chunk.slot) == slot;
        let mut released = 0;
        for chunk in self.chunks.iter_mut().filter(there) {
            chunk.state = ChunkState::Abandoned;
            released += usize::from(chunk.piece.len);
        }
        self.in_flight -= released;
        released
    }

    /// Puts into `newly` the TSNs of `from..=to` that no gap ack block covered before.
    pub(crate) fn ack_range(&mut self, from: u64, to: u64, newly: &mut Vec<u64>) {
        let to = to.min(self.next_tsn().saturating_sub(1));
        self.acked.set_range(from, to, |tsn| newly.push(tsn));
    }

    /// Puts into `newly` the TSNs of `from..=to` that no non-renegable gap ack block covered before.
    pub(crate) fn keep_range(&mut self, from: u64, to: u64, newly: &mut Vec<u64>) {
        let to = to.min(self.next_tsn().saturating_sub(1));
        self.kept.set_range(from, to, |tsn| newly.push(tsn));
    }

    /// The path in `slot` is gone; what went over it last refers to no path any more.
    pub(crate) fn forget_slot(&mut self, slot: usize) {
        for chunk in self.chunks.iter_mut().filter(|chunk| usize::from(chunk.slot) == slot) {
            chunk.slot = Origin::NO_SLOT;
        }
    }

    /// Forgets all gap acknowledgements that can be withdrawn and calls `each` for the chunks that had one: the peer withdrew them
    /// (RFC 9260 §6.2.1 D iii), or seems to have.
    pub(crate) fn renege(&mut self, mut each: impl FnMut(u64, &mut Chunk)) {
        let base = self.base();
        self.acked = TsnRing::new(base);
        for (tsn, chunk) in (base..).zip(&mut self.chunks) {
            match chunk.state {
                ChunkState::Acked => each(tsn, chunk),
                ChunkState::Kept => {
                    self.acked.set(tsn);
                }
                ChunkState::InFlight | ChunkState::Lost | ChunkState::Abandoned | ChunkState::AbandonedInFlight => {}
            }
        }
    }
}
