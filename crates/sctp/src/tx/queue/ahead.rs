use super::{Message, MessageKey, Piece, Promise, SendQueue};

impl Message {
    /// It goes for sure, whenever that is: a number that it has will be used.
    const fn is_certain(&self) -> bool {
        matches!(self.promise, Promise::Always) && self.deadline.is_none()
    }
}

impl SendQueue {
    /// Returns the first message behind `lead` waiting bytes of the stream whose turn it is, and how
    /// much of it waits. `None`: less waits there, or it or what is before it may be abandoned, so that
    /// numbers could be left out. If a message must go on, or goes before all others, it is that one.
    pub(crate) fn peek_ahead(&self, lead: usize) -> Option<(MessageKey, usize)> {
        let (head, left) = self.peek()?;
        if lead == 0 || self.under_way.is_some() || self.express.front() == Some(&head) {
            return Some((head, left));
        }
        let mut before = 0;
        for &key in &self.streams[usize::from(self.get(head).stream)].waiting {
            let message = self.get(key);
            let left = message.payload.len() - message.taken;
            // Who abandons a message with a number has the receiver skip all lower ones of its kind
            // (RFC 8260 §2.3.1), also one that is there in part. Unordered DATA has no numbers.
            let has_number = self.interleaving || !message.unordered;
            if has_number && !message.is_certain() {
                return None;
            }
            if before >= lead {
                return Some((key, left));
            }
            before += left;
        }
        None
    }

    /// Cuts a piece of at most `room` bytes off the message that [`peek_ahead`](Self::peek_ahead)
    /// names, and passes the turn on.
    pub(crate) fn cut_ahead(&mut self, lead: usize, room: usize) -> Option<Piece> {
        let (key, left) = self.peek_ahead(lead)?;
        Some(self.cut_off(key, left.min(room)))
    }

    /// Numbers the message `key`, and before it those of its stream which go first: the receiver hands
    /// them out in that order.
    pub(super) fn number(&mut self, key: MessageKey) {
        let &Message { stream: id, unordered, numbered, .. } = self.get(key);
        if numbered {
            return;
        }
        if unordered {
            let next = &mut self.streams[usize::from(id)].next_unordered;
            let message = &mut self.messages[key.place()];
            message.numbered = true;
            if self.interleaving {
                (message.number, *next) = (*next, next.wrapping_add(1));
            }
            return;
        }
        let Self { streams, messages, .. } = self;
        let stream = &mut streams[usize::from(id)];
        let next = &mut stream.next_ordered;
        let mut give = |key: MessageKey| {
            let message = &mut messages[key.place()];
            if !message.unordered && !message.numbered {
                (message.number, message.numbered) = (*next, true);
                *next = next.wrapping_add(1);
            }
        };
        // One that goes before all others is in no line.
        let place = stream.waiting.iter().position(|&it| it == key);
        stream.waiting.iter().take(place.unwrap_or_default()).copied().for_each(&mut give);
        give(key);
    }

    /// Takes the message `key` out of the line of the stream `id`.
    pub(super) fn take_off(&mut self, id: u16, key: MessageKey) {
        let waiting = &mut self.streams[usize::from(id)].waiting;
        if waiting.front() == Some(&key) {
            waiting.pop_front();
        } else {
            waiting.retain(|&it| it != key);
        }
    }
}
