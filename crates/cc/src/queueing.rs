use braidcast_core::Instant;
use core::time::Duration;

/// How long packets of one path stand in queues: what a round trip takes beyond the shortest of late.
///
/// Each round is judged by its *shortest* round trip: a link that stalls and then lets everything through at once has
/// no standing queue. The base is the minimum of the last 10 to 20 s, so that a route that became longer is not
/// taken for a queue for ever (as RFC 6817 §3.4.2 keeps it, LEDBAT).
#[derive(Clone, Debug, Default)]
pub struct QueueingDelay {
    /// Shortest of the current 10 s, and of those before.
    base: (Option<Duration>, Option<Duration>),
    /// Of all time.
    shortest: Option<Duration>,
    since: Instant,
    round: Option<Duration>,
    samples: u32,
    latest: Duration,
    /// The last packet's round trip, and when it ended.
    last: Option<(Instant, Duration)>,
}

impl QueueingDelay {
    const WINDOW: Duration = Duration::from_secs(10);
    const SAMPLES: u32 = 8;
    const LAST: Duration = Duration::from_secs(1);

    /// If nothing was observed yet, `base` is the shortest round trip.
    pub fn begin(&mut self, now: Instant, base: Duration) {
        if self.shortest.is_none() {
            (self.since, self.base.0, self.shortest) = (now, Some(base), Some(base));
        }
    }

    /// A packet's round trip took `rtt`.
    pub fn observe(&mut self, now: Instant, rtt: Duration) {
        if now - self.since >= Self::WINDOW {
            self.base = (None, self.base.0);
            self.since = now;
        }
        self.base.0 = Some(self.base.0.map_or(rtt, |base| base.min(rtt)));
        self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        self.last = Some((now, rtt));
        self.samples += 1;
        self.round = Some(self.round.map_or(rtt, |round| round.min(rtt)));
    }

    /// A round trip is over: the queueing delay in it, and the shortest round trip without any.
    pub fn end_round(&mut self) -> Option<(Duration, Duration)> {
        let base = self.base()?;
        self.latest = self.round.take()?.saturating_sub(base);
        self.samples = 0;
        Some((self.latest, base))
    }

    /// The queueing delay of this round once eight packets have told of it (as HyStart++ waits, RFC
    /// 9406 §4.2), of the last one before.
    pub fn latest(&self) -> Duration {
        match (self.round, self.base()) {
            (Some(round), Some(base)) if self.samples >= Self::SAMPLES => round.saturating_sub(base),
            _ => self.latest,
        }
    }

    /// How long the last packet stood in queues, if it was acknowledged within the last second; else nothing.
    pub fn of_last(&self, now: Instant) -> Duration {
        let last = self.last.filter(|(at, _)| now - *at <= Self::LAST);
        last.zip(self.base()).map_or(Duration::ZERO, |((_, rtt), base)| rtt.saturating_sub(base))
    }

    /// The bytes of a window of `window` that would have kept packets from standing in queues
    /// longer than `limit`. They stood for `queueing` in a round trip that takes `base` without;
    /// its rate was `window / (base + queueing)`.
    pub fn within(limit: Duration, window: usize, queueing: Duration, base: Duration) -> usize {
        let share = (base + limit).as_secs_f64() / (base + queueing).as_secs_f64();
        (window as f64 * share) as usize
    }

    /// The shortest round trip of all time. If others never let the queue run empty,
    /// [`base`](Self::base) grows with it and this does not.
    pub fn shortest(&self) -> Option<Duration> {
        self.shortest
    }

    /// The shortest round trip of late.
    pub fn base(&self) -> Option<Duration> {
        let (current, before) = self.base;
        current.into_iter().chain(before).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_standing_queue_shows_and_a_stall_does_not() {
        let mut delay = QueueingDelay::default();
        let at = Instant::from_millis;
        delay.observe(at(0), ms(40));
        assert_eq!(delay.end_round(), Some((ms(0), ms(40))));
        [90, 100, 110].into_iter().for_each(|rtt| delay.observe(at(100), ms(rtt)));
        assert_eq!(delay.end_round(), Some((ms(50), ms(40))));
        [400, 200, 41].into_iter().for_each(|rtt| delay.observe(at(500), ms(rtt)));
        assert_eq!(delay.end_round(), Some((ms(1), ms(40))));
        assert_eq!(delay.end_round(), None, "nothing was measured");
    }

    #[test]
    fn a_way_that_is_seen_first_with_a_queue_is_shorter_than_that() {
        let (mut direct, mut detour) = (QueueingDelay::default(), QueueingDelay::default());
        let at = Instant::from_millis;
        direct.observe(at(0), ms(40));
        direct.observe(at(300), ms(340));
        let queue = direct.of_last(at(400));
        assert_eq!((queue, direct.of_last(at(1400))), (ms(300), ms(0)));
        detour.begin(at(400), ms(380) - queue);
        detour.observe(at(400), ms(380));
        assert_eq!(detour.end_round(), Some((ms(300), ms(80))));
        detour.begin(at(500), ms(10));
        assert_eq!(detour.base(), Some(ms(80)), "it has begun");
    }

    #[test]
    fn a_longer_route_becomes_the_base_after_twenty_seconds() {
        let mut delay = QueueingDelay::default();
        delay.observe(Instant::ZERO, ms(40));
        for second in 1..=21 {
            delay.end_round();
            delay.observe(Instant::from_millis(second * 1000), ms(90));
        }
        assert_eq!(delay.end_round(), Some((ms(0), ms(90))));
    }
}
