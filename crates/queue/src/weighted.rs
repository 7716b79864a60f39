use crate::{Discard, Limits, Outlook, Refused, SendQueue, Tag, Why};
use core::cmp::Reverse;
use core::fmt;
use core::time::Duration;
use slab::Slab;
use std::collections::BinaryHeap;

/// What a message's score is made of. The score is a time, and the lowest goes first: when the
/// message expires, later by an offset for each priority below the first and for each 1000 bytes. As
/// all messages age alike, a score never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Weights {
    /// For each priority. Default 100 ms, by which audio goes before frames of the same moment,
    /// but old frames before audio that has long to live.
    pub priority: Duration,
    /// For each 1000 bytes. Default 5 ms.
    pub kilobyte: Duration,
    /// The life of a message that never expires, from when it came. Default 1 s.
    pub lifetime: Duration,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            priority: Duration::from_millis(100),
            kilobyte: Duration::from_millis(5),
            lifetime: Duration::from_secs(1),
        }
    }
}

/// A score, a count that breaks ties, and a place among the messages.
type Key = (u64, u64, usize);

/// By score, from both ends (SBPN §8.4.4). SBPN2 decides what is too late; a full queue abandons the worst.
///
/// The two heaps have each message once. What left by one is found to be missing when the other comes to it.
#[derive(Debug)]
pub(crate) struct Weighted<M> {
    best: BinaryHeap<Reverse<Key>>,
    worst: BinaryHeap<Key>,
    messages: Slab<(u64, Tag, M)>,
    bytes: usize,
    count: u64,
    limits: Limits,
    weights: Weights,
}

impl<M> Weighted<M> {
    pub(crate) fn new(limits: Limits, weights: Weights) -> Self {
        let limits = Limits { messages: limits.messages.max(1), ..limits };
        let (best, worst, messages) = (BinaryHeap::new(), BinaryHeap::new(), Slab::new());
        Self { best, worst, messages, bytes: 0, count: 0, limits, weights }
    }

    fn score(&self, outlook: &Outlook, tag: &Tag) -> u64 {
        let expiry = tag.expiry.unwrap_or(outlook.now + self.weights.lifetime);
        let size = self.weights.kilobyte.mul_f64(tag.len as f64 / 1000.0);
        (expiry + self.weights.priority * u32::from(tag.priority.get()) + size).as_nanos()
    }

    /// Returns `true` if the message of this key is still there.
    fn is_here(&self, key: &Key) -> bool {
        self.messages.get(key.2).is_some_and(|(count, ..)| *count == key.1)
    }

    fn remove(&mut self, key: &Key) -> (Tag, M) {
        let (_, tag, message) = self.messages.remove(key.2);
        self.bytes -= tag.len;
        (tag, message)
    }

    /// Keeps messages that are there at the front of both heaps, and these within about twice the messages.
    fn tidy(&mut self) {
        while self.best.peek().is_some_and(|Reverse(key)| !self.is_here(key)) {
            self.best.pop();
        }
        while self.worst.peek().is_some_and(|key| !self.is_here(key)) {
            self.worst.pop();
        }
        let most = 2 * self.messages.len() + 64;
        let Self { best, worst, messages, .. } = self;
        let is_here = |key: &Key| messages.get(key.2).is_some_and(|(count, ..)| *count == key.1);
        if best.len() > most {
            best.retain(|Reverse(key)| is_here(key));
        }
        if worst.len() > most {
            worst.retain(is_here);
        }
    }

    fn take_best(&mut self) -> Option<(Tag, M)> {
        let Reverse(key) = self.best.pop()?;
        let taken = self.remove(&key);
        self.tidy();
        Some(taken)
    }
}

impl<M: fmt::Debug + Send> SendQueue<M> for Weighted<M> {
    fn push(&mut self, outlook: &Outlook, tag: Tag, message: M, gone: &mut Vec<Discard<M>>) -> Result<(), Refused<M>> {
        if tag.len > self.limits.bytes {
            return Err(Refused::TooLarge(message));
        }
        let score = self.score(outlook, &tag);
        let key = (score, self.count, self.messages.insert((self.count, tag, message)));
        self.count += 1;
        self.bytes += tag.len;
        self.best.push(Reverse(key));
        self.worst.push(key);
        while self.messages.len() > self.limits.messages || self.bytes > self.limits.bytes {
            let Some(worst) = self.worst.pop() else { break };
            let why = if worst == key { Why::NoRoom } else { Why::Replaced };
            let (tag, message) = self.remove(&worst);
            gone.push(Discard { why, tag, message });
            self.tidy();
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Tag> {
        self.best.peek().map(|Reverse(key)| &self.messages[key.2].1)
    }

    fn pop(&mut self, outlook: &Outlook, gone: &mut Vec<Discard<M>>) -> Option<(Tag, M)> {
        loop {
            let (tag, message) = self.take_best()?;
            if self.messages.is_empty() || !tag.is_expired(outlook) {
                return Some((tag, message));
            }
            gone.push(Discard { why: Why::Expired, tag, message });
        }
    }

    fn len(&self) -> usize {
        self.messages.len()
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{Bench, audio, b_frame, video};
    use crate::{Limits, Method};

    #[test]
    fn urgency_priority_and_size_are_weighed() {
        let mut bench = Bench::new(Method::Weighted, Limits::messages(4));
        // Scores: 300.5, 305 (200 + 100 + 5), 390.5 and 405 (100 + 300 + 5).
        assert!(bench.push([audio(1, 300), video(2, 200), audio(3, 390), b_frame(4, 100)]).is_empty());
        assert_eq!(bench.push([video(5, 150)]), ["4 replaced"], "255 is better than the worst");
        assert_eq!(bench.push([b_frame(6, 300)]), ["6 no room"], "605 would be the worst");
        assert_eq!(bench.pop_all(), ["5", "1", "2", "3"]);
    }

    #[test]
    fn the_last_message_goes_though_it_is_late() {
        let mut bench = Bench::new(Method::Weighted, Limits::NONE);
        assert!(bench.push([audio(1, 10), audio(2, 20)]).is_empty());
        bench.pass(30);
        assert_eq!(bench.pop_all(), ["1 expired", "2"]);
    }

    #[test]
    fn what_left_by_one_end_takes_no_memory_at_the_other() {
        let mut queue = super::Weighted::new(Limits::messages(10), super::Weights::default());
        let (outlook, mut gone) = (crate::Outlook::default(), Vec::new());
        for n in 0..10_000u32 {
            let (_, tag) = audio(n, u64::from(n * 7919 % 1000));
            crate::SendQueue::push(&mut queue, &outlook, tag, n, &mut gone).unwrap();
            if n % 3 == 0 {
                crate::SendQueue::pop(&mut queue, &outlook, &mut gone);
            }
            assert!(queue.best.len() <= 100 && queue.worst.len() <= 100);
        }
    }
}
