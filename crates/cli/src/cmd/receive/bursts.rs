//! When a socket rests after it was read: what comes closely is read together.

use braidcast_core::Instant;
use std::time::Duration;

/// Slices between bursts at most, beyond which packets come one by one until it is known better: libsrt hands out what
/// it has each 10 ms, and a slice of its default latency has 2.4 ms.
const APART: u32 = 5;

/// What is known of how packets come.
#[derive(Default)]
pub(super) struct Bursts {
    /// When something was read last.
    read: Option<Instant>,
    /// More than one packet comes in a slice, or did in the last burst.
    dense: bool,
    /// Times that something was read since nothing was there.
    run: u32,
}

impl Bursts {
    /// Notes that this number of datagrams was there at `now`. Returns `true` if more will come within `slice`, so that
    /// it is read after that.
    pub(super) fn came(&mut self, now: Instant, datagrams: usize, slice: Duration) -> bool {
        if datagrams == 0 {
            self.dense &= self.run > 1;
            self.run = 0;
            return false;
        }
        // One by one too: what comes evenly is else read packet by packet.
        let within = slice * if self.dense { APART } else { 1 };
        self.dense = self.read.is_some_and(|before| now.since(before) < within);
        self.read = Some(now);
        self.run = self.run.saturating_add(1);
        self.dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLICE: Duration = Duration::from_micros(2400);

    /// Reads of a second, each of which has the datagrams since the one before it, and those that found nothing.
    /// Whoever does not rest is woken by the next datagram.
    fn reads(micros: impl Iterator<Item = u64>) -> (usize, usize) {
        let mut bursts = Bursts::default();
        let (mut reads, mut empty) = (0, 0);
        let mut datagrams = micros.map(|at| Instant::from_nanos(at * 1000)).peekable();
        let mut rests: Option<Instant> = None;
        while let Some(now) = rests.or(datagrams.peek().copied()) {
            let mut count = 0;
            while datagrams.next_if(|at| *at <= now).is_some() {
                count += 1;
            }
            (reads, empty) = (reads + 1, empty + usize::from(count == 0));
            rests = bursts.came(now, count, SLICE).then(|| now + SLICE);
        }
        (reads, empty)
    }

    #[test]
    fn packets_that_are_far_apart_are_read_when_they_come() {
        assert_eq!(reads((0..100).map(|n| n * 10_000)), (100, 0));
    }

    #[test]
    fn what_comes_evenly_is_read_in_slices() {
        // 2000 a second, some five in a slice.
        let (reads, empty) = reads((0..2000).map(|n| n * 500));
        assert!(reads < 430 && empty <= 1, "{reads}, {empty}");
    }

    #[test]
    fn a_burst_is_one_wake_up_two_rests_and_one_look_that_finds_nothing() {
        // 19 packets in 2.2 ms, each 10 ms, as libsrt sends 20 Mbit/s.
        let (reads, empty) = reads((0..1900).map(|n| n / 19 * 10_000 + n % 19 * 120));
        assert!(reads <= 302 && empty <= 101, "{reads}, {empty}");
    }

    #[test]
    fn after_a_pause_a_packet_is_read_at_once() {
        let mut bursts = Bursts::default();
        let at = |ms: u64| Instant::from_millis(ms);
        assert!(!bursts.came(at(1), 3, SLICE) && bursts.came(at(2), 3, SLICE) && bursts.came(at(5), 3, SLICE));
        assert!(!bursts.came(at(8), 0, SLICE));
        assert!(bursts.came(at(16), 1, SLICE), "the next burst");
        assert!(!bursts.came(at(30), 1, SLICE), "after a pause");
    }
}
