//! RED: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993, figure 2; with the "gentle" slope of ns-2 (Floyd 2000).

use super::verdict::Verdict;
use braidcast_core::{Instant, Rng};

/// Bytes of the packet by whose time on the wire an idle queue's average falls (ns-2's `mean_pktsize_`).
const TYPICAL_BYTES: f64 = 500.0;

/// Parameters of RED. Lengths are in packets, the one being sent included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Red {
    /// Below this average length nothing is dropped.
    pub min: f64,
    /// From this average length on all is dropped, unless `gentle`.
    pub max: f64,
    /// The probability of a drop, 0 to 1, as the average reaches `max`.
    pub max_p: f64,
    /// The weight of the present length in the average, 0 to 1.
    pub weight: f64,
    /// Between `max` and twice `max` the probability rises from `max_p` to 1 instead of jumping there.
    pub gentle: bool,
    /// Packets that understand ECN are marked instead of dropped while the average is below `max`; above it they
    /// are dropped like others (RFC 3168 §7).
    pub ecn: bool,
}

impl Red {
    /// RED between these average lengths with the paper's weight of 0.002, neither gentle nor marking.
    pub const fn new(min: f64, max: f64, max_p: f64) -> Self {
        Self { min, max, max_p, weight: 0.002, gentle: false, ecn: false }
    }

    /// The probability p_b at an average length, before it is spread out by the count of packets let through.
    fn probability(&self, average: f64) -> f64 {
        if average < self.min {
            0.0
        } else if average < self.max {
            self.max_p * (average - self.min) / (self.max - self.min)
        } else if self.gentle && average < 2.0 * self.max {
            self.max_p + (1.0 - self.max_p) * (average - self.max) / self.max
        } else {
            1.0
        }
    }
}

/// RED at work.
#[derive(Debug)]
pub(super) struct RedState {
    red: Red,
    average: f64,
    /// Packets since the last drop or mark; `None` while the average is below `min` (the paper's −1).
    count: Option<u64>,
    /// Since when the queue has been empty.
    idle: Option<Instant>,
    rng: Rng,
}

impl RedState {
    pub(super) fn new(red: Red, rng: Rng) -> Self {
        Self { red, average: 0.0, count: None, idle: Some(Instant::ZERO), rng }
    }

    /// The queue became empty.
    pub(super) fn emptied(&mut self, now: Instant) {
        self.idle = Some(now);
    }

    /// A packet arrives at a queue of `packets` on a link of this rate.
    pub(super) fn arrival(&mut self, now: Instant, packets: usize, bits_per_second: Option<u64>, ect: bool) -> Verdict {
        self.estimate(now, packets, bits_per_second);
        let p_b = self.red.probability(self.average);
        if p_b <= 0.0 {
            self.count = None;
            return Verdict::Pass;
        }
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        // p_a = p_b / (1 − count · p_b) makes the gaps between drops uniform (§VII).
        let spread = 1.0 - count as f64 * p_b;
        let p_a = if spread > p_b { p_b / spread } else { 1.0 };
        if !self.rng.chance(p_a) {
            return Verdict::Pass;
        }
        self.count = Some(0);
        let mark = ect && self.red.ecn && self.average < self.red.max;
        if mark { Verdict::Mark } else { Verdict::Drop }
    }

    /// Moves the average on by one arrival, or by as many typical packets as an idle link could have sent.
    fn estimate(&mut self, now: Instant, packets: usize, bits_per_second: Option<u64>) {
        let keep = 1.0 - self.red.weight;
        self.average = match (self.idle.take(), bits_per_second) {
            (None, _) => keep.mul_add(self.average, self.red.weight * packets as f64),
            (Some(_), None) => 0.0,
            (Some(since), Some(rate)) => {
                let sent = (now - since).as_secs_f64() * rate as f64 / (8.0 * TYPICAL_BYTES);
                self.average * libm::pow(keep, sent)
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn state(red: Red) -> RedState {
        RedState::new(red, Rng::from_seed(1))
    }

    /// Shares of packets dropped and marked once the average has settled at `packets`, and the gaps between them.
    fn settled(red: Red, packets: usize, ect: bool) -> (f64, f64, Vec<u64>) {
        let mut state = state(Red { weight: 1.0, ..red });
        state.idle = None;
        let (mut dropped, mut marked, mut gaps, mut last) = (0, 0, Vec::new(), 0);
        for number in 0..100_000 {
            match state.arrival(Instant::ZERO, packets, None, ect) {
                Verdict::Pass => continue,
                Verdict::Mark => marked += 1,
                Verdict::Drop => dropped += 1,
            }
            gaps.push(number - last);
            last = number;
        }
        (f64::from(dropped) / 1e5, f64::from(marked) / 1e5, gaps)
    }

    #[test]
    fn the_average_moves_as_computed_by_hand() {
        let mut state = state(Red { weight: 0.25, ..Red::new(5.0, 15.0, 0.1) });
        let mut average = |ms, packets| {
            state.arrival(Instant::from_millis(ms), packets, Some(8_000), false);
            state.average
        };
        // The first finds the queue idle; then 0.75 · avg + 0.25 · q.
        assert_eq!([average(1, 0), average(1, 4), average(1, 8), average(1, 4)], [0.0, 1.0, 2.75, 3.0625]);
        // 1 s idle at 8 kbit/s is two packets of 500 bytes.
        state.emptied(Instant::from_millis(1));
        state.estimate(Instant::from_millis(1_001), 0, Some(8_000));
        assert!((state.average - 3.0625 * 0.75 * 0.75).abs() < 1e-12);
        state.emptied(Instant::from_millis(1_001));
        state.estimate(Instant::from_millis(1_001) + Duration::from_secs(3600), 0, None);
        assert_eq!(state.average, 0.0);
    }

    #[test]
    fn the_slope_of_the_probability_is_the_papers() {
        let red = Red::new(5.0, 15.0, 0.1);
        assert_eq!([4.9, 5.0, 15.0, 31.0].map(|average| red.probability(average)), [0.0, 0.0, 1.0, 1.0]);
        assert!((red.probability(10.0) - 0.05).abs() < 1e-12);
        let gentle = Red { gentle: true, ..red };
        assert!((gentle.probability(15.0) - 0.1).abs() < 1e-12);
        assert!((gentle.probability(22.5) - 0.55).abs() < 1e-12);
        assert_eq!(gentle.probability(30.0), 1.0);
    }

    #[test]
    fn gaps_between_drops_are_uniform_and_their_mean_is_the_papers() {
        // p_b = 0.05: after n packets p_a = 1 / (20 − n), so gaps are uniform in 1 ..= 19 and 10 on average.
        let (dropped, marked, gaps) = settled(Red::new(5.0, 15.0, 0.1), 10, true);
        assert_eq!(marked, 0.0);
        assert!((dropped - 0.1).abs() < 0.001, "{dropped}");
        assert_eq!((gaps.iter().skip(1).min(), gaps.iter().skip(1).max()), (Some(&1), Some(&19)));
        let short = gaps.iter().filter(|gap| **gap <= 9).count() as f64 / gaps.len() as f64;
        assert!((short - 9.0 / 19.0).abs() < 0.02, "{short}");
    }

    #[test]
    fn marks_take_the_place_of_drops_below_the_upper_threshold_only() {
        let red = Red { ecn: true, gentle: true, ..Red::new(5.0, 15.0, 0.1) };
        let (dropped, marked, _) = settled(red, 10, true);
        assert!(dropped == 0.0 && marked > 0.09, "{marked}");
        assert_eq!(settled(red, 10, false).1, 0.0);
        assert_eq!(settled(red, 20, true).1, 0.0);
        assert_eq!(settled(red, 30, true).0, 1.0);
        assert_eq!(settled(red, 4, true).0, 0.0);
    }
}
