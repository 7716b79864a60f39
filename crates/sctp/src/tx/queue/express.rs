use super::SendQueue;
use crate::api::SendOptions;
use braidcast_core::Instant;

impl SendQueue {
    /// Puts a message before all others, whatever holds them back. It waits only where the numbers
    /// of its stream [have ended](Self::end_numbers).
    pub(crate) fn push_express(&mut self, now: Instant, payload: &[u8], how: SendOptions) {
        let key = self.hold(now, payload, how);
        self.messages[key.place()].internal = true;
        self.express.push_back(key);
        self.express_held.push(key);
        if self.paused.get(&how.stream).is_some_and(|it| it.ended) {
            self.end_numbers(how.stream);
        }
    }

    /// Returns the bytes of messages that were pushed so and are not acknowledged.
    pub(crate) fn express_bytes(&self) -> usize {
        self.express_held.iter().map(|&key| self.get(key).payload.len()).sum()
    }

    /// Returns `true` if only what is [pushed](Self::push_express) before all others goes.
    pub(crate) const fn hold_back(&mut self, held_back: bool) {
        self.held_back = held_back;
    }

    /// Returns `true` if anything waits that may go.
    pub(crate) fn has_waiting(&self) -> bool {
        if self.held_back { self.under_way.is_some() || !self.express.is_empty() } else { self.waiting_bytes > 0 }
    }
}
