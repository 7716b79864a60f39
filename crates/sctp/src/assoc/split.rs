use super::Association;

impl Association {
    /// Whether new data may go over the path in `slot` as far as buffer splitting is concerned
    /// ([`BufferSplit`](crate::BufferSplit)). What is sent again takes no room that it did not have.
    pub(super) fn within_share(&self, slot: usize) -> bool {
        let split = self.options.papers.buffer_split;
        if !(split.at_sender() || split.at_receiver()) {
            return true;
        }
        let Some(path) = self.paths.get(slot) else { return false };
        if path.in_flight == 0 {
            return true;
        }
        let best = self.paths.best_rank(None);
        let count = self.paths.iter().filter(|other| self.paths.is_best(other, best)).count().max(1);
        let held = path.unacked - path.non_renegable;
        // What the peer has room for beside what is in flight, and what is in flight.
        let receive_buffer = self.peer_rwnd + self.out.in_flight;
        let within = |bytes: usize, whole: usize| bytes + path.mtu() <= whole / count;
        (!split.at_sender() || within(held, self.options.limits.send_buffer))
            && (!split.at_receiver() || within(path.in_flight, receive_buffer))
    }
}
