use braidcast_core::Instant;

/// A token bucket without a queue, as operators limit what a customer sends: what finds too few tokens is dropped
/// at once, and nothing waits (RFC 2697 calls the depth the committed burst size).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policer {
    /// Bits that the bucket gains in a second, 1 or more.
    pub bits_per_second: u64,
    /// Bytes that it holds at most, those of the link layer's framing included. A longer packet never passes.
    pub depth: usize,
}

/// Tokens are counted in billionths of a bit, so that no time is too short to bring some.
const BIT: u128 = 1_000_000_000;

/// A policer at work.
#[derive(Debug)]
pub(super) struct Bucket {
    policer: Policer,
    tokens: u128,
    filled: Instant,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(policer: Policer) -> Self {
        Self { policer, tokens: Self::full(&policer), filled: Instant::ZERO }
    }

    const fn full(policer: &Policer) -> u128 {
        policer.depth as u128 * 8 * BIT
    }

    /// Returns `true` if a packet of `len` bytes passes.
    pub(super) fn passes(&mut self, now: Instant, len: usize) -> bool {
        let gained = now.since(self.filled).as_nanos() * u128::from(self.policer.bits_per_second);
        self.tokens = (self.tokens + gained).min(Self::full(&self.policer));
        self.filled = self.filled.max(now);
        let cost = len as u128 * 8 * BIT;
        let passes = cost <= self.tokens;
        self.tokens -= if passes { cost } else { 0 };
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_what_the_rate_allows() {
        let mut bucket = Bucket::new(Policer { bits_per_second: 8_000_000, depth: 10_000 });
        // Twice the rate: a packet of 1000 bytes each half millisecond.
        let passed: Vec<bool> = (0..2000).map(|n| bucket.passes(Instant::from_micros(500 * n), 1000)).collect();
        assert!(passed[..18].iter().all(|passed| *passed), "the depth, and what comes meanwhile");
        let later = passed[1000..].iter().filter(|passed| **passed).count();
        assert!((499..=501).contains(&later), "{later} of 1000");
        assert!(!bucket.passes(Instant::from_millis(10_000), 10_001), "it is never so full");
        assert!(bucket.passes(Instant::from_millis(10_000), 10_000));
    }
}
