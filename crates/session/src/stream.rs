//! One sender's stream at the receiver: its clock, its playout and its counts.

use crate::clock::{Observed, PeerClock};
use crate::log::LogEntry;
use crate::playout::{Arrival, Playout, Release};
use crate::report::{Counts, PathHistories};
use crate::wire::{Message, Runs, UnitHeader, WireError};
use braidcast_core::{Instant, PathId};
use braidcast_sctp::{AssociationId, CloseReason};
use core::time::Duration;
use std::collections::BTreeMap;

/// Units of which some parts have come and some have not.
const MAX_PARTIAL: usize = 256;

/// Bytes at once of what passes unseen.
const PASS: usize = 1 << 16;

/// What a message did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// It completed a unit.
    pub(crate) entry: Option<LogEntry>,
    /// It showed that the sender's clock jumped.
    pub(crate) clock_jumped: bool,
}

/// A unit of which some parts are missing.
#[derive(Debug)]
struct Partial {
    missing: u16,
    entry: LogEntry,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: AssociationId,
    pub(crate) counts: Counts,
    pub(crate) paths: PathHistories,
    /// When the last message came.
    pub(crate) last_heard: Instant,
    clock: PeerClock,
    playout: Playout,
    /// What was left of the stream before the sender restarted; it goes first.
    before: Option<Playout>,
    partial: BTreeMap<u32, Partial>,
    reliable: bool,
    /// The sender said that this was all.
    ended: bool,
    closed: Option<CloseReason>,
}

impl Stream {
    pub(crate) fn new(now: Instant, id: AssociationId, early: bool) -> Self {
        Self {
            id,
            counts: Counts::default(),
            paths: PathHistories::default(),
            last_heard: now,
            clock: PeerClock::default(),
            playout: Playout::new(if early { Release::Early } else { Release::OnTime }),
            before: None,
            partial: BTreeMap::new(),
            reliable: false,
            ended: false,
            closed: None,
        }
    }

    /// The sender restarted: its indexes and its clock begin anew. What waits goes out at once.
    pub(crate) fn restart(&mut self, now: Instant, early: bool) {
        let fresh = Self { paths: core::mem::take(&mut self.paths), ..Self::new(now, self.id, early) };
        let old = core::mem::replace(self, fresh);
        // A second restart before the output was polled finds the older remains not handed out: they are dropped.
        let mut before = old.playout;
        before.set_release(Release::AtOnce);
        self.before = Some(before);
    }

    /// The association is closed: nothing more will come.
    pub(crate) fn close(&mut self, reason: CloseReason) {
        self.closed = Some(reason);
        self.playout.close();
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Whether all has come and gone, and how it ended.
    pub(crate) fn over(&self) -> Option<(bool, CloseReason)> {
        let reason = self.closed.clone()?;
        // The last packets of a shutdown may get lost, and it then ends some other way. That is no loss of ours: a live
        // stream promised nothing but the last message, and of a reliable one every unit can be counted.
        let whole = !self.reliable || self.counts.on_time == self.counts.captured;
        let complete = self.ended && (whole || reason == CloseReason::Shutdown);
        (self.playout.is_empty() && self.before.is_none()).then_some((complete, reason))
    }

    /// Bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.playout.held() + self.before.as_ref().map_or(0, Playout::held)
    }

    /// If nothing that waits will ever leave by itself, gives up what is missing before it; `false` if it will.
    pub(crate) fn skip_if_stuck(&mut self) -> bool {
        self.playout.skip_gap()
    }

    pub(crate) fn poll_output(&mut self, now: Instant, limit: usize, out: &mut Vec<u8>) -> bool {
        if let Some(before) = &mut self.before {
            if before.poll(now, 0, limit, out) {
                return true;
            }
            self.before = None;
        }
        self.playout.poll(now, self.clock.offset().unwrap_or_default(), limit, out)
    }

    /// While another stream is being played, what is live passes unseen; what is reliable waits.
    pub(crate) fn pass(&mut self, now: Instant, scratch: &mut Vec<u8>) {
        while !self.reliable && self.poll_output(now, PASS, scratch) {}
    }

    /// When output is next due; the origin of time if it is already.
    pub(crate) fn next_output(&self) -> Option<Instant> {
        if self.before.is_some() {
            return Some(Instant::ZERO);
        }
        self.playout.next_due(self.clock.offset().unwrap_or_default())
    }

    /// Takes a message that arrived over `path`.
    pub(crate) fn take(&mut self, now: Instant, path: PathId, message: &[u8]) -> Result<Taken, WireError> {
        self.last_heard = now;
        match Message::parse(message)? {
            Message::Unit { header, runs, bytes } => {
                Ok(Taken { entry: self.take_unit(now, path, header, runs, bytes), ..Taken::default() })
            }
            Message::Clock(clock) => {
                let observed = self.clock.observe(now, clock.sent, clock.rtt);
                if let Observed::Jumped(nanos) = observed {
                    self.playout.shift(nanos);
                }
                self.take_counts(&clock.captured);
                Ok(Taken { clock_jumped: matches!(observed, Observed::Jumped(_)), ..Taken::default() })
            }
            // The last message is reliable and may have been sent more than once, so it tells nothing about the clock.
            Message::End(clock) => {
                self.take_counts(&clock.captured);
                self.ended = true;
                Ok(Taken::default())
            }
            Message::Feedback(_) => Err(WireError::Field("direction")),
        }
    }

    /// Messages overtake each other, and the counts only ever grow.
    fn take_counts(&mut self, captured: &[u64]) {
        self.counts.captured.iter_mut().zip(captured).for_each(|(ours, theirs)| *ours = (*ours).max(*theirs));
    }

    fn take_unit(
        &mut self,
        now: Instant,
        path: PathId,
        header: UnitHeader,
        runs: Runs<'_>,
        bytes: &[u8],
    ) -> Option<LogEntry> {
        if header.reliable && self.closed.is_none() {
            self.reliable = true;
            self.playout.set_release(Release::InOrder);
        }
        let span = u64::from(header.span);
        self.clock.guess(now, header.captured.saturating_add(span));
        let offset = self.clock.offset().unwrap_or_default();
        let on_time = self.playout.insert(now, offset, &header, runs, bytes) == Arrival::OnTime;
        self.paths.arrived(path.0, on_time);
        self.counts.bytes[header.kind.index()] += bytes.len() as u64;
        let due = Playout::due(&header, offset);
        let entry = LogEntry {
            sequence: header.sequence,
            kind: header.kind,
            reference: header.reference,
            bytes: bytes.len(),
            pts: header.pts,
            captured: due - Duration::from_micros(u64::from(header.latency)),
            due,
            arrived: now,
            path,
            on_time,
        };
        let whole = if header.parts == 1 { entry } else { self.take_part(header.parts, entry)? };
        let counts = if whole.on_time { &mut self.counts.on_time } else { &mut self.counts.late };
        counts[whole.kind.index()] += 1;
        Some(whole)
    }

    /// Adds a part to its unit; gives the unit if that was the last one.
    fn take_part(&mut self, parts: u16, entry: LogEntry) -> Option<LogEntry> {
        let unit = self
            .partial
            .entry(entry.sequence)
            .or_insert(Partial { missing: parts, entry: LogEntry { bytes: 0, ..entry } });
        unit.missing -= 1;
        unit.entry = LogEntry {
            bytes: unit.entry.bytes + entry.bytes,
            captured: unit.entry.captured.min(entry.captured),
            due: unit.entry.due.min(entry.due),
            on_time: unit.entry.on_time && entry.on_time,
            ..entry
        };
        if unit.missing == 0 {
            return self.partial.remove(&entry.sequence).map(|unit| unit.entry);
        }
        if self.partial.len() > MAX_PARTIAL {
            self.partial.pop_first();
        }
        None
    }
}
