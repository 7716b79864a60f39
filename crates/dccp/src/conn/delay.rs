//! How long the way to the receiver takes, as this connection measures it.

use super::Connection;
use crate::api::OneWayDelay;
use braidcast_cc::{QueueingDelay, RoundTrips};
use braidcast_core::Instant;
use core::time::Duration;

/// A measurement that is older tells nothing of queues: whatever stood in them has left.
const STALE: Duration = Duration::from_secs(2);

/// Round trips, one by one.
#[derive(Debug, Default)]
pub(super) struct Delay {
    queueing: QueueingDelay,
    /// When the present round began.
    round: Instant,
    /// The latest measurement.
    measured: Instant,
}

impl Delay {
    /// A packet's round trip took `rtt`; smoothed, they take `smoothed`.
    fn observe(&mut self, now: Instant, rtt: Duration, smoothed: Duration) {
        self.queueing.observe(now, rtt);
        self.measured = now;
        if now.since(self.round) >= smoothed {
            self.round = now;
            let _judged = self.queueing.end_round();
        }
    }

    /// What is known at `now`.
    fn round_trips(&self, now: Instant, smoothed: Duration) -> RoundTrips {
        let shortest = self.queueing.base().unwrap_or(smoothed);
        if now.since(self.measured) >= STALE.max(smoothed * 2) {
            // A queue that discards all that would come too late would never learn that the way is free.
            return RoundTrips { shortest, present: shortest, queued: None };
        }
        RoundTrips { shortest, present: smoothed, queued: Some(self.queueing.latest()) }
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
    pub(super) fn note_rtt(&mut self, now: Instant, rtt: Duration) {
        let smoothed = self.rtt().unwrap_or(rtt);
        self.delay.observe(now, rtt, smoothed);
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
        delay.observe(at(1000), ms(100), ms(100));
        assert_eq!(delay.round_trips(at(1000), ms(100)).one_way(), ms(50));
        delay.observe(at(1400), ms(180), ms(110));
        assert_eq!(delay.round_trips(at(1400), ms(110)).one_way(), ms(130), "the latest round counts at once");
        assert_eq!(delay.round_trips(at(3399), ms(110)).one_way(), ms(130));
        assert_eq!(delay.round_trips(at(3400), ms(110)).one_way(), ms(50));
        assert_eq!(delay.round_trips(at(1000), ms(110)).one_way(), ms(130), "a clock that steps back is no harm");
    }
}
