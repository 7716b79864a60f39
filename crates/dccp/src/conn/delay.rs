//! How long the way to the receiver takes, as this connection measures it.

use super::Connection;
use crate::api::OneWayDelay;
use braidcast_cc::{QueueingDelay, RoundTrips};
use braidcast_core::Instant;
use core::time::Duration;

/// An older measurement says nothing about queues: whatever stood in them has left.
const STALE: Duration = Duration::from_secs(2);

/// Smoothed round trips, each time that one was measured. What is not smoothed says less: one
/// measurement a round trip, as TFRC has it, may have met a queue that is gone with the next
/// (decision 12).
#[derive(Debug, Default)]
pub(super) struct Delay {
    shortest: QueueingDelay,
    /// By the latest measurement, as packets ask for it.
    latest: Option<Latest>,
}

/// The delay to the receiver by one measurement.
#[derive(Clone, Copy, Debug)]
struct Latest {
    /// From then on it is stale, and the queue that it met is gone.
    stale: Instant,
    one_way: Duration,
    /// Without any queue.
    free: Duration,
}

impl Delay {
    /// Round trips take `smoothed`, by a new measurement.
    fn observe(&mut self, now: Instant, smoothed: Duration) {
        self.shortest.observe(now, smoothed);
        let shortest = self.shortest.base().unwrap_or(smoothed);
        let one_way = |present| RoundTrips { shortest, present, queued: None }.one_way();
        let stale = now + STALE.max(smoothed * 2);
        self.latest = Some(Latest { stale, one_way: one_way(smoothed), free: one_way(shortest) });
    }

    /// What is known at `now`.
    fn one_way(&self, now: Instant) -> Option<Duration> {
        // A queue that discards all that would come too late would never learn that the way is free.
        self.latest.map(|latest| if now >= latest.stale { latest.free } else { latest.one_way })
    }
}

impl Connection {
    /// The delay from here to the receiver, as [`Options::one_way_delay`](crate::Options) has it;
    /// `None` while no round trip was measured.
    pub fn one_way_delay(&self, now: Instant) -> Option<Duration> {
        match self.options.one_way_delay {
            OneWayDelay::Measured => self.delay.one_way(now).or_else(|| self.rtt().map(|rtt| rtt / 2)),
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
        assert_eq!(delay.one_way(at(1000)), None);
        delay.observe(at(1000), ms(100));
        assert_eq!(delay.one_way(at(1000)), Some(ms(50)));
        delay.observe(at(1400), ms(180));
        assert_eq!(delay.one_way(at(3399)), Some(ms(130)));
        assert_eq!(delay.one_way(at(3400)), Some(ms(50)));
        assert_eq!(delay.one_way(at(1000)), Some(ms(130)), "a clock that steps back is no harm");
    }
}
