use braidcast_core::Instant;
use core::time::Duration;

/// What timestamps say of the forward delay over one path, plus the difference of the two clocks, which is the same for
/// all paths (decision 21). In microseconds, since the clocks have no beginning in common.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OneWay {
    mean: i64,
    /// The smoothed distance of a measurement from the mean.
    deviation: i64,
    measured: Option<Instant>,
    /// When the next timestamp is due.
    next: Instant,
}

/// The measured forward delay and its uncertainty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ForwardDelay {
    /// Delay and difference of clocks, µs.
    pub(crate) mean: i64,
    /// µs.
    pub(crate) deviation: i64,
}

impl OneWay {
    /// Weight of a new measurement: there are two of them in a round trip.
    const WEIGHT: i64 = 4;
    /// Largest drift of two clocks in a second, µs.
    const DRIFT: i64 = 200;
    /// What is older says nothing. Paths that carry no data are stamped with their heartbeats.
    const KEPT: Duration = Duration::from_secs(65);
    /// Between two timestamps.
    const SHORTEST: Duration = Duration::from_millis(10);
    const LONGEST: Duration = Duration::from_millis(500);

    /// Returns `true` if a packet that leaves now is to be stamped.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next
    }

    /// One was stamped; `srtt` is the path's.
    pub(crate) fn on_stamped(&mut self, now: Instant, srtt: Option<Duration>) {
        self.next = now + (srtt.unwrap_or_default() / 2).clamp(Self::SHORTEST, Self::LONGEST);
    }

    /// A timestamp was echoed.
    pub(crate) fn observe(&mut self, now: Instant, measured: i64) {
        let distance = measured - self.mean;
        if self.delay(now).is_some() {
            self.deviation += (distance.abs() - self.deviation) / Self::WEIGHT;
            self.mean += distance / Self::WEIGHT;
        } else {
            (self.mean, self.deviation) = (measured, 0);
        }
        self.measured = Some(now);
    }

    /// What is known, if it is of now.
    pub(crate) fn delay(&self, now: Instant) -> Option<ForwardDelay> {
        let age = self.measured.map(|at| now - at).filter(|age| *age <= Self::KEPT)?;
        let drift = age.as_micros() as i64 * Self::DRIFT / 1_000_000;
        Some(ForwardDelay { mean: self.mean, deviation: self.deviation + drift })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_a_jump_and_says_how_sure_it_is() {
        let mut one_way = OneWay::default();
        let at = |n: u64| Instant::from_millis(10 * n);
        assert_eq!(one_way.delay(at(0)), None);
        (0..20).for_each(|n| one_way.observe(at(n), 1_000_000));
        assert_eq!(one_way.delay(at(19)), Some(ForwardDelay { mean: 1_000_000, deviation: 0 }));
        // Ten times the delay.
        (20..32).for_each(|n| one_way.observe(at(n), 1_090_000));
        let jumped = one_way.delay(at(31)).unwrap();
        assert!((1_086_000..=1_090_000).contains(&jumped.mean) && jumped.deviation > 2000, "{jumped:?}");
        let later = one_way.delay(at(31) + Duration::from_secs(10)).unwrap();
        assert_eq!(later.deviation, jumped.deviation + 2000, "200 ppm of ten seconds");
        assert_eq!(one_way.delay(at(31) + Duration::from_secs(66)), None);
    }

    #[test]
    fn two_packets_of_a_round_trip_are_stamped() {
        let mut one_way = OneWay::default();
        let ms = Duration::from_millis;
        assert!(one_way.is_due(Instant::ZERO));
        one_way.on_stamped(Instant::ZERO, Some(ms(100)));
        assert!(!one_way.is_due(Instant::from_millis(49)) && one_way.is_due(Instant::from_millis(50)));
        one_way.on_stamped(Instant::ZERO, Some(ms(1)));
        assert!(one_way.is_due(Instant::from_millis(10)));
    }
}
