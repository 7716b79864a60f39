use super::{Encoder, Family, Rounds};
use crate::{Coefficients, Combination};

/// A systematic block code (ECMT §III), Reed and Solomon's with a Cauchy matrix.
#[derive(Debug)]
pub(crate) struct Block {
    rounds: Rounds,
    /// The first source of the block that is being filled, or whose repairs are due.
    first: Option<u64>,
    acknowledged: u64,
}

impl Block {
    pub(super) const EXAMPLE: &str = "block:10,9";

    pub(crate) const fn new(n: u16, k: u16) -> Self {
        Self { rounds: Rounds::new(n, k), first: None, acknowledged: 0 }
    }

    pub(super) const fn family(n: u16, k: u16) -> Family {
        Family::Block { n, k }
    }

    pub(super) const fn window(_n: u16, k: u16) -> u16 {
        k
    }

    pub(super) fn check(n: u16, _k: u16) -> Result<(), String> {
        match usize::from(n) {
            0..=Combination::CAUCHY_SIZE => Ok(()),
            _ => Err(format!("a block has no more than {} symbols", Combination::CAUCHY_SIZE)),
        }
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
        let combination = Combination { coefficients: Coefficients::Cauchy, first, count: self.rounds.k, key };
        // A block that arrived needs no repair.
        (combination.end() > self.acknowledged).then_some(combination)
    }
}
