//! CoDel: RFC 8289, §5 (the pseudo-code there); marking as in Linux's `codel_impl.h`, which §1 allows for.

use super::verdict::Verdict;
use braidcast_core::Instant;
use core::time::Duration;

/// Parameters of CoDel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoDel {
    /// The time in the queue that is fine for ever.
    pub target: Duration,
    /// For how long the target may be exceeded, and the first pause between drops.
    pub interval: Duration,
    /// Packets that understand ECN are marked instead of dropped.
    pub ecn: bool,
}

impl Default for CoDel {
    /// 5 ms and 100 ms (RFC 8289 §5.3), without marking.
    fn default() -> Self {
        Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false }
    }
}

/// What the latest drop of a dequeue that has not found its packet yet was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Dropped {
    /// The one that begins the drop state; the packet behind it passes.
    First,
    /// A later one; the packet behind it may be due too.
    Later,
}

/// CoDel at work. RFC 8289's dequeue takes packets until one passes; here each that becomes the head is asked about.
#[derive(Debug)]
pub(super) struct CoDelState {
    codel: CoDel,
    /// With no more than this left in the queue nothing is dropped (§5.6).
    max_packet: usize,
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u32,
    last_count: u32,
    dequeuing: Option<Dropped>,
}

impl CoDelState {
    pub(super) fn new(codel: CoDel, max_packet: usize) -> Self {
        Self {
            codel,
            max_packet,
            first_above: None,
            dropping: false,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dequeuing: None,
        }
    }

    /// A dequeue found nothing.
    pub(super) fn emptied(&mut self) {
        (self.first_above, self.dropping, self.dequeuing) = (None, false, None);
    }

    /// A packet is dequeued at `now` that waited for `waiting` and leaves `left` bytes behind.
    pub(super) fn dequeue(&mut self, now: Instant, waiting: Duration, left: usize, ect: bool) -> Verdict {
        let ok_to_drop = self.ok_to_drop(now, waiting, left);
        let mark = ect && self.codel.ecn;
        match (self.dequeuing.take(), self.dropping) {
            (Some(Dropped::First), _) => Verdict::Pass,
            (_, true) if !ok_to_drop => {
                self.dropping = false;
                Verdict::Pass
            }
            (before, true) => {
                if before == Some(Dropped::Later) {
                    self.drop_next = self.control_law(self.drop_next);
                }
                if now < self.drop_next {
                    return Verdict::Pass;
                }
                self.count = self.count.saturating_add(1);
                if mark {
                    self.drop_next = self.control_law(self.drop_next);
                    return Verdict::Mark;
                }
                self.dequeuing = Some(Dropped::Later);
                Verdict::Drop
            }
            (_, false) if ok_to_drop => {
                self.begin(now);
                if mark {
                    return Verdict::Mark;
                }
                self.dequeuing = Some(Dropped::First);
                Verdict::Drop
            }
            (_, false) => Verdict::Pass,
        }
    }

    /// Enters the drop state, at the drop rate of the last one if that was not long ago.
    fn begin(&mut self, now: Instant) {
        self.dropping = true;
        let delta = self.count - self.last_count;
        let recent = now - self.drop_next < 16 * self.codel.interval;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    /// When the next drop is due after one that was due at `at` (§5.6).
    fn control_law(&self, at: Instant) -> Instant {
        let nanos = self.codel.interval.as_nanos() as f64 / f64::from(self.count.max(1)).sqrt();
        at + Duration::from_nanos(nanos as u64)
    }

    /// Returns `true` if packets have waited for longer than the target for an interval (§5.6, `dodequeue`).
    fn ok_to_drop(&mut self, now: Instant, waiting: Duration, left: usize) -> bool {
        if waiting < self.codel.target || left <= self.max_packet {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.codel.interval);
                false
            }
            Some(at) => now >= at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Rng;
    use std::collections::VecDeque;

    /// RFC 8289 §5, line by line: times in nanoseconds, 0 is "not above"; packets are their arrival times.
    #[derive(Default)]
    struct Rfc8289 {
        queue: VecDeque<u64>,
        first_above: u64,
        drop_next: u64,
        count: u32,
        last_count: u32,
        dropping: bool,
        dropped: Vec<u64>,
    }

    const TARGET: u64 = 5_000_000;
    const INTERVAL: u64 = 100_000_000;
    const BYTES: usize = 1_000;
    const MAX_PACKET: usize = 1_500;

    impl Rfc8289 {
        fn control_law(t: u64, count: u32) -> u64 {
            t + (INTERVAL as f64 / f64::from(count).sqrt()) as u64
        }

        fn dodequeue(&mut self, now: u64) -> (Option<u64>, bool) {
            let Some(packet) = self.queue.pop_front() else {
                self.first_above = 0;
                return (None, false);
            };
            let mut ok_to_drop = false;
            if now - packet < TARGET || self.queue.len() * BYTES <= MAX_PACKET {
                self.first_above = 0;
            } else if self.first_above == 0 {
                self.first_above = now + INTERVAL;
            } else if now >= self.first_above {
                ok_to_drop = true;
            }
            (Some(packet), ok_to_drop)
        }

        fn dequeue(&mut self, now: u64) -> Option<u64> {
            let mut r = self.dodequeue(now);
            if self.dropping {
                if !r.1 {
                    self.dropping = false;
                }
                while now >= self.drop_next && self.dropping {
                    self.dropped.extend(r.0);
                    self.count += 1;
                    r = self.dodequeue(now);
                    if r.1 {
                        self.drop_next = Self::control_law(self.drop_next, self.count);
                    } else {
                        self.dropping = false;
                    }
                }
            } else if r.1 {
                self.dropped.extend(r.0);
                r = self.dodequeue(now);
                self.dropping = true;
                let delta = self.count - self.last_count;
                self.count = 1;
                if delta > 1 && now.saturating_sub(self.drop_next) < 16 * INTERVAL {
                    self.count = delta;
                }
                self.drop_next = Self::control_law(now, self.count);
                self.last_count = self.count;
            }
            r.0
        }
    }

    /// The same dequeue made of single verdicts.
    fn dequeue(state: &mut CoDelState, queue: &mut VecDeque<u64>, dropped: &mut Vec<u64>, now: u64) -> Option<u64> {
        while let Some(packet) = queue.pop_front() {
            let waiting = Duration::from_nanos(now - packet);
            match state.dequeue(Instant::from_nanos(now), waiting, queue.len() * BYTES, false) {
                Verdict::Drop => dropped.push(packet),
                _ => return Some(packet),
            }
        }
        state.emptied();
        None
    }

    #[test]
    fn it_drops_what_the_rfcs_pseudo_code_drops() {
        for seed in 0..20 {
            let mut rng = Rng::from_seed(seed);
            let mut rfc = Rfc8289::default();
            let mut state = CoDelState::new(CoDel::default(), MAX_PACKET);
            let (mut queue, mut dropped, mut arrival) = (VecDeque::new(), Vec::new(), 1);
            // A packet leaves each millisecond; the load swings from 60 % to 140 % and back every 4 s.
            for now in (1_u64..40_000).map(|ms| ms * 1_000_000) {
                while arrival <= now {
                    queue.push_back(arrival);
                    rfc.queue.push_back(arrival);
                    let load = if now / 4_000_000_000 % 2 == 0 { 1.4 } else { 0.6 };
                    arrival += (rng.exponential() / load * 1e6) as u64;
                }
                assert_eq!(
                    dequeue(&mut state, &mut queue, &mut dropped, now),
                    rfc.dequeue(now),
                    "seed {seed} at {now}"
                );
            }
            assert_eq!(dropped, rfc.dropped);
            assert!(dropped.len() > 100, "{}", dropped.len());
        }
    }

    #[test]
    fn drops_come_faster_with_the_root_of_their_number() {
        let mut state = CoDelState::new(CoDel::default(), MAX_PACKET);
        let mut drops = Vec::new();
        for ms in 0..1_000 {
            let at = Instant::from_millis(ms);
            while state.dequeue(at, Duration::from_millis(50), 100_000, false) == Verdict::Drop {
                drops.push(ms);
            }
        }
        // Above from 0 on; then after 100, 100/√2, 100/√3 … ms, each rounded up to the next dequeue.
        let mut due = 100.0;
        let expected = (1..=drops.len()).map(|n| {
            let at = due;
            due += 100.0 / (n as f64).sqrt();
            f64::ceil(at) as u64
        });
        assert_eq!(drops, expected.collect::<Vec<_>>());
        assert!(drops.len() > 20, "{}", drops.len());
    }

    #[test]
    fn packets_that_understand_are_marked_at_the_same_times() {
        let times = |ecn| {
            let mut state = CoDelState::new(CoDel { ecn, ..CoDel::default() }, MAX_PACKET);
            let mut hits = Vec::new();
            for at in (0..1_000).map(Instant::from_millis) {
                let mut verdict = state.dequeue(at, Duration::from_millis(50), 100_000, true);
                if verdict != Verdict::Pass {
                    hits.push(at);
                }
                while verdict == Verdict::Drop {
                    verdict = state.dequeue(at, Duration::from_millis(50), 100_000, true);
                }
            }
            hits
        };
        assert_eq!(times(true), times(false));
    }
}
