use core::time::Duration;

/// When the first slow start should end before it overflows a queue: HyStart++ (RFC 9406).
///
/// A round trip that has grown sends it into conservative slow start, which grows by a quarter; if
/// that lasts five rounds, slow start is over, and if round trips shrink again, it was a false
/// alarm. For the first slow start only (§4.3).
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    /// Shortest round trip of this round, and of the one before.
    current: Option<Duration>,
    last: Option<Duration>,
    samples: u32,
    /// Conservative slow start: the round trip that led to it, and the rounds that it has lasted.
    conservative: Option<(Duration, u32)>,
}

impl HyStart {
    /// `MIN_RTT_THRESH` and `MAX_RTT_THRESH` (§4.3).
    const MIN_GROWTH: Duration = Duration::from_millis(4);
    const MAX_GROWTH: Duration = Duration::from_millis(16);
    /// `MIN_RTT_DIVISOR`.
    const GROWTH_DIVISOR: u32 = 8;
    /// `N_RTT_SAMPLE`: with fewer samples a round says nothing.
    const SAMPLES: u32 = 8;
    /// `CSS_ROUNDS`.
    const ROUNDS: u32 = 5;
    /// `CSS_GROWTH_DIVISOR`.
    pub const DIVISOR: u32 = 4;

    /// A round trip took `rtt`.
    pub fn observe(&mut self, rtt: Duration) {
        let current = self.current.map_or(rtt, |shortest| shortest.min(rtt));
        self.current = Some(current);
        self.samples += 1;
        if self.samples < Self::SAMPLES {
            return;
        }
        match (self.conservative, self.last) {
            (Some((baseline, _)), _) if current < baseline => self.conservative = None,
            (None, Some(last)) => {
                let growth = (last / Self::GROWTH_DIVISOR).clamp(Self::MIN_GROWTH, Self::MAX_GROWTH);
                if current >= last + growth {
                    self.conservative = Some((current, 0));
                }
            }
            _ => {}
        }
    }

    /// All that was out when the round began is acknowledged. Whether slow start is over.
    pub fn end_round(&mut self) -> bool {
        self.last = self.current.take();
        self.samples = 0;
        let Some((_, rounds)) = &mut self.conservative else { return false };
        *rounds += 1;
        *rounds >= Self::ROUNDS
    }

    /// Returns `true` if growth is to be divided by [`DIVISOR`](Self::DIVISOR).
    pub const fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round of `count` round trips that take `ms`.
    fn round(it: &mut HyStart, ms: u64, count: u32) -> (bool, bool) {
        (0..count).for_each(|_| it.observe(Duration::from_millis(ms)));
        let conservative = it.is_conservative();
        (conservative, it.end_round())
    }

    #[test]
    fn five_rounds_of_a_grown_round_trip_end_slow_start() {
        let mut it = HyStart::default();
        assert_eq!(round(&mut it, 80, 8), (false, false));
        assert_eq!(round(&mut it, 89, 8), (false, false), "an eighth is 10 ms");
        assert_eq!(round(&mut it, 101, 7), (false, false), "too few to say");
        assert_eq!(round(&mut it, 115, 8), (true, false));
        let rounds: Vec<_> = (0..4).map(|_| round(&mut it, 120, 8).1).collect();
        assert_eq!(rounds, [false, false, false, true]);
    }

    #[test]
    fn a_round_trip_that_shrinks_again_was_a_false_alarm() {
        let mut it = HyStart::default();
        round(&mut it, 20, 8);
        assert_eq!(round(&mut it, 24, 8), (true, false), "never less than 4 ms");
        assert_eq!(round(&mut it, 23, 8), (false, false));
        let mut it = HyStart::default();
        round(&mut it, 600, 8);
        assert!(round(&mut it, 616, 8).0, "never more than 16 ms");
    }
}
