//! How long the way to the other end takes, as far as round trips tell.

use crate::clock::push_smallest;
use braidcast_core::Instant;
use std::collections::VecDeque;
use std::time::Duration;

/// Half of the shortest round trip of the last 30 seconds, and all by which the latest is longer.
///
/// What is more than the shortest was spent in queues, and these stand before data rather than before acknowledgements. If not,
/// datagrams are discarded a bit early, and fresher ones go in their place. Half of the round trip errs the other way: what
/// is sent then is what comes just too late (decision 12).
#[derive(Debug, Default)]
pub(super) struct Way {
    /// In ns; ascending, so that the first is the shortest.
    shortest: VecDeque<(Instant, i64)>,
}

impl Way {
    /// The way, now that a round trip takes `rtt`.
    pub(super) fn observe(&mut self, now: Instant, rtt: Duration) -> Duration {
        let nanos = i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX);
        push_smallest(&mut self.shortest, now, nanos);
        let shortest = self.shortest.front().map_or(nanos, |(_, shortest)| *shortest);
        rtt.saturating_sub(Duration::from_nanos(shortest.unsigned_abs()) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_queues_add_is_on_the_way_there() {
        let mut way = Way::default();
        let mut after = |ms, rtt| way.observe(Instant::from_millis(ms), Duration::from_millis(rtt)).as_millis();
        assert_eq!(after(1_000, 100), 50);
        assert_eq!(after(2_000, 180), 130);
        assert_eq!(after(3_000, 60), 30);
        assert_eq!(after(4_000, 100), 70);
        assert_eq!(after(34_001, 100), 50, "the route may be another one by now");
        assert_eq!(after(500, 90), 45, "a clock that steps back is no harm");
    }
}
