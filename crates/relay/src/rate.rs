//! What a client may send in a second.

use braidcast_core::Instant;

/// What may come at once beyond the rate: what a second allows, over this.
const BURST: u64 = 4;
/// At least so many bytes may: a frame.
const LEAST_BURST: u64 = 64 << 10;

/// A token bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    bytes_per_second: u64,
    /// Bytes times 10⁹, so that nothing is lost between two packets.
    room: u128,
    at: Instant,
}

impl Bucket {
    /// Full, for `bits_per_second`.
    pub(crate) fn new(now: Instant, bits_per_second: u64) -> Self {
        let mut it = Self { bytes_per_second: bits_per_second / 8, room: 0, at: now };
        it.room = it.most();
        it
    }

    fn most(&self) -> u128 {
        u128::from((self.bytes_per_second / BURST).max(LEAST_BURST)) * 1_000_000_000
    }

    /// Returns `true` if `bytes` may pass now, and takes them off.
    pub(crate) fn take(&mut self, now: Instant, bytes: usize) -> bool {
        let gained = u128::from(self.bytes_per_second) * now.since(self.at).as_nanos();
        self.at = self.at.max(now);
        self.room = (self.room + gained).min(self.most());
        let needed = bytes as u128 * 1_000_000_000;
        let may = self.room >= needed;
        if may {
            self.room -= needed;
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_a_long_time_no_more_passes_than_the_rate_and_one_burst() {
        let mut bucket = Bucket::new(Instant::ZERO, 8_000_000);
        let mut passed = 0;
        for micros in (0..10_000_000).step_by(500) {
            if bucket.take(Instant::from_micros(micros), 1000) {
                passed += 1000;
            }
        }
        assert!((10_000_000..=10_250_000).contains(&passed), "{passed}");
    }
}
