use super::Open;
use crate::path::PathIndex;

impl Open {
    /// Returns `true` if new data may go over the path `index` as far as buffer splitting is concerned
    /// ([`BufferSplit`](crate::BufferSplit)). What is sent again takes no room that it did not have.
    pub(super) fn within_share(&self, index: PathIndex) -> bool {
        let split = self.options.papers.buffer_split;
        let in_flight = self.ledger.in_flight_over(index);
        if in_flight == 0 || !(split.at_sender() || split.at_receiver()) {
            return true;
        }
        let count = self.paths.best().count().max(1);
        // What the peer has room for beside what is in flight, and what is in flight.
        let receive_buffer = self.ledger.peer_room() + self.ledger.in_flight();
        let within = |bytes: usize, whole: usize| bytes + self.paths[index].mtu() <= whole / count;
        (!split.at_sender() || within(self.ledger.held_for(index), self.options.limits.send_buffer))
            && (!split.at_receiver() || within(in_flight, receive_buffer))
    }
}
