use super::rate::Rate;
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;

/// How much may wait, the packet being sent included; what comes on top is dropped (drop-tail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets.
    Packets(usize),
    /// So many bytes on the wire.
    Bytes(usize),
    /// A packet is dropped if those before it need longer than this at the link's mean rate. No limit on a
    /// link without a rate.
    Time(Duration),
}

impl Default for QueueLimit {
    /// 1000 packets, netem's default.
    fn default() -> Self {
        Self::Packets(1000)
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
    pub(super) packet: P,
}

/// The queue before the wire.
#[derive(Debug)]
pub(super) struct Fifo<P> {
    limit: QueueLimit,
    /// For [`QueueLimit::Time`].
    bits_per_second: Option<u64>,
    waiting: VecDeque<Waiting<P>>,
    bytes: usize,
}

impl<P> Fifo<P> {
    pub(super) fn new(limit: QueueLimit, rate: &Rate) -> Self {
        Self { limit, bits_per_second: rate.mean_bits_per_second(), waiting: VecDeque::new(), bytes: 0 }
    }

    /// Whether a packet of `len` bytes still fits.
    pub(super) fn has_room(&self, len: usize) -> bool {
        match self.limit {
            QueueLimit::Packets(n) => self.waiting.len() < n,
            QueueLimit::Bytes(n) => self.bytes.saturating_add(len) <= n,
            QueueLimit::Time(limit) => self.bits_per_second.is_none_or(|rate| {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many packets of 1000 bytes fit.
    fn room(limit: QueueLimit, rate: Rate) -> usize {
        let mut fifo = Fifo::new(limit, &rate);
        while fifo.has_room(1000) && fifo.len() < 10_000 {
            fifo.push(Waiting { since: Instant::ZERO, number: 0, len: 1000, packet: () });
        }
        fifo.len()
    }

    #[test]
    fn limits_count_packets_bytes_or_time() {
        assert_eq!(room(QueueLimit::Packets(7), Rate::Unlimited), 7);
        assert_eq!(room(QueueLimit::Bytes(7_999), Rate::Unlimited), 7);
        // 10 packets take 10 ms at 8 Mbit/s; the eleventh waits exactly as long as allowed.
        assert_eq!(room(QueueLimit::Time(Duration::from_millis(10)), Rate::Bits(8_000_000)), 11);
        assert_eq!(room(QueueLimit::Time(Duration::from_millis(10)), Rate::Unlimited), 10_000);
    }
}
