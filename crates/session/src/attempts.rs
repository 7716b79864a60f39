//! When an end that dials tries again. Either end may dial: what a session needs is that one of them does.

use braidcast_core::{Instant, Route};
use braidcast_sctp::{CloseReason, ConnectError};
use core::time::Duration;

/// Times between the loss of an association and the first, second, … attempt at the next one; the last one repeats.
const BACK_OFF: [Duration; 4] =
    [Duration::ZERO, Duration::from_millis(250), Duration::from_millis(500), Duration::from_secs(1)];
/// How often a handshake is looked at. After some looks without anything heard of the other end it begins anew:
/// what was settled may be with a receiver that is gone. From round trip to round trip something is heard.
const LOOK: Duration = Duration::from_millis(1700);
const SILENT_LOOKS: u32 = 2;
/// One attempt out of this number takes longer, for a receiver that is farther away than that: some 20 s.
const PATIENT: u32 = 8;
const PATIENT_LOOKS: u32 = 12;
/// The old association has to be gone before the next one can take its routes.
const SOON: Duration = Duration::from_millis(5);
/// Without a route there is nothing to try.
const NO_ROUTE: Duration = Duration::from_secs(1);
/// An association that was up for this long begins the count anew.
const STABLE: Duration = Duration::from_secs(2);

/// When the next association is tried, and over which routes. An end that waits for the other one's
/// call tries none.
#[derive(Debug)]
pub(crate) struct Attempts {
    /// The other end's SCTP port; `None` if that end dials.
    remote_port: Option<u16>,
    routes: Vec<Route>,
    /// Attempts since the last association that lasted.
    count: u32,
    /// Packets heard of the present one, and looks since something was.
    heard: u64,
    silent: u32,
    /// When the next attempt begins, or the present one is looked at, while there is no association or none that is
    /// up.
    due: Option<Instant>,
    up_since: Option<Instant>,
    /// Since when there is no association that is up.
    alone_since: Instant,
    /// Attempts in a row that somebody's word ended before they came to anything, not silence.
    refused: usize,
    /// Attempts since the first of those.
    turn: usize,
}

impl Attempts {
    /// Those of an end that dials, whose first attempt begins now, or with the first route.
    pub(crate) fn new(now: Instant, remote_port: u16, routes: &[Route]) -> Self {
        let mut new = Self { remote_port: Some(remote_port), routes: routes.to_vec(), ..Self::none(now) };
        if !routes.is_empty() {
            new.begun(now);
        }
        new
    }

    /// Those of an end that is called.
    pub(crate) const fn none(now: Instant) -> Self {
        Self {
            remote_port: None,
            routes: Vec::new(),
            count: 0,
            heard: 0,
            silent: 0,
            due: None,
            up_since: None,
            alone_since: now,
            refused: 0,
            turn: 0,
        }
    }

    /// Returns `true` if this end waits for the other one's call.
    pub(crate) const fn is_called(&self) -> bool {
        self.remote_port.is_none()
    }

    /// An attempt has begun.
    fn begun(&mut self, now: Instant) {
        self.count += 1;
        (self.heard, self.silent, self.due) = (0, 0, Some(now + LOOK));
    }

    /// A look at the present attempt is due: `heard` packets came of it so far. Returns `true` if it goes on.
    pub(crate) fn goes_on(&mut self, now: Instant, heard: u64) -> bool {
        self.silent = if heard > self.heard { 0 } else { self.silent + 1 };
        self.heard = heard;
        let most = if self.count.is_multiple_of(PATIENT) { PATIENT_LOOKS } else { SILENT_LOOKS };
        let goes_on = self.silent < most;
        if goes_on {
            self.due = Some(now + LOOK);
        }
        goes_on
    }

    /// Begins an attempt: the port and the routes to try, all at once. `None` if the other end dials.
    ///
    /// Before there are keys, one hostile network of several is enough to end an attempt over all.
    /// If somebody's word ended the last one, each route is tried by itself, and then all again; the
    /// others [join](Self::others) once there are keys.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<(u16, Vec<Route>)> {
        let port = self.remote_port?;
        self.begun(now);
        let alone = self.routes.get(self.turn % (self.routes.len() + 1)).filter(|_| self.refused > 0);
        let routes = alone.map_or_else(|| self.routes.clone(), |route| vec![*route]);
        self.turn += 1;
        Some((port, routes))
    }

    /// The routes that an association over some of them is to be joined by.
    pub(crate) fn others(&self) -> Vec<Route> {
        if self.refused > 0 { self.routes.clone() } else { Vec::new() }
    }

    /// The attempt ended before it came to anything. If that was by somebody's word, anybody who sees
    /// packets of one of the networks may have said it.
    pub(crate) fn ended(&mut self, reason: &CloseReason) {
        let said =
            matches!(reason, CloseReason::Insecure(_) | CloseReason::AbortedByPeer(_) | CloseReason::Violation(_));
        if self.is_up() || !said {
            return;
        }
        if self.refused == 0 {
            self.turn = 0;
        }
        self.refused += 1;
    }

    /// Returns `true` if such words are to be believed: two in a row, and over several routes one
    /// over all and one over each.
    pub(crate) fn believes(&self) -> bool {
        self.refused > self.routes.len().max(1)
    }

    /// There is nothing to dial for any more.
    pub(crate) fn stop(&mut self) {
        self.remote_port = None;
        self.due = None;
    }

    /// The attempt could not begin, for this reason.
    pub(crate) fn postpone(&mut self, now: Instant, error: &ConnectError) {
        self.count = self.count.saturating_sub(1);
        self.due = Some(now + if *error == ConnectError::AlreadyConnected { SOON } else { NO_ROUTE });
    }

    /// The attempt before was broken off: the next one begins once its association is gone.
    pub(crate) fn defer(&mut self, now: Instant) {
        self.due = Some(now + SOON);
    }

    /// The association is up.
    pub(crate) fn up(&mut self, now: Instant) {
        self.up_since = Some(now);
        self.due = None;
        self.refused = 0;
    }

    /// There is no association any more.
    pub(crate) fn lost(&mut self, now: Instant) {
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
        self.due = self.remote_port.map(|_| now + wait);
    }

    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Returns `true` if there is an association that is up.
    pub(crate) const fn is_up(&self) -> bool {
        self.up_since.is_some()
    }

    /// For how long there has been no association that is up.
    pub(crate) fn alone(&self, now: Instant) -> Duration {
        if self.is_up() { Duration::ZERO } else { now.since(self.alone_since) }
    }

    /// A route more; one that is waited for is tried at once.
    pub(crate) fn add(&mut self, now: Instant, route: Route, waiting: bool) {
        if !self.routes.contains(&route) {
            self.routes.push(route);
        }
        if waiting && self.remote_port.is_some() {
            self.due = Some(now);
        }
    }

    pub(crate) fn remove(&mut self, route: Route) {
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
        let route = Route::new(braidcast_core::SocketId(0), "192.0.2.1:9000".parse().unwrap());
        let mut it = Attempts::new(ms(0), 1, &[route]);
        it.up(ms(10));
        it.lost(ms(20));
        assert_eq!(it.due(), Some(ms(270)));
    }

    #[test]
    fn what_somebodys_word_ended_is_tried_over_each_route_by_itself_until_all_say_so() {
        let routes = [1, 2].map(|n| Route::new(braidcast_core::SocketId(n), "192.0.2.1:9000".parse().unwrap()));
        let mut it = Attempts::new(ms(0), 1, &routes);
        it.ended(&CloseReason::NoAnswer);
        assert_eq!(it.begin(ms(1)), Some((1, routes.to_vec())), "silence is no word");
        let refusal = CloseReason::Insecure(braidcast_sctp::Insecure::plain_there());
        it.ended(&refusal);
        for tried in [&routes[..1], &routes[1..], &routes, &routes[..1]] {
            assert_eq!(it.begin(ms(2)), Some((1, tried.to_vec())));
        }
        assert!(!it.believes() && it.others() == routes);
        it.ended(&refusal);
        it.ended(&refusal);
        assert!(it.believes(), "over all, and over each");
        it.up(ms(3));
        it.ended(&refusal);
        assert_eq!((it.believes(), it.others(), it.begin(ms(4))), (false, Vec::new(), Some((1, routes.to_vec()))));
    }

    #[test]
    fn a_handshake_goes_on_as_long_as_something_is_heard() {
        let mut it =
            Attempts::new(ms(0), 1, &[Route::new(braidcast_core::SocketId(0), "192.0.2.1:9".parse().unwrap())]);
        assert_eq!(it.due(), Some(ms(1700)));
        assert!(it.goes_on(ms(1700), 1) && it.goes_on(ms(3400), 2) && it.goes_on(ms(5100), 2));
        assert!(it.goes_on(ms(6800), 3), "one round trip of 3 s is heard of at every second look");
        assert!(it.goes_on(ms(8500), 3) && !it.goes_on(ms(10_200), 3));
        let looks = |count: u32| {
            let mut it = Attempts::new(ms(0), 1, &[]);
            (0..count).for_each(|_| _ = it.begin(ms(0)));
            (1..).find(|_| !it.goes_on(ms(0), 0)).unwrap()
        };
        assert_eq!([looks(1), looks(7), looks(8), looks(9)], [2, 2, 12, 2]);
    }

    #[test]
    fn an_end_that_is_called_tries_nothing() {
        let mut it = Attempts::none(ms(0));
        it.up(ms(10));
        it.lost(ms(5000));
        it.add(ms(5000), Route::new(braidcast_core::SocketId(0), "192.0.2.1:9000".parse().unwrap()), true);
        assert_eq!((it.due(), it.begin(ms(6000))), (None, None));
    }
}
