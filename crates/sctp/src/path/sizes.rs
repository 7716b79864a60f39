use crate::number::Order;
use std::collections::VecDeque;

/// How large the packets were that chunks left in, by their places in the send order: what got lost
/// or arrived says something about a size. Memory: 4 KiB.
#[derive(Debug, Default)]
pub(crate) struct PacketSizes {
    /// One past the last place of each packet, and its bytes, the oldest first.
    packets: VecDeque<(Order, u16)>,
}

impl PacketSizes {
    /// Packets that are remembered.
    const MAX: usize = 256;

    /// A packet of `size` bytes left with the chunks before the place `next` that were in none before.
    pub(crate) fn on_sent(&mut self, next: Order, size: usize) {
        if self.packets.back().is_some_and(|&(last, _)| last == next) {
            return; // It carried no chunk.
        }
        if self.packets.len() == Self::MAX {
            self.packets.pop_front();
        }
        self.packets.push_back((next, u16::try_from(size).unwrap_or(u16::MAX)));
    }

    /// The size of the packet with the chunk in place `order`; `None` if that is too long ago.
    pub(crate) fn of(&self, order: Order) -> Option<usize> {
        let at = self.packets.partition_point(|&(next, _)| next <= order);
        // Of the oldest packet nobody knows where it begins.
        let &(_, size) = self.packets.get(at).filter(|_| at > 0 || self.packets.len() < Self::MAX)?;
        Some(usize::from(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_has_the_size_of_its_packet_as_long_as_that_is_remembered() {
        let mut sizes = PacketSizes::default();
        assert_eq!(sizes.of(Order::FIRST), None);
        sizes.on_sent(Order::new(2), 1400);
        sizes.on_sent(Order::new(2), 80);
        sizes.on_sent(Order::new(3), 500);
        assert_eq!([0, 1, 2, 3].map(|at| sizes.of(Order::new(at))), [Some(1400), Some(1400), Some(500), None]);
        for next in 4..1000 {
            sizes.on_sent(Order::new(next), 1000);
        }
        assert_eq!([0, 700, 900].map(|at| sizes.of(Order::new(at))), [None, None, Some(1000)]);
    }
}
