use super::scale::scale;
use braidcast_core::{Instant, Rng};
use core::time::Duration;

/// What an outage does to packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OutageEffect {
    /// The wire is dead: what leaves the queue during the outage is lost. Packets already in flight
    /// arrive.
    #[default]
    Drop,
    /// The sender waits: nothing leaves the queue until the outage is over, as with a stuttering Wi-Fi.
    Hold,
}

/// When an outage happens, counted from [`Instant::ZERO`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutageTimes {
    /// Once, in `from..until`.
    Window {
        /// Its first instant.
        from: Instant,
        /// The first instant after it.
        until: Instant,
    },
    /// Again and again at random: each is `length` × (0.5 to 1.5) long, and the pause before it is
    /// (`period` − `length`) × (0.5 to 1.5), both uniform.
    Every {
        /// Mean time from one start to the next; counts as `length` + 1 ms if it is shorter.
        period: Duration,
        /// Mean length of one outage.
        length: Duration,
    },
}

/// A time without service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// When it happens.
    pub times: OutageTimes,
    /// What it does to packets.
    pub effect: OutageEffect,
}

impl Outage {
    /// One outage in `from..until` that loses packets.
    pub const fn window(from: Instant, until: Instant) -> Self {
        Self { times: OutageTimes::Window { from, until }, effect: OutageEffect::Drop }
    }

    /// Outages of mean `length` every `period` on average that lose packets.
    pub const fn every(period: Duration, length: Duration) -> Self {
        Self { times: OutageTimes::Every { period, length }, effect: OutageEffect::Drop }
    }

    /// The same outage, holding packets back instead of losing them.
    #[must_use]
    pub const fn holding(self) -> Self {
        Self { effect: OutageEffect::Hold, ..self }
    }
}

/// One outage of the list: `from..until`.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    until: Instant,
}

/// Walks one [`Outage`] forwards in time.
#[derive(Debug)]
struct Cursor {
    outage: Outage,
    window: Option<Window>,
    rng: Rng,
}

impl Cursor {
    fn new(outage: Outage, rng: Rng) -> Self {
        let mut cursor = Self { outage, window: None, rng };
        cursor.window = match outage.times {
            OutageTimes::Window { from, until } => Some(Window { from, until }),
            OutageTimes::Every { .. } => cursor.draw(Window { from: Instant::ZERO, until: Instant::ZERO }),
        };
        cursor
    }

    /// The window after `last`.
    fn draw(&mut self, last: Window) -> Option<Window> {
        let OutageTimes::Every { period, length } = self.outage.times else { return None };
        let pause = period.saturating_sub(length).max(Duration::from_millis(1));
        let from = last.until + scale(pause, 0.5 + self.rng.f64());
        Some(Window { from, until: from + scale(length, 0.5 + self.rng.f64()) })
    }

    /// The first window that ends after `at`.
    fn window_at(&mut self, at: Instant) -> Option<Window> {
        while let Some(window) = self.window.filter(|window| window.until <= at) {
            self.window = self.draw(window);
        }
        self.window
    }
}

/// All outages of a link. Times asked for must not go back.
#[derive(Debug)]
pub(super) struct Outages(Vec<Cursor>);

impl Outages {
    pub(super) fn new(outages: &[Outage], rng: &Rng) -> Self {
        let cursor = |(i, outage): (usize, &Outage)| Cursor::new(*outage, rng.stream(&format!("outage {i}")));
        Self(outages.iter().enumerate().map(cursor).collect())
    }

    fn next(&mut self, effect: OutageEffect, at: Instant) -> Option<Window> {
        let cursors = self.0.iter_mut().filter(|cursor| cursor.outage.effect == effect);
        cursors.filter_map(|cursor| cursor.window_at(at)).min_by_key(|window| window.from)
    }

    /// Returns `true` if what leaves the queue at `at` is lost.
    pub(super) fn drops_at(&mut self, at: Instant) -> bool {
        self.next(OutageEffect::Drop, at).is_some_and(|window| window.from <= at)
    }

    /// The first instant from `at` on at which packets are not held back.
    pub(super) fn released_at(&mut self, at: Instant) -> Instant {
        self.finish(at, Duration::ZERO)
    }

    /// When packets are next held back, asked at a time when they are not; `None` if never.
    pub(super) fn held_from(&mut self, at: Instant) -> Option<Instant> {
        self.next(OutageEffect::Hold, at).map(|window| window.from)
    }

    /// When `work` that begins at `start` and rests while packets are held back is done.
    pub(super) fn finish(&mut self, start: Instant, mut work: Duration) -> Instant {
        let mut at = start;
        while let Some(window) = self.next(OutageEffect::Hold, at) {
            if window.from > at && window.from >= at + work {
                break;
            }
            work = work.saturating_sub(window.from - at);
            at = window.until;
        }
        at + work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn work_rests_during_windows_that_hold() {
        let list = [Outage::window(ms(10), ms(20)).holding(), Outage::window(ms(15), ms(30)).holding()];
        let mut outages = Outages::new(&list, &Rng::from_seed(1));
        assert_eq!(outages.finish(ms(0), Duration::from_millis(10)), ms(10));
        assert_eq!(outages.finish(ms(5), Duration::from_millis(8)), ms(33));
        let mut outages = Outages::new(&list, &Rng::from_seed(1));
        assert_eq!(outages.released_at(ms(12)), ms(30));
        assert_eq!(outages.released_at(ms(30)), ms(30));
        assert!(!outages.drops_at(ms(31)));
    }

    #[test]
    fn a_window_holds_its_first_instant_and_not_its_last() {
        let mut outages = Outages::new(&[Outage::window(ms(10), ms(20))], &Rng::from_seed(1));
        let dead: Vec<_> = [9, 10, 19, 20].into_iter().map(|t| outages.drops_at(ms(t))).collect();
        assert_eq!(dead, [false, true, true, false]);
    }

    #[test]
    fn repeated_outages_have_their_mean_share_of_time() {
        let list = [Outage::every(Duration::from_millis(100), Duration::from_millis(20))];
        let mut outages = Outages::new(&list, &Rng::from_seed(3));
        let dead = (0..1_000_000).filter(|t| outages.drops_at(ms(*t))).count();
        assert!((dead as f64 / 1e6 - 0.2).abs() < 0.01, "{dead}");
    }
}
