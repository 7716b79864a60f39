use super::Association;
use crate::api::{Event, Options, PathState};
use crate::path::Path;
use crate::tx::{ChunkState, LossCause};
use braidcast_core::{Instant, PathId, Route};

/// The paths of an association. Each stands in a slot, by which chunks refer to it; slots are used again, [`PathId`]s
/// are not.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    slots: Vec<Option<Path>>,
    next_id: u16,
    /// The slot of the primary path (RFC 9260 §6.4).
    pub(crate) primary: usize,
    /// The slot that new data went to last.
    pub(crate) last: usize,
    /// Routes that joined or left, for the endpoint's index.
    pub(crate) changes: Vec<(Route, bool)>,
}

impl Paths {
    pub(crate) fn add(&mut self, now: Instant, route: Route, state: PathState, options: &Options) -> usize {
        let path = Path::new(now, PathId(self.next_id), route, state, options);
        self.next_id = self.next_id.wrapping_add(1);
        self.changes.push((route, true));
        if let Some(slot) = self.slots.iter().position(Option::is_none) {
            self.slots[slot] = Some(path);
            return slot;
        }
        self.slots.push(Some(path));
        self.slots.len() - 1
    }

    pub(crate) fn remove(&mut self, slot: usize) -> Option<Path> {
        let path = self.slots.get_mut(slot)?.take()?;
        self.changes.push((path.route, false));
        if self.primary == slot {
            self.primary = self.slots.iter().position(Option::is_some).unwrap_or(0);
        }
        Some(path)
    }

    pub(crate) fn get(&self, slot: usize) -> Option<&Path> {
        self.slots.get(slot)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> Option<&mut Path> {
        self.slots.get_mut(slot)?.as_mut()
    }

    pub(crate) fn by_route(&self, route: Route) -> Option<usize> {
        self.slots.iter().position(|path| path.as_ref().is_some_and(|path| path.route == route))
    }

    pub(crate) fn by_id(&self, id: PathId) -> Option<usize> {
        self.slots.iter().position(|path| path.as_ref().is_some_and(|path| path.id == id))
    }

    /// One past the highest slot.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Path> {
        self.slots.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.slots.iter_mut().flatten()
    }

    /// Paths with their slots.
    pub(crate) fn enumerate(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.slots.iter().enumerate().filter_map(|(slot, path)| Some((slot, path.as_ref()?)))
    }

    /// How good a path is for sending, 0 best: it answers; it is silent; it failed; it is given up. `None`: it may not
    /// be used at all. New data goes only to the best that there are (RFC 7829 §3).
    fn rank(path: &Path) -> Option<u8> {
        match path.state {
            PathState::Unconfirmed => None,
            PathState::Active if path.silent_since.is_none() => Some(0),
            PathState::Active => Some(1),
            PathState::PotentiallyFailed => Some(2),
            PathState::Inactive => Some(3),
        }
    }

    /// The rank of the best path that there is, not counting `except`.
    pub(crate) fn best_rank(&self, except: Option<usize>) -> Option<u8> {
        self.enumerate().filter(|&(slot, _)| Some(slot) != except).filter_map(|(_, path)| Self::rank(path)).min()
    }

    /// Whether `path` is among the best that there are.
    pub(crate) fn is_best(&self, path: &Path, best: Option<u8>) -> bool {
        Self::rank(path).is_some_and(|rank| Some(rank) == best)
    }

    /// A path for control chunks: `preferred` unless another one answers better, then the one of the lowest RTT.
    pub(crate) fn for_control(&self, preferred: Option<usize>) -> Option<usize> {
        let best = self.best_rank(None);
        let good = |slot: &usize| self.get(*slot).is_some_and(|path| self.is_best(path, best));
        preferred.filter(good).or_else(|| {
            let candidates = self.enumerate().filter(|(_, path)| self.is_best(path, best));
            candidates.min_by_key(|(_, path)| path.rtt.srtt()).map(|(slot, _)| slot)
        })
    }

    /// The path that new data goes over when one is used at a time: the primary one if it is among the best, else the first
    /// of those (RFC 9260 §6.4.1 leaves the choice open).
    pub(crate) fn data_path(&self) -> Option<usize> {
        let best = self.best_rank(None);
        let good = |slot: &usize| self.get(*slot).is_some_and(|path| self.is_best(path, best));
        Some(self.primary).filter(good).or_else(|| (0..self.slots()).find(good))
    }

    /// The best path but the one in `slot` that carries packets of `size` bytes, unless it has failed.
    pub(crate) fn best_other(&self, slot: usize, size: usize) -> Option<usize> {
        let others = self.enumerate().filter(|&(other, path)| other != slot && path.mtu() >= size);
        let alive = others.filter_map(|(other, path)| Some((Self::rank(path).filter(|&rank| rank <= 1)?, path, other)));
        alive.min_by_key(|&(rank, path, _)| (rank, path.rtt.srtt())).map(|(_, _, other)| other)
    }

    /// The path that has failed most often of those that are not active: the one to drop for a new one.
    pub(crate) fn worst(&self) -> Option<usize> {
        let idle = self.enumerate().filter(|(_, path)| path.state != PathState::Active);
        idle.max_by_key(|(_, path)| path.errors).map(|(slot, _)| slot)
    }

    /// The packet size that every path carries which may be used, for cutting messages.
    pub(crate) fn common_mtu(&self) -> Option<usize> {
        self.iter().filter(|path| path.is_usable()).map(Path::mtu).min()
    }
}

impl Association {
    /// Takes the path in `slot` out; what it owes goes over the others, without blame.
    pub(super) fn remove_path(&mut self, slot: usize) {
        let Some(path) = self.paths.remove(slot) else { return };
        self.out.release_abandoned(slot);
        for &(tsn, order) in &path.sent {
            if let Some(chunk) = self.out.get_mut(tsn)
                && chunk.state == ChunkState::InFlight
                && usize::from(chunk.slot) == slot
                && chunk.order == order
            {
                chunk.state = ChunkState::Lost;
                chunk.lost_by = LossCause::Silence;
                let len = usize::from(chunk.piece.len);
                self.out.in_flight -= len;
                self.peer_rwnd += len; // RFC 9260 §6.2.1 C.
                self.queue_repeat(tsn);
            }
        }
        self.out.forget_slot(slot);
        self.retransmit.forget_slot(slot as u8);
        if self.is_forwarding() {
            self.request_forward(); // The F-timer may have been this path's.
        }
        self.control.retain(|control| control.slot != slot);
        self.events.push_back(Event::PathRemoved(path.id, path.route));
    }

    /// The path in `slot` can carry data: it was confirmed, or answers again.
    pub(super) fn path_answers(&mut self, now: Instant, slot: usize) {
        self.errors = 0;
        let forwarding = self.is_forwarding();
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.errors = 0;
        path.answered = now;
        let revived = path.silent_since.take().is_some() || path.state != PathState::Active;
        path.probes = 0;
        path.burst = 0;
        path.rtt.restore_rto();
        if path.state != PathState::Active {
            path.pmtu.start(now);
            path.state = PathState::Active;
            path.pending.forward |= forwarding;
            self.events.push_back(Event::PathUp(path.id, path.route));
        }
        if revived {
            self.copy_urgent(slot);
        }
    }

    /// The path in `slot` is back: what goes over two paths, and waits for an answer over another one, goes over this one
    /// too. Whatever was sent over it before may be lost.
    fn copy_urgent(&mut self, slot: usize) {
        let urgent = self.out.iter().filter(|(_, chunk)| {
            chunk.state == ChunkState::InFlight
                && usize::from(chunk.slot) != slot
                && self.queue.get(chunk.piece.message).copied
        });
        self.copies.extend(urgent.map(|(tsn, _)| tsn));
    }

    /// The path in `slot` missed an answer (RFC 9260 §8.1, §8.2; RFC 7829 §3).
    pub(super) fn path_failed(&mut self, slot: usize) {
        let limit = self.options.paths.path_max_retrans;
        let avoided_after = self.options.paths.quick_failover.map_or(limit, |quick| quick.min(limit));
        let best = self.paths.best_rank(None);
        // Paths that carry no data do not speak for the association (RFC 9260 §8.1).
        let counts = self.paths.get(slot).is_some_and(|path| self.paths.is_best(path, best));
        let others = self.paths.best_rank(None).is_some();
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.errors += 1;
        path.stats.timeouts += 1;
        path.rtt.back_off();
        if path.state == PathState::Unconfirmed && others {
            return;
        }
        if path.state == PathState::Active && path.errors > avoided_after {
            self.events.push_back(Event::PathDown(path.id, path.route));
            path.state = PathState::PotentiallyFailed;
        }
        if path.errors > limit && path.state != PathState::Unconfirmed {
            path.state = PathState::Inactive;
        }
        self.errors += u32::from(counts);
        if self.errors > self.options.timers.association_max_retrans {
            self.send_abort(&crate::wire::Cause::UserInitiatedAbort(b"no path answers"));
            self.close(crate::api::CloseReason::PathsFailed);
        }
    }
}
