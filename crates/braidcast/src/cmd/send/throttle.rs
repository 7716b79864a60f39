use braidcast_core::Instant;
use braidcast_media::PcrClock;
use braidcast_media::ts::{Packet, PacketSync};
use std::time::Duration;

/// How far a pipe may run ahead of its own clock.
const AHEAD: Duration = Duration::from_secs(1);
/// How far it may have fallen behind and still catch up at once: what an encoder made while this
/// process stood still is not too early.
const BEHIND: Duration = Duration::from_secs(10);

/// Keeps a transport stream that comes through a pipe from running away.
///
/// A camera or an encoder in real time never notices: nothing is delayed as long as the stream's clock is less than a
/// second ahead of the time since its first packet. A program that writes as fast as it can (`cat`, or ffmpeg
/// without `-re`) is held back to the speed of the stream, where it would otherwise be sent in one burst and be lost.
pub(super) struct Throttle {
    sync: PacketSync,
    clock: PcrClock,
    clock_pid: Option<u16>,
    /// Time of ours that corresponds to the stream's clock so far.
    stream_time: Option<Instant>,
}

impl Throttle {
    pub(super) fn new() -> Self {
        Self { sync: PacketSync::new(), clock: PcrClock::new(), clock_pid: None, stream_time: None }
    }

    /// Reads the clock references in `bytes`, which came at `now`.
    pub(super) fn see(&mut self, now: Instant, bytes: &[u8]) {
        self.sync.push(bytes);
        while let Some(bytes) = self.sync.next(false) {
            let packet = Packet::new(bytes);
            let Some(pcr) = packet.pcr() else { continue };
            if *self.clock_pid.get_or_insert(packet.pid()) != packet.pid() {
                continue;
            }
            let step = self.clock.step(pcr, packet.discontinuity()).unwrap_or_default();
            // A stream that fell far behind, by a pause or a slow clock, counts anew.
            self.stream_time = Some(self.stream_time.map_or(now, |at| (at + step).max(now - BEHIND)));
        }
    }

    /// Returns the time until which nothing more is to be read; in the past if there is no need.
    pub(super) fn hold_until(&self) -> Option<Instant> {
        self.stream_time.map(|at| at - AHEAD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets each with a clock reference, `step` apart from `start`.
    fn stream(start: Duration, step: Duration, packets: u32) -> Vec<u8> {
        let packet = |n: u32| {
            let base = (start + step * n).as_micros() as u64 * 9 / 100;
            let mut packet = [0xff; 188];
            packet[..6].copy_from_slice(&[0x47, 1, 0, 0x20, 183, 0x10]);
            packet[6..10].copy_from_slice(&((base >> 1) as u32).to_be_bytes());
            packet[10..12].copy_from_slice(&[((base & 1) << 7) as u8 | 0x7e, 0]);
            packet
        };
        (0..packets).flat_map(packet).collect()
    }

    #[test]
    fn a_stream_that_comes_at_once_is_held_back_to_its_own_clock() {
        let mut throttle = Throttle::new();
        let now = Instant::from_millis(10_000);
        throttle.see(now, &stream(Duration::ZERO, Duration::from_millis(40), 101));
        // The sync needs two more packets to be sure of the last ones only at the start.
        assert_eq!(throttle.hold_until(), Some(Instant::from_millis(13_000)));
    }

    #[test]
    fn a_stream_in_real_time_is_never_held_back() {
        let mut throttle = Throttle::new();
        for n in 0..500_u32 {
            let at = Duration::from_millis(40) * n;
            let now = Instant::from_millis(10_000) + at;
            throttle.see(now, &stream(at, Duration::from_millis(40), 3)[..188 * if n == 0 { 3 } else { 1 }]);
            assert!(throttle.hold_until().is_none_or(|until| until < now), "{n}");
        }
    }

    #[test]
    fn what_was_made_while_we_stood_still_is_read_at_once_and_what_follows_as_it_comes() {
        let mut throttle = Throttle::new();
        let step = Duration::from_millis(40);
        let start = Instant::from_millis(60_000);
        throttle.see(start, &stream(Duration::ZERO, step, 3));
        for n in 3..500_u32 {
            // From the 100th packet on nothing is read for 3 s.
            let now = start + step * if (100..175).contains(&n) { 175 } else { n };
            throttle.see(now, &stream(step * n, step, 1));
            assert!(throttle.hold_until().is_none_or(|until| until < now), "{n}");
        }
    }

    #[test]
    fn a_pause_gives_no_right_to_run_far_ahead() {
        let mut throttle = Throttle::new();
        throttle.see(Instant::from_millis(60_000), &stream(Duration::ZERO, Duration::from_millis(40), 3));
        let later = Instant::from_millis(160_000);
        throttle.see(later, &stream(Duration::from_millis(120), Duration::from_millis(40), 1000));
        let ahead = throttle.hold_until().expect("it is held back").since(later);
        assert!(ahead > Duration::from_secs(28) && ahead < Duration::from_secs(29) + AHEAD, "{ahead:?}");
    }
}
