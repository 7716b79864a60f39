use braidcast_core::Instant;
use core::time::Duration;

/// Most intervals that are kept apart; what comes later counts in the last.
const MAX_INTERVALS: usize = 1 << 20;

/// Bytes by interval of time: goodput in any window, and a curve to draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    interval: Duration,
    bytes: Vec<u64>,
    total: u64,
}

impl Default for Series {
    /// Intervals of 100 ms.
    fn default() -> Self {
        Self::new(Duration::from_millis(100))
    }
}

impl Series {
    /// An empty series with intervals of this length, 1 ms at least.
    pub fn new(interval: Duration) -> Self {
        Self { interval: interval.max(Duration::from_millis(1)), bytes: Vec::new(), total: 0 }
    }

    /// Adds `bytes` that arrived at `at`.
    pub fn add(&mut self, at: Instant, bytes: usize) {
        let place = self.place(at).min(MAX_INTERVALS - 1);
        if place >= self.bytes.len() {
            self.bytes.resize(place + 1, 0);
        }
        self.bytes[place] += bytes as u64;
        self.total += bytes as u64;
    }

    fn place(&self, at: Instant) -> usize {
        (u128::from(at.as_nanos()) / self.interval.as_nanos()) as usize
    }

    /// The length of an interval.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Bytes in each interval from time zero on, up to the last in which there were any.
    pub fn intervals(&self) -> &[u64] {
        &self.bytes
    }

    /// All bytes.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Bytes in the whole intervals from `from` up to `until`; both are rounded down to the start of an interval.
    pub fn between(&self, from: Instant, until: Instant) -> u64 {
        let until = self.place(until).min(self.bytes.len());
        self.bytes.get(self.place(from)..until).map_or(0, |window| window.iter().sum())
    }

    /// Bit/s in that window; 0 if it is empty.
    pub fn rate(&self, from: Instant, until: Instant) -> f64 {
        let intervals = self.place(until).saturating_sub(self.place(from));
        let seconds = intervals as f64 * self.interval.as_secs_f64();
        if intervals == 0 { 0.0 } else { self.between(from, until) as f64 * 8.0 / seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_what_arrived_in_it() {
        let mut series = Series::default();
        (0..100).for_each(|n| series.add(Instant::from_millis(n * 50), 1000));
        let ms = Instant::from_millis;
        assert_eq!(series.rate(ms(0), ms(5000)), 160_000.0);
        assert_eq!(series.between(ms(1000), ms(1100)), 2000);
        assert_eq!(series.between(ms(4900), ms(9900)), 2000);
        assert_eq!(
            (series.rate(ms(9000), ms(9900)), series.rate(ms(10), ms(20)), series.rate(ms(20), ms(10))),
            (0.0, 0.0, 0.0)
        );
        assert_eq!((series.total(), series.intervals().len()), (100_000, 50));
    }
}
