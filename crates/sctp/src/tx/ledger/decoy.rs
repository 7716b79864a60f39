//! TSNs that are left out, to find out who acknowledges what never came.
//!
//! A receiver that acknowledges before data comes, or what was lost, has the sender go faster than
//! the path carries (Savage et al., "TCP Congestion Control with a Misbehaving Receiver", 1999). As
//! QUIC leaves out packet numbers (RFC 9000 §21.4), so are TSNs left out here now and then. Which,
//! nobody else can know: to acknowledge one is a lie. An honest receiver reports the gap; then
//! FORWARD-TSN moves it on, as over what was abandoned (RFC 3758 §3.5). No data waits for that,
//! since none is missing.

use super::{Ack, Chunk, ChunkState, Ledger};
use crate::number::Tsn;
use crate::tx::Piece;
use crate::wire::chunk::GapBlock;
use braidcast_core::{Instant, Rng};
use core::time::Duration;

/// When the next TSN is left out, and which one is now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decoys {
    /// When it is due, and before which TSN at the latest; `None` before the first was drawn.
    next: Option<(Instant, Tsn)>,
    /// Left out, and nobody was told.
    pub(super) secret: Option<Tsn>,
    /// How many were found missing.
    passed: u32,
    pub(super) acknowledged: bool,
}

impl Decoys {
    /// Number of TSNs from which the first is drawn, so that a liar does not get far; the next ones are
    /// drawn from ever more.
    const FIRST: u64 = 32;
    const NEXT: u64 = 512;
    /// How often the range doubles.
    const DOUBLINGS: u32 = 5;
    /// At low rates time draws: 5 to 15 seconds. Windows do not grow while there is a gap, so it should be seldom.
    const PAUSE: Duration = Duration::from_secs(5);

    fn draw(&mut self, now: Instant, rng: &mut Rng, from: Tsn) {
        let range = if self.passed == 0 { Self::FIRST } else { Self::NEXT << self.passed.min(Self::DOUBLINGS) };
        let pause = Self::PAUSE + Self::PAUSE.mul_f64(2.0 * rng.f64());
        self.next = Some((now + pause, from + (range / 8 + rng.below(range))));
    }
}

impl Ledger {
    /// `piece` is about to leave, with more behind it: leaves a TSN out before it, if one is due.
    pub(crate) fn leave_out(&mut self, now: Instant, rng: &mut Rng, piece: Piece) {
        let next = self.next_tsn();
        let Some((at, before)) = self.decoys.next else { return self.decoys.draw(now, rng, next) };
        // Between messages only: fragments of one have TSNs in a row (RFC 9260 §6.9).
        if self.decoys.secret.is_some() || !piece.first || (now < at && next < before) || self.is_nearly_full() {
            return;
        }
        let nothing = Piece { len: 0, ..piece };
        self.chunks.push_back(Chunk::new(nothing, ChunkState::Decoy));
        self.decoys.secret = Some(next);
        self.decoys.draw(now, rng, next);
    }

    fn is_nearly_full(&self) -> bool {
        self.chunks.len() as u64 + 1 >= crate::rx::TsnRing::SPAN
    }

    /// Returns `true` if `ack` covers the TSN that was left out, and notes it if so.
    pub(super) fn is_lie(&mut self, cumulative: Tsn, ack: &Ack<'_>) -> bool {
        let Some(secret) = self.decoys.secret else { return false };
        let covers =
            |gap: GapBlock| (cumulative + u64::from(gap.start)..=cumulative + u64::from(gap.end)).contains(&secret);
        let lie = cumulative >= secret || ack.gaps.iter().chain(ack.kept.iter()).any(covers);
        self.decoys.acknowledged |= lie;
        lie
    }

    /// Returns `true` if the peer acknowledged what was never sent.
    pub(crate) const fn was_lied_to(&self) -> bool {
        self.decoys.acknowledged
    }

    /// The peer acknowledged what was sent behind the TSN that was left out, if `highest` says so:
    /// the gap is known, and no secret.
    pub(super) fn find_decoy(&mut self, highest: Option<Tsn>) {
        if self.decoys.secret.is_some_and(|tsn| highest > Some(tsn)) {
            self.reveal();
        }
    }

    /// FORWARD-TSN may tell of the TSN that was left out.
    pub(super) fn reveal(&mut self) {
        let Some(tsn) = self.decoys.secret.take() else { return };
        if let Some(chunk) = self.get_mut(tsn).filter(|chunk| chunk.state == ChunkState::Decoy) {
            chunk.state = ChunkState::Void;
            self.decoys.passed += 1;
        }
    }

    /// Returns `true` if the TSN that was left out is `tsn`, and all of what would have shown the gap was abandoned.
    pub(super) fn is_moot(&self, tsn: Tsn) -> bool {
        self.decoys.secret == Some(tsn) && self.get(tsn.next()).is_some_and(Chunk::is_abandoned)
    }
}
