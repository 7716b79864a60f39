use braidcast_core::Instant;
use core::time::Duration;

/// How long data stood still for the sake of other data, over the life of an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct BlockingReport {
    /// For each message received: from its first chunk's arrival until its last one's. Holds the
    /// time that a message takes to be sent, too; 0 for messages of one chunk.
    pub assembling: Waits,
    /// For each message received: from when it was whole until its turn came in its stream (head-of-line blocking);
    /// 0 for unordered messages.
    pub ordering: Waits,
    /// Intervals in which the window that we advertise was less than a packet (`a_rwnd`; THESIS
    /// §6.2.1, receive buffer blocking).
    pub window_shut: Waits,
    /// Intervals in which data waited here because the peer's window, less what is in flight, was too small for it.
    pub held_by_peer: Waits,
}

impl BlockingReport {
    /// Nothing stood still.
    pub(crate) const NONE: Self =
        Self { assembling: Waits::NONE, ordering: Waits::NONE, window_shut: Waits::NONE, held_by_peer: Waits::NONE };
}

/// Number, sum and maximum of waiting times.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits {
    /// How many, those of no length included.
    pub count: u64,
    /// All together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

impl Waits {
    const NONE: Self = Self { count: 0, total: Duration::ZERO, longest: Duration::ZERO };

    /// The average; zero if there were none.
    pub fn mean(&self) -> Duration {
        self.total.checked_div(u32::try_from(self.count).unwrap_or(u32::MAX)).unwrap_or_default()
    }

    pub(crate) fn add(&mut self, wait: Duration) {
        self.count += 1;
        self.total += wait;
        self.longest = self.longest.max(wait);
    }
}

/// Measures for how long a condition holds each time that it does.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Intervals {
    since: Option<Instant>,
    past: Waits,
}

impl Intervals {
    /// The condition holds, or does not, from `now` on.
    pub(crate) fn observe(&mut self, now: Instant, holds: bool) {
        match self.since {
            None if holds => self.since = Some(now),
            Some(since) if !holds => {
                self.since = None;
                if now > since {
                    self.past.add(now - since);
                }
            }
            _ => {}
        }
    }

    /// The intervals that are over.
    pub(crate) const fn past(&self) -> Waits {
        self.past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_counts_once_it_is_over_and_one_of_no_length_never() {
        let mut intervals = Intervals::default();
        for (ms, holds) in [(5, false), (10, true), (12, true), (30, false), (31, true), (31, false), (40, true)] {
            intervals.observe(Instant::from_millis(ms), holds);
        }
        let ms = Duration::from_millis;
        assert_eq!(intervals.past(), Waits { count: 1, total: ms(20), longest: ms(20) });
        intervals.observe(Instant::from_millis(44), false);
        let past = intervals.past();
        assert_eq!((past.count, past.mean(), past.longest), (2, ms(12), ms(20)));
        assert_eq!(Waits::default().mean(), ms(0));
    }
}
