use super::PseudoCumack;
use crate::number::{Order, Tsn};
use core::time::Duration;
use std::collections::VecDeque;

/// What is out over one path.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// What was sent, oldest first. Entries go stale when a chunk is acknowledged or sent again,
    /// and are dropped when they get to the front.
    pub(super) sent: VecDeque<(Tsn, Order)>,
    pub(super) next_order: Order,
    /// Bytes sent and neither acknowledged nor taken for lost.
    pub(super) in_flight: usize,
    /// Bytes last sent over the path that the cumulative acknowledgement has not reached.
    pub(super) unacked: usize,
    /// Of those, what the peer promised to keep (NR-SACK).
    pub(super) non_renegable: usize,
    /// The time of the stream that is not shown since it was last asked, as frames that first left over the path did
    /// not arrive in time.
    pub(super) missed: Duration,
    /// Bytes that first left over it since it was last asked.
    pub(super) first_sent: usize,
    /// What must be acknowledged for the path's window to grow.
    pub(super) cumack: PseudoCumack,
}
