//! The paths that are not the handshake's join when it is done.

use super::Open;
use crate::path::PathIndex;
use braidcast_core::{Instant, PathId};

impl Open {
    /// Lets the other paths join than `first`, that of the handshake, and that one too if `rejoin`;
    /// where packets are to be protected, once they are.
    pub(super) fn begin_joins(&mut self, now: Instant, first: PathIndex, rejoin: bool) {
        let first = self.paths[first].id();
        match self.protection.as_mut().filter(|it| !it.told) {
            Some(protection) => protection.joins = Some((first, rejoin)),
            None => self.join_all(now, first, rejoin),
        }
    }

    pub(super) fn join_all(&mut self, now: Instant, first: PathId, rejoin: bool) {
        // It may have left while the keys were agreed on, and another path may be in its place.
        let first = self.paths.by_id(first);
        if let Some(first) = first.filter(|_| rejoin && self.agreed.asconf) {
            self.queue_join(now, first);
        }
        self.join_others(now, first);
    }

    /// Lets all paths but `first` join. Those to addresses that the peer listed are in already, as
    /// it was told ours: they only have to be confirmed (RFC 9260 §5.4).
    fn join_others(&mut self, now: Instant, first: Option<PathIndex>) {
        let others: Vec<PathIndex> = self.paths.indices().filter(|&other| Some(other) != first).collect();
        for other in others {
            if self.peer_addresses.contains(self.paths[other].route().remote.ip()) {
                self.paths[other].ask(now);
            } else {
                self.queue_join(now, other);
            }
        }
    }
}
