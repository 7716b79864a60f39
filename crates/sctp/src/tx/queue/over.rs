//! Messages of a queue that says what goes over which path.

use super::{MessageKey, Piece, SendQueue};
use braidcast_core::Instant;
use braidcast_queue::{Curve, Why};

impl SendQueue {
    /// Lays what waits in `front` over paths, and what of it was begun.
    pub(crate) fn lay_out(&mut self, now: Instant, curves: &[Curve]) {
        if let Some(front) = &mut self.front {
            front.lay_out(now, curves);
        }
    }

    /// The message that a chunk for the path is cut from, and how many bytes of it wait.
    pub(crate) fn peek_over(&self, path: usize) -> Option<(MessageKey, usize)> {
        if self.under_way.is_some() || !self.express.is_empty() {
            return self.peek();
        }
        let front = self.front.as_ref().filter(|_| !self.held_back)?;
        let Some((_, key)) = front.next_over(path) else {
            return if front.len() == 0 && front.is_drained() { self.peek() } else { None };
        };
        let message = self.get(key);
        Some((key, message.payload.len() - message.taken))
    }

    /// Cuts a piece of at most `room` bytes off the message that [`peek_over`](Self::peek_over)
    /// names.
    pub(crate) fn cut_over(&mut self, path: usize, room: usize) -> Option<Piece> {
        let (key, left) = self.peek_over(path)?;
        let planned = self.front.as_ref().and_then(|front| front.next_over(path)).is_some_and(|(_, it)| it == key);
        if planned && self.is_untouched(key) {
            let len = self.get(key).payload.len();
            if let Some(front) = &mut self.front {
                front.on_begun(len);
            }
            self.line_up(key);
        }
        let piece = self.cut_off(key, left.min(room));
        if let Some(front) = &mut self.front {
            front.on_cut(path, key, usize::from(piece.len), left - usize::from(piece.len));
        }
        Some(piece)
    }

    /// The next of the messages that `front` discarded; `true` if nothing of it was cut.
    pub(crate) fn next_gone(&mut self) -> Option<(MessageKey, Why, bool)> {
        let (key, len, why) = self.front.as_mut()?.next_gone()?;
        let untouched = self.is_untouched(key);
        if let Some(front) = self.front.as_mut().filter(|_| untouched) {
            front.on_begun(len);
        }
        Some((key, why, untouched))
    }
}
