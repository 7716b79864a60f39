//! What the commands that speak DCCP share.

use crate::out::json;
use braidcast_dccp::{Ccid, Options, Report};
use serde::Serialize;

/// The protocol number of DCCP over IP itself.
pub(crate) const IP_PROTOCOL: u8 = 33;

/// The DCCP port of servers in UDP. It is the same whatever the UDP port, since NATs change that one and not this one.
pub(crate) const PORT_IN_UDP: u16 = 6511;

/// What is before DCCP in an IP packet.
pub(crate) const IPV6_AND_UDP: usize = 40 + 8;

/// The largest DCCP packet in an Ethernet frame.
pub(crate) const MAX_PACKET: usize = 1500 - IPV6_AND_UDP;

/// Returns `true` if the best of the CCIDs has a rate, which all that TFRC's options are about.
pub(crate) fn is_rate_based(options: &Options) -> bool {
    matches!(options.ccids.first(), Some(Ccid::Three | Ccid::Four))
}

/// State of a connection and of its congestion control; what a CCID does not have is null.
#[derive(Clone, Serialize)]
pub(crate) struct ConnectionLine {
    pub(crate) sending: String,
    pub(crate) receiving: String,
    pub(crate) allowed_bits_per_second: Option<f64>,
    pub(crate) fair_bits_per_second: Option<f64>,
    pub(crate) received_bits_per_second: Option<f64>,
    pub(crate) rtt_ms: Option<f64>,
    pub(crate) loss_event_rate: Option<f64>,
    pub(crate) loss_events: u64,
    pub(crate) window_packets: Option<u32>,
    pub(crate) queued_messages: usize,
    pub(crate) queued_bytes: usize,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) marked_packets: u64,
    pub(crate) expired_messages: u64,
    pub(crate) crowded_out_messages: u64,
    pub(crate) reorder_delay_ms: Option<f64>,
}

impl From<&Report> for ConnectionLine {
    fn from(report: &Report) -> Self {
        let (ccid, stats) = (&report.ccid, &report.stats);
        let bits = |bytes: f64| (bytes * 8.0).round();
        Self {
            sending: report.sending.to_string(),
            receiving: report.receiving.to_string(),
            allowed_bits_per_second: ccid.allowed_rate.map(bits),
            fair_bits_per_second: ccid.fair_rate.map(bits),
            received_bits_per_second: ccid.recv_rate.map(bits),
            rtt_ms: report.rtt.map(|rtt| json::round(rtt.as_secs_f64() * 1e3)),
            loss_event_rate: ccid.loss_event_rate.map(|p| (p * 1e6).round() / 1e6),
            loss_events: ccid.loss_events,
            window_packets: ccid.cwnd,
            queued_messages: report.queued_messages,
            queued_bytes: report.queued_bytes,
            sent_packets: stats.sent_packets,
            sent_bytes: stats.sent_bytes,
            received_packets: stats.received_packets,
            lost_packets: ccid.lost,
            marked_packets: ccid.marked,
            expired_messages: stats.expired,
            crowded_out_messages: stats.crowded_out,
            reorder_delay_ms: report.reorder.map(|it| json::round(it.longest_delay.as_secs_f64() * 1e3)),
        }
    }
}
