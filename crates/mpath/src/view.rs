use core::time::Duration;

/// What a decision may know about one path.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathView {
    /// The path can carry new data now: alive, with room in its congestion window, not held back by pacing.
    pub ready: bool,
    /// Data may go over the path at all: it is among the best that there are, be it full or not.
    pub active: bool,
    /// Data left over it since the last acknowledgement.
    pub bursting: bool,
    /// Congestion window in bytes.
    pub cwnd: usize,
    /// Slow start threshold in bytes; `usize::MAX` before the first loss.
    pub ssthresh: usize,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub in_flight: usize,
    /// Share of the packets that are lost, of late: 0 to 1.
    pub loss_rate: f32,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub srtt: Option<Duration>,
}
