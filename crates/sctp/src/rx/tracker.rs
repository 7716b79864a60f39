use super::tsn_ring::TsnRing;
use crate::number::Tsn;
use braidcast_core::Unwrapper;

/// What a TSN turned out to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// Seen for the first time. Neither flag set: it opened a gap, or came while an older one is open.
    New {
        /// It is the next one, and nothing is missing before or after it.
        in_order: bool,
        /// It is below the highest TSN received: all or part of a gap is filled.
        filled_gap: bool,
    },
    /// Received before, or skipped by a FORWARD-TSN; reported in the next SACK.
    Duplicate,
    /// More than 65,535 above the cumulative TSN, where no SACK could report it: drop the chunk.
    OutOfWindow,
}

/// Which TSNs have arrived (RFC 9260 §6.2, §6.7).
#[derive(Debug)]
pub(crate) struct Tracker {
    unwrapper: Unwrapper<32>,
    /// Starts at the first TSN missing.
    received: TsnRing,
    duplicates: Vec<u32>,
}

impl Tracker {
    /// How many duplicates a SACK reports; further ones are not recorded (the report is a SHOULD, RFC 9260 §6.2).
    pub(crate) const MAX_DUPLICATES: usize = 32;

    /// A tracker of a peer whose first TSN is `initial_tsn`.
    pub(crate) fn new(initial_tsn: u32) -> Self {
        let unwrapper = Unwrapper::new(u64::from(initial_tsn));
        Self { received: TsnRing::new(unwrapper.highest()), unwrapper, duplicates: Vec::new() }
    }

    /// The unwrapped number that `tsn` stands for: the one nearest to the highest accepted.
    pub(crate) fn unwrap(&self, tsn: u32) -> Tsn {
        Tsn::new(self.unwrapper.peek(u64::from(tsn)))
    }

    /// Returns `true` if `tsn` was received or skipped.
    pub(crate) fn has(&self, tsn: Tsn) -> bool {
        self.received.is_set(tsn.get())
    }

    /// Records that `tsn` arrived.
    pub(crate) fn observe(&mut self, tsn: Tsn) -> Arrival {
        if self.has(tsn) {
            if self.duplicates.len() < Self::MAX_DUPLICATES {
                self.duplicates.push(tsn.wire());
            }
            return Arrival::Duplicate;
        }
        let highest = self.highest();
        if !self.received.set(tsn.get()) {
            return Arrival::OutOfWindow;
        }
        self.unwrapper.unwrap(u64::from(tsn.wire()));
        self.received.advance();
        let cumulative = self.cumulative();
        Arrival::New { in_order: tsn > highest && cumulative == tsn, filled_gap: tsn < highest }
    }

    /// The highest TSN up to which everything has arrived or was skipped: the Cumulative TSN Ack.
    pub(crate) const fn cumulative(&self) -> Tsn {
        Tsn::new(self.received.base()).before()
    }

    /// The highest TSN that arrived or was skipped.
    pub(crate) const fn highest(&self) -> Tsn {
        Tsn::new(self.received.end()).before()
    }

    /// Takes the New Cumulative TSN of a FORWARD-TSN chunk. `false`: it is out of date, and a SACK should
    /// follow since the last one may be lost (RFC 3758 §3.6).
    pub(crate) fn forward(&mut self, new_cumulative: Tsn) -> bool {
        if new_cumulative <= self.cumulative() {
            return false;
        }
        self.received.clear_below(new_cumulative.saturating_next().get());
        self.received.advance();
        self.unwrapper.unwrap(u64::from(new_cumulative.wire()));
        true
    }

    /// Replaces `out` by the lowest `max_blocks` gap ack blocks as they stand in a SACK: pairs of 16-bit
    /// offsets from the cumulative TSN (RFC 9260 §3.3.4).
    pub(crate) fn gaps(&self, out: &mut Vec<u8>, max_blocks: usize) {
        out.clear();
        let cumulative = self.cumulative().get();
        for (first, last) in self.received.runs().take(max_blocks) {
            for n in [first, last] {
                // The ring spans 65,535 numbers from cumulative + 1.
                out.extend_from_slice(&((n - cumulative) as u16).to_be_bytes());
            }
        }
    }

    /// Moves the duplicates recorded since the last call, at most [`MAX_DUPLICATES`](Self::MAX_DUPLICATES), to
    /// `out` as they stand in a SACK, replacing what it held.
    pub(crate) fn take_duplicates(&mut self, out: &mut Vec<u8>) {
        out.clear();
        out.extend(self.duplicates.drain(..).flat_map(u32::to_be_bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn arrive(tracker: &mut Tracker, tsn: u32) -> Arrival {
        let tsn = tracker.unwrap(tsn);
        tracker.observe(tsn)
    }

    #[test]
    fn a_gap_opens_shrinks_and_closes() {
        let mut tracker = Tracker::new(u32::MAX);
        let (in_order, filled) =
            (Arrival::New { in_order: true, filled_gap: false }, Arrival::New { in_order: false, filled_gap: true });
        let behind_a_gap = Arrival::New { in_order: false, filled_gap: false };
        assert_eq!(arrive(&mut tracker, u32::MAX), in_order);
        assert_eq!(arrive(&mut tracker, 0), in_order);
        assert_eq!(arrive(&mut tracker, 3), behind_a_gap);
        assert_eq!(arrive(&mut tracker, 4), behind_a_gap);
        assert_eq!(arrive(&mut tracker, 2), filled);
        assert_eq!(tracker.cumulative().wire(), 0);
        assert_eq!(arrive(&mut tracker, 1), filled);
        assert_eq!(tracker.cumulative(), tracker.highest());
        assert_eq!(tracker.highest().wire(), 4);
    }

    #[test]
    fn duplicates_are_reported_once_and_bounded() {
        let mut tracker = Tracker::new(7);
        arrive(&mut tracker, 7);
        assert_eq!(arrive(&mut tracker, 6), Arrival::Duplicate);
        assert_eq!(arrive(&mut tracker, 7), Arrival::Duplicate);
        let mut out = vec![9];
        tracker.take_duplicates(&mut out);
        assert_eq!(out, [0, 0, 0, 6, 0, 0, 0, 7]);
        tracker.take_duplicates(&mut out);
        assert!(out.is_empty());
        for _ in 0..100 {
            arrive(&mut tracker, 7);
        }
        tracker.take_duplicates(&mut out);
        assert_eq!(out.len(), 4 * Tracker::MAX_DUPLICATES);
    }

    #[test]
    fn a_far_tsn_is_refused_and_does_not_move_the_reference() {
        let mut tracker = Tracker::new(1);
        assert_eq!(arrive(&mut tracker, 65_536), Arrival::OutOfWindow);
        assert_eq!(arrive(&mut tracker, 0x7fff_0000), Arrival::OutOfWindow);
        assert_eq!(arrive(&mut tracker, 65_535), Arrival::New { in_order: false, filled_gap: false });
        let mut out = Vec::new();
        tracker.gaps(&mut out, 10);
        assert_eq!(out, [255, 255, 255, 255]);
    }

    #[test]
    fn forward_tsn_follows_the_example_of_rfc_3758() {
        let mut tracker = Tracker::new(102);
        for tsn in [102, 104, 105, 107] {
            arrive(&mut tracker, tsn);
        }
        let to = tracker.unwrap(103);
        assert!(tracker.forward(to));
        assert_eq!(tracker.cumulative().wire(), 105);
        assert!(!tracker.forward(to));
        assert_eq!(arrive(&mut tracker, 103), Arrival::Duplicate);
        assert_eq!(arrive(&mut tracker, 106), Arrival::New { in_order: false, filled_gap: true });
        let far = tracker.unwrap(9_000_000);
        assert!(tracker.forward(far));
        assert_eq!((tracker.cumulative(), tracker.highest()), (far, far));
    }

    proptest! {
        #[test]
        fn gaps_are_what_a_naive_reading_says(first: u32, max_blocks in 0_usize..20, offsets in prop::collection::vec(0_u32..200, 0..150)) {
            let mut tracker = Tracker::new(first);
            let mut seen = BTreeSet::new();
            for offset in offsets {
                let arrival = arrive(&mut tracker, first.wrapping_add(offset));
                prop_assert_eq!(arrival == Arrival::Duplicate, !seen.insert(offset));
            }
            let missing = (0..).find(|n| !seen.contains(n)).unwrap_or(0);
            prop_assert_eq!(tracker.cumulative().wire(), first.wrapping_add(missing).wrapping_sub(1));
            let mut expected = Vec::new();
            let above = |n: u32| seen.contains(&n) && n >= missing;
            for n in missing..202 {
                let offset = ((n + 1 - missing) as u16).to_be_bytes();
                if above(n) && (n == missing || !above(n - 1)) {
                    expected.extend_from_slice(&offset);
                }
                if above(n) && !above(n + 1) {
                    expected.extend_from_slice(&offset);
                }
            }
            expected.truncate(4 * max_blocks);
            let mut out = Vec::new();
            tracker.gaps(&mut out, max_blocks);
            prop_assert_eq!(out, expected);
        }
    }
}
