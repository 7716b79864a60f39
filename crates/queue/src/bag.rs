//! The orders in which messages of one priority go.

use crate::{Outlook, Tag};
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

    /// The first that would come in time, and its place for [`take_at`](Self::take_at). Found by
    /// halving: where messages do not expire in the order of the bag, it may not be the first, or
    /// be overlooked.
    fn first_on_time(&self, outlook: &Outlook) -> Option<(usize, &Tag)>;
    /// Takes the one at this place.
    fn take_at(&mut self, place: usize) -> Option<(Tag, M)>;
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

    fn first_on_time(&self, outlook: &Outlook) -> Option<(usize, &Tag)> {
        let place = self.partition_point(|(tag, _)| tag.is_expired(outlook));
        let (tag, _) = self.get(place)?;
        (!tag.is_expired(outlook)).then_some((place, tag))
    }

    fn take_at(&mut self, place: usize) -> Option<(Tag, M)> {
        self.remove(place)
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

    /// The newest: if it is late the others are.
    fn first_on_time(&self, outlook: &Outlook) -> Option<(usize, &Tag)> {
        let tag = self.head().filter(|tag| !tag.is_expired(outlook))?;
        Some((self.len() - 1, tag))
    }

    fn take_at(&mut self, place: usize) -> Option<(Tag, M)> {
        (place < self.len()).then(|| self.remove(place))
    }
}

/// What expires soonest first; what expires never last; at the same time as they came.
///
/// Messages that live equally long expire in the order in which they come: those only join the end
/// of `run`. The heap has those that come out of this order.
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
    /// The place of the first in the heap.
    const IN_HEAP: usize = usize::MAX;

    fn take_from_heap(&mut self) -> Option<(Tag, M)> {
        self.heap.pop().map(|Reverse((_, place))| self.messages.remove(place))
    }

    /// Returns `true` if the next one is in the run.
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
        self.take_from_heap()
    }

    /// Of the heap only the first is looked at.
    fn first_on_time(&self, outlook: &Outlook) -> Option<(usize, &Tag)> {
        let place = self.run.partition_point(|(_, tag, _)| tag.is_expired(outlook));
        let in_run = self.run.get(place).map(|(key, tag, _)| (key, place, tag));
        let in_heap = self.heap.peek().map(|Reverse((key, slot))| (key, Self::IN_HEAP, &self.messages[*slot].0));
        let in_heap = in_heap.filter(|(.., tag)| !tag.is_expired(outlook));
        in_run.into_iter().chain(in_heap).min_by_key(|(key, ..)| *key).map(|(_, place, tag)| (place, tag))
    }

    fn take_at(&mut self, place: usize) -> Option<(Tag, M)> {
        if place == Self::IN_HEAP {
            return self.take_from_heap();
        }
        self.run.remove(place).map(|(_, tag, message)| (tag, message))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, b_frame, video};
    use crate::{Limits, Method};

    #[test]
    fn a_slower_way_takes_what_is_in_time_over_it_and_leaves_the_rest() {
        for (name, method) in Method::ALL {
            let mut bench = Bench::new(method, Limits::messages(9));
            let messages =
                [video(1, 40), video(2, 80), audio(3, 30), audio(4, 40), video(5, 70), video(6, 200), b_frame(7, 300)];
            assert!(bench.push(messages).is_empty());
            bench.pass(50);
            let mut next = || bench.queue.pop_on_time(&bench.outlook).map(|(_, number)| number);
            let order = [next(), next(), next(), next()];
            let expected = match method {
                Method::Fifo | Method::FifoTimed => [5, 6, 7, 0],
                Method::Lifo => [7, 6, 5, 0],
                Method::LifoPriority => [6, 5, 2, 7],
                Method::Sbpn1 | Method::Sbpn2 => [5, 2, 6, 7],
                Method::Weighted => [0; 4],
                Method::InTime => [7, 0, 0, 0],
                _ => [2, 5, 6, 7],
            };
            assert_eq!(order.map(Option::unwrap_or_default), expected, "{name}");
            let left = expected.iter().filter(|it| **it == 0).count() + 3;
            assert_eq!(bench.queue.len(), left, "{name}: nothing is discarded");
        }
    }
}
