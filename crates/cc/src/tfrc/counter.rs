use braidcast_core::Instant;
use core::time::Duration;

/// The sender's coarse timestamp: a counter modulo 16 that steps every quarter of a round trip (RFC 4342 §8.1).
#[derive(Clone, Debug, Default)]
pub struct WindowCounter {
    value: u8,
    since: Option<Instant>,
}

impl WindowCounter {
    /// The value for a data packet that leaves now. Neighbouring packets never differ by more than five.
    pub fn next(&mut self, now: Instant, rtt: Duration) -> u8 {
        let since = *self.since.get_or_insert(now);
        let quarters = (now - since).as_nanos().saturating_mul(4) / rtt.as_nanos().max(1);
        if quarters > 0 {
            self.advance(now, quarters.min(5) as u8);
        }
        self.value
    }

    /// A packet sent with `value` was acknowledged: later packets get at least `value` + 4.
    pub fn on_acknowledged(&mut self, now: Instant, value: u8) {
        let ahead = distance(value, self.value);
        if ahead < 4 {
            self.advance(now, 4 - ahead);
        }
    }

    fn advance(&mut self, now: Instant, steps: u8) {
        self.value = (self.value + steps) % 16;
        self.since = Some(now);
    }
}

/// How many steps lead from `a` up to `b`, modulo 16.
pub(super) const fn distance(a: u8, b: u8) -> u8 {
    b.wrapping_sub(a) % 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_by_quarters_and_by_five_at_most() {
        let rtt = Duration::from_millis(100);
        let mut counter = WindowCounter::default();
        let values: Vec<u8> = [1000, 1024, 1025, 1049, 1100, 9000, 9025, 9500, 9999]
            .map(|at| counter.next(Instant::from_millis(at), rtt))
            .to_vec();
        assert_eq!(values, [0, 0, 1, 1, 4, 9, 10, 15, 3 + 16 - 15]);
    }

    #[test]
    fn an_acknowledgement_lifts_it() {
        let mut counter = WindowCounter::default();
        counter.on_acknowledged(Instant::ZERO, 0);
        assert_eq!(counter.next(Instant::ZERO, Duration::from_secs(1)), 4);
        counter.on_acknowledged(Instant::ZERO, 15);
        assert_eq!(counter.next(Instant::ZERO, Duration::from_secs(1)), 4, "5 ahead already");
    }
}
