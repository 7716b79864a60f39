use super::scale::scale;
use super::schedule::Schedule;
use braidcast_core::{Instant, Rng};
use core::time::Duration;

/// Random variation of the propagation delay. It never changes the order of packets: one that would overtake
/// arrives with the one before it, as behind a real queue ([`Reorder`] is for the rest). A delay never falls below
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// None.
    #[default]
    None,
    /// The delay is uniform in ± this.
    Uniform(Duration),
    /// The delay is normal with this standard deviation.
    Normal(Duration),
}

/// Packets that arrive out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// The share of packets concerned, 0 to 1.
    pub share: f64,
    /// What happens to them.
    pub how: ReorderHow,
}

/// What happens to a packet that is picked for reordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReorderHow {
    /// It skips the propagation delay and overtakes what is in flight, as in netem.
    #[default]
    Skip,
    /// It takes this much longer.
    Late(Duration),
    /// It takes longer by `mean`, uniform in ± `spread`; never less than the others.
    LateBy {
        /// In the mean.
        mean: Duration,
        /// Maximum deviation, more or less.
        spread: Duration,
    },
}

/// Turns departures into arrivals.
#[derive(Debug)]
pub(super) struct DelayLine {
    /// In nanoseconds, by the time of departure.
    delays: Schedule,
    jitter: Jitter,
    reorder: Reorder,
    /// The latest arrival of a packet in order.
    latest: Instant,
    jitter_rng: Rng,
    reorder_rng: Rng,
}

impl DelayLine {
    pub(super) fn new(delays: Schedule, jitter: Jitter, reorder: Reorder, rng: &Rng) -> Self {
        let (jitter_rng, reorder_rng) = (rng.stream("jitter"), rng.stream("reorder"));
        Self { delays, jitter, reorder, latest: Instant::ZERO, jitter_rng, reorder_rng }
    }

    /// No packet takes less than this.
    pub(super) fn shortest(&self) -> Duration {
        let delay = Duration::from_nanos(self.delays.min());
        match (self.jitter, self.reorder) {
            (_, Reorder { share, how: ReorderHow::Skip }) if share > 0.0 => Duration::ZERO,
            (Jitter::Normal(_), _) => Duration::ZERO,
            (Jitter::Uniform(spread), _) => delay.saturating_sub(spread),
            (Jitter::None, _) => delay,
        }
    }

    /// When the packet that left at `departure` arrives.
    pub(super) fn arrival(&mut self, departure: Instant) -> Instant {
        if !self.reorder_rng.chance(self.reorder.share) {
            self.latest = self.latest.max(departure + self.draw(departure));
            return self.latest;
        }
        match self.reorder.how {
            ReorderHow::Skip => departure,
            ReorderHow::Late(extra) => departure + self.draw(departure) + extra,
            ReorderHow::LateBy { mean, spread } => {
                let extra = shifted(mean, spread, 2.0 * self.reorder_rng.f64() - 1.0);
                departure + self.draw(departure) + extra
            }
        }
    }

    /// The delay of a packet that left at `departure`.
    fn draw(&mut self, departure: Instant) -> Duration {
        let delay = Duration::from_nanos(self.delays.value_at(departure));
        let (spread, factor) = match self.jitter {
            Jitter::None => return delay,
            Jitter::Uniform(spread) => (spread, 2.0 * self.jitter_rng.f64() - 1.0),
            Jitter::Normal(spread) => (spread, self.jitter_rng.normal()),
        };
        shifted(delay, spread, factor)
    }
}

/// `mean` + `factor` · `spread`; not below zero.
fn shifted(mean: Duration, spread: Duration, factor: f64) -> Duration {
    let shift = scale(spread, factor.abs());
    if factor < 0.0 { mean.saturating_sub(shift) } else { mean.saturating_add(shift) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Delays of packets that leave so far apart that order does not bind them, in milliseconds.
    fn delays(jitter: Jitter) -> Vec<f64> {
        let mut line = DelayLine::new(Schedule::constant(20_000_000), jitter, Reorder::default(), &Rng::from_seed(5));
        let departures = (0..20_000).map(|i| Instant::from_millis(1000 * i));
        departures.map(|at| (line.arrival(at) - at).as_secs_f64() * 1e3).collect()
    }

    fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt())
    }

    #[test]
    fn jitter_has_its_mean_and_spread() {
        assert!(delays(Jitter::None).iter().all(|d| *d == 20.0));
        let (mean, deviation) = mean_and_deviation(&delays(Jitter::Uniform(6 * MS)));
        assert!((mean - 20.0).abs() < 0.1 && (deviation - 6.0 / 3_f64.sqrt()).abs() < 0.1, "{mean} {deviation}");
        let (mean, deviation) = mean_and_deviation(&delays(Jitter::Normal(3 * MS)));
        assert!((mean - 20.0).abs() < 0.1 && (deviation - 3.0).abs() < 0.1, "{mean} {deviation}");
    }

    #[test]
    fn late_packets_have_their_mean_and_spread() {
        let how = ReorderHow::LateBy { mean: 50 * MS, spread: 20 * MS };
        let reorder = Reorder { share: 0.05, how };
        let mut line = DelayLine::new(Schedule::constant(20_000_000), Jitter::None, reorder, &Rng::from_seed(5));
        let departures = (0..40_000).map(|i| Instant::from_millis(1000 * i));
        let all: Vec<f64> = departures.map(|at| (line.arrival(at) - at).as_secs_f64() * 1e3).collect();
        let late: Vec<f64> = all.iter().copied().filter(|delay| *delay > 20.0).collect();
        let (mean, deviation) = mean_and_deviation(&late);
        assert!((1900..2100).contains(&late.len()), "{}", late.len());
        assert!((mean - 70.0).abs() < 1.0 && (deviation - 20.0 / 3_f64.sqrt()).abs() < 0.4, "{mean} {deviation}");
        assert!(late.iter().all(|delay| (50.0..=90.0).contains(delay)));
    }

    #[test]
    fn no_packet_is_faster_than_the_shortest_delay() {
        let line = |jitter, reorder| {
            DelayLine::new(Schedule::constant(20_000_000), jitter, reorder, &Rng::from_seed(5)).shortest()
        };
        assert_eq!(line(Jitter::Uniform(6 * MS), Reorder::default()), 14 * MS);
        assert_eq!(line(Jitter::None, Reorder { share: 0.1, how: ReorderHow::Late(MS) }), 20 * MS);
        assert_eq!(line(Jitter::None, Reorder { share: 0.1, how: ReorderHow::Skip }), Duration::ZERO);
        assert!(delays(Jitter::Uniform(50 * MS)).contains(&0.0));
    }
}
