//! Streams whose messages the peer numbers from 0 again, or adds (RFC 6525).

use super::{Label, Reassembly, idata_position};
use crate::number::Tsn;
use braidcast_core::Instant;

impl Reassembly {
    /// How many streams the peer may send on.
    pub(crate) const fn stream_count(&self) -> u16 {
        self.limits.streams
    }

    /// The peer may send on so many streams `more`.
    pub(crate) const fn add_streams(&mut self, more: u16) {
        self.limits.streams = self.limits.streams.saturating_add(more);
        self.streams.grow(more);
    }

    /// The next ordered message of `stream` is its first; all up to `last_tsn` have come. What
    /// still waits there for its turn has it now: what it waited for was abandoned.
    pub(crate) fn reset_stream(&mut self, now: Instant, stream: u16, last_tsn: Tsn) {
        while let Some((&key, _)) = self.waiting.range((stream, 0)..=(stream, u64::MAX)).next() {
            if let Some(message) = self.waiting.remove(&key) {
                self.hand_over(now, message);
            }
        }
        if self.limits.interleaving {
            for unordered in [false, true] {
                let label = |number| Label { stream, unordered, number };
                let range = idata_position(label(0), 0)..=idata_position(label(u64::MAX), u32::MAX);
                self.buffered -= self.runs.drop_range(range, &mut self.pool);
            }
        }
        self.streams.reset(stream);
        self.renumbered.insert(stream, last_tsn);
    }

    /// Returns `true` if what skips messages of `stream` up to `new_cumulative` speaks of numbers that are over.
    pub(crate) fn is_outdated(&self, stream: u16, new_cumulative: Tsn) -> bool {
        self.renumbered.get(&stream).is_some_and(|&last| new_cumulative <= last)
    }
}
