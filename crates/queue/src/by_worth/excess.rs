//! What is too much for near paths, found as Moore and Hodgson find jobs that will be late ("An n job, one machine
//! sequencing algorithm for minimizing the number of late jobs", Management Science 15(1), 1968), by worth in place of
//! length.

use super::{ByWorth, Entry, INTRA, SPARE, level};
use braidcast_core::Instant;
use core::fmt;

impl<M: fmt::Debug + Send> ByWorth<M> {
    /// Lays what waits over paths that deliver `delivered(t)` bytes within t seconds, behind `ahead` bytes, and takes
    /// out what is too much for them, of what is due after `there`.
    pub(super) fn lay(&mut self, now: Instant, ahead: usize, there: Instant, delivered: &dyn Fn(f64) -> f64) {
        let mut bytes = ahead;
        self.waiting.iter_mut().for_each(|entry| entry.excess = false);
        for place in 0..self.waiting.len() {
            let &Entry { tag, hopeless, cut, .. } = &self.waiting[place];
            if hopeless || cut {
                continue;
            }
            bytes += tag.len;
            // What a group begins with stays where it can: the rest leaves early, while a far path still has the time.
            let share = if level(&tag) > INTRA { SPARE } else { 1.0 };
            while !self.waiting[place].excess && !tag.is_easy(now, bytes, &|within| share * delivered(within)) {
                let Some(len) = self.take_least(place + 1, there) else { break };
                bytes -= len;
            }
        }
        while !self.groups.are_carried(now, bytes, delivered) {
            let Some(len) = self.take_least(self.waiting.len(), there) else { break };
            bytes -= len;
        }
    }

    /// Has what matters least of the first `count` be excess, if it is due after `there`. Returns its bytes.
    fn take_least(&mut self, count: usize, there: Instant) -> Option<usize> {
        let can = |entry: &Entry<M>| {
            !(entry.excess || entry.hopeless || entry.cut) && entry.tag.due().is_none_or(|due| there < due)
        };
        let places = (0..count).filter(|&place| can(&self.waiting[place]));
        let least = places.max_by_key(|&place| (self.rank(place), place))?;
        self.waiting[least].excess = true;
        Some(self.waiting[least].tag.len)
    }
}
