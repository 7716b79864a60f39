use braidcast_core::Instant;
use core::time::Duration;

/// Frames are counted for two seconds, which is a group of pictures as a rule, in slices.
const SLICE: Duration = Duration::from_millis(250);
const SLICES: u64 = 8;
/// A new rate counts for so much: some 30 frames are a second.
const GAIN: f64 = 1.0 / 32.0;
/// It is too much from this share of what the path carries on, and not any more below that: where it just fits, all of these frames and
/// none of the others show as much, and more evenly.
const TOO_MUCH: f64 = 1.1;
const ENOUGH: f64 = 1.0;

/// Whether the frames that others lean on are by themselves more than the path carries, so that leaving out all others is not enough.
#[derive(Debug, Default)]
pub(crate) struct Load {
    /// Bytes that came in each slice, by its number modulo eight.
    slices: [usize; SLICES as usize],
    /// The number of the newest slice, counted from `began`.
    newest: u64,
    began: Option<Instant>,
    /// Bytes in a second that the path carries, smoothed.
    rate: f64,
    excessive: bool,
}

impl Load {
    /// `bytes` of a frame came in that others lean on, or of another one (0), while the path carries `rate` bytes in a second.
    pub(crate) fn on_push(&mut self, now: Instant, bytes: usize, rate: Option<f64>) {
        let age = now.since(*self.began.get_or_insert(now));
        let number = (age.as_nanos() / SLICE.as_nanos()) as u64;
        (self.newest + 1..=number).take(SLICES as usize).for_each(|n| self.slices[(n % SLICES) as usize] = 0);
        self.newest = number;
        self.slices[(number % SLICES) as usize] += bytes;
        let Some(rate) = rate else { return };
        let first = self.rate == 0.0;
        self.rate += if first { rate } else { GAIN * (rate - self.rate) };
        if number >= SLICES {
            // The newest slice has only begun.
            let time = SLICE * (SLICES as u32 - 1) + (age - SLICE * u32::try_from(number).unwrap_or(u32::MAX));
            let incoming = self.slices.iter().sum::<usize>() as f64 / time.as_secs_f64();
            self.excessive = incoming > self.rate * if self.excessive { ENOUGH } else { TOO_MUCH };
        }
    }

    /// Whether it is too much.
    pub(crate) const fn is_excessive(&self) -> bool {
        self.excessive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_excessive_while_more_comes_in_than_the_path_carries() {
        let mut load = Load::default();
        let mut play = |from: u64, rate: f64| {
            (from..from + 100).for_each(|n| load.on_push(Instant::from_millis(40 * n), 4000, Some(rate)));
            load.is_excessive()
        };
        assert!(!play(0, 95_000.0), "100 kB a second, which might fit");
        assert!(play(100, 80_000.0));
        assert!(play(200, 95_000.0), "until they do fit");
        assert!(!play(300, 110_000.0));
    }
}
