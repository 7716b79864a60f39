//! How long the way to the receiver takes, as this connection measures it.

use super::Connection;
use crate::api::OneWayDelay;
use braidcast_cc::{QueueingDelay, RoundTrips};
use braidcast_core::Instant;
use core::time::Duration;

/// A measurement that is older tells nothing of queues: whatever stood in them has left.
const STALE: Duration = Duration::from_secs(2);

/// Smoothed round trips, each time that one was measured. What is not smoothed says less: one measurement a round trip, as TFRC has it,
/// may have met a queue that is gone with the next (decision 12).
#[derive(Debug, Default)]
pub(super) struct Delay {
    shortest: QueueingDelay,
    /// When that was last.
    measured: Instant,
}

impl Delay {
    /// Round trips take `smoothed`, by a new measurement.
    fn observe(&mut self, now: Instant, smoothed: Duration) {
        self.shortest.observe(now, smoothed);
        self.measured = now;
    }

    /// What is known at `now`.
    fn round_trips(&self, now: Instant, smoothed: Duration) -> RoundTrips {
        let shortest = self.shortest.base().unwrap_or(smoothed);
        // A queue that discards all that would come too late would never learn that the way is free.
        let stale = now.since(self.measured) >= STALE.max(smoothed * 2);
        RoundTrips { shortest, present: if stale { shortest } else { smoothed }, queued: None }
    }
}

impl Connection {
    /// The delay from here to the receiver, as [`Options::one_way_delay`](crate::Options) has it; `None` while no round trip was
    /// measured.
    pub fn one_way_delay(&self, now: Instant) -> Option<Duration> {
        match self.options.one_way_delay {
            OneWayDelay::Measured => self.rtt().map(|rtt| self.delay.round_trips(now, rtt).one_way()),
            OneWayDelay::HalfRoundTrip => self.rtt().map(|rtt| rtt / 2),
            OneWayDelay::Known(delay) => Some(delay),
        }
    }

    /// A round trip was measured.
    pub(super) fn note_rtt(&mut self, now: Instant) {
        if let Some(rtt) = self.rtt() {
            self.delay.observe(now, rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn what_stood_in_queues_two_seconds_ago_is_forgotten() {
        let mut delay = Delay::default();
        let at = Instant::from_millis;
        delay.observe(at(1000), ms(100));
        assert_eq!(delay.round_trips(at(1000), ms(100)).one_way(), ms(50));
        delay.observe(at(1400), ms(180));
        assert_eq!(delay.round_trips(at(3399), ms(180)).one_way(), ms(130));
        assert_eq!(delay.round_trips(at(3400), ms(180)).one_way(), ms(50));
        assert_eq!(delay.round_trips(at(1000), ms(180)).one_way(), ms(130), "a clock that steps back is no harm");
    }
}
