use core::time::Duration;

/// The round trip and its variance (draft-sharabayko-srt §4.10).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rtt {
    pub(crate) smoothed: Duration,
    pub(crate) variance: Duration,
    measured: bool,
}

impl Rtt {
    /// Before anything was measured: 100 ms, with a variance of 50 ms.
    pub(crate) const fn new() -> Self {
        Self { smoothed: Duration::from_millis(100), variance: Duration::from_millis(50), measured: false }
    }

    /// A round trip took `sample`.
    pub(crate) fn sample(&mut self, sample: Duration) {
        if !self.measured {
            *self = Self { smoothed: sample, variance: sample / 2, measured: true };
            return;
        }
        self.variance = (self.variance * 3 + self.smoothed.abs_diff(sample)) / 4;
        self.smoothed = (self.smoothed * 7 + sample) / 8;
    }

    /// The other end measured this.
    pub(crate) const fn told(&mut self, smoothed: Duration, variance: Duration) {
        *self = Self { smoothed, variance, measured: true };
    }

    /// How long an answer may take: longer, and it is not to be waited for.
    pub(crate) fn patience(&self) -> Duration {
        self.smoothed + self.variance * 4
    }
}
