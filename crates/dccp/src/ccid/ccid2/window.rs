use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;

/// What the window does about acknowledgements and losses: the one part in which congestion controls on Ack Vectors differ.
/// In packets.
pub(in crate::ccid) trait Window: fmt::Debug + Send {
    /// A window of `initial` packets, in slow start.
    fn new(initial: u32) -> Self;

    /// Packets that may be out, one at least.
    fn cwnd(&self) -> u32;

    /// Slow start threshold; `u32::MAX` before anything has set it.
    fn ssthresh(&self) -> u32;

    /// A round trip took `rtt`; `round_is_over` once in a window, when what it began with is acknowledged.
    fn on_rtt(&mut self, _rtt: Duration, _round_is_over: bool) {}

    /// Data was acknowledged for the first time.
    fn on_ack(&mut self, now: Instant, ack: &Acked);

    /// Packets were lost or marked: once for all that were sent before it was noticed.
    fn on_congestion(&mut self);

    /// All that was out is lost.
    fn on_timeout(&mut self);

    /// Nothing was sent for a timeout: no more than `initial` packets.
    fn on_idle(&mut self, initial: u32);

    /// Slow start ends here.
    fn leave_slow_start(&mut self);

    /// One packet less, but one at least.
    fn shrink(&mut self);
}

/// What an acknowledgement brought.
#[derive(Clone, Copy, Debug)]
pub(in crate::ccid) struct Acked {
    /// Data packets that came unmarked and are acknowledged for the first time.
    pub(in crate::ccid) packets: u32,
    /// The window kept packets back, and nothing else forbids growth.
    pub(in crate::ccid) may_grow: bool,
    /// Smoothed round-trip time.
    pub(in crate::ccid) srtt: Duration,
    /// Ack Ratio of our data.
    pub(in crate::ccid) ack_ratio: u16,
}
