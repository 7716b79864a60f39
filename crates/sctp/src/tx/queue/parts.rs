//! Parts of messages that are cut before their turn, for paths over which they come in time though others go first
//! (decision 41). The rest waits in [`Front`](crate::tx::Front).
//!
//! Who abandons a message has the receiver skip all of its stream with lower numbers (RFC 8260 §2.3.1), those that are
//! there in part too. So of each stream one message at most is begun and not cut to its end.

use super::{MessageKey, Piece, SendQueue};
use braidcast_core::Instant;
use braidcast_queue::{Outlook, Planned, Ways};
use core::cell::Cell;

/// What a path takes a part of.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    Of(Planned),
    /// What is planned for it may not be begun before its turn.
    Refused,
    Nothing,
}

impl SendQueue {
    /// Returns `true` if messages may be cut before their turn.
    pub(crate) fn cuts_parts(&self) -> bool {
        self.interleaving && !self.held_back && self.express.is_empty() && self.under_way.is_none()
    }

    /// What the path `mine` of `ways` takes a part of ([`braidcast_queue::SendQueue::planned`]).
    pub(crate) fn planned(&mut self, now: Instant, ways: &mut Ways, mine: usize) -> Part {
        let head = self.peek();
        let Self { front: Some(front), streams, messages, begun, paused, .. } = self else { return Part::Nothing };
        let under_way = head.map(|(key, left)| (left, messages[key.place()].due()));
        let refused = Cell::new(false);
        let may = |key: &MessageKey| {
            let id = messages[key.place()].stream;
            let of_stream = |other: &MessageKey| *other != *key && messages[other.place()].stream == id;
            let is_free = streams[usize::from(id)].waiting.is_empty() && !begun.iter().any(of_stream);
            let may = is_free && !paused.contains_key(&id);
            refused.set(refused.get() || !may);
            may
        };
        match front.planned(now, ways, mine, under_way, &may) {
            Some(planned) => Part::Of(planned),
            None if refused.get() => Part::Refused,
            None => Part::Nothing,
        }
    }

    /// The message that was planned, and how much of it waits.
    pub(crate) fn peek_planned(&self, planned: Planned) -> Option<(MessageKey, usize)> {
        match planned {
            Planned::UnderWay => self.peek(),
            Planned::Waiting(place) => self.front.as_ref()?.at(place).map(|(tag, key)| (key, tag.len)),
        }
    }

    /// Cuts a piece of at most `room` bytes off the message that was planned.
    pub(crate) fn cut_planned(&mut self, planned: Planned, room: usize, outlook: &Outlook) -> Option<Piece> {
        let (key, left) = self.peek_planned(planned)?;
        let Planned::Waiting(place) = planned else { return Some(self.cut_off(key, left.min(room))) };
        if self.is_untouched(key) {
            self.watch_deadline(key);
            self.begun.push(key);
        }
        let piece = self.cut_off(key, left.min(room));
        if piece.last {
            self.begun.retain(|&it| it != key);
        }
        self.front.as_mut()?.take_part(place, usize::from(piece.len), outlook);
        Some(piece)
    }

    /// The turn of the message `key` of `front` has come: what was begun of its stream is cut to its end first.
    pub(super) fn finish_begun(&mut self, key: MessageKey) {
        self.begun.retain(|&it| it != key);
        let id = self.get(key).stream;
        self.line_up_begun(|stream| stream == id);
    }

    /// Puts what was begun of the `asked` streams at their ends, in the order in which it was begun.
    pub(super) fn line_up_begun(&mut self, asked: impl Fn(u16) -> bool) {
        while let Some(&key) = self.begun.iter().find(|key| asked(self.get(**key).stream)) {
            self.withdraw(key);
            self.line_up(key);
        }
    }

    /// Takes the message `key` out of `front` if a part of it was cut.
    pub(super) fn withdraw(&mut self, key: MessageKey) {
        if let Some(at) = self.begun.iter().position(|&it| it == key) {
            self.begun.remove(at);
            if let Some(front) = &mut self.front {
                front.withdraw(key);
            }
        }
    }
}
