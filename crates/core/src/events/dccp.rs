use super::Unsent;
use crate::Route;
use core::time::Duration;

/// What happens in a DCCP connection.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum DccpEvent {
    /// The handshake is done.
    Opened {
        /// Where it runs.
        route: Route,
        /// Number of the CCID that controls what this end sends.
        ccid: u8,
    },
    /// It is over.
    Closed,
    /// A packet leaves.
    PacketSent {
        /// Its sequence number.
        seq: u64,
        /// Its type, 0 to 9 (RFC 4340 §5.1).
        kind: u8,
        /// The acknowledgement number.
        ack: Option<u64>,
        /// Bytes of application data.
        bytes: u32,
    },
    /// A valid packet came.
    PacketReceived {
        /// Its sequence number.
        seq: u64,
        /// Its type.
        kind: u8,
        /// The acknowledgement number.
        ack: Option<u64>,
        /// Bytes of application data.
        bytes: u32,
    },
    /// What congestion control knows has changed.
    Metrics(DccpMetrics),
    /// A message was discarded unsent.
    MessageDiscarded {
        /// Its number, if the application gave it one.
        message: Option<u64>,
        /// Why.
        why: Unsent,
    },
}

/// What congestion control knows. What a CCID does not have is `None`.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct DccpMetrics {
    /// Congestion window, packets.
    pub cwnd: Option<u32>,
    /// Data packets in the network.
    pub pipe: Option<u32>,
    /// Data rate that is allowed, bytes per second.
    pub allowed_rate: Option<f64>,
    /// Data rate that arrives, bytes per second.
    pub recv_rate: Option<f64>,
    /// Data rate of the throughput equation, bytes per second.
    pub fair_rate: Option<f64>,
    /// Mean bytes of data in a packet.
    pub segment: Option<f64>,
    /// Loss event rate, 0 to 1.
    pub loss_event_rate: Option<f64>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Time after which silence is loss.
    pub rto: Option<Duration>,
    /// Slow start threshold, packets; `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Data packets for each acknowledgement.
    pub ack_ratio: Option<u16>,
    /// Messages that wait.
    pub queued: u32,
    /// Data packets acknowledged so far.
    pub acked: u64,
    /// Data packets taken for lost so far.
    pub lost: u64,
    /// Data packets that the network marked (ECN) so far.
    pub marked: u64,
    /// Loss events so far; with a window, times that it was cut.
    pub loss_events: u64,
    /// Timeouts so far.
    pub timeouts: u64,
}
