use super::NUMDUPACK;
use crate::ccid::Arrival;
use crate::seq::{Seq, back, within};
use braidcast_core::Ecn;

/// Congestion control of acknowledgements: how many data packets each of them should cover (RFC 4341 §6.1).
#[derive(Debug)]
pub(super) struct AckRatio {
    ratio: u16,
    /// Greatest number that the peer sent.
    newest: Option<Seq>,
    /// Packets of the peer that are missing, oldest first: first number, last number, how many later ones came.
    missing: Vec<(Seq, Seq, usize)>,
    /// An acknowledgement was lost or marked in this window of data.
    congested: bool,
    /// Data packets acknowledged in this window.
    acked: u32,
    /// Windows in a row without congestion.
    good: u32,
}

impl AckRatio {
    /// The initial value of the feature.
    const INITIAL: u16 = 2;
    /// Holes that are watched at once; with more than that the path is congested anyway.
    const MAX_HOLES: usize = 16;

    pub(super) const fn new() -> Self {
        Self { ratio: Self::INITIAL, newest: None, missing: Vec::new(), congested: false, acked: 0, good: 0 }
    }

    /// The ratio for a window of `cwnd`: not beyond half of it, rounded up, but 2 is always allowed (§6.1.2).
    ///
    /// One for windows of 1 or 2, as §6.1.2 allows: Linux's receiver has no timer for
    /// acknowledgements, so it would wait for a second packet that does not leave before the
    /// timeout, for ever.
    pub(super) fn get(&self, cwnd: u32) -> u16 {
        if cwnd <= 2 { 1 } else { self.ratio.min(Self::most(cwnd)) }
    }

    fn most(cwnd: u32) -> u16 {
        cwnd.div_ceil(2).clamp(2, u32::from(u16::MAX)) as u16
    }

    /// A packet of the peer came. Its own losses show by their numbers (§6.1.1).
    pub(super) fn on_arrival(&mut self, arrival: &Arrival) {
        self.congested |= arrival.ecn == Ecn::Ce && !arrival.is_data;
        let Some(newest) = self.newest else {
            self.newest = Some(arrival.seq);
            return;
        };
        if arrival.seq <= newest {
            self.fill(arrival.seq);
            return;
        }
        for hole in &mut self.missing {
            hole.2 += 1;
        }
        let (first, last) = (newest.plus(1), back(arrival.seq, 1));
        // Unless the peer says otherwise, what is missing carried no data (§6.1.1); an NDP Count of
        // 0 says that the last did.
        if first <= last && arrival.ndp_count != Some(0) {
            self.congested |= self.missing.len() == Self::MAX_HOLES;
            self.missing.truncate(Self::MAX_HOLES - 1);
            self.missing.push((first, last, 1));
        }
        self.newest = Some(arrival.seq);
        while self.missing.first().is_some_and(|hole| hole.2 >= NUMDUPACK) {
            self.missing.remove(0);
            self.congested = true;
        }
    }

    fn fill(&mut self, seq: Seq) {
        let Some(at) = self.missing.iter().position(|&(first, last, _)| within(first, seq, last)) else { return };
        let (first, last, later) = self.missing.remove(at);
        if seq < last {
            self.missing.insert(at, (seq.plus(1), last, later));
        }
        if first < seq && self.missing.len() < Self::MAX_HOLES {
            self.missing.insert(at, (first, back(seq, 1), later + 1));
        }
    }

    /// `acked` more data packets are acknowledged; a window holds `cwnd` (§6.1.2).
    pub(super) fn on_acked(&mut self, acked: u32, cwnd: u32) {
        self.acked += acked;
        if self.acked >= cwnd {
            self.acked = 0;
            let ratio = u32::from(self.ratio);
            if core::mem::take(&mut self.congested) {
                self.good = 0;
                self.ratio = self.ratio.saturating_mul(2);
            } else {
                self.good += 1;
                // At least two, as in TCP; cwnd / (R² − R) is defined above one only.
                if ratio > 2 && self.good >= cwnd / (ratio * ratio - ratio) {
                    self.good = 0;
                    self.ratio -= 1;
                }
            }
        }
        self.ratio = self.ratio.min(Self::most(cwnd));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(ratio: &mut AckRatio, seq: u64, ecn: Ecn) {
        let arrival =
            Arrival { seq: Seq::new(seq), is_data: false, payload: 0, ccval: 0, ecn, ndp_count: None, rtt: None };
        ratio.on_arrival(&arrival);
    }

    #[test]
    fn congestion_doubles_the_ratio_and_its_absence_takes_one_off() {
        let mut ratio = AckRatio::new();
        for seq in [1, 2, 4, 5] {
            arrive(&mut ratio, seq, Ecn::NotEct);
        }
        ratio.on_acked(20, 20);
        assert_eq!(ratio.get(20), 2, "only two packets after the hole");
        arrive(&mut ratio, 6, Ecn::NotEct);
        ratio.on_acked(20, 20);
        assert_eq!(ratio.get(20), 4);
        arrive(&mut ratio, 7, Ecn::Ce);
        ratio.on_acked(20, 20);
        assert_eq!(ratio.get(20), 8);
        // cwnd / (R² − R) is below one for 20 / 56: one window is enough; for R = 4, 20 / 12 too; for 3, it takes 3.
        let ratios: Vec<_> = (0..10).map(|_| (ratio.on_acked(20, 20), ratio.get(20)).1).collect();
        assert_eq!(ratios, [7, 6, 5, 4, 3, 3, 3, 2, 2, 2]);
    }

    #[test]
    fn reordering_is_no_loss_and_a_small_window_bounds_the_ratio() {
        let mut ratio = AckRatio::new();
        for seq in [1, 4, 2, 3, 5, 6, 7] {
            arrive(&mut ratio, seq, Ecn::NotEct);
        }
        ratio.on_acked(20, 20);
        assert_eq!(ratio.get(20), 2);
        for _ in 0..5 {
            arrive(&mut ratio, 8, Ecn::Ce);
            ratio.on_acked(9, 9);
        }
        assert_eq!([20, 9, 5, 3, 2, 1].map(|cwnd| ratio.get(cwnd)), [5, 5, 3, 2, 1, 1]);
    }
}
