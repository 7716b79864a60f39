use super::DropReason;
use braidcast_core::Instant;

/// What a link has done so far, in packets unless said otherwise. Bytes are those on the wire,
/// [`LinkModel::overhead`](super::LinkModel::overhead) included.
///
/// `offered + duplicated` is always `delivered` plus everything dropped plus [`Link::inside`](super::Link::inside).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LinkStats {
    /// Packets offered.
    pub offered: u64,
    /// Bytes offered.
    pub offered_bytes: u64,
    /// Packets that arrived, copies and corrupted ones included.
    pub delivered: u64,
    /// Bytes that arrived.
    pub delivered_bytes: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Packets whose bits were flipped.
    pub corrupted: u64,
    /// Packets that the queue marked as having met congestion (ECN), whatever became of them later.
    pub marked: u64,
    /// Dropped as too big.
    pub dropped_too_big: u64,
    /// Dropped by the policer.
    pub dropped_policed: u64,
    /// Dropped by the full queue.
    pub dropped_queue: u64,
    /// Dropped by RED or CoDel.
    pub dropped_early: u64,
    /// Dropped by an outage or while down.
    pub dropped_outage: u64,
    /// Lost in flight.
    pub dropped_loss: u64,
    /// The longest that the queue has been.
    pub queue_peak_packets: usize,
    /// The most bytes that waited at once.
    pub queue_peak_bytes: usize,
    /// The queue's length in packets, summed over time: packets × nanoseconds up to `as_of`.
    pub queue_packet_nanos: u128,
    /// The queue's length in bytes, summed over time: bytes × nanoseconds up to `as_of`.
    pub queue_byte_nanos: u128,
    /// The time of the latest offer, poll or cut; all of this is as of then.
    pub as_of: Instant,
}

impl LinkStats {
    /// Packets dropped, for whatever reason.
    pub const fn dropped(&self) -> u64 {
        self.dropped_too_big
            + self.dropped_policed
            + self.dropped_queue
            + self.dropped_early
            + self.dropped_outage
            + self.dropped_loss
    }

    /// The mean length of the queue in packets between `earlier` and this; the default stands for the start.
    pub fn mean_queue_packets(&self, earlier: &Self) -> f64 {
        self.mean_since(earlier, self.queue_packet_nanos.saturating_sub(earlier.queue_packet_nanos))
    }

    /// The mean length of the queue in bytes between `earlier` and this; the default stands for the start.
    pub fn mean_queue_bytes(&self, earlier: &Self) -> f64 {
        self.mean_since(earlier, self.queue_byte_nanos.saturating_sub(earlier.queue_byte_nanos))
    }

    fn mean_since(&self, earlier: &Self, sum: u128) -> f64 {
        let nanos = self.as_of.since(earlier.as_of).as_nanos();
        if nanos == 0 { 0.0 } else { sum as f64 / nanos as f64 }
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        *match reason {
            DropReason::TooBig => &mut self.dropped_too_big,
            DropReason::Policed => &mut self.dropped_policed,
            DropReason::QueueFull => &mut self.dropped_queue,
            DropReason::Early => &mut self.dropped_early,
            DropReason::Outage => &mut self.dropped_outage,
            DropReason::Loss => &mut self.dropped_loss,
        } += 1;
    }

    /// The queue held `packets` and `bytes` from `as_of` until `at`.
    pub(super) fn occupied(&mut self, at: Instant, packets: usize, bytes: usize) {
        if at <= self.as_of {
            return;
        }
        let nanos = at.since(self.as_of).as_nanos();
        self.queue_packet_nanos += packets as u128 * nanos;
        self.queue_byte_nanos += bytes as u128 * nanos;
        self.as_of = at;
    }

    /// The queue grew to this.
    pub(super) fn grew_to(&mut self, packets: usize, bytes: usize) {
        self.queue_peak_packets = self.queue_peak_packets.max(packets);
        self.queue_peak_bytes = self.queue_peak_bytes.max(bytes);
    }
}
