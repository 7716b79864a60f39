//! Where the sender's clock stands in the receiver's.

use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// How far back messages count: long enough to meet an empty queue now and then, short enough that clocks which drift
/// apart by 100 ppm differ by 3 ms.
const WINDOW: Duration = Duration::from_secs(30);
/// A message this far from what the window says is of a clock that jumped.
const JUMP: i64 = 1_000_000_000;
/// Messages in a row that must be late by a jump before it is believed: one alone may only have been held up.
const WITNESSES: u32 = 3;
/// Messages in the window at most.
const MAX_SAMPLES: usize = 1024;

/// The sender's clock as the receiver sees it: the smallest difference between arrival and sending of the last 30
/// seconds, less half the smallest round trip time.
///
/// Queues in the network only ever add to a difference, so the smallest one is nearest to the truth; paths whose
/// two directions differ in delay bend it by half the difference.
#[derive(Debug, Default)]
pub(crate) struct PeerClock {
    /// Arrival, arrival less sending and round trip, both in ns; differences ascend, so that the first is the smallest.
    delays: VecDeque<(Instant, i64)>,
    /// The same for round trip times.
    rtts: VecDeque<(Instant, i64)>,
    /// Before the first clock message: the best guess from a unit's capture time.
    guess: Option<i64>,
    late_in_a_row: u32,
}

/// What a clock message did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Observed {
    /// It fits, or is the first.
    Fits,
    /// The clock jumped; what was placed before stands this many nanoseconds too far back in the new time.
    Jumped(i64),
    /// It may be of a clock that jumped; the next ones will tell.
    Doubtful,
}

impl PeerClock {
    /// A clock message that was written at `sent` (µs of the sender's clock) arrived at `now`; `rtt` in µs, 0 if the
    /// sender has measured none yet.
    pub(crate) fn observe(&mut self, now: Instant, sent: u64, rtt: u32) -> Observed {
        let delay = nanos(now).wrapping_sub(micros(sent));
        if let Some((_, smallest)) = self.delays.front().copied() {
            self.late_in_a_row = if delay > smallest.saturating_add(JUMP) { self.late_in_a_row + 1 } else { 0 };
            if delay < smallest.saturating_sub(JUMP) || self.late_in_a_row >= WITNESSES {
                let before = self.offset().unwrap_or_default();
                self.delays.clear();
                self.late_in_a_row = 0;
                push_smallest(&mut self.delays, now, delay);
                return Observed::Jumped(self.offset().unwrap_or_default().wrapping_sub(before));
            }
            if self.late_in_a_row > 0 {
                return Observed::Doubtful;
            }
        }
        push_smallest(&mut self.delays, now, delay);
        if rtt > 0 {
            push_smallest(&mut self.rtts, now, i64::from(rtt) * 1000);
        }
        Observed::Fits
    }

    /// Before any clock message: a unit whose last packet was captured at `captured` (µs) arrived at `now`.
    pub(crate) fn guess(&mut self, now: Instant, captured: u64) {
        let delay = nanos(now).wrapping_sub(micros(captured));
        self.guess = Some(self.guess.map_or(delay, |guess| guess.min(delay)));
    }

    /// What to add to the sender's clock to have this end's, ns; `None` if nothing has arrived.
    pub(crate) fn offset(&self) -> Option<i64> {
        let Some((_, delay)) = self.delays.front() else { return self.guess };
        let rtt = self.rtts.front().map_or(0, |(_, rtt)| *rtt);
        Some(delay - rtt / 2)
    }
}

/// Adds a sample to a window that keeps only those which are, or may yet become, the smallest of the last 30 seconds.
fn push_smallest(window: &mut VecDeque<(Instant, i64)>, now: Instant, value: i64) {
    while window.back().is_some_and(|(_, last)| *last >= value) {
        window.pop_back();
    }
    while window.len() >= MAX_SAMPLES || window.front().is_some_and(|(at, _)| now.since(*at) > WINDOW) {
        window.pop_front();
    }
    window.push_back((now, value));
}

/// A point in time as a signed number, which can be subtracted from an earlier one too.
fn nanos(at: Instant) -> i64 {
    i64::try_from(at.as_nanos()).unwrap_or(i64::MAX)
}

/// The same from µs on the wire, which are below 2⁵³.
fn micros(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn observe(clock: &mut PeerClock, now_ms: u64, sent_ms: u64) -> Observed {
        clock.observe(Instant::from_millis(now_ms), sent_ms * 1000, 40_000)
    }

    #[test]
    fn the_quickest_message_of_the_last_half_minute_sets_the_clock() {
        let mut clock = PeerClock::default();
        clock.guess(Instant::from_millis(9_000), 1_000_000);
        assert_eq!(clock.offset(), Some(8_000 * MS));
        observe(&mut clock, 10_100, 5_000);
        assert_eq!(clock.offset(), Some(5_080 * MS));
        observe(&mut clock, 10_220, 5_200);
        assert_eq!(clock.offset(), Some(5_000 * MS));
        clock.observe(Instant::from_millis(10_400), 5_300_000, 0);
        observe(&mut clock, 10_500, 5_400);
        assert_eq!(clock.offset(), Some(5_000 * MS));
        observe(&mut clock, 45_000, 39_950);
        assert_eq!(clock.offset(), Some(5_030 * MS));
    }

    #[test]
    fn a_jump_forward_is_seen_at_once_and_one_back_after_three_messages() {
        let mut clock = PeerClock::default();
        observe(&mut clock, 1_020, 1_000);
        assert_eq!(observe(&mut clock, 1_220, 6_200), Observed::Jumped(-5_000 * MS));
        assert_eq!(observe(&mut clock, 3_420, 1_400), Observed::Doubtful);
        assert_eq!(observe(&mut clock, 3_620, 1_600), Observed::Doubtful);
        assert_eq!(observe(&mut clock, 3_820, 1_800), Observed::Jumped(7_000 * MS));
        assert_eq!(clock.offset(), Some(2_000 * MS));
    }

    #[test]
    fn one_message_that_was_held_up_moves_nothing() {
        let mut clock = PeerClock::default();
        observe(&mut clock, 1_020, 1_000);
        assert_eq!(observe(&mut clock, 3_000, 1_200), Observed::Doubtful);
        assert_eq!(observe(&mut clock, 3_020, 3_000), Observed::Fits);
        assert_eq!(clock.offset(), Some(0));
    }
}
