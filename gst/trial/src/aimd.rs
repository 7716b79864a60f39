//! `aimd-rtt`: how bonding encoders of today guess, from one smoothed round trip and what waits
//! (belacoder's rule, by its description; what the description leaves open is said at each
//! constant).

/// Averages follow with this weight, 50 times a second.
const FOLLOW: f64 = 0.01;
/// It starts here, and goes no lower, bit/s.
pub(crate) const LEAST: f64 = 300_000.0;

/// What it looks at.
pub(crate) struct Seen {
    /// The round trip of the bond, ms.
    pub(crate) rtt: f64,
    /// Packets that wait or are not acknowledged.
    pub(crate) packets: f64,
}

/// Its state; times in ms.
pub(crate) struct Aimd {
    latency: f64,
    most: f64,
    rate: f64,
    rtt: Average,
    packets: Average,
    least_rtt: f64,
    may_fall: u64,
    may_rise: u64,
}

/// A mean, and how far values leap up.
#[derive(Default)]
struct Average {
    mean: f64,
    jitter: f64,
    last: f64,
    /// How it moves, over some five values.
    slope: f64,
}

impl Average {
    fn add(&mut self, value: f64) {
        let step = if self.mean == 0.0 { 0.0 } else { value - self.last };
        self.mean = if self.mean == 0.0 { value } else { self.mean + (value - self.mean) * FOLLOW };
        self.jitter = (self.jitter * (1.0 - FOLLOW)).max(step);
        self.slope += (step - self.slope) * 0.2;
        self.last = value;
    }
}

impl Aimd {
    pub(crate) fn new(latency: f64, most: f64) -> Self {
        let (rtt, packets) = Default::default();
        Self { latency, most, rate: LEAST, rtt, packets, least_rtt: f64::INFINITY, may_fall: 0, may_rise: 0 }
    }

    /// Looks at time `now`, every 20 ms; the rate in bit/s, rounded to 100 kbit/s.
    pub(crate) fn look(&mut self, now: u64, seen: &Seen) -> f64 {
        self.rtt.add(seen.rtt);
        self.packets.add(seen.packets);
        // The shortest one is forgotten slowly, so that a longer route is known in time.
        self.least_rtt = (self.least_rtt * 1.001).min(seen.rtt);
        let (mean, jitter) = (self.packets.mean, self.packets.jitter);
        // Thresholds of what waits: some jitters above the mean, 50 packets at least, and at the
        // last one four times both.
        let (first, second, third) =
            ((mean + 2.5 * jitter).max(50.0), (mean + (3.0 * jitter).max(mean)).max(50.0), 4.0 * (mean + jitter));
        let far = self.rtt.mean + (4.0 * self.rtt.jitter).max(0.15 * self.rtt.mean);
        let near = self.least_rtt + (2.0 * self.rtt.jitter).max(1.0);
        if self.rate > LEAST && (seen.rtt >= self.latency / 3.0 || seen.packets > third.max(50.0)) {
            self.rate = LEAST;
            self.may_fall = now + 200;
        } else if now >= self.may_fall && (seen.rtt > self.latency / 5.0 || seen.packets > second) {
            self.rate -= 100_000.0 + self.rate / 10.0;
            self.may_fall = now + 250;
        } else if now >= self.may_fall && (seen.rtt > far || seen.packets > first) {
            self.rate -= 100_000.0;
            self.may_fall = now + 200;
        } else if now >= self.may_rise && seen.rtt < near && self.rtt.slope < 0.01 {
            self.rate += 30_000.0 + self.rate / 30.0;
            self.may_rise = now + 500;
        }
        self.rate = self.rate.clamp(LEAST, self.most);
        (self.rate / 1e5).round() * 1e5
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rises_by_steps_and_falls_to_the_floor_where_the_round_trip_is_long() {
        let mut it = Aimd::new(500.0, 6e6);
        let calm = |it: &mut Aimd, from: u64, to: u64| {
            (from..to).step_by(20).fold(0.0, |_, now| it.look(now, &Seen { rtt: 60.0, packets: 10.0 }))
        };
        let after = calm(&mut it, 0, 20_000);
        assert!((2e6..5e6).contains(&after), "{after}: 40 steps of 40 to 150 kbit/s");
        let slower = it.look(20_000, &Seen { rtt: 110.0, packets: 10.0 });
        assert!(slower < after - 1e5 && slower > 0.8 * after, "a fifth of the latency: {slower}");
        assert_eq!(it.look(20_020, &Seen { rtt: 170.0, packets: 10.0 }), LEAST, "a third of the latency");
        assert_eq!(it.look(20_040, &Seen { rtt: 60.0, packets: 400.0 }), LEAST);
    }
}
