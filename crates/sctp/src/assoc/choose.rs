//! Messages that wait in a queue of the application's choice ([`Options::queue`](crate::Options)): which of them goes, over which
//! path, and which one never.

use super::Association;
use crate::api::{Event, SendError, SendOptions};
use crate::path::Path;
use crate::tx::Way;
use braidcast_cc::RoundTrips;
use braidcast_core::Instant;
use braidcast_queue::{Outlook, Refused, Tag, Why};
use core::time::Duration;

/// Paths that have room, but nothing that waits is for them: it would come too late over them and not over another one, or the buffer
/// for what was sent is full. Bit n stands for slot n.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Avoided(u32);

impl Avoided {
    pub(super) const fn has(self, slot: usize) -> bool {
        slot < u32::BITS as usize && self.0 >> slot & 1 == 1
    }
}

/// From here to the receiver over `path`.
fn one_way_delay(path: &Path) -> Duration {
    let shortest = path.queueing.base();
    // Over a path that carries nothing a heartbeat tells how it is now.
    let trips = match path.in_flight {
        0 => RoundTrips::at_rest(&path.rtt, shortest),
        _ => RoundTrips::under_load(&path.rtt, shortest, path.queued()),
    };
    trips.one_way()
}

impl Association {
    /// What a queue is to know about the way over `path`. The rate is that of all paths that data may go over.
    fn outlook(&self, now: Instant, path: Option<&Path>) -> Outlook {
        let best = self.paths.best_rank(None);
        let used = self.paths.iter().filter(|path| self.paths.is_best(path, best));
        let rates = used.filter_map(|path| Some(path.window.cwnd() as f64 / path.rtt.srtt()?.as_secs_f64().max(1e-6)));
        let rate = Some(rates.sum()).filter(|rate| *rate > 0.0);
        let one_way_delay = path.map(one_way_delay).unwrap_or_default();
        Outlook { now, one_way_delay, rate, packet_size: None }
    }

    /// The quickest of the paths that data may go over, be there room or not.
    fn quickest(&self) -> Option<&Path> {
        if !self.options.paths.concurrent {
            return self.paths.get(self.paths.data_path()?);
        }
        let best = self.paths.best_rank(None);
        self.paths.iter().filter(|path| self.paths.is_best(path, best)).min_by_key(|path| one_way_delay(path))
    }

    /// When what leaves now arrives, over the quickest path.
    fn soonest(&self, now: Instant) -> Instant {
        now + self.quickest().map(one_way_delay).unwrap_or_default()
    }

    /// Whether a chunk of the message `key` that was repeated `repeats` times is worth sending now: it may be, and would come in time
    /// over the quickest path.
    pub(super) fn is_worth_sending(&self, now: Instant, key: u32, repeats: u16) -> bool {
        let message = self.queue.get(key);
        message.may_send(now, repeats) && message.deadline().is_none_or(|deadline| self.soonest(now) < deadline)
    }

    /// Puts a message into the queue.
    pub(super) fn enqueue(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        if how.deadline.is_some_and(|deadline| deadline <= self.soonest(now)) {
            self.give_up_at_once(how);
            return Ok(());
        }
        let outlook = self.outlook(now, self.quickest());
        let outcome =
            self.queue.push_front(&outlook, payload, how).map_err(|refused| match (refused, self.queue.front()) {
                (Refused::Full(()), Some(front)) => {
                    SendError::QueueFull { messages: front.len(), bytes: front.bytes() }
                }
                (_, front) => {
                    SendError::TooLong { len: payload.len(), limit: front.map_or(0, |front| front.longest()) }
                }
            });
        self.starved |= matches!(outcome, Err(SendError::QueueFull { .. }));
        self.stats.messages_sent += u64::from(outcome.is_ok());
        self.account_for_discarded();
        outcome
    }

    /// A message came to the queue when it was too late for all paths.
    fn give_up_at_once(&mut self, how: SendOptions) {
        let SendOptions { stream, ppid, context, .. } = how;
        self.events.push_back(Event::Abandoned { stream, ppid, context, sent: false, why: Some(Why::Expired) });
        self.stats.messages_sent += 1;
        self.stats.abandoned_unsent += 1;
        self.stats.expired += 1;
    }

    /// The path in `slot`, as the queue sees it.
    fn way_over(&self, now: Instant, slot: usize) -> Way {
        let path = self.paths.get(slot);
        let heeded = self.queue.front().is_some_and(|front| front.heeds_delay());
        let quicker = |quickest: &Path| path.is_some_and(|path| one_way_delay(quickest) < one_way_delay(path));
        Way { outlook: self.outlook(now, path), quickest: !heeded || !self.quickest().is_some_and(quicker) }
    }

    /// Takes the message that goes next out of the queue, to be cut for the path in `slot`, unless what is cut already goes first.
    /// `room` says whether a message of so many bytes is worth beginning.
    pub(super) fn admit(&mut self, now: Instant, slot: usize, room: impl Fn(usize) -> bool) {
        if self.queue.front().is_none() {
            return;
        }
        let (way, soonest) = (self.way_over(now, slot), self.soonest(now));
        while let Some((level, tag)) = self.queue.next_in_front(&way).filter(|(_, tag)| self.may_leave(tag)) {
            if !room(tag.len) || self.queue.admit(level, &way, soonest) {
                break;
            }
        }
        self.account_for_discarded();
    }

    /// Whether there is something for the path in `slot`, as far as the queue is concerned.
    pub(super) fn suits(&self, now: Instant, slot: usize) -> bool {
        if self.queue.front().is_none() {
            return true;
        }
        let way = self.way_over(now, slot);
        if self.queue.next_in_front(&way).is_some_and(|(_, tag)| self.may_leave(tag)) {
            return true;
        }
        // The rest of a message that is under way.
        let Some(expiry) = self.queue.peek().map(|(key, _)| self.queue.get(key).expiry()) else { return false };
        let late = |delay| expiry.is_some_and(|expiry| now + delay >= expiry);
        let by_another = self.quickest().is_some_and(|path| !late(one_way_delay(path)));
        way.quickest || !late(way.outlook.one_way_delay) || !by_another
    }

    /// Looks for which of the paths that are `ready` there is nothing.
    pub(super) fn choose(&mut self, now: Instant, ready: impl Iterator<Item = usize>) {
        self.avoided = Avoided::default();
        if self.queue.front().is_none() {
            return;
        }
        for slot in ready.filter(|&slot| slot < u32::BITS as usize) {
            self.avoided.0 |= u32::from(!self.suits(now, slot)) << slot;
        }
    }

    /// Whether the part of the buffer that is for what was sent has room for the message.
    fn may_leave(&self, tag: &Tag) -> bool {
        let Some(front) = self.queue.front() else { return false };
        let sent = self.queue.held_bytes() - front.bytes();
        sent == 0 || sent + tag.len <= self.options.limits.send_buffer - front.most_bytes()
    }

    /// Counts what the queue discarded, and tells the application.
    fn account_for_discarded(&mut self) {
        while let Some((key, why)) = self.queue.next_discarded() {
            let message = self.queue.get(key);
            let (stream, ppid, context) = (message.stream, message.ppid, message.context);
            self.events.push_back(Event::Abandoned { stream, ppid, context, sent: false, why: Some(why) });
            self.stats.abandoned_unsent += 1;
            match why {
                Why::Expired => self.stats.expired += 1,
                Why::Replaced | Why::NoRoom => self.stats.crowded_out += 1,
            }
            self.queue.forget(key);
        }
    }
}
