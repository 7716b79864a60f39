use braidcast_core::{Instant, SlidingSum};
use core::time::Duration;

/// Span over which frames are counted: a group of frames as a rule.
const SPAN: Duration = Duration::from_secs(2);
/// Weight of a new rate: some 30 frames are a second.
const GAIN: f64 = 1.0 / 32.0;
/// It is too much from this share of the rate on, and not any more below that. The rate is the
/// highest of late, of which recorded cellular links carry 0.7 in the next 200 ms, in the median.
/// While little is sent nobody knows it, and it counts one and a half times: what is left out
/// because it is too much must not show that it was not.
const TOO_MUCH: f64 = 0.72;
const ENOUGH: f64 = 0.44;

/// Says when what must not lack is by itself more than the path carries, so that leaving out all else
/// is not enough.
#[derive(Debug)]
pub(crate) struct Load {
    /// Bytes of what must not lack.
    incoming: SlidingSum<8>,
    /// Bytes in a second that the path carries, smoothed.
    rate: f64,
    /// Bytes in a second that come in of it; 0 until they are known.
    load: f64,
    excessive: bool,
}

impl Load {
    pub(crate) const fn new() -> Self {
        Self { incoming: SlidingSum::new(SPAN), rate: 0.0, load: 0.0, excessive: false }
    }

    /// `bytes` came in of what must not lack, or something else did (0), while the path carries `rate`
    /// bytes in a second.
    pub(crate) fn on_push(&mut self, now: Instant, bytes: usize, rate: Option<f64>) {
        let incoming = self.incoming.add(now, bytes);
        let Some(rate) = rate else { return };
        let first = self.rate == 0.0;
        self.rate += if first { rate } else { GAIN * (rate - self.rate) };
        if let Some(incoming) = incoming {
            self.load = incoming;
            self.excessive = incoming > self.rate * if self.excessive { ENOUGH } else { TOO_MUCH };
        }
    }

    /// How much of what comes in the path carries: 0.5 is half of it. No number before it was once too much.
    pub(crate) fn carried(&self) -> f64 {
        self.rate / self.load
    }

    /// Returns `true` if it is too much.
    pub(crate) const fn is_excessive(&self) -> bool {
        self.excessive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_excessive_while_more_comes_in_than_the_path_carries() {
        let mut load = Load::new();
        let mut play = |from: u64, rate: f64| {
            (from..from + 100).for_each(|n| load.on_push(Instant::from_millis(40 * n), 4000, Some(rate)));
            load.is_excessive()
        };
        assert!(!play(0, 145_000.0), "100 kB a second, which might fit");
        assert!(play(100, 120_000.0));
        assert!(play(200, 215_000.0), "nothing was sent, and the rate may be 143 kB");
        assert!(!play(300, 240_000.0));
    }
}
