use core::time::Duration;

/// What a decision may know about one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathView {
    /// The path can carry new data now: alive, with room in its congestion window, not held back by pacing.
    pub ready: bool,
    /// Congestion window in bytes.
    pub cwnd: usize,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight: usize,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
}
