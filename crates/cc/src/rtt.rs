use core::time::Duration;

/// Limits of the retransmission timeout (RFC 9260 §16).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RtoBounds {
    /// RTO before the first measurement; RFC default 1 s.
    pub initial: Duration,
    /// Lower limit; RFC default 1 s.
    pub min: Duration,
    /// Upper limit; RFC default 60 s.
    pub max: Duration,
}

impl RtoBounds {
    /// Before the first measurement, at least, at most.
    #[must_use]
    pub const fn new(initial: Duration, min: Duration, max: Duration) -> Self {
        Self { initial, min, max }
    }

    /// The same with this lower limit.
    #[must_use]
    pub const fn with_min(self, min: Duration) -> Self {
        Self { min, ..self }
    }
}

impl Default for RtoBounds {
    fn default() -> Self {
        Self { initial: Duration::from_secs(1), min: Duration::from_secs(1), max: Duration::from_secs(60) }
    }
}

/// Round-trip time and retransmission timeout of one path (RFC 9260 §6.3.1, which is RFC 6298).
#[derive(Clone, Debug)]
pub struct RttEstimator {
    bounds: RtoBounds,
    srtt: Option<Duration>,
    rttvar: Duration,
    min: Option<Duration>,
    latest: Option<Duration>,
    rto: Duration,
}

impl RttEstimator {
    /// An estimator that has measured nothing yet.
    pub fn new(bounds: RtoBounds) -> Self {
        Self { bounds, srtt: None, rttvar: Duration::ZERO, min: None, latest: None, rto: bounds.initial }
    }

    /// The handshake took this long. Until the first measurement the RTO is what this one would make it
    /// (RFC 6298 §2.2), and no less than [`initial`](RtoBounds::initial); it counts as no measurement.
    pub fn begin_with(&mut self, handshake: Duration) {
        if self.srtt.is_none() {
            self.bounds.initial = self.bounds.initial.max((handshake * 3).min(self.bounds.max));
            self.rto = self.bounds.initial;
        }
    }

    /// Takes a measurement; feed at most one each round trip, or RTTVAR shrinks too much.
    pub fn sample(&mut self, rtt: Duration) {
        self.observe(rtt);
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                self.rttvar = (self.rttvar * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
        self.restore_rto();
    }

    /// Notes a measurement for [`min`](Self::min) and [`latest`](Self::latest) only; may be fed for
    /// each acknowledgement.
    pub fn observe(&mut self, rtt: Duration) {
        self.latest = Some(rtt);
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
    }

    /// Doubles the RTO after a timeout (RFC 9260 §6.3.3 E2).
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(self.bounds.max);
    }

    /// Undoes the back-off, as an acknowledgement shows the path to be alive.
    pub fn restore_rto(&mut self) {
        if self.srtt.is_some() {
            self.rto = self.unbacked_rto();
        }
    }

    /// The RTO as it would be without back-off.
    pub fn unbacked_rto(&self) -> Duration {
        self.srtt.map_or(self.bounds.initial, |srtt| (srtt + self.rttvar * 4).clamp(self.bounds.min, self.bounds.max))
    }

    /// Smoothed round-trip time, once measured.
    pub const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Round-trip time variation; zero before the first measurement.
    pub const fn rttvar(&self) -> Duration {
        self.rttvar
    }

    /// Smallest round-trip time seen.
    pub const fn min(&self) -> Option<Duration> {
        self.min
    }

    /// Most recent round-trip time seen.
    pub const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Retransmission timeout, back-off included.
    pub const fn rto(&self) -> Duration {
        self.rto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_long_handshake_makes_the_first_rto_longer_and_is_no_measurement() {
        let mut rtt = RttEstimator::new(RtoBounds { initial: ms(500), min: ms(10), max: ms(3000) });
        rtt.begin_with(ms(100));
        assert_eq!(rtt.rto(), ms(500));
        rtt.begin_with(ms(600));
        assert_eq!((rtt.srtt(), rtt.min(), rtt.rto()), (None, None, ms(1800)));
        rtt.begin_with(ms(1200));
        assert_eq!(rtt.rto(), ms(3000));
        rtt.sample(ms(100));
        assert_eq!(rtt.rto(), ms(300));
        rtt.begin_with(ms(1200));
        assert_eq!(rtt.rto(), ms(300));
    }

    #[test]
    fn rto_follows_rfc_6298() {
        let mut rtt = RttEstimator::new(RtoBounds { initial: ms(1000), min: ms(10), max: ms(3000) });
        assert_eq!(rtt.rto(), ms(1000));
        rtt.sample(ms(100));
        assert_eq!((rtt.srtt(), rtt.rttvar(), rtt.rto()), (Some(ms(100)), ms(50), ms(300)));
        rtt.sample(ms(180));
        assert_eq!((rtt.srtt(), rtt.rttvar()), (Some(ms(110)), Duration::from_micros(57_500)));
        assert_eq!(rtt.rto(), ms(340));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), ms(1360));
        (0..4).for_each(|_| rtt.back_off());
        assert_eq!(rtt.rto(), ms(3000));
        rtt.restore_rto();
        assert_eq!(rtt.rto(), ms(340));
    }

    #[test]
    fn observing_leaves_the_smoothed_time_alone() {
        let mut rtt = RttEstimator::new(RtoBounds::default());
        rtt.sample(ms(100));
        rtt.observe(ms(20));
        assert_eq!((rtt.srtt(), rtt.min(), rtt.latest()), (Some(ms(100)), Some(ms(20)), Some(ms(20))));
    }
}
