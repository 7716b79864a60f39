//! Derives the encoder's rate from the size that the next frame may have.

use core::time::Duration;

/// How closely the encoder follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// Each frame is as large as it may be.
    Live,
    /// The mean over a second is.
    Quality,
}

braidcast_core::named! {
    /// Both, by the names that flags take.
    Profile, "profile" {
        "live" => Live,
        "quality" => Quality,
    }
}

/// What an encoder needs of a [`RateReport`](crate::RateReport).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// Bits of the next frame, its share of the transport stream included.
    pub next_frame_bits: u64,
    /// What is left for video in the next second, bit/s.
    pub video_rate: f64,
    /// The rate of the stream, smoothed over two seconds, bit/s.
    pub smoothed_rate: f64,
    /// `true` if there is a receiver.
    pub connected: bool,
}

impl Profile {
    /// The size of the rate-control buffer, ms.
    pub const fn buffer_ms(self, fps: i32) -> i32 {
        match self {
            Self::Live => (1000 + fps - 1) / fps,
            Self::Quality => 1000,
        }
    }

    /// The lowest rate at which x264enc has a rate-control buffer, bit/s. It calculates in whole
    /// kbit: if the buffer rounds to zero, x264 keeps its previous one, and so the size of its
    /// frames.
    pub const fn least_rate(self, fps: i32) -> u64 {
        1000 * 1000_u64.div_ceil(self.buffer_ms(fps) as u64)
    }
}

/// Age at which a report no longer counts.
const STALE: Duration = Duration::from_secs(1);
/// A smaller change of the rate is not worth setting.
const LIVE_CHANGE: f64 = 0.02;
const QUALITY_CHANGE: f64 = 0.05;
/// Shortest interval at which the slow loop sets the rate.
const QUALITY_EACH: Duration = Duration::from_millis(500);
/// Overhead of transport stream packets and headers over the encoded video at first, as a factor.
const OVERHEAD: f64 = 1.06;
/// Frames over which the overhead is measured, and also the share of its allowance that an encoder
/// uses.
const MEASURED: u32 = 30;
/// Limit of the factor by which more is asked of an encoder that stays below its allowance: with a
/// buffer of one frame x264 keeps 15 % below.
const MOST_MORE: f64 = 1.2;

/// What becomes of the next frame.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Verdict {
    /// It is not encoded: what waits has to leave first.
    LeaveOut,
    /// It is encoded; the rate, bit/s, if that is to be set.
    Encode(Option<u64>),
}

/// Follows what is said. The same code runs in `braidcast-encode` and in the lab.
#[derive(Clone, Debug)]
pub struct Follower {
    profile: Profile,
    fps: f64,
    limits: (f64, f64),
    /// Nothing less is set, bit/s.
    least: f64,
    set: f64,
    set_at: Duration,
    overhead: f64,
    /// How much more is asked for than there is to be, as the encoder stays below that.
    more: f64,
    /// Bits that were to be since it was measured.
    wanted: f64,
    /// Frames since it was measured, and bytes out of the encoder and of the multiplexer then.
    measured: (u32, u64, u64),
}

impl Follower {
    /// Returns a follower that has heard nothing yet. `fps` is frames in a second, 1 to 240; the limits
    /// are bit/s of the stream.
    pub fn new(profile: Profile, fps: i32, (least, greatest): (u64, u64)) -> Self {
        Self {
            profile,
            fps: f64::from(fps),
            limits: (least as f64, greatest as f64),
            least: (0.25 * least as f64).max(profile.least_rate(fps) as f64),
            set: 0.0,
            set_at: Duration::ZERO,
            overhead: OVERHEAD,
            more: 1.0,
            wanted: 0.0,
            measured: (0, 0, 0),
        }
    }

    /// The rate to begin with, bit/s.
    pub fn first(&mut self) -> u64 {
        self.set = ((1_000_000.0_f64).clamp(self.limits.0, self.limits.1) / self.overhead).max(self.least);
        self.set as u64
    }

    /// What the encoder was set to last, bit/s.
    pub const fn rate(&self) -> u64 {
        self.set as u64
    }

    /// Takes the bytes that came out of the encoder and of the multiplexer until now; called once
    /// for each frame.
    pub fn measure(&mut self, encoded: u64, multiplexed: u64) {
        let (pictures, before, before_multiplexed) = self.measured;
        if pictures < MEASURED {
            self.measured.0 += 1;
            return;
        }
        self.measured = (0, encoded, multiplexed);
        if encoded > before {
            let ratio = multiplexed.saturating_sub(before_multiplexed) as f64 / (encoded - before) as f64;
            self.overhead = ratio.clamp(1.0, 3.0);
            let share = (encoded - before) as f64 * 8.0 / self.wanted.max(1.0);
            self.more = (self.more * (0.98 / share.max(0.1)).sqrt().clamp(0.9, 1.1)).clamp(1.0, MOST_MORE);
        }
        self.wanted = 0.0;
    }

    /// Returns what becomes of the frame of `now`, if `allowance` was said at `at`.
    pub fn next(&mut self, now: Duration, said: Option<(Allowance, Duration)>) -> Verdict {
        let Some((allowance, _)) = said.filter(|(_, at)| now.saturating_sub(*at) <= STALE) else {
            return Verdict::Encode(None);
        };
        if allowance.connected && allowance.next_frame_bits == 0 {
            return Verdict::LeaveOut;
        }
        let (rate, change) = match self.profile {
            Profile::Live if allowance.connected => (allowance.next_frame_bits as f64 * self.fps, LIVE_CHANGE),
            Profile::Live => (allowance.video_rate, LIVE_CHANGE),
            // Down at once, up slowly.
            Profile::Quality => (allowance.video_rate.min(allowance.smoothed_rate), QUALITY_CHANGE),
        };
        let due = self.profile == Profile::Live || now.saturating_sub(self.set_at) >= QUALITY_EACH;
        let rate = rate.min(self.limits.1) / self.overhead;
        self.wanted += rate / self.fps;
        // Below what the encoder is good for it does what it can.
        let rate = (rate * self.more).max(self.least);
        if !due || (rate - self.set).abs() <= change * self.set {
            return Verdict::Encode(None);
        }
        (self.set, self.set_at) = (rate, now);
        Verdict::Encode(Some(rate as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn allowed(bits: u64) -> Allowance {
        let rate = bits as f64 * 30.0;
        Allowance { next_frame_bits: bits, video_rate: rate, smoothed_rate: rate, connected: true }
    }

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn the_very_next_picture_is_as_large_as_it_may_be() {
        let mut it = Follower::new(Profile::Live, 30, (100_000, 6_000_000));
        it.first();
        assert_eq!((Profile::Live.buffer_ms(30), Profile::Quality.buffer_ms(30)), (34, 1000));
        let rate = |bits: u64| (bits as f64 * 30.0 / OVERHEAD) as u64;
        assert_eq!(it.next(ms(0), Some((allowed(130_000), ms(0)))), Verdict::Encode(Some(rate(130_000))));
        assert_eq!(it.next(ms(33), Some((allowed(131_000), ms(33)))), Verdict::Encode(None), "hardly another one");
        assert_eq!(it.next(ms(66), Some((allowed(30_000), ms(66)))), Verdict::Encode(Some(rate(30_000))));
        assert_eq!(it.next(ms(99), Some((allowed(0), ms(99)))), Verdict::LeaveOut);
        assert_eq!(
            it.next(ms(2000), Some((allowed(0), ms(99)))),
            Verdict::Encode(None),
            "nobody says anything any more"
        );
    }

    #[test]
    fn the_rate_stays_where_x264_has_a_buffer() {
        for (fps, least) in [(10, 10_000), (30, 30_000), (60, 59_000), (240, 200_000)] {
            assert_eq!(Profile::Live.least_rate(fps), least);
            assert!(least / 1000 * Profile::Live.buffer_ms(fps) as u64 >= 1000);
            let mut it = Follower::new(Profile::Live, fps, (10_000, 6_000_000));
            it.first();
            assert_eq!(it.next(ms(0), Some((allowed(1), ms(0)))), Verdict::Encode(Some(least)));
        }
    }

    #[test]
    fn the_slow_loop_sets_the_rate_twice_a_second() {
        let mut it = Follower::new(Profile::Quality, 30, (100_000, 6_000_000));
        it.first();
        assert!(matches!(it.next(ms(600), Some((allowed(100_000), ms(600)))), Verdict::Encode(Some(_))));
        assert_eq!(it.next(ms(700), Some((allowed(30_000), ms(700)))), Verdict::Encode(None));
        assert!(matches!(it.next(ms(1100), Some((allowed(30_000), ms(1100)))), Verdict::Encode(Some(_))));
    }

    #[test]
    fn what_the_multiplexer_adds_is_measured() {
        let mut it = Follower::new(Profile::Live, 30, (100_000, 6_000_000));
        it.first();
        (0..=u64::from(MEASURED)).for_each(|n| it.measure(n * 1000, n * 1500));
        let set = it.next(ms(0), Some((allowed(150_000), ms(0))));
        assert_eq!(set, Verdict::Encode(Some(3_000_000)));
    }
}
