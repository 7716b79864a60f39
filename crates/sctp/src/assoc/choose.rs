//! Messages that wait in a queue of the application's choice ([`Options::queue`](crate::Options)): which of them goes, over which
//! path, and which one never.

use super::Association;
use crate::api::{Event, SendError, SendOptions};
use crate::path::Path;
use braidcast_core::Instant;
use braidcast_queue::{Outlook, Refused, Tag, Why};
use core::time::Duration;

/// What a queue has to do with the paths at the moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Choice {
    /// Bit n: the path in slot n has room, but would bring what goes next too late, and another one would not.
    avoided: u32,
    /// When no path would bring that in time any more, so that it need not wait for one.
    until: Option<Instant>,
}

impl Choice {
    pub(super) const fn avoids(&self, slot: usize) -> bool {
        slot < u32::BITS as usize && self.avoided >> slot & 1 == 1
    }

    /// When the choice is to be made anew, whatever else happens.
    pub(super) const fn due(&self) -> Option<Instant> {
        self.until
    }

    pub(super) fn on_time(&mut self, now: Instant) {
        self.until = self.until.filter(|&at| at > now);
    }
}

/// From here to the receiver: half of the round trip (SBPN §3.4), which holds the time in queues; nothing before it was measured.
fn one_way_delay(path: &Path) -> Duration {
    path.rtt.srtt().unwrap_or_default() / 2
}

impl Association {
    /// What a queue is to know about the way over `path`.
    fn outlook(now: Instant, path: Option<&Path>) -> Outlook {
        let rate = path.and_then(|path| Some(path.window.cwnd() as f64 / path.rtt.srtt()?.as_secs_f64().max(1e-6)));
        Outlook { now, one_way_delay: path.map(one_way_delay).unwrap_or_default(), rate }
    }

    /// The quickest of the paths that data may go over, be there room or not.
    fn quickest(&self) -> Option<&Path> {
        if !self.options.concurrent {
            return self.paths.get(self.paths.data_path()?);
        }
        let best = self.paths.best_rank(None);
        self.paths.iter().filter(|path| self.paths.is_best(path, best)).min_by_key(|path| one_way_delay(path))
    }

    /// Puts a message into the queue.
    pub(super) fn enqueue(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        let outlook = Self::outlook(now, self.quickest());
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

    /// Takes the message that goes next out of the queue, to be cut for the path in `slot`, unless what is cut already goes first.
    /// `room` says whether a message of so many bytes is worth beginning.
    pub(super) fn admit(&mut self, now: Instant, slot: usize, room: impl Fn(usize) -> bool) {
        if self.queue.front().is_none() {
            return;
        }
        let outlook = Self::outlook(now, self.paths.get(slot));
        while let Some(level) = self.queue.next_in_front(|tag| room(tag.len) && self.may_leave(now, slot, tag)) {
            if self.queue.admit(level, &outlook) {
                break;
            }
        }
        self.account_for_discarded();
    }

    /// Whether the path in `slot` may carry what goes next, as far as the queue is concerned.
    pub(super) fn suits(&self, now: Instant, slot: usize) -> bool {
        if self.queue.front().is_none() || self.queue.next_in_front(|tag| self.may_leave(now, slot, tag)).is_some() {
            return true;
        }
        let next = self.queue.peek();
        next.is_some_and(|(key, _)| !self.is_for_a_quicker(now, slot, self.queue.get(key).expiry()))
    }

    /// Looks which of the paths that `ready` names should leave what goes next to a quicker one.
    pub(super) fn choose(&mut self, now: Instant, ready: impl Iterator<Item = usize>) {
        self.choice = Choice::default();
        if self.queue.front().is_none() {
            return;
        }
        let mut avoided = 0;
        for slot in ready.filter(|&slot| slot < u32::BITS as usize && !self.suits(now, slot)) {
            avoided |= 1 << slot;
        }
        let expiry = match self.queue.peek() {
            Some((key, _)) => self.queue.get(key).expiry(),
            None => self.queue.front().and_then(|front| front.head()?.expiry),
        };
        let delay = self.quickest().map(one_way_delay).unwrap_or_default();
        let until = expiry
            .filter(|_| avoided != 0)
            .map(|expiry| Instant::ZERO + (expiry - Instant::ZERO).saturating_sub(delay));
        self.choice = Choice { avoided, until: until.filter(|&at| at > now) };
    }

    /// Whether the message may leave the queue for the path in `slot`: the part of the buffer that is for what was sent has room,
    /// and no quicker path should have it.
    fn may_leave(&self, now: Instant, slot: usize, tag: &Tag) -> bool {
        let Some(front) = self.queue.front() else { return false };
        let sent = self.queue.held_bytes() - front.bytes();
        let most = self.options.send_buffer - front.most_bytes();
        (sent == 0 || sent + tag.len <= most) && !self.is_for_a_quicker(now, slot, tag.expiry)
    }

    /// Whether the path in `slot` would bring a message too late and the quickest one in time.
    fn is_for_a_quicker(&self, now: Instant, slot: usize, expiry: Option<Instant>) -> bool {
        let (Some(expiry), Some(here), Some(quickest)) = (expiry, self.paths.get(slot), self.quickest()) else {
            return false;
        };
        let heeded = self.queue.front().is_some_and(|front| front.heeds_delay());
        heeded && now + one_way_delay(here) >= expiry && now + one_way_delay(quickest) < expiry
    }

    /// Counts what the queue discarded, and tells the application.
    fn account_for_discarded(&mut self) {
        while let Some((key, why)) = self.queue.next_discarded() {
            let message = self.queue.get(key);
            let (stream, ppid, context) = (message.stream, message.ppid, message.context);
            self.events.push_back(Event::Abandoned { stream, ppid, context, why: Some(why) });
            self.stats.abandoned_unsent += 1;
            match why {
                Why::Expired => self.stats.expired += 1,
                Why::Replaced | Why::NoRoom => self.stats.crowded_out += 1,
            }
            self.queue.forget(key);
        }
    }
}
