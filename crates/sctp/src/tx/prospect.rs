use braidcast_core::Instant;
use core::time::Duration;

/// What sending promises now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prospect {
    pub(crate) now: Instant,
    /// When what leaves now arrives, over the quickest path.
    pub(crate) soonest: Instant,
    /// Bytes in a second that all paths deliver; `None` while unknown.
    pub(crate) rate: Option<f64>,
}

impl Prospect {
    /// Returns when the last of `bytes` arrives that leave from now on, at `times` the rate; `None`:
    /// as soon as the first of them.
    pub(super) fn last_of(&self, bytes: usize, times: Option<f64>) -> Instant {
        let Some(rate) = self.rate.zip(times).map(|(rate, times)| times * rate) else { return self.soonest };
        self.soonest + Duration::from_secs_f64((bytes as f64 / rate.max(1.0)).min(60.0))
    }
}
