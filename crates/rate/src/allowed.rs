//! The same number over one path whose congestion control says what it allows, as DCCP's does
//! (THESIS §4.9, §9.1; SBPN §8.4.2).

use crate::guide::LONGEST;
use crate::{RateLimits, RateReport};
use core::time::Duration;

/// What congestion control says.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowed {
    /// Bytes of data in a second.
    pub rate: f64,
    /// Bytes and messages that wait for it.
    pub queued: (usize, usize),
    /// From here to the other end, if that is known.
    pub one_way: Option<Duration>,
}

impl Allowed {
    /// Returns what an encoder may make that makes a frame each `interval`, if each has to be there
    /// after `lifetime`.
    pub fn report(&self, interval: Duration, lifetime: Duration, limits: RateLimits) -> RateReport {
        let bits = self.rate * 8.0;
        let (rate, interval) = (limits.clamp(bits), interval.as_secs_f64());
        let waiting = if bits > 0.0 { (self.queued.0 as f64 * 8.0 / bits).min(LONGEST) } else { LONGEST };
        let room = lifetime.saturating_sub(self.one_way.unwrap_or_default()).as_secs_f64();
        // Full size while less waits than an eighth of what is left, none from two thirds on.
        let (low, high) = ((room / 8.0).max(interval), (room / 1.5).max(1.5 * interval));
        let share = ((high - waiting) / (high - low)).clamp(0.0, 1.0);
        RateReport {
            next_frame_bits: (rate.min(bits) * interval * share).round() as u64,
            rate: rate.round(),
            video_rate: rate.round(),
            // The equation of TFRC is smooth by itself (RFC 5348 §1).
            smoothed_rate: rate.round(),
            is_floor: self.queued.1 == 0,
            below_least: bits < limits.least as f64,
            waiting_ms: (waiting * 1e4).round() / 10.0,
            waiting_frames: 0,
            frame_interval_ms: (interval * 1e4).round() / 10.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_makes_the_next_picture_smaller_and_a_rate_below_the_least_is_said() {
        let ms = Duration::from_millis;
        let limits = RateLimits { least: 200_000, greatest: 2_000_000 };
        let told = |rate: f64, queued| Allowed { rate, queued, one_way: Some(ms(50)) }.report(ms(40), ms(250), limits);
        let idle = told(125_000.0, (0, 0));
        assert_eq!((idle.next_frame_bits, idle.rate, idle.is_floor, idle.below_least), (40_000, 1e6, true, false));
        let (busy, full) = (told(125_000.0, (10_000, 8)), told(125_000.0, (20_000, 16)));
        assert!((1..40_000).contains(&busy.next_frame_bits) && !busy.is_floor && busy.waiting_ms == 80.0, "{busy:?}");
        assert_eq!(full.next_frame_bits, 0);
        assert_eq!(told(1e6, (0, 0)).rate, 2e6);
        let little = told(12_500.0, (0, 0));
        assert!(little.below_least && little.rate == 2e5 && little.next_frame_bits == 4_000, "{little:?}");
        assert_eq!(told(0.0, (1, 1)).next_frame_bits, 0);
    }
}
