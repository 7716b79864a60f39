//! The paths that are not the handshake's join when it is done.

use super::Open;
use crate::path::PathIndex;
use braidcast_core::Instant;

impl Open {
    /// Lets the other paths join than that at `index`, of the handshake, and that one too if `rejoin`; where packets are to be
    /// protected, once they are.
    pub(super) fn begin_joins(&mut self, now: Instant, index: PathIndex, rejoin: bool) {
        match self.protection.as_mut().filter(|it| !it.told) {
            Some(protection) => protection.joins = Some((index, rejoin)),
            None => self.join_all(now, index, rejoin),
        }
    }

    pub(super) fn join_all(&mut self, now: Instant, index: PathIndex, rejoin: bool) {
        // The path may have left while the keys were agreed on.
        if rejoin && self.agreed.asconf && self.paths.indices().any(|other| other == index) {
            self.queue_join(now, index);
        }
        self.join_others(now, index);
    }

    /// Lets all paths but the one of the handshake join. Those to addresses that the peer listed are in already, as it was
    /// told ours: they only have to be confirmed (RFC 9260 §5.4).
    fn join_others(&mut self, now: Instant, index: PathIndex) {
        let others: Vec<PathIndex> = self.paths.indices().filter(|&other| other != index).collect();
        for other in others {
            if self.peer_addresses.contains(self.paths[other].route().remote.ip()) {
                self.paths[other].ask(now);
            } else {
                self.queue_join(now, other);
            }
        }
    }
}
