use super::Open;
use crate::tx::{Books, Ledger};

impl Open {
    /// The ledger, and what its verbs change beside it.
    pub(super) fn books(&mut self) -> (&mut Ledger, Books<'_>) {
        (&mut self.ledger, Books { queue: &mut self.queue, journal: &mut self.journal })
    }

    /// Asks the paths to carry FORWARD-TSN if there is news for it, or not to if it would say
    /// nothing (RFC 3758 §3.5 C).
    pub(super) fn announce_forward(&mut self) {
        if !self.ledger.wants_forward() {
            self.paths.iter_mut().for_each(crate::path::Path::stop_forward);
        }
        if self.ledger.take_forward_news() {
            self.request_forward();
        }
    }

    /// FORWARD-TSN goes over every path that answers: whichever is fastest unblocks the peer (PRCMT
    /// §4.3). With one path in use it goes over that one, behind the data.
    pub(super) fn request_forward(&mut self) {
        for place in 0..self.paths.places() {
            if let Some(index) = self.paths.at(place).filter(|&index| self.paths.is_for_data(index)) {
                self.paths[index].request_forward();
            }
        }
    }
}
