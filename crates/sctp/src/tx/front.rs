use super::{Message, MessageKey};
use crate::api::{Options, Priority, QueueScope};
use braidcast_core::Instant;
use braidcast_queue::{Discard, Limits, Method, Outlook, Place, Planned, Refused, SendQueue, Tag, Ways, Why};
use core::time::Duration;

/// A path that has room, as a queue sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathView {
    pub(crate) outlook: Outlook,
    /// No other path in use is quicker. What would come too late over the others stays for it, and
    /// only it is to tell the queue that a message is too late for all.
    pub(crate) quickest: bool,
}

impl PathView {
    /// The message of a queue that goes over it next.
    fn next<'a>(&self, queue: &'a dyn SendQueue<MessageKey>) -> Option<&'a Tag> {
        if self.quickest { queue.peek() } else { queue.peek_on_time(&self.outlook) }
    }
}

/// Messages that wait whole, in a queue that the application chose or one for each priority of
/// streams, by their keys in [`SendQueue`](super::SendQueue), which has them. It chooses when a
/// path has room, and not before.
#[derive(Debug)]
pub(crate) struct Front {
    scope: QueueScope,
    method: Method,
    /// What each level holds at most.
    limits: Limits,
    /// By priority of the streams; a single one if they do not count.
    levels: Vec<Box<dyn SendQueue<MessageKey>>>,
    /// What was discarded and is not accounted for yet.
    gone: Vec<Discard<MessageKey>>,
    len: usize,
    bytes: usize,
    /// Bytes of the longest message since none waited.
    longest_of_late: usize,
}

impl Front {
    /// The queue that the options ask for.
    pub(crate) fn new(options: &Options) -> Option<Self> {
        let (method, scope) = (options.queue.method?, options.queue.scope);
        let count = if scope == QueueScope::Alone { 1 } else { Priority::COUNT };
        let asked = options.queue.limits;
        let most = options.limits.send_buffer / 2 / count;
        let limits = Limits::messages(asked.messages.max(1)).bytes(asked.bytes.min(most));
        let levels = (0..count).map(|_| method.queue(limits)).collect();
        Some(Self { scope, method, limits, levels, gone: Vec::new(), len: 0, bytes: 0, longest_of_late: 0 })
    }

    pub(crate) fn is_alone(&self) -> bool {
        self.scope == QueueScope::Alone
    }

    /// Returns `true` if the method heeds the one-way delay, so that it matters which path has
    /// room.
    pub(crate) const fn heeds_delay(&self) -> bool {
        self.method.heeds_delay()
    }

    /// Returns `true` if its method knows which paths it needs.
    pub(crate) fn tells_needs(&self) -> bool {
        self.is_alone() && self.method.tells_needs()
    }

    /// The time that a frame has ([`braidcast_queue::SendQueue::time`]).
    pub(crate) fn time(&self) -> Option<Duration> {
        self.levels.iter().find_map(|level| level.time())
    }

    /// Returns `true` if all that waits behind `ahead` bytes is in time with ease over paths that
    /// deliver `delivered(t)` bytes within t seconds ([`braidcast_queue::SendQueue::is_carried`]).
    pub(crate) fn is_carried(&self, now: Instant, ahead: usize, delivered: &dyn Fn(f64) -> f64) -> bool {
        self.levels.iter().all(|level| level.is_carried(now, ahead, delivered))
    }

    /// The rank of a message among all that are sent, where streams do not count.
    pub(crate) const fn rank(&self, tag: &Tag) -> Priority {
        Priority::new(self.method.rank(tag))
    }

    /// Multiple of the rate at which the last byte of a message that was begun must be in time; it
    /// is abandoned otherwise ([`Method::finished_at`]).
    pub(crate) const fn finished_at(&self, tag: &Tag) -> Option<f64> {
        self.method.finished_at(tag)
    }

    /// A message that was taken out did not arrive in time after all.
    pub(crate) fn on_lost(&mut self, message: &Message) {
        self.on_frame_lost(message.priority, &message.tag());
    }

    /// A message whose stream is of the priority `rank` is lost, be it that it never came here.
    pub(crate) fn on_frame_lost(&mut self, rank: Priority, tag: &Tag) {
        let level = if self.is_alone() { 0 } else { rank.index() };
        self.levels[level].on_lost(tag);
    }

    /// Takes a message whose stream is of the priority `rank`.
    pub(crate) fn push(
        &mut self,
        outlook: &Outlook,
        rank: Priority,
        tag: Tag,
        key: MessageKey,
    ) -> Result<(), Refused<MessageKey>> {
        let level = if self.is_alone() { 0 } else { rank.index() };
        self.levels[level].push(outlook, tag, key, &mut self.gone)?;
        self.longest_of_late = if self.len == 0 { tag.len } else { self.longest_of_late.max(tag.len) };
        self.note(&tag, true);
        Ok(())
    }

    fn note(&mut self, tag: &Tag, comes: bool) {
        let add = |count: usize, by: usize| if comes { count + by } else { count - by };
        (self.len, self.bytes) = (add(self.len, 1), add(self.bytes, tag.len));
    }

    /// The most important level of those before `before` that has a message to go over its path,
    /// and the message. If there is one level only, the message's own rank must be before
    /// `before`.
    pub(crate) fn first_level(&self, before: usize, view: &PathView) -> Option<(usize, &Tag)> {
        if self.is_alone() {
            let tag = view.next(&*self.levels[0])?;
            return (self.rank(tag).index() < before).then_some((0, tag));
        }
        self.levels[..before].iter().enumerate().find_map(|(level, queue)| Some((level, view.next(&**queue)?)))
    }

    /// Bytes that go over the path next out of a level, at most: a queue may have discarded what it
    /// shows by then, and give another message.
    pub(crate) fn longest_next(&self, level: usize, view: &PathView) -> usize {
        let queue = &self.levels[level];
        let next = if view.quickest { queue.certain(&view.outlook) } else { queue.peek_on_time(&view.outlook) };
        next.map_or(self.longest_of_late, |tag| tag.len)
    }

    /// The first message of all, if there is one.
    pub(crate) fn head(&self) -> Option<&Tag> {
        self.levels.iter().find_map(|level| level.peek())
    }

    /// Takes the message that goes over the path of `view` now out of a level.
    pub(crate) fn pop(&mut self, level: usize, view: &PathView) -> Option<MessageKey> {
        let queue = &mut self.levels[level];
        let next =
            if view.quickest { queue.pop(&view.outlook, &mut self.gone) } else { queue.pop_on_time(&view.outlook) };
        let (tag, key) = next?;
        self.note(&tag, false);
        Some(key)
    }

    /// What the path `mine` of `ways` takes a part of, if there is one queue and it has a plan.
    pub(crate) fn planned(
        &mut self,
        now: Instant,
        ways: &mut Ways,
        mine: usize,
        under_way: Option<(usize, Option<Instant>)>,
        may: &dyn Fn(&MessageKey) -> bool,
    ) -> Option<Planned> {
        self.levels.first_mut()?.planned(now, ways, mine, under_way, may)
    }

    /// The message that waits at a place that was planned.
    pub(crate) fn at(&self, place: Place) -> Option<(&Tag, MessageKey)> {
        self.levels.first()?.at(place).map(|(tag, &key)| (tag, key))
    }

    /// `bytes` of it were cut.
    pub(crate) fn take_part(&mut self, place: Place, bytes: usize, outlook: &Outlook) {
        let Some(queue) = self.levels.first_mut() else { return };
        let before = queue.len();
        queue.take_part(outlook, place, bytes);
        self.bytes -= bytes;
        self.len -= before - queue.len();
    }

    /// Takes out the message `key`, of which a part was cut.
    pub(crate) fn withdraw(&mut self, key: MessageKey) {
        if let Some(tag) = self.levels.first_mut().and_then(|queue| queue.withdraw(&|it| *it == key)) {
            self.note(&tag, false);
        }
    }

    /// The next of the messages that were discarded.
    pub(crate) fn next_discarded(&mut self) -> Option<(MessageKey, Why)> {
        let Discard { why, tag, message } = self.gone.pop()?;
        self.note(&tag, false);
        Some((message, why))
    }

    /// Messages that wait, those discarded and not accounted for included.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Bytes in them.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that all levels hold together at most.
    pub(crate) fn most_bytes(&self) -> usize {
        self.limits.bytes * self.levels.len()
    }

    /// Bytes of the longest message that is taken.
    pub(crate) const fn longest(&self) -> usize {
        self.limits.bytes
    }

    /// Bytes that the fullest level still has room for.
    pub(crate) fn room(&self) -> usize {
        let Limits { messages, bytes, .. } = self.limits;
        let free = |held: usize, count: usize| if count >= messages { 0 } else { bytes.saturating_sub(held) };
        self.levels.iter().map(|level| free(level.bytes(), level.len())).min().unwrap_or_default()
    }
}
