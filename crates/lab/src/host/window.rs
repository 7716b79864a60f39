use braidcast_core::Instant;
use core::time::Duration;

/// When a host counts: for a certain time, from the first data on, after a warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    warmup: Duration,
    duration: Duration,
    first: Option<Instant>,
}

impl Window {
    /// A window that opens `warmup` after the first data and lasts for `duration`.
    pub const fn new(warmup: Duration, duration: Duration) -> Self {
        Self { warmup, duration, first: None }
    }

    /// Data went or came at `now`; only the first time matters.
    pub fn begin(&mut self, now: Instant) {
        self.first.get_or_insert(now);
    }

    /// When the first data went or came.
    pub const fn first(&self) -> Option<Instant> {
        self.first
    }

    /// When it opens.
    pub fn opens(&self) -> Option<Instant> {
        self.first.map(|first| first + self.warmup)
    }

    /// When it closes.
    pub fn closes(&self) -> Option<Instant> {
        self.opens().map(|at| at + self.duration)
    }

    /// Returns `true` if what happens at `now` counts.
    pub fn counts(&self, now: Instant) -> bool {
        self.opens().is_some_and(|at| at <= now) && !self.is_over(now)
    }

    /// Returns `true` if it has closed.
    pub fn is_over(&self, now: Instant) -> bool {
        self.closes().is_some_and(|at| at <= now)
    }

    /// How long it lasts.
    pub const fn duration(&self) -> Duration {
        self.duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_from_the_first_data_and_the_warm_up_on() {
        let at = Instant::from_millis;
        let mut window = Window::new(Duration::from_secs(1), Duration::from_secs(10));
        assert!(!window.counts(at(0)) && !window.is_over(at(99_000)));
        window.begin(at(500));
        window.begin(at(700));
        let counts = [1_499, 1_500, 11_499, 11_500].map(|ms| window.counts(at(ms)));
        assert_eq!((counts, window.is_over(at(11_500))), ([false, true, true, false], true));
    }
}
