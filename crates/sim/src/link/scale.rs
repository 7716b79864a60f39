use core::time::Duration;

/// `d` times `factor`, at most the longest duration there is.
pub(super) fn scale(d: Duration, factor: f64) -> Duration {
    Duration::try_from_secs_f64(d.as_secs_f64() * factor).unwrap_or(Duration::MAX)
}
