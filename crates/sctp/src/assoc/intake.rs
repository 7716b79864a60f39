use crate::api::{Event, Options, Reliability, SendError, SendOptions};
use crate::journal::Journal;
use crate::tx::Books;
use braidcast_core::Instant;
use braidcast_queue::{Outlook, Refused, Why};

/// How messages come in: alike before an association is open and after.
pub(super) trait Intake {
    /// Streams that may be sent on. `None`: the association takes no messages any more.
    fn streams(&self) -> Option<u16>;

    /// What a queue is to know of the quickest path.
    fn prospects(&self, now: Instant) -> Outlook;

    /// Abandons messages whose lifetime ended while they waited (RFC 3758 §3.5 A5, RFC 7496 §3).
    fn expire(&mut self, now: Instant);

    fn desk(&mut self) -> Desk<'_>;

    fn send(&mut self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        let streams = self.streams().ok_or(SendError::Closing)?;
        let desk = self.desk();
        desk.check(payload.len(), how.stream, streams)?;
        if desk.books.queue.front().is_some() {
            let outlook = self.prospects(now);
            return self.desk().enqueue(&outlook, payload, how);
        }
        if payload.len() > desk.room() {
            self.expire(now);
            self.desk().make_room(payload.len(), how.reliability);
        }
        self.desk().push(now, payload, how)
    }
}

/// What of an association has to do with messages that come in.
pub(super) struct Desk<'a> {
    pub(super) options: &'a Options,
    pub(super) books: Books<'a>,
    pub(super) starved: &'a mut bool,
}

impl<'a> Desk<'a> {
    fn check(&self, len: usize, stream: u16, streams: u16) -> Result<(), SendError> {
        let limit = self.options.limits.max_message;
        if len == 0 {
            return Err(SendError::Empty);
        }
        if len > limit {
            return Err(SendError::TooLong { len, limit });
        }
        if stream >= streams {
            return Err(SendError::NoSuchStream { stream, count: streams });
        }
        Ok(())
    }

    fn room(&self) -> usize {
        self.books.queue.room(self.options.limits.send_buffer)
    }

    /// Abandons less important messages if that makes room for one of `needed` bytes (RFC 7496 §3.2).
    fn make_room(&mut self, needed: usize, reliability: Reliability) {
        let free = self.room();
        if needed > free {
            let gone = self.books.queue.less_important(needed - free, reliability);
            gone.into_iter().for_each(|key| self.books.give_up_unsent(key));
        }
    }

    /// Puts a message at the end of its stream.
    fn push(self, now: Instant, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        let (needed, free) = (payload.len(), self.room());
        if needed > free {
            *self.starved = true;
            return Err(SendError::BufferFull { needed, free, limit: self.options.limits.send_buffer });
        }
        self.books.journal.message_queued(needed, &how);
        self.books.queue.push(now, payload, how);
        self.books.journal.stats.messages_sent += 1;
        Ok(())
    }

    /// Puts a message into the queue of the application's choice.
    fn enqueue(self, outlook: &Outlook, payload: &[u8], how: SendOptions) -> Result<(), SendError> {
        let Self { mut books, starved, .. } = self;
        books.journal.message_queued(payload.len(), &how);
        if how.deadline.is_some_and(|deadline| deadline <= outlook.now + outlook.one_way_delay) {
            books.queue.lose_frame(&how, payload.len());
            give_up_at_once(books.journal, how);
            return Ok(());
        }
        let queue = &mut *books.queue;
        let outcome = queue.push_front(outlook, payload, how).map_err(|refused| match (refused, queue.front()) {
            (Refused::Full(()), Some(front)) => SendError::QueueFull { messages: front.len(), bytes: front.bytes() },
            (_, front) => SendError::TooLong { len: payload.len(), limit: front.map_or(0, |front| front.longest()) },
        });
        *starved |= matches!(outcome, Err(SendError::QueueFull { .. }));
        books.journal.stats.messages_sent += u64::from(outcome.is_ok());
        books.account_for_discarded();
        outcome
    }

    /// The next event, the news that there is room again among them.
    pub(super) fn poll_event(self) -> Option<Event> {
        let front = self.books.queue.front();
        let whole = front.map_or(self.options.limits.send_buffer, |front| front.longest());
        if *self.starved && self.room() >= whole / 4 {
            *self.starved = false;
            self.books.journal.events.push_back(Event::Writable);
        }
        self.books.journal.events.pop_front()
    }
}

/// A message came to the queue when it was too late for all paths.
fn give_up_at_once(journal: &mut Journal, how: SendOptions) {
    let SendOptions { stream, ppid, context, .. } = how;
    journal.events.push_back(Event::Abandoned { stream, ppid, context, sent: false, why: Some(Why::Expired) });
    journal.message_abandoned((context, stream), false, Some(Why::Expired));
    journal.count_abandoned(stream, how.policy(), true);
    journal.stats.messages_sent += 1;
    journal.stats.abandoned_unsent += 1;
    journal.stats.expired += 1;
}
