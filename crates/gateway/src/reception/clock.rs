use braidcast_core::{Instant, Serial};
use core::time::Duration;

/// Samples that one correction of the drift is made of: ten seconds of acknowledgements.
const SAMPLES: u32 = 1000;
/// A packet that would be due this much later than any packet could be says that the sender's clock jumped.
const AHEAD: i64 = 1_000_000;
/// One that is this late, and all that follow it for as long, say the same.
const BEHIND: i64 = 2_000_000;

/// When the packets of a sender are due here: its clock mapped to ours (draft-sharabayko-srt §4.5).
///
/// Times are microseconds.
pub(crate) struct Clock {
    /// Our time at the sender's `newest`.
    base: i64,
    newest: Serial<32>,
    latency: Duration,
    /// The first round trip that was measured.
    first_rtt: Option<Duration>,
    sum: i64,
    samples: u32,
    /// Since when everything comes late.
    late_since: Option<Instant>,
    pub(crate) jumps: u64,
}

impl Clock {
    /// A clock that said `timestamp` when it was `now` here. What it stamps is due `latency` later.
    pub(crate) fn new(now: Instant, timestamp: u32, latency: Duration) -> Self {
        Self {
            base: micros(now),
            newest: Serial::new(timestamp.into()),
            latency,
            first_rtt: None,
            sum: 0,
            samples: 0,
            late_since: None,
            jumps: 0,
        }
    }

    /// Our time of `timestamp`; it may be somewhat before the newest.
    fn map(&self, timestamp: u32) -> i64 {
        let at = Serial::<32>::new(timestamp.into());
        let ahead = self.newest.distance_to(at) as u32;
        self.base + i64::from(ahead.cast_signed())
    }

    /// When a packet that came at `now` is due. `fresh`: it was not sent before, so it says what its sender's clock
    /// shows now.
    pub(crate) fn due(&mut self, now: Instant, timestamp: u32, fresh: bool) -> Instant {
        let early = self.map(timestamp) - micros(now);
        if fresh {
            let late = early < -micros_of(self.latency) - BEHIND;
            if late {
                self.late_since.get_or_insert(now);
            } else {
                self.late_since = None;
            }
            let long = self.late_since.is_some_and(|since| micros_of(now - since) > BEHIND);
            if early > AHEAD || long {
                self.base = micros(now);
                self.newest = Serial::new(timestamp.into());
                self.late_since = None;
                self.jumps += 1;
            } else if self.newest < Serial::new(timestamp.into()) {
                self.base = self.map(timestamp);
                self.newest = Serial::new(timestamp.into());
            }
        }
        Instant::from_micros(self.map(timestamp).max(0) as u64) + self.latency
    }

    /// The sender's clock showed `timestamp` in a packet that came at `now`, a round trip being `rtt`: clocks drift
    /// (§4.7). If nobody knows the round trip, a longer delay is taken for drift.
    pub(crate) fn sample(&mut self, now: Instant, timestamp: u32, rtt: Option<Duration>) {
        // A longer delay is no drift; half of the round trip is taken to be the one-way delay.
        let longer = rtt.map_or(0, |rtt| {
            let first = *self.first_rtt.get_or_insert(rtt);
            (micros_of(rtt) - micros_of(first)) / 2
        });
        let drift = micros(now) - self.map(timestamp) - longer;
        if drift.abs() > AHEAD {
            return;
        }
        self.sum += drift;
        self.samples += 1;
        if self.samples == SAMPLES {
            self.base += self.sum / i64::from(SAMPLES);
            (self.sum, self.samples) = (0, 0);
        }
    }
}

fn micros(at: Instant) -> i64 {
    i64::try_from(at.as_micros()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

fn micros_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4).min(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATENCY: Duration = Duration::from_millis(120);
    const RTT: Duration = Duration::from_millis(20);

    fn clock(timestamp: u32) -> Clock {
        Clock::new(Instant::from_millis(1000), timestamp, LATENCY)
    }

    #[test]
    fn packets_are_due_a_latency_after_they_were_sent_across_the_end_of_the_numbers() {
        let mut clock = clock(u32::MAX - 4999);
        let due = clock.due(Instant::from_millis(1011), 5000, true);
        assert_eq!(due, Instant::from_millis(1130));
        assert_eq!(clock.due(Instant::from_millis(1050), u32::MAX - 2999, false), Instant::from_millis(1122));
        assert_eq!(clock.jumps, 0);
    }

    #[test]
    fn a_clock_that_jumps_is_followed() {
        let mut clock = clock(0);
        // An hour ahead at once, as no packet can be early.
        assert_eq!(clock.due(Instant::from_millis(1010), 3_600_000_000 / 2, true), Instant::from_millis(1130));
        assert_eq!(clock.jumps, 1);
        // Back: after two seconds of nothing but late packets.
        for tick in 0..300_u32 {
            clock.due(Instant::from_millis(1020 + u64::from(tick) * 10), tick * 10_000, true);
        }
        assert_eq!(clock.jumps, 2);
        assert_eq!(clock.due(Instant::from_millis(4020), 3_000_000, true), Instant::from_millis(4140));
    }

    #[test]
    fn drift_is_followed_slowly_and_a_longer_delay_is_none() {
        let mut clock = clock(0);
        for n in 1..=1000_u32 {
            let now = Instant::from_millis(1003 + u64::from(n) * 10);
            clock.due(now, n * 10_000, true);
            clock.sample(now, n * 10_000, Some(RTT));
        }
        assert_eq!(clock.due(Instant::from_millis(11_003), 10_000_000, true), Instant::from_millis(11_003) + LATENCY);
        for n in 1001..=2000_u32 {
            let now = Instant::from_millis(1013 + u64::from(n) * 10);
            clock.sample(now, n * 10_000, Some(2 * RTT));
        }
        assert_eq!(clock.due(Instant::from_millis(21_003), 20_000_000, true), Instant::from_millis(21_003) + LATENCY);
    }
}
