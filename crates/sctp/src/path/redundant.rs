use std::collections::VecDeque;

/// Redundancy that takes room in the window of a path. Nobody acknowledges it: it counts as gone when data that was sent
/// after it over the path is acknowledged.
#[derive(Debug, Default)]
pub(super) struct Redundant {
    /// The place in the send order that the next data got, and the bytes.
    sent: VecDeque<(u64, usize)>,
    bytes: usize,
}

impl Redundant {
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// `len` bytes leave before the data in place `order`.
    pub(super) fn on_sent(&mut self, order: u64, len: usize) {
        self.sent.push_back((order, len));
        self.bytes += len;
    }

    /// The data in place `order` was acknowledged.
    pub(super) fn on_acked(&mut self, order: u64) {
        while let Some(&(_, len)) = self.sent.front().filter(|&&(before, _)| before <= order) {
            self.sent.pop_front();
            self.bytes -= len;
        }
    }
}
