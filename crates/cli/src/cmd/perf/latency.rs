//! Message latencies: stamps, and the histogram of what they say.

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::time::Duration;

/// Longest latency told apart from longer ones.
const LONGEST: Duration = Duration::from_secs(60);

/// How long messages took, in µs.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(super) struct Percentiles {
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    pub(super) max: f64,
}

/// Collects latencies.
pub(super) struct Latencies(Option<Histogram<u64>>);

impl Latencies {
    pub(super) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST.as_nanos() as u64, 3).ok())
    }

    /// Adds one, in ns.
    pub(super) fn add(&mut self, nanos: u64) {
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record(nanos);
        }
    }

    /// `None` if there were none.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let histogram = self.0.as_ref().filter(|h| !h.is_empty())?;
        let micros = |nanos: u64| (nanos as f64 / 100.0).round() / 10.0;
        let at = |quantile| micros(histogram.value_at_quantile(quantile));
        Some(Percentiles { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: micros(histogram.max()) })
    }
}

/// Nanoseconds of a clock that all processes of a machine share.
pub(super) fn clock() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

/// A number that is the same for all processes of this machine since it was started, and most likely for no others:
/// only if it is equal at both ends can their clocks be compared.
pub(super) fn machine() -> u64 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    // FNV-1a, 64 bit.
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_in_microseconds() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.percentiles(), None);
        (1..=1000).for_each(|n| latencies.add(n * 1_000));
        let p = latencies.percentiles().unwrap();
        assert!((p.p50 - 500.0).abs() < 1.0 && (p.p99 - 990.0).abs() < 1.0 && (p.max - 1000.0).abs() < 1.0, "{p:?}");
    }
}
