use super::{Encoder, Family, Rounds, check_window};
use crate::{Coefficients, Combination};

/// Tetrys (RFC 9407; ECMT §III, reference 13): each repair covers all that is sent and not
/// acknowledged, so that it makes up for whatever may be missing.
#[derive(Debug)]
pub(super) struct Tetrys {
    rounds: Rounds,
    m: u64,
    /// The elastic window: the first source that is not acknowledged, and the one after the newest.
    window: Option<(u64, u64)>,
    key: u16,
}

impl Tetrys {
    pub(super) const EXAMPLE: &str = "tetrys:10,9,43";

    pub(super) fn new(n: u16, k: u16, m: u16) -> Self {
        Self { rounds: Rounds::new(n, k), m: u64::from(m), window: None, key: 0 }
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

impl Encoder for Tetrys {
    fn on_source(&mut self, id: u64) {
        self.window = Some((self.window.map_or(id, |(first, _)| first), id + 1));
        self.rounds.on_source();
    }

    fn on_acknowledged(&mut self, below: u64) {
        if let Some((first, _)) = &mut self.window {
            *first = below.max(*first);
        }
    }

    fn poll_repair(&mut self) -> Option<Combination> {
        self.rounds.take()?;
        self.repair()
    }

    fn repair(&mut self) -> Option<Combination> {
        let (first, end) = self.window?;
        let first = first.max(end.saturating_sub(self.m));
        if first >= end {
            return None;
        }
        self.key = self.key.wrapping_add(1);
        let count = (end - first) as u16;
        Some(Combination { coefficients: Coefficients::Random, first, count, key: self.key })
    }
}
