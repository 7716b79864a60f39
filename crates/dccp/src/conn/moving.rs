//! A peer at a new address, as a NAT gives it another port or it changes networks. Its records prove
//! that it is the peer, so it is followed at once (RFC 9146 §6); anybody may have sent them from
//! there once more, so little goes there until something is acknowledged from there (RFC 9000 §9.3).

use super::timers::Backoff;
use super::{Connection, Control, PARTOPEN_RETRY};
use crate::api::Event;
use crate::seq::Seq;
use braidcast_core::{Instant, Route};

/// What is known of the route that a connection has moved to, until that is proved.
#[derive(Debug)]
pub(super) struct Move {
    /// The last one that was proved.
    from: Route,
    /// What acknowledges this packet or a later one was sent by who receives there.
    first: Seq,
    /// Bytes of IP packets that may still go there.
    credit: usize,
    /// When it is asked again, and how often it was.
    retry: Backoff,
    asked: u32,
}

impl Move {
    /// Questions without an answer, after which the connection goes back to where it was.
    const QUESTIONS: u32 = 4;
    /// Bytes of an IP packet that asks, at most.
    pub(super) const QUESTION: usize = 160;
    /// Numbers that the peer may have used, and of which nothing came.
    pub(super) const AHEAD: u64 = 1 << 22;

    pub(super) const fn timer(&self) -> Instant {
        self.retry.at
    }

    /// Bytes of IP packets that may still go there.
    pub(super) const fn credit(&self) -> usize {
        self.credit
    }
}

impl Connection {
    /// The route before the present one, while that is not proved.
    pub(crate) fn route_before(&self) -> Option<Route> {
        self.moving.as_ref().map(|it| it.from)
    }

    /// A packet came over the present route.
    pub(super) fn hear_there(&mut self, route: Route, ack: Option<Seq>, len: usize) {
        let Some(it) = &mut self.moving else { return };
        if ack.is_some_and(|ack| ack >= it.first) {
            self.moving = None;
        } else {
            it.credit += allowed(route, len);
        }
    }

    /// The peer's newest packet, of `len` bytes, came over `route`.
    pub(super) fn follow(&mut self, now: Instant, route: Route, len: usize) {
        let from = self.route_before().unwrap_or(self.route);
        let pause = self.rtt().map_or(PARTOPEN_RETRY, |rtt| PARTOPEN_RETRY.max(rtt * 3 / 2));
        let first = self.numbers.gss.plus(1);
        let it = Move { from, first, credit: allowed(route, len), retry: Backoff::new(now, pause), asked: 1 };
        self.moving = (from != route).then_some(it);
        self.route = route;
        self.ask_there();
        self.events.push_back(Event::Moved(route));
    }

    /// A Sync, which the peer answers at once.
    fn ask_there(&mut self) {
        if self.moving.is_some() {
            self.controls.push_front(Control::Sync { ack: self.numbers.acknowledgeable });
        }
    }

    /// Time passed.
    pub(super) fn handle_move_timeout(&mut self, now: Instant) {
        let Some(it) = &mut self.moving else { return };
        if !it.retry.is_due(now) {
            return;
        }
        it.asked += 1;
        if it.asked <= Move::QUESTIONS {
            return self.ask_there();
        }
        self.route = it.from;
        self.moving = None;
        self.events.push_back(Event::Moved(self.route));
    }

    /// A packet of `len` bytes has left.
    pub(super) fn spend(&mut self, len: usize) {
        let headers = self.route.headers();
        self.moving.iter_mut().for_each(|it| it.credit = it.credit.saturating_sub(len + headers));
    }
}

/// Bytes of IP packets that one of `len` bytes lets go.
const fn allowed(route: Route, len: usize) -> usize {
    route.longest_answer(len) + route.headers()
}
