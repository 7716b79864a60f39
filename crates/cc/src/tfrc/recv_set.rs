use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// The receive rates of the last two round trips, of which the largest limits the sender (RFC 5348 §4.3, X_recv_set).
///
/// Kept as what can still become the largest: each entry is newer and smaller than the one before.
#[derive(Clone, Debug)]
pub(super) struct RecvSet(VecDeque<(f64, Instant)>);

impl RecvSet {
    /// RFC 5348 §8.2.2 needs three at one report per round trip; more reports want a few more.
    const MAX: usize = 8;

    /// Only `rate`, from `now`; infinity at the start of a connection.
    pub(super) fn new(now: Instant, rate: f64) -> Self {
        let mut set = VecDeque::with_capacity(Self::MAX + 1);
        set.push_back((rate, now));
        Self(set)
    }

    /// The largest; 0 if there is none.
    pub(super) fn max(&self) -> f64 {
        self.0.front().map_or(0.0, |it| it.0)
    }

    /// "Update X_recv_set": adds `rate` and forgets what is older than two round trips.
    pub(super) fn update(&mut self, now: Instant, rate: f64, rtt: Duration) {
        while self.0.back().is_some_and(|it| it.0 <= rate) {
            self.0.pop_back();
        }
        self.0.push_back((rate, now));
        while self.0.len() > Self::MAX || self.0.front().is_some_and(|it| now - it.1 > rtt.saturating_mul(2)) {
            self.0.pop_front();
        }
    }

    /// "Maximize X_recv_set": only the largest of the known rates and `rate` stays, and counts as new.
    pub(super) fn maximize(&mut self, now: Instant, rate: f64) {
        let known = self.0.iter().map(|it| it.0).filter(|it| it.is_finite());
        self.replace(now, known.fold(rate, f64::max));
    }

    /// Only `rate` stays.
    pub(super) fn replace(&mut self, now: Instant, rate: f64) {
        self.0.clear();
        self.0.push_back((rate, now));
    }

    /// Halves all rates: a loss in a data-limited interval.
    pub(super) fn halve(&mut self) {
        self.0.iter_mut().for_each(|it| it.0 /= 2.0);
    }

    /// Sets the only entry's time: the first round trip was measured now.
    pub(super) fn restamp(&mut self, now: Instant) {
        self.0.iter_mut().for_each(|it| it.1 = now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn a_rate_counts_for_two_round_trips() {
        let at = Instant::from_millis;
        let mut set = RecvSet::new(at(0), f64::INFINITY);
        set.update(at(100), 1000.0, RTT);
        set.update(at(200), 500.0, RTT);
        assert_eq!(set.max(), f64::INFINITY);
        set.update(at(300), 200.0, RTT);
        assert_eq!(set.max(), 1000.0);
        set.update(at(301), 300.0, RTT);
        assert_eq!(set.max(), 500.0);
        set.halve();
        set.maximize(at(900), 1.0);
        assert_eq!(set.max(), 250.0);
        set.update(at(1100), 2.0, RTT);
        assert_eq!(set.max(), 250.0, "the time of the largest was renewed");
    }

    #[test]
    fn maximizing_forgets_infinity() {
        let mut set = RecvSet::new(Instant::ZERO, f64::INFINITY);
        set.maximize(Instant::ZERO, 70.0);
        assert_eq!(set.max(), 70.0);
    }

    #[test]
    fn it_stays_small() {
        let mut set = RecvSet::new(Instant::ZERO, f64::INFINITY);
        (0..100).for_each(|i| set.update(Instant::ZERO, f64::from(1000 - i), RTT));
        assert_eq!((set.0.len(), set.max()), (RecvSet::MAX, 908.0), "the newest are kept (§8.2.2)");
    }
}
