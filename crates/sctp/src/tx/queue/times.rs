//! Messages that say when they are due (decision 39).

use super::SendQueue;
use crate::api::SendOptions;
use crate::rx::micros;
use crate::wire::Times;
use braidcast_core::{Instant, Writer};
use core::time::Duration;

impl SendQueue {
    /// Deadlines farther ahead are not told: a clock of 32 bits cannot say if they are over.
    const FARTHEST: Duration = Duration::from_secs(1800);

    /// Returns `true` if a message said when it is due.
    pub(crate) const fn has_timed(&self) -> bool {
        self.has_timed
    }

    /// Appends to a message given at `now` when it is due, if it is to say that. Returns `true` if it
    /// does.
    pub(super) fn put_times(&mut self, now: Instant, how: &SendOptions, buffer: &mut Vec<u8>) -> bool {
        let ahead = |deadline: Instant| deadline - now <= Self::FARTHEST;
        let Some(deadline) = how.deadline.filter(|&it| self.tells_times && ahead(it)) else { return false };
        Times { given: micros(now), due: micros(deadline) }.emit(&mut Writer::new(buffer));
        self.has_timed = true;
        true
    }

    /// `told`: the peer reads times. If it does not, messages of before lose them; nothing of those
    /// was cut yet.
    pub(super) fn settle_times(&mut self, told: bool) {
        if told || !self.tells_times {
            return;
        }
        (self.tells_times, self.has_timed) = (false, false);
        for (_, message) in &mut self.messages {
            if std::mem::take(&mut message.timed) && message.taken == 0 {
                message.payload.truncate(message.payload.len() - Times::LEN);
                self.waiting_bytes -= Times::LEN;
                self.held_bytes -= Times::LEN;
            }
        }
    }
}
