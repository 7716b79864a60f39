//! A receiver that a stream is served to.

use super::feed::{Feed, Sent};
use crate::account::{Account, Counts, Settles};
use crate::mapping::{self, STREAMS, Turns, control, micros};
use crate::playout::GRACE;
use crate::receiver::ChannelId;
use crate::redundancy::Chooser;
use crate::report::{PathHistories, Report, SecurityReport};
use crate::sender::Counted;
use crate::wire::{self, Clock, Hello, KINDS, PPID, SESSION_VERSION};
use braidcast_core::Instant;
use braidcast_media::Kind;
use braidcast_sctp::{Association, AssociationId, Frame, MessagePriority, SendOptions, Why};
use core::time::Duration;

/// Names a receiver among those that are served, in the order in which they came. Never used twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId(pub u64);

/// Time to wait for a frame to begin with before it is said who sends: what passes by until then is
/// no loss. A receiver that hears nothing for longer takes the other end for something else.
const HELLO_BY: Duration = Duration::from_secs(2);
/// Time to wait for it at all: streams with fewer such frames are begun anywhere.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a client is to have.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) channel: ChannelId,
    /// Time from the output at the server to the output there.
    pub(super) extra: Duration,
    asked_at: Instant,
    /// It had a part of the stream already.
    resumes: bool,
    /// Units that came before it was told of any; `None` until it was told who sends.
    before: Option<[u64; KINDS]>,
    /// Index of the first packet that it gets; `None` until there is a frame to begin with.
    from: Option<u64>,
    /// Units that came after `before`, and before its first.
    passed: [u64; KINDS],
}

impl Order {
    pub(super) const fn new(now: Instant, channel: ChannelId, extra: Duration, resumes: bool) -> Self {
        Self { channel, extra, asked_at: now, resumes, before: None, from: None, passed: [0; KINDS] }
    }

    /// When it asked.
    pub(super) const fn asked_at(&self) -> Instant {
        self.asked_at
    }

    /// Returns `true` if there was a frame to begin with.
    pub(super) const fn has_begun(&self) -> bool {
        self.from.is_some()
    }
}

#[derive(Debug)]
pub(super) struct Client {
    pub(super) number: ClientId,
    pub(super) id: AssociationId,
    pub(super) since: Instant,
    /// `None` until it has said what it wants.
    pub(super) order: Option<Order>,
    account: Account,
    counted: Counted,
    paths: PathHistories,
    chooser: Option<Chooser>,
    turns: Turns,
    /// From capture to playout there, as of the last unit.
    latency: Duration,
    security: Option<SecurityReport>,
    bytes: u64,
}

impl Client {
    pub(super) fn new(now: Instant, number: ClientId, id: AssociationId, association: &mut Association) -> Self {
        for stream in 0..STREAMS {
            association.set_priority(stream, mapping::priority(stream));
            association.set_copied(stream, mapping::copied(stream));
        }
        Self {
            number,
            id,
            since: now,
            order: None,
            account: Account::default(),
            counted: Counted::default(),
            paths: PathHistories::default(),
            chooser: None,
            turns: Turns::default(),
            latency: Duration::ZERO,
            security: association.standing().as_ref().map(SecurityReport::from),
            bytes: 0,
        }
    }

    /// It said what it is to have, or is served something else from now on. `redundant`: what its paths
    /// lose is made up for.
    pub(super) fn place(&mut self, order: Order, redundant: bool) {
        // Of the server's own latency there may be nothing left when a unit comes.
        self.chooser = redundant.then(|| Chooser::new(Some(order.extra)));
        self.order = Some(order);
    }

    /// Begins where it can: with a frame that needs no other, as the newest one in `feed` that comes in time.
    pub(super) fn begin(&mut self, now: Instant, association: &mut Association, feed: &mut Feed, buf: &mut Vec<u8>) {
        let Some(order) = self.order.as_mut().filter(|order| order.from.is_none()) else { return };
        let extra = order.extra;
        let entry = feed.recent.iter().rposition(|it| it.is_entry() && it.due + extra > now);
        let anywhere = feed.begins_anywhere(now) || now.since(order.asked_at) >= PATIENCE;
        let from = match (order.resumes, entry, feed.recent.back()) {
            (true, ..) => 0,
            // It was here before the stream was.
            (false, ..) if feed.began_after(order.asked_at) => 0,
            (false, Some(entry), _) => feed.recent[entry].first,
            (false, None, Some(newest)) if anywhere => newest.first,
            _ => return self.greet_late(now, association, feed, buf),
        };
        let resumes = order.resumes;
        order.from = Some(from);
        let mut before = feed.captured;
        for sent in feed.recent.iter().filter(|it| it.first >= from && it.begins_unit()) {
            let count = &mut before[sent.header.kind.index()];
            *count = count.saturating_sub(1);
        }
        match order.before {
            Some(told) => order.passed = core::array::from_fn(|i| before[i].saturating_sub(told[i])),
            None => self.greet(now, association, feed, before, buf),
        }
        if let Some(entry) = entry.filter(|_| from > 0)
            && feed.write_tables(entry, buf)
        {
            let sent = &feed.recent[entry];
            wire::redirect(buf, micros(Duration::from_micros(u64::from(sent.header.latency)) + extra), false);
            let how = SendOptions { deadline: Some(sent.due + extra), ..control() };
            let _room = association.send(now, buf, how);
        }
        for sent in feed.recent.iter_mut().filter(|it| it.first >= from) {
            self.give(now, association, sent, resumes);
        }
    }

    /// Says who sends, though there is nothing to begin with yet: else it would not wait.
    fn greet_late(&mut self, now: Instant, association: &mut Association, feed: &Feed, buf: &mut Vec<u8>) {
        let Some(order) = self.order.as_ref().filter(|it| it.before.is_none()) else { return };
        if now.since(order.asked_at) >= HELLO_BY {
            self.greet(now, association, feed, feed.captured, buf);
        }
    }

    fn greet(
        &mut self,
        now: Instant,
        association: &mut Association,
        feed: &Feed,
        before: [u64; KINDS],
        buf: &mut Vec<u8>,
    ) {
        if let Some(order) = &mut self.order {
            order.before = Some(before);
        }
        let hello = Hello {
            session: SESSION_VERSION,
            identity: feed.identity,
            incarnation: feed.incarnation,
            reliable: false,
            size: None,
            before,
            name: if feed.name.is_empty() { feed.title.clone() } else { feed.name.clone() },
        };
        wire::write_hello(buf, &hello);
        let _room = association.send(now, buf, control());
        self.tell_clock(now, association, feed, false, buf);
    }

    /// Sends the clock and the counts, or with `end` says that nothing comes after.
    pub(super) fn tell_clock(
        &self,
        now: Instant,
        association: &mut Association,
        feed: &Feed,
        end: bool,
        buf: &mut Vec<u8>,
    ) {
        let Some((order, before)) = self.order.as_ref().and_then(|it| Some((it, it.before?))) else { return };
        let rtt = association.paths().filter_map(|path| path.min_rtt.or(path.srtt)).min().unwrap_or_default();
        let captured = match order.from {
            None => before,
            Some(_) => core::array::from_fn(|i| feed.captured[i].saturating_sub(order.passed[i])),
        };
        wire::write_clock(buf, &Clock { sent: Feed::clock(now), rtt: micros(rtt), captured }, end);
        // Without room for it, the next one will do.
        let _room = association.send(now, buf, mapping::clock(end));
    }

    /// Hands on the newest of `feed`.
    pub(super) fn follow(&mut self, now: Instant, association: &mut Association, feed: &mut Feed) {
        let from = self.order.as_ref().and_then(|order| order.from);
        if let (Some(from), Some(newest)) = (from, feed.recent.back_mut())
            && newest.first >= from
        {
            self.give(now, association, newest, false);
        }
    }

    /// Sends a unit, or counts it as discarded. `again`: it may have come over an earlier association.
    fn give(&mut self, now: Instant, association: &mut Association, sent: &mut Sent, again: bool) {
        let Some(extra) = self.order.as_ref().map(|order| order.extra) else { return };
        let (kind, reference) = (sent.header.kind, sent.header.reference);
        let due = sent.due + extra;
        let grace = if reference && kind != Kind::Data { GRACE } else { Duration::ZERO };
        if again && due <= now {
            return;
        }
        self.latency = Duration::from_micros(u64::from(sent.header.latency)) + extra;
        self.account.counts.captured[kind.index()] += u64::from(sent.begins_unit());
        wire::redirect(&mut sent.message, micros(self.latency), again);
        let stream = self.turns.stream(kind, reference, sent.sequence);
        let how = SendOptions {
            stream,
            ppid: PPID,
            unordered: true,
            deadline: Some(due + grace),
            context: sent.sequence << 8 | kind.index() as u64,
            priority: MessagePriority::new(mapping::priority(stream).index() as u8).unwrap_or(MessagePriority::LAST),
            frame: Some(Frame { due: Some(due), ..sent.frame }),
            ..SendOptions::default()
        };
        if association.send(now, &sent.message, how).is_ok() {
            self.account.counts.bytes[kind.index()] += sent.message.len() as u64;
            self.bytes += sent.message.len() as u64;
        } else if self.counted.is_first(sent.sequence) {
            self.account.counts.unsent[kind.index()] += 1;
        }
    }

    /// SCTP abandoned a message. A frame of several counts once.
    pub(super) fn abandoned(&mut self, context: u64, sent: bool, why: Option<Why>) {
        let (sequence, kind) = (context >> 8, (context & 0xff) as usize);
        if kind >= KINDS || context == u64::MAX || !self.counted.is_first(sequence) {
            return;
        }
        self.account.counts.abandon(kind, sent, why);
    }

    /// It says what came.
    pub(super) fn hear(&mut self, now: Instant, feedback: &wire::Feedback) {
        self.account.hear(now, feedback);
    }

    /// Looks at its association, some times a second.
    pub(super) fn measure(&mut self, now: Instant, association: &mut Association) {
        self.account.tick(now, self.settles());
        self.paths.measure(now, association);
        if let Some(chooser) = &mut self.chooser {
            chooser.update(now, association);
        }
    }

    fn settles(&self) -> Settles {
        Settles::at_sender(Some(self.latency))
    }

    /// How it goes.
    pub(super) fn report(&self, now: Instant, association: Option<&Association>) -> Report {
        let (recent_seconds, recent) = self.account.recent(now, self.settles());
        Report {
            seconds: now.since(self.since).as_secs_f64(),
            kinds: self.account.kinds(now, self.settles(), &Counts::default()),
            recent,
            recent_seconds,
            unheard_seconds: self.account.unheard_for(now).map(|it| it.as_secs_f64()),
            paths: self.paths.reports(),
            security: self.security.clone(),
            input_bytes: self.bytes,
            acked_bytes: self.paths.acked_bytes(),
            redundancy: self.chooser.as_ref().and_then(Chooser::code).map(|code| code.to_string()),
            buffered_bytes: association.map_or(0, |it| it.buffered() as u64),
            ..Report::default()
        }
    }
}
