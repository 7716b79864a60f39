use super::codel::{CoDel, CoDelState};
use super::red::{Red, RedState};
use super::verdict::Verdict;
use braidcast_core::{Ecn, Instant, Rng};
use core::time::Duration;
use std::collections::VecDeque;

/// The queue before the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    /// How much may wait.
    pub limit: QueueLimit,
    /// Who is dropped or marked before that.
    pub discipline: Discipline,
}

impl From<QueueLimit> for Queue {
    /// Drop-tail.
    fn from(limit: QueueLimit) -> Self {
        Self { limit, discipline: Discipline::DropTail }
    }
}

/// How a queue that is not full yet makes senders slow down.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// It does not.
    #[default]
    DropTail,
    /// It drops or marks arriving packets at random, by the queue's average length.
    Red(Red),
    /// It drops or marks packets at the head, by the time that they waited.
    CoDel(CoDel),
    /// It does not, and holds the propagation delay too, as Linux's netem with a rate does: a packet waits from its
    /// offer until the delay has passed, then for those before it, and counts against the limit all that time. So a
    /// full queue is as long on a far link as on a near one. Jitter and reordering act behind it.
    Netem,
}

/// How much may wait, the packet being sent included; what comes on top is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// A number of packets.
    Packets(usize),
    /// A number of bytes on the wire.
    Bytes(usize),
    /// A packet is dropped if those before it need longer than this at the link's rate: the present one of a
    /// schedule, the mean of a recording. No limit on a link without a rate.
    Time(Duration),
}

impl Default for QueueLimit {
    /// 1000 packets, netem's default.
    fn default() -> Self {
        Self::Packets(1000)
    }
}

/// A discipline at work.
#[derive(Debug)]
pub(super) enum Manager {
    DropTail,
    /// Boxed for the size of its generator.
    Red(Box<RedState>),
    CoDel(CoDelState),
}

impl Manager {
    /// `max_packet` is the largest packet that the link takes.
    pub(super) fn new(discipline: Discipline, max_packet: usize, rng: &Rng) -> Self {
        match discipline {
            Discipline::DropTail | Discipline::Netem => Self::DropTail,
            Discipline::Red(red) => Self::Red(Box::new(RedState::new(red, rng.stream("red")))),
            Discipline::CoDel(codel) => Self::CoDel(CoDelState::new(codel, max_packet)),
        }
    }

    /// A packet arrives behind `packets` others on a link of this rate.
    pub(super) fn arrival(&mut self, now: Instant, packets: usize, bits_per_second: Option<u64>, ecn: Ecn) -> Verdict {
        match self {
            Self::Red(red) => red.arrival(now, packets, bits_per_second, ecn != Ecn::NotEct),
            Self::DropTail | Self::CoDel(_) => Verdict::Pass,
        }
    }

    /// A packet that came at `since` begins to be sent and leaves `left` bytes behind.
    pub(super) fn head(&mut self, now: Instant, since: Instant, left: usize, ecn: Ecn) -> Verdict {
        match self {
            Self::CoDel(codel) => codel.dequeue(now, now - since, left, ecn != Ecn::NotEct),
            Self::DropTail | Self::Red(_) => Verdict::Pass,
        }
    }

    /// The queue became empty.
    pub(super) fn emptied(&mut self, now: Instant) {
        match self {
            Self::DropTail => {}
            Self::Red(red) => red.emptied(now),
            Self::CoDel(codel) => codel.emptied(),
        }
    }
}

/// A packet that waits.
#[derive(Debug)]
pub(super) struct Waiting<P> {
    /// When it was offered.
    pub(super) since: Instant,
    /// Its number among all that were offered.
    pub(super) number: u64,
    pub(super) len: usize,
    pub(super) ecn: Ecn,
    pub(super) packet: P,
}

/// Packets that wait, first in first out.
#[derive(Debug)]
pub(super) struct Fifo<P> {
    limit: QueueLimit,
    waiting: VecDeque<Waiting<P>>,
    bytes: usize,
}

impl<P> Fifo<P> {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self { limit, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Returns `true` if a packet of `len` bytes still fits on a link of this rate.
    pub(super) fn has_room(&self, len: usize, bits_per_second: Option<u64>) -> bool {
        match self.limit {
            QueueLimit::Packets(n) => self.waiting.len() < n,
            QueueLimit::Bytes(n) => self.bytes.saturating_add(len) <= n,
            QueueLimit::Time(limit) => bits_per_second.is_none_or(|rate| {
                let allowed = limit.as_nanos().saturating_mul(u128::from(rate));
                self.bytes as u128 * 8_000_000_000 <= allowed
            }),
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting<P>) {
        self.bytes += waiting.len;
        self.waiting.push_back(waiting);
    }

    pub(super) fn front(&self) -> Option<&Waiting<P>> {
        self.waiting.front()
    }

    pub(super) fn back(&self) -> Option<&Waiting<P>> {
        self.waiting.back()
    }

    pub(super) fn mark_head(&mut self) {
        if let Some(head) = self.waiting.front_mut() {
            head.ecn = Ecn::Ce;
        }
    }

    pub(super) fn pop(&mut self) -> Option<Waiting<P>> {
        let head = self.waiting.pop_front()?;
        self.bytes -= head.len;
        Some(head)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.waiting.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many packets of 1000 bytes fit.
    fn room(limit: QueueLimit, rate: Option<u64>) -> usize {
        let mut fifo = Fifo::new(limit);
        while fifo.has_room(1000, rate) && fifo.len() < 10_000 {
            fifo.push(Waiting { since: Instant::ZERO, number: 0, len: 1000, ecn: Ecn::NotEct, packet: () });
        }
        fifo.len()
    }

    #[test]
    fn limits_count_packets_bytes_or_time() {
        assert_eq!(room(QueueLimit::Packets(7), None), 7);
        assert_eq!(room(QueueLimit::Bytes(7_999), None), 7);
        // 10 packets take 10 ms at 8 Mbit/s; the eleventh waits exactly as long as allowed.
        assert_eq!(room(QueueLimit::Time(Duration::from_millis(10)), Some(8_000_000)), 11);
        assert_eq!(room(QueueLimit::Time(Duration::from_millis(10)), None), 10_000);
    }
}
