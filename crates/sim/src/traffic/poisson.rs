use super::{Emission, Kind, Stream};
use braidcast_core::Rng;
use core::time::Duration;

/// Packets of one size with exponentially distributed gaps.
#[derive(Debug)]
pub(super) struct Poisson {
    stream: Stream,
    rng: Rng,
    at: Duration,
    sent: u64,
}

impl Poisson {
    pub(super) const fn new(stream: Stream, rng: Rng) -> Self {
        Self { stream, rng, at: Duration::ZERO, sent: 0 }
    }
}

impl Iterator for Poisson {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        self.at = self.at.saturating_add(self.stream.gap().mul_f64(self.rng.exponential()));
        let frame = self.sent;
        self.sent += 1;
        Some(Emission { at: self.at, bytes: self.stream.size, kind: Kind::Data, flow: 0, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_a_second_have_a_variance_like_their_mean() {
        let source = Poisson::new(Stream { rate: 400_000, size: 500 }, Rng::from_seed(1));
        let mut counts = vec![0_u64; 2000];
        for emission in source.take_while(|e| e.at < Duration::from_secs(2000)) {
            counts[emission.at.as_secs() as usize] += 1;
        }
        let mean = counts.iter().sum::<u64>() as f64 / 2000.0;
        let variance = counts.iter().map(|&n| (n as f64 - mean).powi(2)).sum::<f64>() / 1999.0;
        assert!((mean - 100.0).abs() < 1.0, "{mean}");
        assert!((variance / mean - 1.0).abs() < 0.1, "{variance} against {mean}");
    }
}
