use crate::api::FecLosses;
use crate::assoc::Association;

impl Association {
    /// A chunk that went over the path in `slot` as number `order` was acknowledged after later ones: redundancy made up for it,
    /// if it was not only late. Without a code nobody asks.
    pub(in crate::assoc) fn note_repaired(&mut self, slot: usize, order: u64) {
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.stats.repaired_chunks += 1;
        let new_round = path.recovery.is_none_or(|until| order >= until);
        let told = match self.options.redundancy.fec_losses {
            FecLosses::Hidden => false,
            FecLosses::Queued => path.shows_congestion(),
            FecLosses::Told => true,
        };
        if told && new_round {
            path.recovery = Some(path.next_order());
            self.shrink(slot);
        }
    }

    /// Whether redundancy is sent.
    pub(in crate::assoc) fn sends_redundancy(&self) -> bool {
        self.fec.as_ref().is_some_and(|fec| fec.sender.is_some())
    }
}
