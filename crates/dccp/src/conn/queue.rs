//! Messages that wait to be sent. Which one goes is decided only when congestion control lets one go.

use super::Connection;
use crate::api::{Event, SendError, SendOptions};
use braidcast_core::Instant;
use braidcast_queue::{Discard, Limits, Method, Outlook, Refused, Tag, Why};

/// A message that waits, besides what its [`Tag`] says.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
    pub(super) coverage: u8,
    context: Option<u64>,
}

/// A queue of the kind that the application chose, and buffers to use again.
#[derive(Debug)]
pub(super) struct SendQueue {
    method: Method,
    limits: Limits,
    waiting: Box<dyn braidcast_queue::SendQueue<Message>>,
    /// What was discarded and is not accounted for yet.
    gone: Vec<Discard<Message>>,
    spare: Vec<Vec<u8>>,
}

impl SendQueue {
    /// Buffers that are kept: for a full queue as it is by default, and for the message that does not fit.
    const SPARE: usize = 65;

    pub(super) fn new(method: Method, limits: Limits) -> Self {
        Self { method, limits, waiting: method.queue(limits), gone: Vec::new(), spare: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// Bytes of the message that would be looked at first.
    pub(super) fn next_len(&self) -> Option<usize> {
        self.waiting.peek().map(|tag| tag.len)
    }

    /// Takes a buffer back for reuse.
    pub(super) fn recycle(&mut self, message: Message) {
        if self.spare.len() < Self::SPARE {
            let mut bytes = message.bytes;
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.method, self.limits);
    }
}

impl Connection {
    /// What the queue is to know about the way.
    fn outlook(&self, now: Instant) -> Outlook {
        let one_way_delay = self.one_way_delay(now).unwrap_or_default();
        Outlook {
            now,
            one_way_delay,
            rate: self.sender.allowed_rate(),
            packet_size: self.sender.packet_size(),
            ahead: 0,
            only_excess: false,
        }
    }

    /// Puts a message into the queue.
    pub(super) fn enqueue(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        let outlook = self.outlook(now);
        let queue = &mut self.queue;
        let mut bytes = queue.spare.pop().unwrap_or_default();
        bytes.extend_from_slice(payload);
        let message = Message { bytes, coverage: how.coverage, context: how.context };
        let tag = Tag { priority: how.priority, expiry: how.deadline, len: payload.len(), frame: None };
        let outcome = queue.waiting.push(&outlook, tag, message, &mut queue.gone);
        let outcome = outcome.map_err(|refused| {
            let too_large = matches!(refused, Refused::TooLarge(_));
            queue.recycle(refused.into_message());
            if too_large {
                return SendError::TooLong { len: payload.len(), limit: queue.limits.bytes };
            }
            SendError::QueueFull { messages: queue.len(), bytes: queue.bytes() }
        });
        self.wants_room |= matches!(outcome, Err(SendError::QueueFull { .. }));
        self.account_for_gone(now);
        outcome
    }

    /// The message that goes now; none if all that waited was not worth it.
    pub(super) fn dequeue(&mut self, now: Instant) -> Option<Message> {
        let (outlook, limit) = (self.outlook(now), self.max_payload());
        loop {
            let next = self.queue.waiting.pop(&outlook, &mut self.queue.gone);
            (0..self.queue.gone.len()).for_each(|_| self.sender.on_discarded(now));
            self.account_for_gone(now);
            let (tag, message) = next?;
            self.tell_of_room();
            if tag.len <= limit {
                return Some(message);
            }
            // RFC 4340 §14.2: what became too long while it waited must not leave as it is.
            self.stats.outgrown += 1;
            self.tell_of_discard(now, message, None);
        }
    }

    /// Bytes of the message that goes next, if no other one may go in its place.
    pub(super) fn certain_len(&self, now: Instant) -> Option<usize> {
        let tag = self.queue.waiting.certain(&self.outlook(now))?;
        (tag.len <= self.max_payload()).then_some(tag.len)
    }

    /// Counts what the queue discarded, and informs the application.
    fn account_for_gone(&mut self, now: Instant) {
        while let Some(Discard { why, message, .. }) = self.queue.gone.pop() {
            match why {
                Why::Expired => self.stats.expired += 1,
                Why::Replaced | Why::NoRoom => self.stats.crowded_out += 1,
            }
            self.tell_of_discard(now, message, Some(why));
        }
    }

    fn tell_of_discard(&mut self, now: Instant, message: Message, why: Option<Why>) {
        self.tell_discarded(now, message.context, why);
        if let Some(context) = message.context {
            self.events.push_back(Event::Discarded { context, why });
        }
        self.queue.recycle(message);
        self.tell_of_room();
    }

    fn tell_of_room(&mut self) {
        if core::mem::take(&mut self.wants_room) {
            self.events.push_back(Event::Writable);
        }
    }

    /// Bytes of padding that should go now, as no message does.
    pub(super) fn padding(&self, now: Instant) -> Option<usize> {
        let message = self.options.padding.as_ref()?;
        (self.queue.waiting.padding(&self.outlook(now)) > 0).then_some(message.len())
    }

    /// Padding was sent.
    pub(super) fn padded(&mut self, bytes: usize) {
        self.queue.waiting.padded(bytes);
        self.stats.padding += 1;
    }
}
