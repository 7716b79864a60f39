//! The rate at which messages are sent, if one is asked for.

use braidcast_core::Instant;
use std::time::Duration;

/// Says when the next message may go. What is due goes in bursts, as waking up for each message costs more than
/// sending it.
pub(super) struct Pace {
    /// Time between two messages.
    spacing: Duration,
    /// Time between two bursts; 0: each message goes when it is due.
    burst: Duration,
    next_message: Instant,
    next_burst: Instant,
}

impl Pace {
    /// From now on one message each `spacing`, in bursts of the length `burst`.
    pub(super) const fn new(spacing: Duration, burst: Duration) -> Self {
        Self { spacing, burst, next_message: Instant::ZERO, next_burst: Instant::ZERO }
    }

    /// The first message is due now.
    pub(super) const fn begin(&mut self, now: Instant) {
        (self.next_message, self.next_burst) = (now, now);
    }

    /// When the next burst goes.
    pub(super) const fn next(&self) -> Instant {
        self.next_burst
    }

    /// Returns `true` if a burst may go. Whoever wakes up for something else, for example an acknowledgement, sends
    /// nothing before that: each of those that a message brings would let the next one go alone.
    pub(super) fn may_begin(&self, now: Instant) -> bool {
        self.next_burst <= now
    }

    /// Returns `true` if one more message is due; it counts as sent. If not, the burst is over.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let due = self.next_message <= now;
        if due {
            self.next_message += self.spacing;
        } else {
            self.next_burst = self.next_message + self.burst;
        }
        due
    }

    /// There was no room for the last one. What was due meanwhile is left out, else it would be tried without a pause.
    pub(super) fn skip(&mut self, now: Instant) {
        self.next_message = self.next_message.max(now + self.spacing);
        self.next_burst = self.next_message + self.burst;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACING: Duration = Duration::from_micros(10);

    /// How many messages go at which times, in µs, if somebody asks each microsecond of the first three milliseconds.
    fn bursts(burst: Duration) -> Vec<(u64, u32)> {
        let mut pace = Pace::new(SPACING, burst);
        pace.begin(Instant::ZERO);
        let mut found = Vec::new();
        for micros in 0..3000 {
            let (now, mut sent) = (Instant::from_micros(micros), 0);
            while pace.may_begin(now) && pace.take(now) {
                sent += 1;
            }
            if sent > 0 {
                found.push((micros, sent));
            }
        }
        found
    }

    #[test]
    fn however_often_it_is_asked_messages_go_in_bursts_at_the_rate() {
        assert_eq!(bursts(Duration::from_millis(1)), [(0, 1), (1010, 101), (2020, 101)]);
        assert_eq!(bursts(Duration::ZERO).len(), 300, "each when it is due");
    }

    #[test]
    fn where_there_is_no_room_nothing_is_made_up_for() {
        let mut pace = Pace::new(SPACING, Duration::ZERO);
        pace.begin(Instant::ZERO);
        let late = Instant::from_millis(50);
        assert!(pace.take(late));
        pace.skip(late);
        assert_eq!(pace.next(), late + SPACING);
        assert!(!pace.may_begin(late));
    }
}
