use braidcast_core::Instant;
use core::time::Duration;

/// Spreads a window's packets over the round trip, so that a large frame does not overflow a short queue.
///
/// A token bucket: it fills at the pacing rate and holds a burst. Where the path has no queue for a burst it holds two
/// packets, and what leaves without waiting for it is a debt. At high rates it waits, once it is empty, until it
/// holds what a millisecond brings, so that a timer and a system call serve many packets.
#[derive(Clone, Debug)]
pub struct Pacer {
    tokens: usize,
    /// It was empty, and does not hold a [`GATHER_TIME`](Self::GATHER_TIME)'s bytes yet.
    gathers: bool,
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
    /// What an empty bucket gets in this time leaves together: less than a burst, which any path is held to have
    /// a queue for, and no more than an eighth of the window, or a short round trip would wait for it.
    const GATHER_TIME: Duration = Duration::from_millis(1);
    /// Fewer packets than these, at less than 46 Mbit/s, leave one by one: a live stream has no time to lose,
    /// and wakes up seldom enough.
    const GATHER_LEAST: usize = 4;

    /// A full bucket at `now`.
    pub const fn new(now: Instant, mtu: usize) -> Self {
        Self { tokens: Self::BURST_PACKETS * mtu, gathers: false, debt: 0, close: None, filled: now }
    }

    /// From now on packets of at most `mtu` bytes leave one by one if `close`, else in bursts.
    pub fn set_close(&mut self, close: bool, mtu: usize) {
        self.close = close.then_some(Self::BURST_PACKETS * mtu);
        self.debt = self.debt.min(self.close.unwrap_or(0));
    }

    /// When `len` bytes may leave; `now` or earlier means at once.
    ///
    /// `rate` in bytes per second; `None` (no RTT measured yet) does not pace. `window`: bytes that may be in
    /// flight, of which no more than an eighth gathers before it leaves.
    pub fn ready_at(&mut self, now: Instant, len: usize, rate: Option<f64>, window: usize, mtu: usize) -> Instant {
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
        self.gathers = self.earliest(len, rate, window) > now;
        self.earliest(len, rate, window).max(now)
    }

    /// The same without looking at the clock: for setting a timer.
    pub fn earliest(&self, len: usize, rate: f64, window: usize) -> Instant {
        let together = ((rate * Self::GATHER_TIME.as_secs_f64()) as usize).min(window / 8);
        let gathers = self.gathers && self.close.is_none() && together >= Self::GATHER_LEAST * len;
        let wanted = if gathers { together } else { len };
        let missing = (self.debt + wanted).saturating_sub(self.tokens);
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

    /// Long enough for whatever gathers.
    const WINDOW: usize = 10_000_000;

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
        const MTU: usize = 1000;
        let mut pacer = Pacer::new(Instant::ZERO, MTU);
        let (mut now, mut sent) = (Instant::ZERO, 0);
        while now < Instant::from_millis(1000) {
            let ready = pacer.ready_at(now, MTU, Some(100_000.0), WINDOW, MTU);
            if ready > now {
                now = ready;
            } else {
                pacer.on_sent(MTU);
                sent += 1;
            }
        }
        assert!((108..=111).contains(&sent), "{sent}: ten at once and a hundred each second");
    }

    /// Packets that leave at each time, in µs, at `rate` over 5 ms, if somebody asks each 10 µs, as
    /// acknowledgements do.
    fn departures(pacer: &mut Pacer, rate: f64) -> Vec<(u64, u32)> {
        const MTU: usize = 1000;
        let mut found = Vec::new();
        for micros in (0..5000).step_by(10) {
            let (now, mut sent) = (Instant::from_micros(micros), 0);
            while pacer.ready_at(now, MTU, Some(rate), WINDOW, MTU) <= now {
                pacer.on_sent(MTU);
                sent += 1;
            }
            if sent > 0 {
                found.push((micros, sent));
            }
        }
        found
    }

    #[test]
    fn at_high_rates_what_a_millisecond_brings_leaves_together() {
        let mut pacer = Pacer::new(Instant::ZERO, 1000);
        let fast = departures(&mut pacer, 100e6);
        assert_eq!(fast, [(0, 10), (1000, 100), (2000, 100), (3000, 100), (4000, 100)]);
        let mut pacer = Pacer::new(Instant::ZERO, 1000);
        let usual = departures(&mut pacer, 3e6);
        assert!(usual[1..].iter().all(|&(_, sent)| sent == 1) && usual.len() == 15, "each when it is due: {usual:?}");
        let mut pacer = Pacer::new(Instant::ZERO, 1000);
        pacer.set_close(true, 1000);
        assert!(departures(&mut pacer, 100e6).len() > 400, "where there is no queue");
        let mut pacer = Pacer::new(Instant::ZERO, 1000);
        (0..10).for_each(|_| pacer.on_sent(1000));
        let short = pacer.ready_at(Instant::ZERO, 1000, Some(100e6), 80_000, 1000);
        assert_eq!(short, Instant::from_micros(100), "an eighth of the window");
    }

    #[test]
    fn a_timer_that_is_set_for_more_rings_when_it_leaves() {
        let mut pacer = Pacer::new(Instant::ZERO, 1000);
        (0..10).for_each(|_| pacer.on_sent(1000));
        let ready = pacer.ready_at(Instant::ZERO, 1000, Some(100e6), WINDOW, 1000);
        assert_eq!((ready, pacer.earliest(1000, 100e6, WINDOW)), (Instant::from_millis(1), ready));
        assert_eq!(pacer.ready_at(ready, 1000, Some(100e6), WINDOW, 1000), ready);
    }

    #[test]
    fn where_no_burst_may_leave_what_was_early_is_made_up_for() {
        const MTU: usize = 1000;
        let mut pacer = Pacer::new(Instant::ZERO, MTU);
        pacer.set_close(true, MTU);
        let later = Instant::from_millis(1000);
        assert_eq!(pacer.ready_at(later, MTU, Some(100_000.0), WINDOW, MTU), later);
        // Two packets that were due, and three that nobody asked about.
        (0..5).for_each(|_| pacer.on_sent(MTU));
        assert_eq!(pacer.ready_at(later, MTU, Some(100_000.0), WINDOW, MTU), later + Duration::from_millis(40));
        (0..100).for_each(|_| pacer.on_sent(MTU));
        assert_eq!(pacer.earliest(MTU, 100_000.0, WINDOW), later + Duration::from_millis(110), "ten packets at most");
        pacer.set_close(false, MTU);
        assert_eq!(pacer.earliest(MTU, 100_000.0, WINDOW), later + Duration::from_millis(10));
    }
}
