use super::Origin;
use crate::number::Order;
use crate::path::PathIndex;
use crate::tx::Piece;
use braidcast_cc::Stamp;
use braidcast_core::Instant;

/// A chunk that has a TSN and that the peer's cumulative acknowledgement has not reached. Only the ledger changes one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub(super) piece: Piece,
    pub(super) state: ChunkState,
    /// The path that it was last sent over; `None` once that is gone, or if it was never sent.
    pub(super) path: Option<PathIndex>,
    /// The path that it first left over.
    pub(super) first_path: Option<PathIndex>,
    pub(super) order: Order,
    pub(super) sent: Instant,
    pub(super) repeats: u16,
    pub(super) lost_by: LossCause,
    /// A copy of it went over another path.
    pub(super) copied: bool,
    /// Before this no copy of it can have been acknowledged.
    pub(super) copy_answers: Instant,
    pub(super) missing: u8,
    pub(super) held_until: Option<Instant>,
    /// What its path had delivered when it left, for samples of the delivery rate.
    pub(super) stamp: Stamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkState {
    /// Sent, no word yet.
    InFlight,
    /// A gap ack block covered it.
    Acked,
    /// So did one that cannot be withdrawn (NR-SACK): its message may be gone, so
    /// [`Piece::message`] means nothing any more.
    Kept,
    /// Taken for lost; waits to be sent again.
    Lost,
    /// Lost and abandoned: FORWARD-TSN will tell (RFC 3758 §3.5).
    Abandoned,
    /// Abandoned while in flight, and still counted there: nobody knows what became of it.
    AbandonedInFlight,
    /// A TSN left out that nobody was told of (`decoy`). It belongs to no message.
    Decoy,
    /// The same once the peer has seen the gap: FORWARD-TSN will tell.
    Void,
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
    /// A chunk that has not left yet.
    pub(super) fn new(piece: Piece, state: ChunkState) -> Self {
        let (path, order, sent, lost_by) = (None, Order::FIRST, Instant::ZERO, LossCause::Reported);
        let (held_until, stamp, copy_answers, first_path) = (None, Stamp::default(), Instant::ZERO, None);
        let (repeats, missing, copied) = (0, 0, false);
        Self {
            piece,
            state,
            path,
            first_path,
            order,
            sent,
            repeats,
            lost_by,
            missing,
            held_until,
            copied,
            copy_answers,
            stamp,
        }
    }

    /// The part of a message that it carries.
    pub(crate) const fn piece(&self) -> Piece {
        self.piece
    }

    /// Bytes of its payload.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.piece.len)
    }

    /// How often it was sent again.
    pub(crate) const fn repeats(&self) -> u16 {
        self.repeats
    }

    /// When it was last sent.
    pub(crate) const fn sent(&self) -> Instant {
        self.sent
    }

    /// The path that it took, and its place in the order there. `None` once that path is gone.
    pub(crate) fn place(&self) -> Option<(PathIndex, Order)> {
        Some((self.path?, self.order))
    }

    /// Until when its fast retransmission waits for the code, if it is due ([`Artx`](crate::Artx)).
    pub(crate) const fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        self.state == ChunkState::InFlight
    }

    /// Returns `true` if [`Piece::message`] means anything.
    pub(crate) const fn has_message(&self) -> bool {
        !matches!(self.state, ChunkState::Kept | ChunkState::Decoy | ChunkState::Void)
    }

    /// FORWARD-TSN may not pass it.
    pub(super) fn holds_up_forward(&self) -> bool {
        self.is_wanted() || self.state == ChunkState::Decoy
    }

    /// The peer promised to keep it: its message may be gone.
    pub(crate) fn is_kept(&self) -> bool {
        self.state == ChunkState::Kept
    }

    /// It has not arrived as far as is known, and is to.
    pub(crate) fn is_wanted(&self) -> bool {
        matches!(self.state, ChunkState::InFlight | ChunkState::Lost)
    }

    /// FORWARD-TSN may skip it.
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(self.state, ChunkState::Abandoned | ChunkState::AbandonedInFlight | ChunkState::Void)
    }

    /// In flight over `path`, in place `order` there.
    pub(super) fn is_at(&self, path: PathIndex, order: Order) -> bool {
        self.is_in_flight() && self.path == Some(path) && self.order == order
    }

    /// For the choice of the path to send it again over.
    pub(super) fn origin(&self) -> Origin {
        Origin { path: self.path, timed_out: self.lost_by != LossCause::Reported }
    }

    /// Returns `true` if reports about later chunks may make it count as lost: only once, after that the timer must
    /// (RFC 9260 §7.2.4 5).
    pub(super) fn may_be_reported(&self) -> bool {
        self.repeats == 0 || self.lost_by != LossCause::Reported
    }
}
