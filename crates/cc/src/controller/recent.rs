//! What a path delivered a moment ago, and how much that changes from one moment to the next.

use braidcast_core::{Instant, SlidingSum};
use core::time::Duration;

/// What counts as a moment: some packets of a slow link, and less than a fade of a cellular one lasts.
const MOMENT: Duration = Duration::from_millis(60);
/// Weight of a moment's rate in the mean, and of its distance from the mean in the spread: about a
/// second of acknowledgements.
const MEAN_GAIN: f64 = 1.0 / 32.0;
const SPREAD_GAIN: f64 = 1.0 / 64.0;

/// The delivery rate of the last 60 ms. Samples over a whole flight
/// ([`RateSampler`](crate::RateSampler)) still hold a fade that is over; this does not.
#[derive(Clone, Debug)]
pub(super) struct RecentRate {
    delivered: SlidingSum<10>,
    mean: f64,
    spread: f64,
}

impl RecentRate {
    pub(super) const fn new() -> Self {
        Self { delivered: SlidingSum::new(MOMENT), mean: 0.0, spread: 0.0 }
    }

    /// `bytes` were delivered, while the application had enough to send if `was_full`. The rate of
    /// the last moment, in bytes a second; 0 before the first one is over.
    pub(super) fn on_delivered(&mut self, now: Instant, bytes: usize, was_full: bool) -> f64 {
        let rate = self.delivered.add(now, bytes).unwrap_or_default();
        if was_full && rate > 0.0 {
            if self.mean == 0.0 {
                self.mean = rate;
            }
            self.spread += SPREAD_GAIN * ((rate - self.mean).abs() / self.mean - self.spread);
            self.mean += MEAN_GAIN * (rate - self.mean);
        }
        rate
    }

    /// How far a moment's rate is from the mean, as a share of that: 0.1 of a link with a fixed
    /// rate, 0.5 of a cellular one, more where a moment holds few packets.
    pub(super) const fn spread(&self) -> f64 {
        self.spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1000 bytes, so many in each of these 10 ms.
    fn play(recent: &mut RecentRate, from: u64, packets: &[usize]) -> f64 {
        let mut rate = 0.0;
        for (n, &count) in (0..).zip(packets) {
            for packet in 0..count {
                let now = Instant::from_micros((from + 10 * n) * 1000 + 10_000 * packet as u64 / count as u64);
                rate = recent.on_delivered(now, 1000, true);
            }
        }
        rate
    }

    #[test]
    fn a_fade_that_is_over_is_forgotten_at_once() {
        let mut recent = RecentRate::new();
        assert!((play(&mut recent, 0, &[10; 50]) / 1e6 - 1.0).abs() < 0.05);
        assert!(play(&mut recent, 500, &[1; 10]) < 0.2e6);
        assert!((play(&mut recent, 600, &[10; 7]) / 1e6 - 1.0).abs() < 0.05);
    }

    #[test]
    fn a_steady_link_is_told_from_one_that_changes() {
        let (mut steady, mut changing) = (RecentRate::new(), RecentRate::new());
        play(&mut steady, 0, &[5; 400]);
        let waves: Vec<usize> = (0..400).map(|n| if n / 15 % 2 == 0 { 10 } else { 1 }).collect();
        play(&mut changing, 0, &waves);
        assert!(steady.spread() < 0.05 && changing.spread() > 0.2, "{} {}", steady.spread(), changing.spread());
    }
}
