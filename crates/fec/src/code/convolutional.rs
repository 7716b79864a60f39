use super::{Encoder, Family, Rounds, check_window};
use crate::{Coefficients, Combination};

/// A convolutional code (ECMT §III): each repair covers the last `m` sources, of which some may be acknowledged.
#[derive(Debug)]
pub(super) struct Convolutional {
    rounds: Rounds,
    m: u64,
    /// The first source that there was, and the one after the newest.
    sent: Option<(u64, u64)>,
    acknowledged: u64,
    key: u16,
}

impl Convolutional {
    pub(super) const EXAMPLE: &str = "convolutional:10,9,20";

    pub(super) fn new(n: u16, k: u16, m: u16) -> Self {
        Self { rounds: Rounds::new(n, k), m: u64::from(m), sent: None, acknowledged: 0, key: 0 }
    }

    pub(super) const fn family(_n: u16, _k: u16, _m: u16) -> Family {
        Family::SlidingWindow
    }

    pub(super) const fn window(_n: u16, _k: u16, m: u16) -> u16 {
        m
    }

    pub(super) fn check(_n: u16, _k: u16, m: u16) -> Result<(), String> {
        check_window(m)
    }
}

impl Encoder for Convolutional {
    fn on_source(&mut self, id: u64) {
        self.sent = Some((self.sent.map_or(id, |(first, _)| first), id + 1));
        self.rounds.on_source();
    }

    fn on_acknowledged(&mut self, below: u64) {
        self.acknowledged = self.acknowledged.max(below);
    }

    fn poll_repair(&mut self) -> Option<Combination> {
        self.rounds.take()?;
        self.repair()
    }

    fn repair(&mut self) -> Option<Combination> {
        let (first, end) = self.sent?;
        if end <= self.acknowledged {
            return None;
        }
        let first = first.max(end.saturating_sub(self.m));
        self.key = self.key.wrapping_add(1);
        let count = (end - first) as u16;
        Some(Combination { coefficients: Coefficients::Random, first, count, key: self.key })
    }
}
