use super::Open;
use braidcast_core::{Instant, Strangers};

impl Open {
    /// Room that the peer may fill (RFC 9260 §6.2 a_rwnd).
    pub(super) fn receive_window(&self) -> usize {
        self.receive_limit().saturating_sub(self.reassembly.buffered())
    }

    /// Bytes that the peer may have sent and the application has not taken: before there are keys,
    /// what key messages need.
    pub(super) fn receive_limit(&self) -> usize {
        let limit = self.options.limits.receive_buffer;
        if self.is_agreeing() { limit.min(Strangers::<()>::WINDOW) } else { limit }
    }

    /// For the report: whether a packet of the peer would fit the window that it is told.
    pub(super) fn note_window(&mut self, now: Instant) {
        let shut = self.receive_window() < self.paths.common_mtu();
        self.window_shut.observe(now, shut);
    }

    /// After the application took a message: informs the peer if the window was nearly shut and is open
    /// again
    /// (RFC 9260 §6.2; as for silly windows in RFC 9293 §3.8.6.2.2).
    pub(super) fn reopen_window(&mut self, now: Instant, before: usize) {
        let step = self.options.limits.receive_buffer / 4;
        if before < step && self.receive_window() >= step {
            self.ack.demand(now);
        }
    }
}
