use braidcast_core::Instant;
use core::time::Duration;

/// Spreads a window's packets over the round trip, so that a large frame does not overflow a short queue.
///
/// A token bucket: it fills at the pacing rate and holds a burst.
#[derive(Clone, Debug)]
pub struct Pacer {
    tokens: usize,
    filled: Instant,
}

impl Pacer {
    /// Packets that may leave back to back. RFC 9002 §7.7 argues for the initial window.
    const BURST_PACKETS: usize = 10;
    /// At high rates a burst covers this much time, so that timers and system calls stay few.
    const BURST_TIME: Duration = Duration::from_millis(2);

    /// A full bucket at `now`.
    pub const fn new(now: Instant, mtu: usize) -> Self {
        Self { tokens: Self::BURST_PACKETS * mtu, filled: now }
    }

    /// When `len` bytes may leave; `now` or earlier means at once.
    ///
    /// `rate` in bytes per second; `None` (no RTT measured yet) does not pace.
    pub fn ready_at(&mut self, now: Instant, len: usize, rate: Option<f64>, mtu: usize) -> Instant {
        let Some(rate) = rate else { return now };
        let burst = (Self::BURST_PACKETS * mtu).max((rate * Self::BURST_TIME.as_secs_f64()) as usize);
        let gained = (rate * (now - self.filled).as_secs_f64()) as usize;
        if gained > 0 {
            self.tokens = self.tokens.saturating_add(gained).min(burst);
            self.filled = now;
        }
        self.earliest(len, rate).max(now)
    }

    /// The same without looking at the clock: for setting a timer.
    pub fn earliest(&self, len: usize, rate: f64) -> Instant {
        let missing = len.saturating_sub(self.tokens);
        self.filled + Duration::from_secs_f64(missing as f64 / rate.max(1.0))
    }

    /// `len` bytes left.
    pub fn on_sent(&mut self, len: usize) {
        self.tokens = self.tokens.saturating_sub(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        const MTU: usize = 1000;
        let mut pacer = Pacer::new(Instant::ZERO, MTU);
        let (mut now, mut sent) = (Instant::ZERO, 0);
        while now < Instant::from_millis(1000) {
            let ready = pacer.ready_at(now, MTU, Some(100_000.0), MTU);
            if ready > now {
                now = ready;
            } else {
                pacer.on_sent(MTU);
                sent += 1;
            }
        }
        assert!((108..=111).contains(&sent), "{sent}: ten at once and a hundred each second");
    }
}
