use super::{ConnectionId, Endpoint};
use std::collections::VecDeque;

/// Connections of which only the Request has come, oldest first (RFC 4340 §8.1.3).
///
/// Every Response has an Init Cookie, so that none of these is needed for a client that brings it back. They are for
/// those that do not, as Linux: like a SYN cache, the newest push the oldest out.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    /// Some of them may be open by now, or gone.
    order: VecDeque<ConnectionId>,
    /// How many are not.
    pub(super) count: usize,
}

impl Endpoint {
    /// Makes room for one more; `false` if none are kept at all.
    pub(super) fn make_room_half_open(&mut self) -> bool {
        while self.half_open.count >= self.options.half_open {
            let Some(oldest) = self.half_open.order.pop_front() else { return false };
            if self.is_half_open(oldest) {
                self.forget(oldest);
            }
        }
        true
    }

    /// Notes that `id` is the newest.
    pub(super) fn note_half_open(&mut self, id: ConnectionId) {
        self.half_open.order.push_back(id);
        // Those that opened are taken out now and then, which costs each of them one look.
        if self.half_open.order.len() > 2 * self.options.half_open.max(64) {
            let mut order = core::mem::take(&mut self.half_open.order);
            order.retain(|&id| self.is_half_open(id));
            self.half_open.order = order;
        }
    }

    fn is_half_open(&self, id: ConnectionId) -> bool {
        self.connection(id).is_some_and(crate::Connection::is_half_open)
    }
}
