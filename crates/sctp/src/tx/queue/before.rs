//! Messages that wait in a queue before the streams ([`Front`](super::super::Front)).

use super::{MessageKey, SendQueue};
use crate::api::{Priority, SendOptions};
use crate::tx::{Front, PathView, Prospect};
use braidcast_core::Instant;
use braidcast_queue::{Outlook, Refused, Tag, Why};

impl SendQueue {
    /// Puts a message into the queue before the streams.
    pub(crate) fn push_front(
        &mut self,
        outlook: &Outlook,
        payload: &[u8],
        how: SendOptions,
    ) -> Result<(), Refused<()>> {
        let key = self.hold(outlook.now, payload, how);
        let message = &self.messages[key.place()];
        let tag = message.tag();
        let Some(front) = &mut self.front else { return Ok(()) };
        front.push(outlook, message.priority, tag, key).map_err(|refused| {
            let too_large = matches!(refused, Refused::TooLarge(_));
            self.forget(refused.into_message());
            if too_large { Refused::TooLarge(()) } else { Refused::Full(()) }
        })
    }

    /// What of `bytes` is not in the queue before the streams, which may still count times that its
    /// messages lost as the peer does not read them ([`settle`](Self::settle)).
    pub(crate) fn without_front(&self, bytes: usize) -> usize {
        bytes.saturating_sub(self.front.as_ref().map_or(0, Front::bytes))
    }

    /// A message of `len` bytes is lost before it came here: `front` is to know that of its frame.
    pub(crate) fn lose_frame(&mut self, how: &SendOptions, len: usize) {
        let rank = self.stream(how.stream).priority;
        if let Some(front) = &mut self.front {
            let tag = Tag { priority: how.priority, expiry: how.deadline, len, frame: how.frame };
            front.on_frame_lost(rank, &tag);
        }
    }

    /// The message in `front` that goes over the path of `view` before all that is here, and where
    /// it is, if there is one.
    pub(crate) fn next_in_front(&self, view: &PathView) -> Option<(usize, &Tag)> {
        let front = self.front.as_ref().filter(|_| !self.held_back && self.express.is_empty())?;
        let here =
            if self.under_way.is_some() { Some(0) } else { self.turns.iter().position(|turns| !turns.is_empty()) };
        // Without interleaving, a message is sent to its end.
        let before = here.map_or(Priority::COUNT, |here| if self.interleaving { here } else { 0 });
        front.first_level(before, view)
    }

    /// Returns `true` if all that waits is in time with ease over paths that deliver
    /// `delivered(t)` bytes within t seconds.
    pub(crate) fn is_carried(&self, now: Instant, delivered: &dyn Fn(f64) -> f64) -> bool {
        let Some(front) = &self.front else { return false };
        let ahead = self.without_front(self.waiting_bytes);
        let in_time = self.peek().is_none_or(|(key, _)| self.get(key).tag().is_easy(now, ahead, delivered));
        in_time && front.is_carried(now, ahead, delivered)
    }

    /// Takes the message to send next out of that place in `front`. Returns `true` if there was one
    /// that is worth it.
    pub(crate) fn admit(&mut self, level: usize, view: &PathView, prospect: Prospect) -> bool {
        let Some(key) = self.front.as_mut().and_then(|front| front.pop(level, view)) else { return false };
        let message = &mut self.messages[key.place()];
        if message.expiry().is_some_and(|expiry| expiry <= prospect.now)
            || message.deadline.is_some_and(|deadline| deadline <= prospect.soonest)
        {
            message.send_once();
        }
        self.finish_begun(key);
        self.line_up(key);
        true
    }

    /// The next of the messages that `front` discarded, and why; to be followed by
    /// [`forget`](Self::forget).
    pub(crate) fn next_discarded(&mut self) -> Option<(MessageKey, Why)> {
        self.front.as_mut()?.next_discarded()
    }
}
