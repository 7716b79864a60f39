use super::Sender;
use crate::mapping::Place;
use braidcast_core::Instant;
use braidcast_media::Unit;
use core::time::Duration;
use std::collections::VecDeque;

/// A live unit that is still of use.
#[derive(Debug)]
pub(super) struct Recent {
    pub(super) sequence: u64,
    /// An association has had it.
    pub(super) handed: bool,
    /// Its place among the frames.
    pub(super) place: Place,
    pub(super) unit: Unit,
}

/// The newest live units: those that a new association can still deliver in time.
#[derive(Debug, Default)]
pub(super) struct Newest {
    units: VecDeque<Recent>,
    bytes: usize,
}

impl Newest {
    /// Adds a unit and drops those that are older than `latency`, and the oldest beyond `limit`
    /// bytes; `dropped` is told of each that no association has had.
    pub(super) fn push(
        &mut self,
        now: Instant,
        latency: Duration,
        limit: usize,
        recent: Recent,
        mut dropped: impl FnMut(&Recent),
    ) {
        self.bytes += recent.unit.bytes.len();
        self.units.push_back(recent);
        while self.units.front().is_some_and(|oldest| self.bytes > limit || oldest.unit.first_captured + latency <= now)
        {
            if let Some(oldest) = self.units.pop_front() {
                self.bytes -= oldest.unit.bytes.len();
                if !oldest.handed {
                    dropped(&oldest);
                }
            }
        }
    }

    /// The unit of this number, if it is still of use.
    pub(super) fn find(&self, sequence: u64) -> Option<&Unit> {
        let at = self.units.binary_search_by_key(&sequence, |recent| recent.sequence).ok()?;
        Some(&self.units[at].unit)
    }

    /// All of them, oldest first.
    pub(super) fn take(&mut self) -> VecDeque<Recent> {
        self.bytes = 0;
        core::mem::take(&mut self.units)
    }

    /// How many frames of each kind, or other units, began in them, by
    /// [`Kind::index`](braidcast_media::Kind::index).
    pub(super) fn count(&self) -> [u64; crate::wire::KINDS] {
        let mut counts = [0; crate::wire::KINDS];
        let begin = self.units.iter().filter(|recent| !recent.unit.continues);
        begin.for_each(|recent| counts[recent.unit.kind.index()] += 1);
        counts
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Sender {
    /// Keeps a unit for as long as another association may have to carry it.
    pub(super) fn keep(&mut self, now: Instant, recent: Recent) {
        if self.options.reliable {
            return self.transfer.push_sent(recent.unit);
        }
        let (latency, limit) = (self.options.latency, self.options.buffer);
        let (counts, counted) = (&mut self.account.counts, &mut self.counted);
        self.newest.push(now, latency, limit, recent, |Recent { place, unit, .. }| {
            let kind = unit.kind.index();
            counts.unsent[kind] += u64::from(counted.is_first(place.frame.id));
            counts.bytes[kind] = counts.bytes[kind].saturating_sub(unit.bytes.len() as u64);
        });
    }
}
