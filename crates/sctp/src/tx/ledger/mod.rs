//! What is out: every chunk that has a TSN and that the peer's cumulative acknowledgement has not reached.
//!
//! The ledger's verbs are the only transitions of a chunk, and keep all sums: bytes in flight over each path, what the
//! peer has room for, what is to be sent again, which chunks owe a copy, how far FORWARD-TSN may go.
//!
//! ```text
//!  send ──> InFlight ──acknowledge──> Acked ──acknowledge (NR-SACK)──> Kept ──acknowledge (cumulative)──> out of it
//!            │ ^  │                     │ withdraw_gap_acks
//!       lose │ │  │ abandon             v
//!            v │  └────────> AbandonedInFlight ──acknowledge──> Acked
//!           Lost ──abandon──> Abandoned <──lose_all──┘
//!            └─repeat─> InFlight
//!
//!  leave_out ──> Decoy ──acknowledge of what lies behind──> Void ──acknowledge (cumulative)──> out of it
//! ```
//!
//! In builds with debug assertions each verb recounts all sums (`check`).

mod abandon;
mod acknowledge;
#[cfg(debug_assertions)]
mod check;
mod chunk;
mod cumack;
mod decoy;
mod everywhere;
mod forward;
mod lane;
mod lose;
mod repeats;
mod send;
mod sent_again;
#[cfg(test)]
mod tests;

pub(crate) use acknowledge::{Ack, AckReport, Acked, Was};
pub(crate) use chunk::{Chunk, ChunkState, LossCause};
pub(crate) use repeats::{Origin, Repeat};
pub(crate) use send::{Departure, Leave};

use crate::api::{Abandonment, CwndUpdate, Options};
use crate::journal::Journal;
use crate::number::{Order, Tsn};
use crate::path::PathIndex;
use crate::rx::TsnRing;
use crate::tx::{MessageKey, SendQueue};
use braidcast_core::Unwrapper;
use braidcast_queue::Why;
use cumack::PseudoCumack;
use decoy::Decoys;
use everywhere::Everywhere;
use forward::Forward;
use lane::Lane;
use repeats::Repeats;
use sent_again::SentAgain;
use std::collections::VecDeque;

/// What the ledger's verbs change beside the ledger: the messages whose parts are out, and what is told of them.
pub(crate) struct Books<'a> {
    pub(crate) queue: &'a mut SendQueue,
    pub(crate) journal: &'a mut Journal,
}

impl Books<'_> {
    /// Abandons a message of which nothing was cut.
    pub(crate) fn give_up_unsent(&mut self, key: MessageKey) {
        self.queue.drop_rest(key);
        self.journal.abandoned(self.queue.get(key), None, true);
        self.queue.release(key);
    }

    /// Counts what the queue before the streams discarded when it took a message, and informs the application.
    pub(crate) fn account_for_discarded(&mut self) {
        while let Some((key, why)) = self.queue.next_discarded() {
            self.forget_discarded(key, why);
        }
    }

    /// That queue discarded the message `key`, of which nothing was cut.
    fn forget_discarded(&mut self, key: MessageKey, why: Why) {
        self.journal.abandoned(self.queue.get(key), Some(why), true);
        self.queue.forget(key);
    }
}

/// The chunks that are out, by TSN, from the cumulative acknowledgement up, and all that follows from their states.
///
/// Memory: about 100 bytes for each chunk, 65,535 at most, as a SACK can report no more.
#[derive(Debug)]
pub(crate) struct Ledger {
    window_waits_for: CwndUpdate,
    abandonment: Abandonment,
    chunks: VecDeque<Chunk>,
    acked: TsnRing,
    /// Those of [`ChunkState::Kept`].
    kept: TsnRing,
    /// Unwraps what the peer acknowledges; its reference is the highest cumulative acknowledgement.
    unwrapper: Unwrapper<32>,
    /// By [`PathIndex`].
    lanes: Vec<Lane>,
    in_flight: usize,
    /// What the peer has room for beside what is in flight.
    peer_room: usize,
    /// What it last said that it has room for.
    peer_window: usize,
    repeats: Repeats,
    sent_again: SentAgain,
    /// Chunks of which a copy is to go over a second path.
    copies: VecDeque<Tsn>,
    everywhere: Everywhere,
    forward: Forward,
    decoys: Decoys,
    /// Kept so that acknowledgements do not allocate.
    newly: Vec<u64>,
    #[cfg(debug_assertions)]
    recount: check::Recount,
}

impl Ledger {
    /// Nothing is out; the next chunk gets the TSN `first`. The peer has room for `peer_window` bytes.
    pub(crate) fn new(options: &Options, first: u32, peer_window: usize) -> Self {
        // The number before it counts as acknowledged, so that it is the reference.
        let unwrapper = Unwrapper::<32>::new(u64::from(first.wrapping_sub(1)));
        let next = Tsn::new(unwrapper.highest() + 1);
        Self {
            window_waits_for: options.papers.cwnd_update,
            abandonment: options.papers.abandonment,
            chunks: VecDeque::new(),
            acked: TsnRing::new(next.get()),
            kept: TsnRing::new(next.get()),
            unwrapper,
            lanes: Vec::new(),
            in_flight: 0,
            peer_room: peer_window,
            peer_window,
            repeats: Repeats::default(),
            sent_again: SentAgain::default(),
            copies: VecDeque::new(),
            everywhere: Everywhere::default(),
            forward: Forward::new(next),
            decoys: Decoys::default(),
            newly: Vec::new(),
            #[cfg(debug_assertions)]
            recount: check::Recount::default(),
        }
    }

    /// The TSN after the cumulative acknowledgement.
    pub(crate) const fn base(&self) -> Tsn {
        Tsn::new(self.acked.base())
    }

    /// The TSN that the next new chunk gets.
    pub(crate) fn next_tsn(&self) -> Tsn {
        self.base() + self.chunks.len() as u64
    }

    /// The TSN that `wire` stands for in a chunk that speaks of what we sent.
    pub(crate) fn unwrap(&self, wire: u32) -> Tsn {
        Tsn::new(self.unwrapper.peek(u64::from(wire)))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns `true` if one more chunk would lie beyond what a SACK can report.
    pub(crate) fn is_full(&self) -> bool {
        self.chunks.len() as u64 >= TsnRing::SPAN
    }

    /// The chunk `tsn`, if it is out.
    pub(crate) fn get(&self, tsn: Tsn) -> Option<&Chunk> {
        self.chunks.get(tsn.index_from(self.base())?)
    }

    fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Chunk> {
        self.chunks.get_mut(tsn.index_from(self.base())?)
    }

    /// The chunks from the lowest TSN up.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Tsn, &Chunk)> {
        self.base().until(self.next_tsn()).zip(&self.chunks)
    }

    /// Bytes in flight over all paths.
    pub(crate) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Bytes in flight over `path`.
    pub(crate) fn in_flight_over(&self, path: PathIndex) -> usize {
        self.lane(path).map_or(0, |lane| lane.in_flight)
    }

    /// Bytes last sent over `path` that must be kept for it, as the peer may yet drop them.
    pub(crate) fn held_for(&self, path: PathIndex) -> usize {
        self.lane(path).map_or(0, |lane| lane.unacked - lane.non_renegable)
    }

    /// The place in the send order of `path` that the next chunk gets.
    pub(crate) fn next_order(&self, path: PathIndex) -> Order {
        self.lane(path).map_or(Order::FIRST, |lane| lane.next_order)
    }

    /// What the peer has room for beside what is in flight, bytes.
    pub(crate) const fn peer_room(&self) -> usize {
        self.peer_room
    }

    /// Returns `true` if more is in flight than the peer last said that it has room for: then it may have
    /// dropped it (RFC 9260 §6.1 A).
    pub(crate) const fn probes_window(&self) -> bool {
        self.in_flight > self.peer_window
    }

    /// Returns `true` if `tsn` was sent again of late.
    pub(crate) fn was_sent_again(&self, tsn: Tsn) -> bool {
        self.sent_again.has(tsn)
    }

    /// Returns `true` if nothing waits to be sent again.
    pub(crate) fn has_no_repeats(&self) -> bool {
        self.repeats.is_empty()
    }

    /// The first chunk to be sent again of in each direction in which chunks were lost.
    pub(crate) fn repeats(&self) -> impl Iterator<Item = Repeat> + '_ {
        self.repeats.heads()
    }

    /// What is in flight over `path`, oldest first.
    pub(crate) fn sent_over(
        &self,
        path: PathIndex,
    ) -> impl DoubleEndedIterator<Item = (Tsn, Order, &Chunk)> + Clone + '_ {
        let live = move |&(tsn, order): &(Tsn, Order)| {
            Some((tsn, order, self.get(tsn).filter(|chunk| chunk.is_at(path, order))?))
        };
        self.lane(path).into_iter().flat_map(|lane| &lane.sent).filter_map(live)
    }

    /// Returns `true` if the peer has yet to acknowledge a FORWARD-TSN: the F-timer runs, and the
    /// cumulative acknowledgement may stand still though all else has arrived.
    pub(crate) fn is_forwarding(&self) -> bool {
        self.forward.point >= Some(self.base())
    }

    /// Where FORWARD-TSN moves the peer on to: all up to there is acknowledged or abandoned.
    pub(crate) const fn forward_point(&self) -> Option<Tsn> {
        self.forward.point
    }

    /// Returns `true` if anything abandoned lies in front of all that may still arrive, so that FORWARD-TSN is of use.
    pub(crate) const fn wants_forward(&self) -> bool {
        self.forward.given_up > 0
    }

    /// Returns `true` if the point moved since the last call: the peer is to hear of it.
    pub(crate) const fn take_forward_news(&mut self) -> bool {
        core::mem::replace(&mut self.forward.moved, false)
    }

    fn lane(&self, path: PathIndex) -> Option<&Lane> {
        self.lanes.get(path.get())
    }

    fn lane_mut(&mut self, path: PathIndex) -> &mut Lane {
        if self.lanes.len() <= path.get() {
            self.lanes.resize_with(path.get() + 1, Lane::default);
        }
        &mut self.lanes[path.get()]
    }

    /// Recounts nothing; with debug assertions see `check`.
    #[cfg(not(debug_assertions))]
    const fn check(&self, _: &SendQueue) {}

    /// Looks at the chunks behind those that [`Forward`] has passed.
    fn advance_forward(&mut self) {
        while let Some(chunk) = self.get(self.forward.end) {
            if self.is_moot(self.forward.end) {
                self.reveal();
            } else if chunk.holds_up_forward() {
                break;
            } else {
                let given_up = chunk.is_abandoned();
                self.forward.pass(self.forward.end, given_up);
            }
        }
    }
}
