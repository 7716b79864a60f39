//! What leaves next, over which path: decided once, before a byte is written. `transmit` writes it.

use super::Open;
use crate::number::Tsn;
use crate::path::{Path, PathIndex};
use crate::wire::{Header, padded};
use braidcast_core::events::{PacketContent, Purpose, SctpEvent};
use braidcast_core::{Instant, PathId};
use braidcast_queue::Planned;

/// The next packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) path: PathIndex,
    /// What it is for.
    pub(super) what: What,
    /// A SACK goes along, or is all.
    pub(super) sack: bool,
    /// Redundancy goes along, or is all.
    pub(super) redundancy: bool,
}

/// What a packet is for. Of several it is the first one here; what else fits goes along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// A control chunk that waits.
    Control,
    /// FORWARD-TSN, a heartbeat or an MTU probe that the path owes.
    Announcement,
    /// A copy of a chunk that went over another path.
    Copy,
    /// Redundancy that is due.
    Redundancy,
    /// A chunk that was lost.
    Repeat,
    /// New data.
    New,
    /// A part of new data that a plan gives to the path.
    Planned(Planned),
    /// A SACK that is due, alone.
    Sack,
}

impl Plan {
    /// Returns `true` if chunks of messages go in it that congestion control lets leave.
    pub(super) const fn is_data(&self) -> bool {
        matches!(self.what, What::Repeat | What::New | What::Planned(_))
    }

    /// The event of a packet of `size` bytes that left as planned over `path`.
    pub(super) fn as_told(&self, path: PathId, size: usize) -> SctpEvent {
        let purpose = match self.what {
            What::Control => Purpose::Control,
            What::Announcement => Purpose::Announcement,
            What::Copy => Purpose::Copy,
            What::Redundancy => Purpose::Redundancy,
            What::Repeat => Purpose::Repeat,
            What::New | What::Planned(_) => Purpose::New,
            What::Sack => Purpose::Sack,
        };
        let content = PacketContent { purpose, sack: self.sack, redundancy: self.redundancy };
        SctpEvent::PacketSent { path, bytes: size as u32, content }
    }
}

impl Open {
    /// The next packet, if there is anything to send. Redundancy that can wait for more data waits if it `may_wait`.
    pub(super) fn plan(&mut self, now: Instant, may_wait: bool) -> Option<Plan> {
        self.announce_forward();
        self.reinject(now);
        let (path, what) = self.next(now, may_wait)?;
        Some(self.plan_for(now, path, what))
    }

    /// One more packet with data over `path`, to go along with those before it.
    pub(super) fn plan_more(&mut self, now: Instant, path: PathIndex) -> Option<Plan> {
        self.announce_forward();
        if self.redundancy_is_next(path) {
            return None;
        }
        let (_, what) = self.open_path(now).filter(|&(next, _)| next == path)?;
        Some(self.plan_for(now, path, what))
    }

    /// What is first, and the path that it goes over.
    fn next(&mut self, now: Instant, may_wait: bool) -> Option<(PathIndex, What)> {
        if let Some((path, _)) = self.control.next() {
            return Some((path, What::Control));
        }
        // A closed association stays until the application knows, and has nothing more to say.
        if !self.state.is_up() {
            return None;
        }
        let announcing = |(_, path): &(PathIndex, &Path)| path.pending().any();
        if let Some((path, _)) = self.paths.enumerate().find(announcing) {
            return Some((path, What::Announcement));
        }
        if let Some((_, path)) = self.next_copy().or_else(|| self.next_everywhere(now)) {
            return Some((path, What::Copy));
        }
        let open = self.open_path(now);
        if let Some(path) = self.redundancy_path()
            && (!may_wait || open.is_none_or(|(open, _)| self.redundancy_is_next(open)))
        {
            return Some((path, What::Redundancy));
        }
        if open.is_some() {
            return open;
        }
        if !self.ack.due(now) {
            return None;
        }
        Some((self.sack_path()?, What::Sack))
    }

    /// What goes along with what is first.
    fn plan_for(&mut self, now: Instant, path: PathIndex, what: What) -> Plan {
        let mut plan = Plan { path, what, sack: false, redundancy: false };
        let pending = self.paths[path].pending();
        let goes_anyway =
            plan.is_data() || what == What::Control || pending.forward || pending.heartbeat || self.ack.due(now);
        plan.sack = self.ack.pending() && goes_anyway && self.sack_path() == Some(path);
        plan.redundancy = !plan.is_data() && self.redundancy_path() == Some(path);
        plan
    }

    /// SACKs go back where the data came from (RFC 9260 §6.4), if that path still answers, or where
    /// that is asked for over the quickest one that brings data, contrary to its SHOULD. If none
    /// answers, each goes over one more as well, all in turn: what comes over one path may have its
    /// only return path over another one.
    pub(super) fn sack_path(&self) -> Option<PathIndex> {
        let round_trip = |id| {
            let path = &self.paths[self.paths.by_id(id)?];
            path.shortest_round_trip().filter(|_| path.rank() == Some(0))
        };
        if let Some(id) = self.ack.quickest(round_trip) {
            return self.paths.by_id(id);
        }
        let source = self.ack.path().and_then(|id| self.paths.by_id(id));
        let path = self.paths.for_control(source)?;
        if !self.paths[path].has_failed() {
            return Some(path);
        }
        if self.ack.is_doubtful() {
            return self.paths.usable_in_turn(self.ack.turn() / 2);
        }
        source.filter(|&index| self.paths[index].is_usable()).or(Some(path))
    }

    /// The next chunk of which a copy is owed, and the path that it goes over: the best but the one
    /// it took. It may have been cut for larger packets than any other path carries; then there is
    /// no copy.
    pub(super) fn next_copy(&mut self) -> Option<(Tsn, PathIndex)> {
        let header = self.data_header();
        let paths = &self.paths;
        self.ledger.next_copy(|took, chunk| paths.best_other(took, Header::LEN + padded(header + chunk.len())))
    }
}

#[cfg(test)]
mod tests;
