use super::fragment::{Fragment, ReassemblyError};
use super::pool::{Buffer, Pool};
use crate::number::Tsn;
use braidcast_core::{Instant, PathId};
use core::ops::RangeInclusive;
use std::collections::BTreeMap;

/// Which message a fragment belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label {
    pub(super) stream: u16,
    pub(super) unordered: bool,
    /// The unwrapped SSN or MID; 0 for unordered DATA, where the SSN means nothing (RFC 9260 §6.6).
    pub(super) number: u64,
}

/// A message or a part of one.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) label: Label,
    /// That of the first fragment; I-DATA carries it nowhere else (RFC 8260 §2.1).
    pub(super) ppid: u32,
    /// The path of the fragment that came last.
    pub(super) path: PathId,
    /// When the first of its fragments came, whichever that was, and the last.
    pub(super) arrived: (Instant, Instant),
    /// When it could be received first.
    pub(super) ready: Instant,
    pub(super) fragments: u32,
    /// It ends with its times.
    pub(super) timed: bool,
    pub(super) buffer: Buffer,
}

impl Message {
    /// What it takes off the receive window, in bytes.
    pub(super) fn charge(&self) -> usize {
        self.buffer.len() + self.fragments as usize * Fragment::OVERHEAD
    }
}

/// A fragment and where it stands among the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// The TSN of DATA; of I-DATA see [`idata_position`].
    pub(super) at: u128,
    pub(super) first: bool,
    pub(super) last: bool,
    pub(super) timed: bool,
    pub(super) label: Label,
    pub(super) ppid: u32,
    pub(super) path: PathId,
    pub(super) arrived: Instant,
    pub(super) payload: &'a [u8],
}

impl Piece<'_> {
    /// A message or a part of one that holds this fragment alone; `grows` if the rest is to come.
    pub(super) fn message(&self, pool: &mut Pool, grows: bool) -> Message {
        let buffer = pool.fill(self.payload, grows);
        let (arrived, timed) = ((self.arrived, self.arrived), self.last && self.timed);
        let (label, ppid, path, ready) = (self.label, self.ppid, self.path, self.arrived);
        Message { label, ppid, path, arrived, ready, fragments: 1, timed, buffer }
    }
}

/// How far the message number is shifted up in the position of an I-DATA fragment. The FSN has 32 bits: the
/// spare one keeps the last FSN of a message from standing next to the first of the following.
const FSN_BITS: u32 = 33;

/// The position of an I-DATA fragment: those of one message are neighbours, those of one stream and direction
/// lie together by message number.
pub(super) fn idata_position(label: Label, fsn: u32) -> u128 {
    let group = u128::from(label.stream) << 65 | u128::from(label.unordered) << 64 | u128::from(label.number);
    group << FSN_BITS | u128::from(fsn)
}

/// Fragments without a gap between them.
#[derive(Debug)]
struct Run {
    /// One past the position of its last fragment.
    end: u128,
    has_first: bool,
    has_last: bool,
    message: Message,
}

/// Messages of which some fragments are missing, for all streams together: fragments by position, joined to
/// runs as gaps close. A run with a first and a last fragment is a message and leaves.
#[derive(Debug)]
pub(super) struct Runs {
    /// By the position of the first fragment.
    runs: BTreeMap<u128, Run>,
    interleaving: bool,
    /// The position of DATA up to which FORWARD-TSN left gaps: a fragment right after it that is not a first
    /// one belongs to an abandoned message.
    abandoned: Option<u128>,
}

impl Runs {
    pub(super) const fn new(interleaving: bool) -> Self {
        Self { runs: BTreeMap::new(), interleaving, abandoned: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The runs that `piece` continues downwards and upwards, by their positions.
    pub(super) fn neighbours(
        &self,
        piece: &Piece<'_>,
        max_len: usize,
    ) -> Result<(Option<u128>, Option<u128>), ReassemblyError> {
        let same_message = |at: u128| self.interleaving && at >> FSN_BITS == piece.at >> FSN_BITS;
        let mut len = piece.payload.len();
        let mut before = None;
        if let Some((&at, run)) = self.runs.range(..=piece.at).next_back() {
            if run.end > piece.at {
                return Err(ReassemblyError::Repeated);
            }
            let adjacent = run.end == piece.at;
            if run.has_last && (same_message(at) || (adjacent && !piece.first)) {
                return Err(ReassemblyError::PastLast);
            }
            if adjacent && !run.has_last {
                if run.message.label != piece.label {
                    return Err(ReassemblyError::Mismatch);
                }
                len = len.saturating_add(run.message.buffer.len());
                before = Some(at);
            }
        }
        let mut after = None;
        if let Some((&at, run)) = self.runs.range(piece.at + 1..).next() {
            let adjacent = at == piece.at + 1;
            if piece.last && (same_message(at) || (adjacent && !run.has_first)) {
                return Err(ReassemblyError::PastLast);
            }
            if adjacent && !piece.last {
                if run.message.label != piece.label {
                    return Err(ReassemblyError::Mismatch);
                }
                len = len.saturating_add(run.message.buffer.len());
                after = Some(at);
            }
        }
        if len > max_len { Err(ReassemblyError::TooLong { limit: max_len }) } else { Ok((before, after)) }
    }

    /// Takes in a fragment of several; returns the message that it completes. The second result is the charge
    /// of what was dropped because its beginning is abandoned.
    pub(super) fn insert(
        &mut self,
        piece: &Piece<'_>,
        max_len: usize,
        pool: &mut Pool,
    ) -> Result<(Option<Message>, usize), ReassemblyError> {
        let (before, after) = self.neighbours(piece, max_len)?;
        let after = after.and_then(|at| self.runs.remove(&at));
        let start = before.unwrap_or(piece.at);
        let existing = before.and_then(|at| self.runs.get_mut(&at));
        let run = match (existing, after) {
            (Some(run), after) => {
                run.message.buffer.append(piece.payload);
                run.take_in(piece, piece.at + 1);
                if let Some(after) = after {
                    run.end = after.end;
                    run.has_last = after.has_last;
                    run.message.fragments += after.message.fragments;
                    run.message.timed |= after.message.timed;
                    run.message.arrived.0 = run.message.arrived.0.min(after.message.arrived.0);
                    pool.release(run.message.buffer.join(after.message.buffer));
                }
                run
            }
            (None, Some(mut run)) => {
                run.message.buffer.prepend(piece.payload);
                let end = run.end;
                run.take_in(piece, end);
                self.runs.entry(start).or_insert(run)
            }
            (None, None) => {
                let message = piece.message(pool, true);
                let run = Run { end: piece.at + 1, has_first: piece.first, has_last: piece.last, message };
                self.runs.entry(start).or_insert(run)
            }
        };
        if run.has_first && run.has_last {
            return Ok((self.runs.remove(&start).map(|run| run.message), 0));
        }
        Ok((None, self.drop_abandoned_end(pool)))
    }

    /// Drops the parts of messages in `range`; returns their charge.
    pub(super) fn drop_range(&mut self, range: RangeInclusive<u128>, pool: &mut Pool) -> usize {
        let mut charge = 0;
        while let Some((&at, _)) = self.runs.range(range.clone()).next() {
            charge += self.drop_run(at, pool);
        }
        charge
    }

    /// Drops the parts of DATA messages that miss a TSN at or below `new_cumulative` (RFC 3758 §3.6), or that
    /// have a fragment there and are `skipped`; returns their charge.
    ///
    /// What is left there is at most one message, of which everything so far has arrived.
    pub(super) fn forward(&mut self, new_cumulative: Tsn, skipped: impl Fn(Label) -> bool, pool: &mut Pool) -> usize {
        let cumulative = u128::from(new_cumulative.get());
        let mut from = 0;
        let mut charge = 0;
        while let Some((&at, run)) = self.runs.range(from..cumulative + 1).next() {
            if !run.has_first || run.end <= cumulative || skipped(run.message.label) {
                charge += self.drop_run(at, pool);
            }
            from = at + 1;
        }
        self.abandoned = self.abandoned.max(Some(cumulative));
        charge + self.drop_abandoned_end(pool)
    }

    /// Drops the part of a DATA message that ends right before `at`, where no more of it can come. Returns its charge.
    pub(super) fn drop_unfinished_before(&mut self, at: u128, pool: &mut Pool) -> usize {
        let ends_there = self.runs.range(..at).next_back().filter(|(_, run)| run.end == at && !run.has_last);
        ends_there.map(|(&start, _)| start).map_or(0, |start| self.drop_run(start, pool))
    }

    /// Returns `true` if a message of several fragments begins right after `at`.
    pub(super) fn begins_after(&self, at: u128) -> bool {
        self.runs.get(&(at + 1)).is_some_and(|run| run.has_first)
    }

    /// Drops the run right after the abandoned TSNs if it has no beginning; what follows it is abandoned too.
    fn drop_abandoned_end(&mut self, pool: &mut Pool) -> usize {
        let Some(at) = self.abandoned.map(|abandoned| abandoned + 1) else { return 0 };
        let Some(run) = self.runs.get(&at).filter(|run| !run.has_first) else { return 0 };
        self.abandoned = Some(run.end - 1);
        self.drop_run(at, pool)
    }

    fn drop_run(&mut self, at: u128, pool: &mut Pool) -> usize {
        let Some(run) = self.runs.remove(&at) else { return 0 };
        let charge = run.message.charge();
        pool.release(run.message.buffer);
        charge
    }
}

impl Run {
    /// Notes that `piece`, whose payload has been added, is part of this run, which now ends at `end`.
    fn take_in(&mut self, piece: &Piece<'_>, end: u128) {
        self.end = end;
        self.has_first |= piece.first;
        self.has_last |= piece.last;
        if piece.first {
            self.message.ppid = piece.ppid;
        }
        self.message.timed |= piece.last && piece.timed;
        self.message.path = piece.path;
        self.message.arrived.1 = piece.arrived;
        self.message.fragments += 1;
    }
}
