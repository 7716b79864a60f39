use super::repair::Repair;
use crate::code::{Block, Encoder as _};

/// Decides at the sender when a repair symbol is due: n − k after each block of `k` sources. The
/// data stays where it is.
#[derive(Debug)]
pub struct Encoder(Block);

impl Encoder {
    /// An encoder of blocks of `n` symbols of which `k` are sources.
    ///
    /// # Panics
    /// Unless 0 < k < n.
    pub const fn new(n: u16, k: u16) -> Self {
        assert!(0 < k && k < n, "of n symbols k are sources");
        Self(Block::new(n, k))
    }

    /// The source symbol `id` was sent for the first time. Numbers have no gaps.
    pub fn on_source(&mut self, id: u64) {
        self.0.on_source(id);
    }

    /// No symbol below `id` needs protection any more.
    pub fn on_acknowledged(&mut self, below: u64) {
        self.0.on_acknowledged(below);
    }

    /// Returns the repair symbol to be sent now, if one is due.
    pub fn poll_repair(&mut self) -> Option<Repair> {
        self.0.poll_repair().map(|it| Repair { first: it.first, count: it.count, key: it.key })
    }
}
