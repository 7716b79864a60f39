use braidcast_cc::{Algorithm, RtoBounds};
use core::time::Duration;

/// The first sequence number of both ends: near the top, so that every longer run crosses it.
pub(super) const ISN: u32 = u32::MAX - 200_000;

/// How TCP is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// Largest payload of a segment in bytes, at least 1; 1460, for 1500 on the wire with IPv4.
    pub mss: u16,
    /// Initial window in segments; 2 as in ns-2. RFC 5681 §3.1 allows 3 of this size, RFC 6928 10.
    pub initial_window: u16,
    /// Bytes that the receiver takes beyond what it delivered, 1 GB at most; 1 MiB, so that congestion alone limits.
    pub receive_window: u64,
    /// How long a receiver waits for a second segment; 200 ms as most systems (RFC 5681 §4.2 allows
    /// 500). ns-2: 100 ms. Zero: every segment is acknowledged.
    pub delayed_ack: Duration,
    /// Limits of the retransmission timeout (RFC 6298); initially 1 s, from 1 s to 60 s.
    pub rto: RtoBounds,
    /// `true` if to offer SACK; yes. Without it losses are found by duplicate acknowledgements, one
    /// in a round trip: NewReno (RFC 6582).
    pub sack: bool,
    /// `true` if to offer and accept ECN (RFC 3168); not.
    pub ecn: bool,
    /// Congestion control; Reno, as ns-2's.
    pub cc: Algorithm,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            mss: 1460,
            initial_window: 2,
            receive_window: 1 << 20,
            delayed_ack: Duration::from_millis(200),
            rto: RtoBounds::default(),
            sack: true,
            ecn: false,
            cc: Algorithm::Reno,
        }
    }
}

impl Config {
    /// Shift and field that announce the receive window (RFC 7323 §2.2).
    pub(super) fn scaled_window(&self) -> (u8, u16) {
        let shift = (0..14).find(|shift| self.receive_window >> shift <= 0xffff).unwrap_or(14);
        (shift, (self.receive_window >> shift).min(0xffff) as u16)
    }
}
