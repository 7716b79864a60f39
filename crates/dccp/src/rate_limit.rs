use braidcast_core::Instant;
use core::time::Duration;

/// So many events in a second at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    left: u32,
    since: Option<Instant>,
}

impl RateLimit {
    pub(crate) const fn new(per_second: u32) -> Self {
        Self { per_second, left: per_second, since: None }
    }

    /// Returns `true` if one more may happen at `now`; counts it if so.
    pub(crate) fn allow(&mut self, now: Instant) -> bool {
        if self.since.is_none_or(|since| now.since(since) >= Duration::from_secs(1)) {
            self.since = Some(now);
            self.left = self.per_second;
        }
        let allowed = self.left > 0;
        self.left -= u32::from(allowed);
        allowed
    }
}
