use crate::number::Order;
use std::collections::VecDeque;

/// Redundancy that takes room in the window of a path. Nobody acknowledges it: it counts as gone
/// when the data that left just before it over the path, or later data, is acknowledged. Waiting
/// for later data, it would stay for up to two round trips, where data stays for one, and have more
/// than its share.
#[derive(Debug, Default)]
pub(super) struct Redundant {
    /// The place in the send order of the data before it, and the bytes.
    sent: VecDeque<(Order, usize)>,
    bytes: usize,
}

impl Redundant {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// `len` bytes leave behind the data in place `order`.
    pub(super) fn on_sent(&mut self, order: Order, len: usize) {
        self.sent.push_back((order, len));
        self.bytes += len;
    }

    /// The data in place `order` was acknowledged.
    pub(super) fn on_acked(&mut self, order: Order) {
        while let Some(&(_, len)) = self.sent.front().filter(|&&(before, _)| before <= order) {
            self.sent.pop_front();
            self.bytes -= len;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_when_the_data_that_left_before_it_is() {
        let mut redundant = Redundant::default();
        redundant.on_sent(Order::new(1), 1000);
        redundant.on_sent(Order::new(1), 1000);
        redundant.on_sent(Order::new(4), 1000);
        redundant.on_acked(Order::new(0));
        assert_eq!(redundant.bytes(), 3000);
        redundant.on_acked(Order::new(1));
        assert_eq!(redundant.bytes(), 1000);
        redundant.on_acked(Order::new(9));
        assert_eq!(redundant.bytes(), 0);
    }
}
