use crate::seq::{Seq, back};
use crate::wire::option::{AckVector, PacketState};
use std::collections::VecDeque;

/// The ECN nonces of the packets that were sent, to check the echoes in Ack Vectors (RFC 4340 §12.2).
///
/// Kept as running parities, so that the parity of any run is two look-ups.
#[derive(Debug, Default)]
pub(crate) struct NonceHistory {
    /// Parity of all nonces up to each packet, oldest first.
    parities: VecDeque<bool>,
    /// The number after the newest.
    next: Seq,
}

impl NonceHistory {
    /// Packets that are remembered; echoes about older ones are not checked.
    const MAX: usize = 4096;

    /// A packet leaves. Numbers that were skipped count as sent without a nonce.
    pub(crate) fn sent(&mut self, seq: Seq, nonce: bool) {
        if self.parities.is_empty() {
            self.next = seq;
            self.push(false); // what was before the first
        }
        let parity = self.parities.back().copied().unwrap_or(false);
        for _ in 0..self.next.distance_to(seq).min(Self::MAX as u64) {
            self.push(parity);
        }
        self.push(parity ^ nonce);
        self.next = seq.plus(1);
    }

    fn push(&mut self, parity: bool) {
        if self.parities.len() == Self::MAX {
            self.parities.pop_front();
        }
        self.parities.push_back(parity);
    }

    /// Parity of all nonces up to `seq`.
    fn parity(&self, seq: Seq) -> Option<bool> {
        let age = usize::try_from(seq.distance_to(self.next)).ok()?;
        self.parities.get(self.parities.len().checked_sub(age)?).copied()
    }

    /// Returns `true` if the nonce echo of a vector that begins at `newest` is what it must be; `None` where
    /// that is not known any more. Also gives the number at which the next vector begins.
    pub(crate) fn check(&self, newest: Seq, vector: &AckVector<'_>) -> (Option<bool>, Seq) {
        let (mut at, mut sum, mut known) = (newest, false, true);
        for run in vector.runs() {
            let below = back(at, u64::from(run.len));
            if run.state == PacketState::Received {
                match (self.parity(at), self.parity(below)) {
                    (Some(high), Some(low)) => sum ^= high ^ low,
                    _ => known = false,
                }
            }
            at = below;
        }
        (known.then_some(sum == vector.nonce), at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_are_checked_run_by_run() {
        let mut history = NonceHistory::default();
        for n in 0..10_u64 {
            history.sent(Seq::new(100 + n), n % 3 == 0); // 100, 103, 106, 109
        }
        let check = |nonce, bytes: &[u8]| history.check(Seq::new(109), &AckVector::new(nonce, bytes));
        // 109 received, 108 missing, 107 to 105 received: nonces 109 and 106.
        assert_eq!(check(false, &[0, 192, 2]), (Some(true), Seq::new(104)));
        assert_eq!(check(true, &[0, 192, 2]), (Some(false), Seq::new(104)));
        // 109 marked: its nonce is destroyed.
        assert_eq!(check(true, &[64, 192, 2]).0, Some(true));
        assert_eq!(check(true, &[63]).0, None, "older than what is remembered");
    }
}
