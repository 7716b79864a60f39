use braidcast_core::Instant;
use core::ops::Deref;
use core::time::Duration;

/// Most samples that are kept; when there would be more, every second one goes and the interval doubles.
const MAX_SAMPLES: usize = 1 << 15;

/// States of something at regular times, oldest first: 32768 at most, of a long run less often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Samples<T> {
    interval: Option<Duration>,
    next: Option<Instant>,
    kept: Vec<T>,
}

impl<T> Samples<T> {
    /// None yet, and from the first time on one each `interval`, if any at all.
    pub const fn new(interval: Option<Duration>) -> Self {
        Self { interval, next: None, kept: Vec::new() }
    }

    /// Keeps what `state` returns if a sample is due.
    pub fn take(&mut self, now: Instant, state: impl FnOnce() -> T) {
        let Some(interval) = self.interval.filter(|_| self.next.is_none_or(|at| at <= now)) else { return };
        self.kept.push(state());
        if self.kept.len() > MAX_SAMPLES {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval = Some(interval * 2);
        }
        self.next = self.interval.map(|interval| now + interval);
    }

    /// Takes no more.
    pub const fn stop(&mut self) {
        (self.interval, self.next) = (None, None);
    }

    /// When to take the next one.
    pub const fn next(&self) -> Option<Instant> {
        self.next
    }
}

impl<T> Deref for Samples<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.kept
    }
}
