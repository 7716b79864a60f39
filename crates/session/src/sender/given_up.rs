use super::Sender;
use super::transmit::Named;
use crate::mapping::{self, control};
use crate::wire::{self, PPID};
use braidcast_core::Instant;
use braidcast_media::{Kind, Run, Unit};
use braidcast_sctp::{Reliability, SendOptions, Why};
use std::collections::VecDeque;

/// Packets that will not come, for a receiver that asked to be told.
#[derive(Debug, Default)]
pub(super) struct GivenUp {
    wanted: bool,
    runs: Vec<Run>,
}

impl GivenUp {
    /// Runs in a message at most; of more, the receiver waits until they are due.
    const MAX_RUNS: usize = 1024;

    /// The receiver wants to be told, or not.
    pub(super) const fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// `unit` will not come. Of one in several parts some may: nothing is told of those.
    pub(super) fn note(&mut self, unit: &Unit) {
        let room = self.runs.len() + unit.runs.len() <= Self::MAX_RUNS;
        if self.wanted && room && mapping::parts(unit).is_none() {
            self.runs.extend_from_slice(&unit.runs);
        }
    }

    /// Puts the runs in order, those side by side joined.
    fn tidy(&mut self) {
        self.runs.sort_unstable_by_key(|run| run.first);
        self.runs.dedup_by(|later, run| {
            let joins = later.first <= run.end();
            if joins {
                run.count = run.count.max(u32::try_from(later.end() - run.first).unwrap_or(u32::MAX));
            }
            joins
        });
    }
}

/// Frames that were counted as discarded lately: one of several messages counts once.
#[derive(Debug, Default)]
pub(crate) struct Counted(VecDeque<u64>);

impl Counted {
    /// Frames remembered: more than have messages in a send buffer at a time.
    const MOST: usize = 512;

    /// Returns `true` if `frame` was not counted yet; now it is.
    pub(crate) fn is_first(&mut self, frame: u64) -> bool {
        if self.0.contains(&frame) {
            return false;
        }
        if self.0.len() == Self::MOST {
            self.0.pop_front();
        }
        self.0.push_back(frame);
        true
    }
}

/// What SCTP calls a message: the unit's number, 40 bits, how far it is from that of its frame's first
/// unit, and its kind.
pub(super) fn context(named: Named, kind: Kind) -> u64 {
    let distance = named.sequence.saturating_sub(named.frame()).min(u64::from(u16::MAX));
    named.sequence << 24 | distance << 8 | kind.index() as u64
}

impl Sender {
    /// SCTP abandoned a message of ours. A frame of several counts once.
    pub(super) fn abandoned(&mut self, ppid: u32, context: u64, sent: bool, why: Option<Why>) {
        let (sequence, distance, kind) = (context >> 24, context >> 8 & 0xffff, (context & 0xff) as usize);
        if ppid != PPID || kind >= Kind::ALL.len() {
            return;
        }
        if let Some(unit) = self.newest.find(sequence) {
            self.given_up.note(unit);
        }
        if !self.counted.is_first(sequence.saturating_sub(distance)) {
            return;
        }
        self.account.counts.abandon(kind, sent, why);
    }

    /// Informs the receiver what was abandoned since it was told last.
    pub(super) fn tell_given_up(&mut self, now: Instant) {
        if self.given_up.runs.is_empty() {
            return;
        }
        self.given_up.tidy();
        wire::write_given_up(&mut self.message, &self.given_up.runs);
        self.given_up.runs.clear();
        // By then all of it is due, and nobody waits for it.
        let how = SendOptions { reliability: Reliability::Lifetime(self.options.latency), ..control() };
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            // Without room for it the receiver waits, as it does for what is under way.
            let _sent = association.send(now, &self.message, how);
        }
    }
}
