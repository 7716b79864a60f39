//! What a client may send in a second, and in a day.

use braidcast_core::{Allowance, Instant};
use core::time::Duration;

/// Bytes that a client's circuits may carry in a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Bytes above UDP, in both directions together.
    pub bytes: u64,
    /// The time: it begins with the first packet, and anew with the first one after its end.
    pub every: Duration,
}

/// What is used of a quota.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    pub(crate) quota: Quota,
    bytes: u64,
    since: Option<Instant>,
}

impl Used {
    /// Nothing of it.
    pub(crate) const fn none(quota: Quota) -> Self {
        Self { quota, bytes: 0, since: None }
    }

    /// The same use of another quota.
    pub(crate) const fn of(self, quota: Quota) -> Self {
        Self { quota, ..self }
    }

    /// Bytes that may still pass now.
    pub(crate) fn left(&self, now: Instant) -> u64 {
        let is_over = self.since.is_none_or(|since| now.since(since) >= self.quota.every);
        self.quota.bytes.saturating_sub(if is_over { 0 } else { self.bytes })
    }

    /// Returns `true` if `bytes` may pass now, and takes them off.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> bool {
        if self.left(now) < bytes as u64 {
            return false;
        }
        if self.since.is_none_or(|since| now.since(since) >= self.quota.every) {
            (self.since, self.bytes) = (Some(now), 0);
        }
        self.bytes += bytes as u64;
        true
    }
}

/// What may come at once beyond the rate: what a second allows, over this.
const BURST: u64 = 4;
/// At least so many bytes may: a frame.
const LEAST_BURST: u64 = 64 << 10;

/// What may pass at `bits_per_second`, and at once.
pub(crate) fn at_rate(bits_per_second: u64) -> Allowance {
    let bytes_per_second = bits_per_second / 8;
    Allowance::by_time(bytes_per_second, (bytes_per_second / BURST).max(LEAST_BURST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_used_up_once_in_its_time_and_is_whole_after_it() {
        let quota = Quota { bytes: 10_000, every: Duration::from_secs(60) };
        let mut used = Used::none(quota);
        let passes = |used: &mut Used, second: u64| {
            (0..30).filter(|_| used.take(Instant::from_millis(second * 1000), 1000)).count()
        };
        assert_eq!([0, 59, 60, 61].map(|second| passes(&mut used, second)), [10, 0, 10, 0]);
        assert_eq!((used.left(Instant::from_millis(61_000)), used.left(Instant::from_millis(200_000))), (0, 10_000));
        let mut more = used.of(Quota { bytes: 15_000, ..quota });
        assert_eq!(passes(&mut more, 62), 5, "what was used stays used");
    }

    #[test]
    fn over_a_long_time_no_more_passes_than_the_rate_and_one_burst() {
        let mut bucket = at_rate(8_000_000);
        let mut passed = 0;
        for micros in (0..10_000_000).step_by(500) {
            if bucket.take(Instant::from_micros(micros), 1000) {
                passed += 1000;
            }
        }
        assert!((10_000_000..=10_250_000).contains(&passed), "{passed}");
    }
}
