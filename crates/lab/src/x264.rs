//! Sizes of frames as x264 has them, for runs where only time and bytes count.

/// A model of x264 with a rate-control buffer of one frame: it keeps below a frame's allowance, by another
/// amount each time, as it does not foresee what a frame takes.
///
/// Fitted to a film of 640x360. A test of `braidcast-encode-trial` measures how far it is from x264.
#[derive(Clone, Debug)]
pub struct X264Sizes {
    fps: f64,
    rate: f64,
    random: u64,
}

/// The mean share of what a frame may have, and half the width of what it varies by.
const SHARE: f64 = 0.85;
const WIDTH: f64 = 0.113;
/// No frame is smaller, bytes.
const SMALLEST: f64 = 90.0;

impl X264Sizes {
    /// Returns an encoder of `fps` frames in a second, at least 1, that is set to `rate` bit/s.
    pub const fn new(fps: u32, rate: u64, seed: u64) -> Self {
        // Xorshift stays at 0.
        Self { fps: fps as f64, rate: rate as f64, random: seed | 1 }
    }

    /// Returns the bytes of the next frame, after setting the encoder to `rate`, bit/s, if that is given.
    pub fn next(&mut self, rate: Option<u64>) -> usize {
        self.rate = rate.map_or(self.rate, |it| it as f64);
        let share = SHARE + WIDTH * self.draw();
        (self.rate / self.fps / 8.0 * share).max(SMALLEST) as usize
    }

    /// From -1 to 1.
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_stay_below_what_they_may_have_by_a_share_that_varies() {
        let mut encoder = X264Sizes::new(30, 1_200_000, 7);
        let sizes: Vec<usize> = (0..1000).map(|_| encoder.next(None)).collect();
        let mean = sizes.iter().sum::<usize>() as f64 / 1000.0;
        // 5000 bytes may be.
        assert!((mean / 5000.0 - SHARE).abs() < 0.01, "{mean}");
        assert!(sizes.iter().all(|it| (3680..=4820).contains(it)), "{sizes:?}");
        assert_eq!(encoder.next(Some(1)), 90);
        assert_ne!(sizes[..9], [X264Sizes::new(30, 1_200_000, 9).next(None); 9]);
    }
}
