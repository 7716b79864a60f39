use braidcast_core::{Instant, Route};
use core::time::Duration;

/// Times between the loss of an association and the first, second, … attempt at the next one; the last one repeats.
const BACK_OFF: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
/// A handshake that has not come to its end by now begins anew: what was settled may be with a receiver that is gone.
const ATTEMPT: Duration = Duration::from_millis(3400);
/// One attempt out of this number takes longer, for a receiver that is farther away than that.
const PATIENT: u32 = 8;
const PATIENT_ATTEMPT: Duration = Duration::from_secs(20);
/// An association that was up for this long begins the count anew.
const STABLE: Duration = Duration::from_secs(2);

/// When the next association is tried, and over which routes.
#[derive(Debug)]
pub(super) struct Attempts {
    pub(super) remote_port: u16,
    routes: Vec<Route>,
    /// Attempts since the last association that lasted.
    count: u32,
    /// When the next attempt begins, while there is no association or none that is up.
    due: Option<Instant>,
    up_since: Option<Instant>,
    /// Since when there is no association that is up.
    alone_since: Instant,
}

impl Attempts {
    pub(super) fn new(now: Instant, remote_port: u16, routes: &[Route]) -> Self {
        let mut new =
            Self { remote_port, routes: routes.to_vec(), count: 0, due: None, up_since: None, alone_since: now };
        new.begun(now);
        new
    }

    /// An attempt has begun.
    fn begun(&mut self, now: Instant) {
        self.count += 1;
        self.due = Some(now + if self.count.is_multiple_of(PATIENT) { PATIENT_ATTEMPT } else { ATTEMPT });
    }

    /// Begins an attempt: the routes to try, all at once.
    pub(super) fn begin(&mut self, now: Instant) -> Vec<Route> {
        self.begun(now);
        self.routes.clone()
    }

    /// The attempt could not begin.
    pub(super) fn postpone(&mut self, until: Instant) {
        self.count = self.count.saturating_sub(1);
        self.due = Some(until);
    }

    /// The attempt that begins next has to wait a moment.
    pub(super) const fn defer(&mut self, until: Instant) {
        self.due = Some(until);
    }

    /// The association is up.
    pub(super) fn up(&mut self, now: Instant) {
        self.up_since = Some(now);
        self.due = None;
    }

    /// There is no association any more.
    pub(super) fn lost(&mut self, now: Instant) {
        match self.up_since.take() {
            Some(since) => {
                self.alone_since = now;
                if now.since(since) >= STABLE {
                    self.count = 0;
                }
            }
            None => self.count = self.count.max(1),
        }
        let wait = BACK_OFF[(self.count as usize).min(BACK_OFF.len() - 1)];
        self.due = Some(now + wait);
    }

    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// For how long there has been no association that is up.
    pub(super) fn alone(&self, now: Instant) -> Duration {
        if self.up_since.is_some() { Duration::ZERO } else { now.since(self.alone_since) }
    }

    /// A route more; one that is waited for is tried at once.
    pub(super) fn add(&mut self, now: Instant, route: Route, waiting: bool) {
        if !self.routes.contains(&route) {
            self.routes.push(route);
        }
        if waiting {
            self.due = Some(now);
        }
    }

    pub(super) fn remove(&mut self, route: Route) {
        self.routes.retain(|one| *one != route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn the_first_attempt_after_a_loss_is_made_at_once_and_later_ones_a_second_apart_at_most() {
        let mut it = Attempts::new(ms(0), 1, &[]);
        it.up(ms(100));
        it.lost(ms(5000));
        assert_eq!(it.due(), Some(ms(5000)));
        let mut now = ms(5000);
        for wait in [250, 500, 1000, 1000] {
            it.begin(now);
            it.lost(now);
            assert_eq!(it.due(), Some(now + Duration::from_millis(wait)));
            now += Duration::from_millis(wait);
        }
        assert_eq!(it.alone(ms(9000)), Duration::from_secs(4));
    }

    #[test]
    fn one_that_breaks_as_soon_as_it_is_up_backs_off_too() {
        let mut it = Attempts::new(ms(0), 1, &[]);
        it.up(ms(10));
        it.lost(ms(20));
        assert_eq!(it.due(), Some(ms(270)));
    }
}
