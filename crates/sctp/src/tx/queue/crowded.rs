use super::{MessageKey, Promise, SendQueue};
use crate::api::Reliability;
use core::cmp::Reverse;

impl SendQueue {
    /// Messages of which nothing was sent, that make room for at least `bytes` and are less
    /// important than one of this `reliability`: the least important first, of those the oldest.
    /// None if all of them together do not make as much room, or the message may not ask for it
    /// (RFC 7496 §3.2).
    pub(crate) fn less_important(&self, bytes: usize, reliability: Reliability) -> Vec<MessageKey> {
        let above = match reliability {
            Reliability::Reliable => None,
            Reliability::Priority(rank) => Some(rank),
            Reliability::Lifetime(_) | Reliability::Retransmissions(_) => return Vec::new(),
        };
        let waiting = self.streams.iter().flat_map(|stream| &stream.waiting);
        let mut lower: Vec<_> = waiting
            .filter_map(|&key| {
                let message = self.get(key);
                let Promise::Priority(rank) = message.promise else { return None };
                let goes = message.taken == 0 && above.is_none_or(|above| rank > above);
                goes.then_some((Reverse(rank), message.arrival, key, message.payload.len()))
            })
            .collect();
        lower.sort_unstable();
        let mut room = 0;
        let enough = lower.iter().position(|&(.., len)| {
            room += len;
            room >= bytes
        });
        lower.truncate(enough.map_or(0, |last| last + 1));
        lower.into_iter().map(|(_, _, key, _)| key).collect()
    }
}
