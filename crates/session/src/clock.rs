//! Where the sender's clock stands in the receiver's.

use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// How far back messages count in full: long enough to meet an empty queue now and then, short enough that clocks which
/// drift apart by 100 ppm differ by 3 ms.
const WINDOW: Duration = Duration::from_secs(30);
/// What an older message showed may be off by the time since over this: no clock is slewed faster (adjtime(3),
/// 500 ppm). It counts on where a queue has not been empty for longer than the window.
const SLEWED: i64 = 2000;
/// A message this far from what the window says is of a clock that jumped.
const JUMP: i64 = 1_000_000_000;
/// Messages in a row that must be late by a jump, and come as they were sent, before it is believed: one alone may only
/// have been held up.
const WITNESSES: u32 = 3;
/// Messages in the window at most.
const MAX_SAMPLES: usize = 1024;

/// The sender's clock as the receiver sees it: the smallest difference between arrival and sending of the last 30
/// seconds, less half the smallest round trip time, or what was seen before, as far as that can still be true.
///
/// Queues in the network only ever add to a difference, so the smallest one is nearest to the truth; paths whose
/// two directions differ in delay bend it by half the difference.
#[derive(Debug, Default)]
pub(crate) struct PeerClock {
    /// Arrival, arrival less sending and round trip, both in ns; differences ascend, so that the first is the smallest.
    delays: VecDeque<(Instant, i64)>,
    /// The same for round trip times.
    rtts: VecDeque<(Instant, i64)>,
    /// What was known when the message that showed it became too old, and when that was.
    known: Option<(Instant, i64)>,
    /// When the latest message arrived.
    at: Instant,
    /// Before the first clock message: the best guess from a unit's capture time.
    guess: Option<i64>,
    /// Messages in a row that are late by a jump.
    witnesses: Witnesses,
}

/// Messages that seem to be of a clock that jumped back. Those that were held up together come together: they witness
/// nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Witnesses {
    count: u32,
    /// Arrival and sending of the first one, ns.
    first: (i64, i64),
    /// Sending of the latest one.
    latest: i64,
}

impl Witnesses {
    /// One more that arrived at `now` and was written at `sent`. Returns `true` if they are enough.
    fn add(&mut self, now: i64, sent: i64) -> bool {
        let (first_now, first_sent) = self.first;
        let as_sent = 2 * now.saturating_sub(first_now) >= sent.saturating_sub(first_sent) && sent > self.latest;
        if self.count == 0 || !as_sent {
            *self = Self { count: 0, first: (now, sent), latest: sent };
        }
        self.count += 1;
        self.latest = sent;
        self.count >= WITNESSES
    }
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
            let late = delay > smallest.saturating_add(JUMP);
            let back = late && self.witnesses.add(nanos(now), micros(sent));
            if !late || back {
                self.witnesses = Witnesses::default();
            }
            if delay < smallest.saturating_sub(JUMP) || back {
                let before = self.offset().unwrap_or_default();
                self.delays.clear();
                (self.known, self.at) = (None, now);
                push_smallest(&mut self.delays, now, delay);
                return Observed::Jumped(self.offset().unwrap_or_default().wrapping_sub(before));
            }
            if late {
                return Observed::Doubtful;
            }
        }
        let before = self.offset().filter(|_| self.delays.front().is_some_and(|(at, _)| is_old(*at, now)));
        push_smallest(&mut self.delays, now, delay);
        if rtt > 0 {
            push_smallest(&mut self.rtts, now, i64::from(rtt) * 1000);
        }
        self.known = before.map(|before| (self.at, before)).or(self.known);
        self.at = now;
        self.known = self.known.filter(|known| Some(self.aged(*known)) < self.seen());
        Observed::Fits
    }

    /// What was known, by now.
    fn aged(&self, (at, offset): (Instant, i64)) -> i64 {
        offset.saturating_add(i64::try_from(self.at.since(at).as_nanos()).unwrap_or(i64::MAX) / SLEWED)
    }

    /// What the messages of the window say.
    fn seen(&self) -> Option<i64> {
        let (_, delay) = self.delays.front()?;
        let rtt = self.rtts.front().map_or(0, |(_, rtt)| *rtt);
        Some(delay - rtt / 2)
    }

    /// Before any clock message: a unit whose last packet was captured at `captured` (µs) arrived at `now`.
    pub(crate) fn guess(&mut self, now: Instant, captured: u64) {
        let delay = nanos(now).wrapping_sub(micros(captured));
        self.guess = Some(self.guess.map_or(delay, |guess| guess.min(delay)));
    }

    /// What to add to the sender's clock to have this end's, ns; `None` if nothing has arrived.
    pub(crate) fn offset(&self) -> Option<i64> {
        self.known.map(|known| self.aged(known)).or_else(|| self.seen()).or(self.guess)
    }
}

fn is_old(at: Instant, now: Instant) -> bool {
    now.since(at) > WINDOW
}

/// Adds a sample to a window that keeps only those which are, or may yet become, the smallest of the last 30 seconds.
fn push_smallest(window: &mut VecDeque<(Instant, i64)>, now: Instant, value: i64) {
    while window.back().is_some_and(|(_, last)| *last >= value) {
        window.pop_back();
    }
    while window.len() >= MAX_SAMPLES || window.front().is_some_and(|(at, _)| is_old(*at, now)) {
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
        // What it showed becomes less certain.
        observe(&mut clock, 45_000, 39_950);
        assert_eq!(clock.offset(), Some(5_000 * MS + 34_500 * MS / 2000));
        observe(&mut clock, 110_500, 105_450);
        assert_eq!(clock.offset(), Some(5_030 * MS));
    }

    #[test]
    fn a_queue_that_is_never_empty_does_not_pass_for_a_slow_clock() {
        let mut clock = PeerClock::default();
        observe(&mut clock, 1_020, 1_000);
        for second in 2..=60 {
            observe(&mut clock, second * 1000 + 200, second * 1000);
        }
        // Since the first one became too old.
        assert_eq!(clock.offset(), Some(30_000 * MS / 2000));
        // The round trip does not, either, and a clock that is faster is followed at once.
        observe(&mut clock, 61_010, 61_000);
        assert_eq!(clock.offset(), Some(-10 * MS));
    }

    #[test]
    fn a_clock_that_is_slewed_is_followed() {
        let mut clock = PeerClock::default();
        let mut worst = 0;
        for n in 0..3000_u64 {
            let now = Instant::from_millis(1020 + 200 * n);
            // 500 ppm slower, and a queue of up to 10 ms.
            clock.observe(now, 1_000_000 + 200_000 * n - 100 * n - 1000 * (n % 11), 40_000);
            worst = worst.max((clock.offset().unwrap() - 100_000 * n as i64).abs());
        }
        assert!(worst < 20 * MS, "{worst} ns");
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

    /// After an outage; in their order or not.
    #[test]
    fn messages_that_were_held_up_together_move_nothing() {
        for sent in [[1_200, 1_400, 1_600, 1_800], [1_800, 1_600, 1_400, 1_200]] {
            let mut clock = PeerClock::default();
            observe(&mut clock, 1_020, 1_000);
            let observed = sent.map(|sent| observe(&mut clock, 4_000, sent));
            assert_eq!(observed, [Observed::Doubtful; 4], "{sent:?}");
            assert_eq!(observe(&mut clock, 4_020, 4_000), Observed::Fits);
        }
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
