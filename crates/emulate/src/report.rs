use braidcast_sim::link::LinkStats;
use serde::Serialize;
use std::net::SocketAddr;

/// What an [`Emulator`](crate::Emulator) has done so far.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EmulatorReport {
    /// Seconds since it was made.
    pub seconds: f64,
    /// Where clients send to.
    pub listen: SocketAddr,
    /// Where their packets go.
    pub forward: SocketAddr,
    /// Clients served now.
    pub clients: usize,
    /// Clients served since the start.
    pub clients_seen: u64,
    /// Packets of clients that could not be served: too many of them, or no socket to be had.
    pub refused_packets: u64,
    /// Packets that came to a client's socket from elsewhere than `forward`, dropped as a NAT would.
    pub stray_packets: u64,
    /// From the clients to `forward`.
    pub to_forward: DirectionReport,
    /// From `forward` back to the clients.
    pub to_clients: DirectionReport,
}

/// What one direction of an emulated link has done so far. Bytes count UDP and IP headers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct DirectionReport {
    /// Packets that came.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets sent on, copies and corrupted ones included.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Copies made.
    pub duplicated_packets: u64,
    /// Packets sent on with one bit flipped.
    pub corrupted_packets: u64,
    /// Packets that the queue marked as having met congestion (ECN).
    pub marked_packets: u64,
    /// Dropped as too big.
    pub dropped_too_big: u64,
    /// Dropped by the policer.
    pub dropped_policed: u64,
    /// Dropped by the full queue.
    pub dropped_queue: u64,
    /// Dropped by RED or CoDel before the queue was full.
    pub dropped_early: u64,
    /// Dropped by an outage.
    pub dropped_outage: u64,
    /// Lost in flight.
    pub dropped_loss: u64,
    /// Dropped because the emulator's memory was full: its results are not the link's any more.
    pub dropped_memory: u64,
    /// Waiting or in flight now.
    pub inside_packets: usize,
    /// The longest that the queue has been, in packets.
    pub queue_peak_packets: usize,
    /// The longest that the queue has been, in bytes.
    pub queue_peak_bytes: usize,
}

impl DirectionReport {
    pub(crate) fn new(stats: &LinkStats, dropped_memory: u64, inside_packets: usize) -> Self {
        Self {
            offered_packets: stats.offered,
            offered_bytes: stats.offered_bytes,
            delivered_packets: stats.delivered,
            delivered_bytes: stats.delivered_bytes,
            duplicated_packets: stats.duplicated,
            corrupted_packets: stats.corrupted,
            marked_packets: stats.marked,
            dropped_too_big: stats.dropped_too_big,
            dropped_policed: stats.dropped_policed,
            dropped_queue: stats.dropped_queue,
            dropped_early: stats.dropped_early,
            dropped_outage: stats.dropped_outage,
            dropped_loss: stats.dropped_loss,
            dropped_memory,
            inside_packets,
            queue_peak_packets: stats.queue_peak_packets,
            queue_peak_bytes: stats.queue_peak_bytes,
        }
    }
}
