use super::{Encoder, Rounds};
use crate::{Coefficients, Combination};

/// A systematic block code (ECMT §III): Reed and Solomon's with a Cauchy matrix, or RaptorQ.
#[derive(Debug)]
pub(super) struct Block {
    rounds: Rounds,
    /// The first source of the block that is being filled, or whose repairs are due.
    first: Option<u64>,
    acknowledged: u64,
    coefficients: Coefficients,
}

impl Block {
    pub(super) const fn new(n: u16, k: u16, coefficients: Coefficients) -> Self {
        Self { rounds: Rounds::new(n, k), first: None, acknowledged: 0, coefficients }
    }
}

impl Encoder for Block {
    fn on_source(&mut self, id: u64) {
        if self.rounds.sources == 0 {
            (self.first, self.rounds.due) = (Some(id), 0);
        }
        self.rounds.on_source();
    }

    fn on_acknowledged(&mut self, below: u64) {
        self.acknowledged = self.acknowledged.max(below);
    }

    fn poll_repair(&mut self) -> Option<Combination> {
        let first = self.first?;
        let key = self.rounds.take()?;
        let combination = Combination { coefficients: self.coefficients, first, count: self.rounds.k, key };
        // A block that arrived needs no repair.
        (combination.end() > self.acknowledged).then_some(combination)
    }
}
