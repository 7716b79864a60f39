/// Counts of one path, for its report.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathStats {
    pub(super) sent_packets: u64,
    pub(super) sent_bytes: u64,
    pub(super) sent_chunks: u64,
    pub(super) lost_chunks: u64,
    pub(super) retransmitted_chunks: u64,
    pub(super) copied_chunks: u64,
    pub(super) repaired_chunks: u64,
    pub(super) redundancy_chunks: u64,
    pub(super) fast_retransmissions: u64,
    pub(super) timeout_retransmissions: u64,
    pub(super) t3_expiries: u64,
    pub(super) timeouts: u64,
    pub(super) received_packets: u64,
    pub(super) received_bytes: u64,
    pub(super) ect_packets: u64,
    pub(super) marked_packets: u64,
    pub(super) mark_reductions: u64,
}

impl PathStats {
    pub(crate) const fn sent_chunks(&self) -> u64 {
        self.sent_chunks
    }

    pub(crate) const fn redundancy_chunks(&self) -> u64 {
        self.redundancy_chunks
    }
}
