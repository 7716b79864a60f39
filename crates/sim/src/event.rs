use braidcast_core::Instant;
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// Timeouts that nodes may take at one instant before it counts as a livelock.
const MAX_TIMEOUTS: u32 = 100_000;

/// Things of any kind that may happen at one instant: bulk transfers over links without rate and delay do much at once.
const MAX_STEPS: u32 = 50_000_000;

/// What is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// A node's timer, or something to send.
    Node(usize),
    /// A link has packets to hand over.
    Link(usize),
    /// A scripted action.
    Script(usize),
}

/// All that is due, totally ordered by time and then by the order in which it was asked for.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Instant, u64, Due)>>,
    asked: u64,
}

impl EventQueue {
    pub(crate) fn push(&mut self, at: Instant, due: Due) {
        self.heap.push(Reverse((at, self.asked, due)));
        self.asked += 1;
    }

    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, _, _))| *at)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Due)> {
        self.heap.pop().map(|Reverse((at, _, due))| (at, due))
    }
}

/// Notices when much happens and time stands still.
#[derive(Debug, Default)]
pub(crate) struct LivelockGuard {
    at: Instant,
    steps: u32,
    timeouts: u32,
}

impl LivelockGuard {
    /// Something happened at `now`; an error says what went on for too long.
    pub(crate) fn step(&mut self, now: Instant, timeout: bool) -> Result<(), &'static str> {
        if now != self.at {
            *self = Self { at: now, ..Self::default() };
        }
        self.steps += 1;
        self.timeouts += u32::from(timeout);
        match (self.timeouts > MAX_TIMEOUTS, self.steps > MAX_STEPS) {
            (true, _) => Err("100000 timeouts"),
            (_, true) => Err("50 million packets and timeouts"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_asked_for_first_comes_first_at_the_same_instant() {
        let mut queue = EventQueue::default();
        let t = Instant::from_millis(5);
        for (at, due) in [(t, Due::Script(9)), (t, Due::Node(1)), (Instant::ZERO, Due::Link(7)), (t, Due::Node(0))] {
            queue.push(at, due);
        }
        let order: Vec<_> = core::iter::from_fn(|| queue.pop()).map(|(_, due)| due).collect();
        assert_eq!(order, [Due::Link(7), Due::Script(9), Due::Node(1), Due::Node(0)]);
    }
}
