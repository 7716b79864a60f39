//! Which PIDs carry little: cues, metadata, captions, clock references.

use braidcast_core::Instant;

/// Rate of a PID that is small, bytes a second: 96 kbit/s, as much as the audio of a stream for which it counts.
const RATE: f64 = 12_000.0;
/// Bytes that one may send at once.
const BURST: f64 = 2.0 * RATE;

/// Knows a PID that carries little from a bulky one, by its rate of late.
///
/// A bulky one is small again only after it could have sent a whole burst: of an EPG no part goes
/// as if it were small.
#[derive(Clone, Copy, Debug)]
pub(super) struct Small {
    room: f64,
    at: Option<Instant>,
    bulky: bool,
}

impl Default for Small {
    fn default() -> Self {
        Self { room: BURST, at: None, bulky: false }
    }
}

impl Small {
    /// Returns `true` if the PID is small, now that it carries `bytes` more, captured at `now`.
    pub(super) fn takes(&mut self, now: Instant, bytes: usize) -> bool {
        let passed = self.at.map_or(0.0, |at| now.since(at).as_secs_f64());
        self.at = Some(now);
        let before = (self.room + passed * RATE).min(BURST);
        self.bulky &= before < BURST;
        self.room = (before - bytes as f64).max(-BURST);
        self.bulky |= self.room < 0.0;
        !self.bulky
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(small: &mut Small, from: u64, seconds: u64, packets_a_second: u64) -> u64 {
        let times = (0..seconds * packets_a_second).map(|n| from * 1000 + n * 1000 / packets_a_second);
        times.filter(|ms| small.takes(Instant::from_millis(*ms), 188)).count() as u64
    }

    #[test]
    fn what_carries_little_stays_small_and_what_is_bulky_becomes_so_at_once_and_for_long() {
        let mut small = Small::default();
        assert_eq!(count(&mut small, 0, 100, 50), 5000, "75 kbit/s");
        let begins = count(&mut small, 100, 10, 180);
        assert!(begins < 300, "270 kbit/s, of which {begins} packets are taken for small");
        assert_eq!(count(&mut small, 110, 10, 180), 0);
        // 4 s of silence make up for it.
        assert_eq!(count(&mut small, 125, 10, 50), 500);
    }
}
