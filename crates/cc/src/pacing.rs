use braidcast_core::Instant;
use core::time::Duration;

/// Spreads a window's packets over the round trip, so that a large frame does not overflow a short queue.
///
/// A token bucket: it fills at the pacing rate and holds a burst. Where the path has no queue for a burst it holds two
/// packets, and what leaves without waiting for it is a debt.
#[derive(Clone, Debug)]
pub struct Pacer {
    tokens: usize,
    debt: usize,
    /// Bytes that the debt is at most, where no burst may leave.
    close: Option<usize>,
    filled: Instant,
}

impl Pacer {
    /// Packets that may leave back to back. RFC 9002 §7.7 argues for the initial window.
    const BURST_PACKETS: usize = 10;
    /// The same where the path has no queue for them: one, and one that was due while a timer was late.
    const CLOSE_PACKETS: usize = 2;
    /// At high rates a burst covers this much time, so that timers and system calls stay few.
    const BURST_TIME: Duration = Duration::from_millis(2);

    /// A full bucket at `now`.
    pub const fn new(now: Instant, mtu: usize) -> Self {
        Self { tokens: Self::BURST_PACKETS * mtu, debt: 0, close: None, filled: now }
    }

    /// From now on packets of at most `mtu` bytes leave one by one if `close`, else in bursts.
    pub fn set_close(&mut self, close: bool, mtu: usize) {
        self.close = close.then_some(Self::BURST_PACKETS * mtu);
        self.debt = self.debt.min(self.close.unwrap_or(0));
    }

    /// When `len` bytes may leave; `now` or earlier means at once.
    ///
    /// `rate` in bytes per second; `None` (no RTT measured yet) does not pace.
    pub fn ready_at(&mut self, now: Instant, len: usize, rate: Option<f64>, mtu: usize) -> Instant {
        let Some(rate) = rate else { return now };
        let packets = if self.close.is_some() { Self::CLOSE_PACKETS } else { Self::BURST_PACKETS };
        let burst = (packets * mtu).max((rate * Self::BURST_TIME.as_secs_f64()) as usize);
        let gained = (rate * (now - self.filled).as_secs_f64()) as usize;
        if gained > 0 {
            let paid = gained.min(self.debt);
            self.debt -= paid;
            self.tokens = self.tokens.saturating_add(gained - paid).min(burst);
            self.filled = now;
        }
        self.earliest(len, rate).max(now)
    }

    /// The same without looking at the clock: for setting a timer.
    pub fn earliest(&self, len: usize, rate: f64) -> Instant {
        let missing = (self.debt + len).saturating_sub(self.tokens);
        self.filled + Duration::from_secs_f64(missing as f64 / rate.max(1.0))
    }

    /// `len` bytes left.
    pub fn on_sent(&mut self, len: usize) {
        let early = len.saturating_sub(self.tokens);
        self.debt = self.close.map_or(0, |most| (self.debt + early).min(most));
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

    #[test]
    fn where_no_burst_may_leave_what_was_early_is_made_up_for() {
        const MTU: usize = 1000;
        let mut pacer = Pacer::new(Instant::ZERO, MTU);
        pacer.set_close(true, MTU);
        let later = Instant::from_millis(1000);
        assert_eq!(pacer.ready_at(later, MTU, Some(100_000.0), MTU), later);
        // Two packets that were due, and three that nobody asked about.
        (0..5).for_each(|_| pacer.on_sent(MTU));
        assert_eq!(pacer.ready_at(later, MTU, Some(100_000.0), MTU), later + Duration::from_millis(40));
        (0..100).for_each(|_| pacer.on_sent(MTU));
        assert_eq!(pacer.earliest(MTU, 100_000.0), later + Duration::from_millis(110), "ten packets at most");
        pacer.set_close(false, MTU);
        assert_eq!(pacer.earliest(MTU, 100_000.0), later + Duration::from_millis(10));
    }
}
