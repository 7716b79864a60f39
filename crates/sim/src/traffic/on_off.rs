use super::{Emission, Kind, Stream};
use braidcast_core::Rng;
use core::time::Duration;

/// How long bursts and pauses are.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Periods {
    /// Exponentially distributed.
    Exponential,
    /// Pareto distributed with this shape, above 1; below 2 many such sources together are self-similar.
    Pareto(f64),
}

impl Periods {
    /// A length of mean 1.
    fn draw(self, rng: &mut Rng) -> f64 {
        match self {
            Self::Exponential => rng.exponential(),
            // Scale (shape − 1)/shape gives mean 1.
            Self::Pareto(shape) => (shape - 1.0) / shape / libm::pow(1.0 - rng.f64(), 1.0 / shape),
        }
    }
}

/// Bursts at a constant rate, and pauses between them; as ns-2's
/// `Application/Traffic/{Exponential,Pareto}` a burst is a whole number of packets, at least one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct OnOff {
    /// Mean length of a burst.
    pub on: Duration,
    /// Mean length of a pause.
    pub off: Duration,
    /// Packets and rate during a burst.
    pub stream: Stream,
    /// The distribution of both lengths.
    pub periods: Periods,
}

#[derive(Debug)]
pub(super) struct OnOffSource {
    model: OnOff,
    rng: Rng,
    at: Duration,
    /// Packets left in this burst.
    burst: u64,
    sent: u64,
}

impl OnOffSource {
    pub(super) const fn new(model: OnOff, rng: Rng) -> Self {
        Self { model, rng, at: Duration::ZERO, burst: 0, sent: 0 }
    }
}

impl Iterator for OnOffSource {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let OnOff { on, off, stream, periods } = self.model;
        if self.burst == 0 {
            let pause = Duration::try_from_secs_f64(off.as_secs_f64() * periods.draw(&mut self.rng)).ok()?;
            self.at = self.at.checked_add(pause)?;
            let packets = on.as_secs_f64() / stream.gap().as_secs_f64().max(1e-9) * periods.draw(&mut self.rng);
            self.burst = (packets.round() as u64).max(1);
        }
        self.burst -= 1;
        let frame = self.sent;
        self.sent += 1;
        let emission = Emission { at: self.at, bytes: stream.size, kind: Kind::Data, flow: 0, frame };
        self.at = self.at.checked_add(stream.gap())?;
        Some(emission)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(periods: Periods) -> OnOffSource {
        let ms = Duration::from_millis;
        let stream = Stream { rate: 800_000, size: 500 };
        OnOffSource::new(OnOff { on: ms(1000), off: ms(3000), stream, periods }, Rng::from_seed(3))
    }

    #[test]
    fn a_quarter_of_the_time_is_burst() {
        for (periods, tolerance) in [(Periods::Exponential, 0.05), (Periods::Pareto(2.5), 0.1)] {
            let seconds = 40_000;
            let packets = source(periods).take_while(|e| e.at < Duration::from_secs(seconds)).count();
            let share = packets as f64 / (seconds as f64 * 200.0);
            assert!((share / 0.25 - 1.0).abs() < tolerance, "{periods:?}: {share}");
        }
    }

    #[test]
    fn pareto_pauses_have_the_heavier_tail() {
        let longest_share = |periods: Periods| {
            let mut rng = Rng::from_seed(4);
            (0..100_000).filter(|_| periods.draw(&mut rng) > 20.0).count()
        };
        assert_eq!(longest_share(Periods::Exponential), 0);
        // P(X > 20) = (scale/20)^1.5 = (1/60)^1.5 = 0.00215.
        let pareto = longest_share(Periods::Pareto(1.5));
        assert!((160..270).contains(&pareto), "{pareto}");
    }
}
