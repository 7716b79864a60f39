use braidcast_core::Instant;
use core::time::Duration;

/// When the next packet may leave (RFC 5348 §4.6, §8.3).
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    /// Nominal send time of the last packet (t_i), and when it really left.
    last: Option<(Instant, Instant)>,
    granularity: Duration,
    min_interval: Duration,
}

impl Schedule {
    /// A schedule for timers of `granularity` (t_gran), no packets closer than `min_interval`.
    pub(super) const fn new(granularity: Duration, min_interval: Duration) -> Self {
        Self { last: None, granularity, min_interval }
    }

    /// When the next packet may leave: up to t_delta before its nominal time, `interval` (t_ipi) after the last one's.
    pub(super) fn ready_at(&self, interval: Duration, rtt: Option<Duration>) -> Instant {
        let Some((nominal, left)) = self.last else { return Instant::ZERO };
        let delta = interval.min(self.granularity).min(rtt.unwrap_or(Duration::MAX)) / 2;
        (nominal + (interval - delta)).max(left + self.min_interval)
    }

    /// The rate is known only now: what the interval before said of the next packet is void.
    pub(super) fn restart(&mut self) {
        self.last = self.last.map(|(nominal, left)| (nominal.min(left), left));
    }

    /// A packet leaves. Send times that were let pass are made up for only as far as a timer can be late: RFC 5348 §4.6
    /// would allow a round trip's worth at once, which a modem's queue pays for.
    pub(super) fn on_sent(&mut self, now: Instant, interval: Duration, rtt: Option<Duration>) {
        let credit = self.granularity.min(rtt.unwrap_or(Duration::ZERO));
        let nominal = self.last.map_or(now, |(nominal, _)| (nominal + interval).max(now - credit));
        self.last = Some((nominal, now));
    }

    /// What left before its time is paid for with one interval, however many packets it was.
    pub(super) fn forgive(&mut self, now: Instant, interval: Duration) {
        self.last = self.last.map(|(nominal, left)| (nominal.min(now + interval), left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Packets that leave in a second, if the sender looks each `tick` and idles for the first 500 ms.
    fn sent(mut schedule: Schedule, interval: Duration, tick: u64) -> usize {
        schedule.on_sent(Instant::ZERO, interval, Some(ms(100)));
        let mut count = 0;
        for now in (500..1500).step_by(tick as usize).map(Instant::from_millis) {
            while schedule.ready_at(interval, Some(ms(100))) <= now {
                schedule.on_sent(now, interval, Some(ms(100)));
                count += 1;
            }
        }
        count
    }

    #[test]
    fn coarse_timers_keep_the_rate_and_idling_saves_nothing_up() {
        assert_eq!(sent(Schedule::new(ms(10), ms(0)), ms(20), 1), 51);
        assert!((330..=345).contains(&sent(Schedule::new(ms(10), ms(0)), ms(3), 10)));
    }

    #[test]
    fn packets_before_their_time_keep_the_next_one_back_for_two_intervals_at_most() {
        let (mut schedule, interval) = (Schedule::new(ms(10), ms(10)), Duration::from_secs(64));
        let repeats = (0..1000).map(|n| Instant::from_millis(4000 * n));
        let early = |&now: &Instant| {
            schedule.on_sent(now, interval, Some(interval));
            schedule.forgive(now, interval);
        };
        let last = repeats.inspect(early).last().unwrap();
        let ready = schedule.ready_at(interval, Some(interval));
        assert!(ready > last + interval && ready <= last + 2 * interval, "{ready:?} after {last:?}");
    }

    #[test]
    fn small_packets_keep_their_distance() {
        assert_eq!(sent(Schedule::new(ms(10), ms(10)), ms(3), 1), 100);
    }
}
