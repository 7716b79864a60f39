//! One sender's stream at the receiver: its clock, its playout and its counts.

use crate::account::{Account, Counts, Settles};
use crate::clock::{Observed, PeerClock};
use crate::farewell::Farewell;
use crate::identity::{Content, Identity};
use crate::log::LogEntry;
use crate::mapping;
use crate::playout::{Arrival, Playout, Release};
use crate::report::PathHistories;
use crate::wire::{Bytes, Hello, KINDS, Message, Runs, Start, UnitHeader, WireError};
use braidcast_core::{Instant, PathId};
use braidcast_sctp::{Association, AssociationId, CloseReason, Fingerprint};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Units of which some parts have come and some have not.
const MAX_PARTIAL: usize = 256;
/// Time for which a complete reliable stream is kept if its sender may not know that it is complete.
const LINGER: Duration = Duration::from_secs(5);
/// Bytes written of which the sender is told at once.
const TELL: u64 = 512 * 1024;

/// What a message did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Taken {
    /// It completed a unit.
    pub(crate) entry: Option<LogEntry>,
    /// It is a unit or a part of one that was not there before, which is due then.
    pub(crate) piece: Option<Instant>,
    /// It showed that the sender's clock jumped.
    pub(crate) clock_jumped: bool,
    /// The stream begins anew at its first byte, though there were bytes of it.
    pub(crate) anew: bool,
    /// The sender asks again whether all is written.
    pub(crate) asks: bool,
    /// The first stuffing, or what else nobody misses, that comes as it is: the sender does not know that it could be
    /// packed.
    pub(crate) is_plain: bool,
}

/// A unit of which some parts are missing.
#[derive(Debug)]
struct Partial {
    came: u16,
    /// How many there are; `None` while that is not known.
    parts: Option<u16>,
    entry: LogEntry,
}

/// What is there of a reliable stream.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// What was handed out, and what was there before; `None` until the application has said.
    pub(crate) content: Option<Content>,
    /// Bytes that the application has written.
    pub(crate) written: u64,
    /// Of these the sender has been told.
    pub(crate) told: u64,
    /// The application was asked to flush.
    pub(crate) flush_asked: bool,
    /// All of it is flushed.
    pub(crate) flushed: bool,
}

#[derive(Debug)]
pub(crate) struct Stream {
    /// Its association; `None` while the sender is gone.
    pub(crate) id: Option<AssociationId>,
    pub(crate) identity: Identity,
    /// The key that its sender proved, where this end knows it. Nobody else goes on with the
    /// stream.
    pub(crate) key: Option<Fingerprint>,
    pub(crate) incarnation: u64,
    pub(crate) reliable: bool,
    pub(crate) progress: Progress,
    pub(crate) account: Account,
    pub(crate) paths: PathHistories,
    /// Chunks that redundancy made up for in this association.
    pub(crate) recovered_chunks: u64,
    /// Packets that came, and when their number last grew.
    heard: (u64, Instant),
    addresses: Vec<IpAddr>,
    /// Units captured before the first that comes.
    before: [u64; KINDS],
    clock: PeerClock,
    playout: Playout,
    /// What was left of the stream whose place this one took; it goes first.
    remains: Option<Playout>,
    early: bool,
    /// The longest slice that is handed out.
    slice: Duration,
    partial: BTreeMap<u32, Partial>,
    plain_seen: bool,
    /// Of the last unit.
    pub(crate) latency: Option<Duration>,
    /// The sender said that this was all.
    ended: bool,
    closed: Option<CloseReason>,
    /// When the association closed.
    closed_at: Instant,
    /// Nobody waits for its sender any more.
    given_up: bool,
}

impl Stream {
    pub(crate) fn new(
        now: Instant,
        id: AssociationId,
        hello: &Hello,
        key: Option<Fingerprint>,
        (early, slice): (bool, Duration),
    ) -> Self {
        let release = match (hello.reliable, early) {
            (true, _) => Release::InOrder,
            (false, true) => Release::Early,
            (false, false) => Release::OnTime,
        };
        Self {
            id: Some(id),
            identity: hello.identity,
            key,
            incarnation: hello.incarnation,
            reliable: hello.reliable,
            progress: Progress::default(),
            account: Account::default(),
            paths: PathHistories::default(),
            recovered_chunks: 0,
            heard: (0, now),
            addresses: Vec::new(),
            before: hello.before,
            clock: PeerClock::default(),
            playout: Playout::new(release).in_slices(slice),
            remains: None,
            early,
            slice,
            partial: BTreeMap::new(),
            plain_seen: false,
            latency: None,
            ended: false,
            closed: None,
            closed_at: now,
            given_up: false,
        }
    }

    /// The sender is back over another association. Gives its counts so far if it was started anew.
    pub(crate) fn rebind(&mut self, now: Instant, id: AssociationId, hello: &Hello) -> Option<Counts> {
        self.id = Some(id);
        self.closed = None;
        self.heard = (0, now);
        self.addresses.clear();
        self.plain_seen = false;
        self.paths.restart();
        let restarted = self.incarnation != hello.incarnation;
        if self.reliable {
            // What waits comes again: the sender hears how much was handed out.
            self.playout = Playout::new(Release::InOrder);
            self.partial.clear();
        }
        restarted.then(|| {
            let counts = core::mem::take(&mut self.account).counts;
            let progress = core::mem::take(&mut self.progress);
            let paths = core::mem::take(&mut self.paths);
            *self = Self { progress, paths, ..Self::new(now, id, hello, self.key, (self.early, self.slice)) };
            counts
        })
    }

    /// A live stream takes the place of this one, which is live too. What waits goes out at once.
    /// Returns this one's counts.
    pub(crate) fn succeed(&mut self, next: Self) -> Counts {
        let mut paths = core::mem::take(&mut self.paths);
        paths.restart();
        let old = core::mem::replace(self, Self { paths, ..next });
        // A second one before the output was polled finds the older remains not handed out: they are dropped.
        let mut remains = old.playout;
        remains.finish();
        self.remains = Some(remains);
        old.account.counts
    }

    /// The association is closed.
    pub(crate) fn close(&mut self, now: Instant, reason: CloseReason) {
        self.id = None;
        self.closed = Some(reason);
        self.closed_at = now;
    }

    /// Nobody waits for its sender any more.
    pub(crate) const fn give_up(&mut self) {
        self.given_up = true;
    }

    /// What is there leaves now.
    pub(crate) fn hurry(&mut self) {
        self.playout.finish();
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Returns `true` if the sender is gone without having ended its stream, and is waited for.
    pub(crate) fn is_lost(&self) -> bool {
        self.closed.as_ref().is_some_and(|reason| !self.ended && !self.given_up && !is_final(reason))
    }

    /// Returns `true` if it needs its sender no more: all is flushed, or nobody waits for it.
    pub(crate) fn is_done(&self) -> bool {
        self.progress.flushed || self.given_up || self.closed.as_ref().is_some_and(is_final)
    }

    /// Returns `true` if all has come and gone, and how it ended.
    pub(crate) fn over(&self, now: Instant, give_up: Option<Duration>) -> Option<(bool, CloseReason)> {
        let reason = self.closed.clone()?;
        // The last packets of a shutdown may get lost, and it then ends otherwise. That is no loss of ours: a live
        // stream promised nothing but the last message, and of a reliable one all is flushed.
        let complete = self.ended && (!self.reliable || self.progress.flushed);
        let gone = now.since(self.closed_at);
        // If there is a limit, that is why the association ended.
        let limited = give_up.is_some() && reason == CloseReason::PathsFailed;
        let waits = !limited && give_up.is_none_or(|limit| gone < limit) && !self.given_up && !is_final(&reason);
        let over = match (complete, self.reliable) {
            (true, false) => true,
            (true, true) => gone >= LINGER || self.given_up || reason == CloseReason::Shutdown,
            (false, _) => !waits,
        };
        let drained =
            if self.reliable { !self.playout.is_in_turn() } else { self.playout.is_empty() && self.remains.is_none() };
        (over && drained).then_some((complete, reason))
    }

    /// Returns `true` if everything is handed out and the application has yet to be asked to flush.
    pub(crate) fn wants_flush(&self) -> bool {
        self.reliable
            && self.ended
            && !self.progress.flush_asked
            && self.progress.content.is_some()
            && self.playout.is_empty()
    }

    /// Bytes that wait.
    pub(crate) fn held(&self) -> usize {
        self.playout.held() + self.remains.as_ref().map_or(0, Playout::held)
    }

    /// If nothing that waits will ever leave by itself, abandons what is missing before it; `false` if it will.
    pub(crate) fn skip_if_stuck(&mut self) -> bool {
        self.playout.skip_gap()
    }

    pub(crate) fn poll_output(&mut self, now: Instant, limit: usize, out: &mut Vec<u8>) -> bool {
        if let Some(remains) = &mut self.remains {
            if remains.poll(now, 0, limit, out) {
                return true;
            }
            self.remains = None;
        }
        let any = self.playout.poll(now, self.clock.offset().unwrap_or_default(), limit, out);
        if let (true, Some(content)) = (any && self.reliable, &mut self.progress.content) {
            content.update(out);
        }
        any
    }

    /// Returns `true` if the last output begins with a frame that needs no other.
    pub(crate) const fn is_at_entry(&self) -> bool {
        self.remains.is_none() && self.playout.is_at_entry()
    }

    /// When output is next due; the origin of time if it is already.
    pub(crate) fn next_output(&self) -> Option<Instant> {
        if self.remains.is_some() {
            return Some(Instant::ZERO);
        }
        self.playout.next_due(self.clock.offset().unwrap_or_default())
    }

    /// Looks at the association: rates, and whether anything came.
    pub(crate) fn measure(&mut self, now: Instant, association: &Association) {
        self.paths.measure(now, association);
        self.recovered_chunks = association.stats().recovered_chunks;
        let heard = association.paths().map(|path| path.received_packets).sum();
        if heard != self.heard.0 {
            self.heard = (heard, now);
        }
        for path in association.paths() {
            let address = path.route.remote.ip();
            if !self.addresses.contains(&address) && self.addresses.len() < 16 {
                self.addresses.push(address);
            }
        }
    }

    /// When the outcome of units that did not come is known.
    pub(crate) fn settles(&self) -> Settles {
        let over = self.ended && !self.reliable && self.playout.is_empty() && self.remains.is_none();
        if over { Settles::Now } else { Settles::at_receiver(self.latency.filter(|_| !self.reliable)) }
    }

    /// When anything last came from the sender, as far as was looked.
    pub(crate) const fn heard_at(&self) -> Instant {
        self.heard.1
    }

    /// Returns `true` if the sender has, or had, one of these addresses.
    pub(crate) fn is_from(&self, addresses: &[IpAddr]) -> bool {
        addresses.iter().any(|address| self.addresses.contains(address))
    }

    /// Returns `true` if the sender has to hear how much is written.
    pub(crate) const fn has_much_to_tell(&self) -> bool {
        self.progress.written >= self.progress.told + TELL
    }

    /// Takes a message that arrived over `path`.
    pub(crate) fn take(&mut self, now: Instant, path: PathId, message: &[u8]) -> Result<Taken, WireError> {
        match Message::parse(message)? {
            Message::Unit { header, .. } if header.reliable != self.reliable => Err(WireError::Field("reliability")),
            Message::Unit { header, runs, bytes } => {
                let is_plain = mapping::is_missed_by_none(header.kind, header.reference)
                    && matches!(bytes, Bytes::Plain(_))
                    && !core::mem::replace(&mut self.plain_seen, true);
                let due = self.take_unit(now, path, header, runs, bytes);
                let (due, entry) = due.map_or((None, None), |(due, entry)| (Some(due), entry));
                Ok(Taken { entry, piece: due, is_plain, ..Taken::default() })
            }
            Message::Clock(clock) => {
                let observed = self.clock.observe(now, clock.sent, clock.rtt);
                if let Observed::Jumped(nanos) = observed {
                    self.playout.shift(nanos);
                }
                self.take_counts(&clock.captured);
                Ok(Taken { clock_jumped: matches!(observed, Observed::Jumped(_)), ..Taken::default() })
            }
            // The last message is reliable and may have been sent more than once, so it says nothing about the clock.
            Message::End(clock) => {
                self.take_counts(&clock.captured);
                self.ended = true;
                Ok(Taken { asks: self.progress.flushed, ..Taken::default() })
            }
            Message::GivenUp(runs) if !self.reliable => {
                self.playout.give_up(runs);
                Ok(Taken::default())
            }
            Message::Start(start) if self.reliable => self.take_start(&start),
            _ => Err(WireError::Field("direction")),
        }
    }

    /// A reliable stream goes on from where it was, or begins anew.
    fn take_start(&mut self, start: &Start) -> Result<Taken, WireError> {
        let content = self.progress.content.as_mut().ok_or(WireError::Field("order"))?;
        let anew = start.offset != content.len();
        if anew && start.offset != 0 {
            return Err(WireError::Field("offset"));
        }
        if anew {
            self.progress = Progress { content: Some(Content::default()), ..Progress::default() };
        }
        self.ended = false;
        self.progress.flush_asked = false;
        self.playout = Playout::in_order_from(start.index);
        Ok(Taken { anew, ..Taken::default() })
    }

    /// Messages overtake each other, and the counts only ever grow.
    fn take_counts(&mut self, captured: &[u64]) {
        let captured = captured.iter().zip(self.before).map(|(theirs, before)| theirs.saturating_sub(before));
        self.account.counts.captured.iter_mut().zip(captured).for_each(|(ours, theirs)| *ours = (*ours).max(theirs));
    }

    /// Returns when it is due, and the unit that it completes; `None` if it was there before.
    fn take_unit(
        &mut self,
        now: Instant,
        path: PathId,
        header: UnitHeader,
        runs: Runs<'_>,
        bytes: Bytes<'_>,
    ) -> Option<(Instant, Option<LogEntry>)> {
        let span = u64::from(header.span);
        self.clock.guess(now, header.captured.saturating_add(span));
        let offset = self.clock.offset().unwrap_or_default();
        let arrival = self.playout.insert(now, offset, &header, runs, bytes);
        if arrival == Arrival::Again {
            return None;
        }
        let on_time = arrival == Arrival::OnTime;
        self.paths.arrived(path.0, on_time);
        let missed_by_none = mapping::is_missed_by_none(header.kind, header.reference);
        let counted = if missed_by_none { bytes.carried() } else { bytes.len() };
        self.account.counts.bytes[header.kind.index()] += counted as u64;
        let due = Playout::due(&header, offset);
        let latency = Duration::from_micros(u64::from(header.latency));
        self.latency = (!header.reliable).then_some(latency);
        let entry = LogEntry {
            sequence: header.sequence,
            kind: header.kind,
            reference: header.reference,
            bytes: bytes.len(),
            pts: header.pts,
            captured: due - latency,
            due,
            arrived: now,
            path,
            on_time,
            used: arrival != Arrival::Late,
        };
        let is_all = header.parts == 1 && !header.more;
        let parts = (!header.more).then_some(header.parts);
        let whole = if is_all { Some(entry) } else { self.take_part(parts, entry) };
        if let Some(whole) = &whole {
            self.count(whole);
        }
        Some((due, whole))
    }

    /// A unit is complete.
    fn count(&mut self, whole: &LogEntry) {
        let counts = &mut self.account.counts;
        let outcome = if whole.on_time { &mut counts.on_time } else { &mut counts.late };
        outcome[whole.kind.index()] += 1;
        counts.late_of_use[whole.kind.index()] += u64::from(whole.used && !whole.on_time);
    }

    /// Adds a part to its unit, which has as many as `parts` if that is known; gives the unit if that was the last one.
    fn take_part(&mut self, parts: Option<u16>, entry: LogEntry) -> Option<LogEntry> {
        let unit = self.partial.entry(entry.sequence).or_insert(Partial {
            came: 0,
            parts: None,
            entry: LogEntry { bytes: 0, ..entry },
        });
        unit.came = unit.came.saturating_add(1);
        unit.parts = parts.or(unit.parts);
        unit.entry = LogEntry {
            pts: unit.entry.pts.or(entry.pts),
            bytes: unit.entry.bytes + entry.bytes,
            captured: unit.entry.captured.min(entry.captured),
            due: unit.entry.due.min(entry.due),
            on_time: unit.entry.on_time && entry.on_time,
            used: unit.entry.used && entry.used,
            ..entry
        };
        if unit.parts == Some(unit.came) {
            return self.partial.remove(&entry.sequence).map(|unit| unit.entry);
        }
        if self.partial.len() > MAX_PARTIAL {
            self.partial.pop_first();
        }
        None
    }
}

/// Returns `true` if an association that ended so was ended on purpose, so that its sender does not come back.
fn is_final(reason: &CloseReason) -> bool {
    Farewell::of(reason).is_some_and(Farewell::is_final)
        || matches!(reason, CloseReason::Shutdown | CloseReason::Aborted)
}
