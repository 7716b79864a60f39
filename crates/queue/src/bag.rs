//! The orders in which messages of one priority go.

use crate::Tag;
use core::cmp::Reverse;
use core::fmt;
use slab::Slab;
use std::collections::{BinaryHeap, VecDeque};

/// Messages of one priority.
pub(crate) trait Bag<M>: Default + fmt::Debug + Send {
    fn put(&mut self, tag: Tag, message: M);
    /// The one that goes next.
    fn head(&self) -> Option<&Tag>;
    /// Takes the one that goes next.
    fn take(&mut self) -> Option<(Tag, M)>;
}

/// As they came.
pub(crate) type Oldest<M> = VecDeque<(Tag, M)>;

impl<M: fmt::Debug + Send> Bag<M> for Oldest<M> {
    fn put(&mut self, tag: Tag, message: M) {
        self.push_back((tag, message));
    }

    fn head(&self) -> Option<&Tag> {
        self.front().map(|(tag, _)| tag)
    }

    fn take(&mut self) -> Option<(Tag, M)> {
        self.pop_front()
    }
}

/// The newest first.
pub(crate) type Newest<M> = Vec<(Tag, M)>;

impl<M: fmt::Debug + Send> Bag<M> for Newest<M> {
    fn put(&mut self, tag: Tag, message: M) {
        self.push((tag, message));
    }

    fn head(&self) -> Option<&Tag> {
        self.last().map(|(tag, _)| tag)
    }

    fn take(&mut self) -> Option<(Tag, M)> {
        self.pop()
    }
}

/// What expires soonest first; what expires never last; at the same time as they came.
///
/// Messages that live equally long expire in the order in which they come: those only join the end of `run`. The heap has
/// those that come out of this order.
#[derive(Debug)]
pub(crate) struct Soonest<M> {
    run: VecDeque<(Key, Tag, M)>,
    heap: BinaryHeap<Reverse<(Key, usize)>>,
    /// What is in the heap, at the places that it names: a heap moves its entries about, so they are small.
    messages: Slab<(Tag, M)>,
    count: u64,
}

/// Expiry in nanoseconds, and a count that breaks ties.
type Key = (u64, u64);

impl<M> Default for Soonest<M> {
    fn default() -> Self {
        Self { run: VecDeque::new(), heap: BinaryHeap::new(), messages: Slab::new(), count: 0 }
    }
}

impl<M> Soonest<M> {
    /// Whether the next one is in the run.
    fn is_in_run(&self) -> bool {
        match (self.run.front(), self.heap.peek()) {
            (Some((key, ..)), Some(Reverse((other, _)))) => key < other,
            (run, _) => run.is_some(),
        }
    }
}

impl<M: fmt::Debug + Send> Bag<M> for Soonest<M> {
    fn put(&mut self, tag: Tag, message: M) {
        let key = (tag.expiry.map_or(u64::MAX, |expiry| expiry.as_nanos()), self.count);
        self.count += 1;
        if self.run.back().is_none_or(|(last, ..)| *last < key) {
            self.run.push_back((key, tag, message));
        } else {
            self.heap.push(Reverse((key, self.messages.insert((tag, message)))));
        }
    }

    fn head(&self) -> Option<&Tag> {
        if self.is_in_run() {
            return self.run.front().map(|(_, tag, _)| tag);
        }
        self.heap.peek().map(|&Reverse((_, place))| &self.messages[place].0)
    }

    fn take(&mut self) -> Option<(Tag, M)> {
        if self.is_in_run() {
            return self.run.pop_front().map(|(_, tag, message)| (tag, message));
        }
        self.heap.pop().map(|Reverse((_, place))| self.messages.remove(place))
    }
}
