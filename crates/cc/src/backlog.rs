use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// What stands in the queue of one path before what leaves now.
///
/// [`QueueingDelay`](crate::QueueingDelay) judges a round by its quickest packet, as congestion control needs it. A
/// burst that leaves within a round makes a queue of which that says nothing: an I frame of 60 kB over 1.8 Mbit/s and
/// 300 ms has its last packet there after 490 ms. So packets are counted as they leave, and are through at the rate of
/// the path. An acknowledgement says how long its packet really stood there, which corrects the count for all that left
/// since.
#[derive(Clone, Debug, Default)]
pub struct Backlog {
    /// Bytes that stood there at `at`.
    bytes: f64,
    at: Instant,
    /// What stood there as packets had left, until they are acknowledged.
    marks: VecDeque<Mark>,
    /// Of all corrections so far, bytes: marks are without those that came before them.
    corrected: f64,
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    at: Instant,
    bytes: f64,
}

impl Backlog {
    /// Packets that leave within this time share a mark.
    const TOGETHER: Duration = Duration::from_millis(1);
    /// Marks at most, 16 bytes each: one second of them, as far as they are used.
    const MARKS: usize = 1024;
    /// The longest time that a queue is reckoned to take.
    const LONGEST: Duration = Duration::from_secs(5);

    /// `len` bytes leave, while the path carries `rate` bytes in a second.
    pub fn on_sent(&mut self, now: Instant, len: usize, rate: f64) {
        self.bytes = self.left(now, rate) + len as f64;
        self.at = now;
        let bytes = self.bytes - self.corrected;
        match self.marks.back_mut() {
            Some(mark) if now.since(mark.at) < Self::TOGETHER => mark.bytes = bytes,
            _ => {
                if self.marks.len() == Self::MARKS {
                    self.marks.pop_front();
                }
                self.marks.push_back(Mark { at: now, bytes });
            }
        }
    }

    /// What left at `sent` is acknowledged, and stood in queues for `queued`.
    pub fn on_acked(&mut self, now: Instant, sent: Instant, queued: Duration, rate: f64) {
        while self.marks.get(1).is_some_and(|next| next.at <= sent) {
            self.marks.pop_front();
        }
        let Some(mark) = self.marks.front().filter(|mark| mark.at <= sent) else { return };
        let counted = (mark.bytes + self.corrected).max(0.0);
        let wrong = queued.as_secs_f64() * rate - counted;
        self.bytes = (self.left(now, rate) + wrong).max(0.0);
        self.at = now;
        self.corrected += wrong;
    }

    /// How long what leaves now will stand there.
    pub fn time(&self, now: Instant, rate: f64) -> Duration {
        Duration::from_secs_f64((self.left(now, rate) / rate.max(1.0)).min(Self::LONGEST.as_secs_f64()))
    }

    /// Bytes that are left of it at `now`.
    fn left(&self, now: Instant, rate: f64) -> f64 {
        (self.bytes - rate * now.since(self.at).as_secs_f64()).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes in a second.
    const RATE: f64 = 100_000.0;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    const fn at(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    /// Milliseconds, as far as they can be told apart.
    fn time(backlog: &Backlog, now: Instant) -> u64 {
        (backlog.time(now, RATE).as_secs_f64() * 1e3).round() as u64
    }

    #[test]
    fn a_burst_makes_a_queue_that_drains_at_the_rate() {
        let mut backlog = Backlog::default();
        (0..20).for_each(|_| backlog.on_sent(at(1000), 1000, RATE));
        assert_eq!([1000, 1150, 1300].map(|n| time(&backlog, at(n))), [200, 50, 0]);
        backlog.on_sent(at(1300), 1000, RATE);
        assert_eq!(time(&backlog, at(1300)), 10, "an idle path saves up nothing");
    }

    #[test]
    fn acknowledgements_correct_what_was_counted_and_what_left_since() {
        // The path is twice as fast as it is known to be, and its answers take 100 ms.
        let mut backlog = Backlog::default();
        (0..20).for_each(|n| backlog.on_sent(at(10 * n), 2000, RATE));
        assert_eq!(time(&backlog, at(200)), 200);
        backlog.on_acked(at(200), at(100), ms(0), RATE);
        assert_eq!(time(&backlog, at(200)), 80, "nothing stood there at 100 ms: what left since is counted");
        backlog.on_acked(at(200), at(190), ms(0), RATE);
        assert_eq!(time(&backlog, at(200)), 0);
        // Another flow's queue stands there too.
        backlog.on_sent(at(300), 1000, RATE);
        backlog.on_acked(at(450), at(300), ms(150), RATE);
        assert_eq!(time(&backlog, at(450)), 140, "it was 10 ms, which have drained, and is 140 more");
    }

    #[test]
    fn its_memory_is_bounded() {
        let mut backlog = Backlog::default();
        (0..10_000).for_each(|n| backlog.on_sent(at(n), 10, RATE));
        assert_eq!(backlog.marks.len(), Backlog::MARKS);
        backlog.on_acked(at(10_000), at(1), ms(0), RATE);
        assert_eq!(backlog.marks.len(), Backlog::MARKS, "of what is forgotten nothing is learnt");
        backlog.on_acked(at(10_000), at(9_999), ms(0), RATE);
        assert_eq!(backlog.marks.len(), 1);
    }
}
