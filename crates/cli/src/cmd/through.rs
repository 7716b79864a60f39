//! The places of this end at relays, in the words of the command line.

use super::common;
use crate::failure::Outcome;
use crate::out::live::Live;
use braidcast_core::{Instant, Route, SocketId};
use braidcast_relay::{
    ClientEvent, Credentials, Leg, LegEvent, Legs, Place, Proof, Reason, Side, Signer, address_of, leg_of,
};
use braidcast_secure::identity::Identity;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The leg of an owner that all guests send to.
const FIRST: Leg = Leg(0);
/// A way past the relay that has ended is looked for again after this.
const AGAIN: Duration = Duration::from_secs(10);

/// Some paths, or all, of this end go by relays.
pub(crate) struct Through {
    pub(crate) legs: Legs,
    credentials: Credentials,
    /// The names of the paths that do.
    paths: BTreeSet<String>,
    /// What was said of them last.
    said: BTreeSet<(String, Said)>,
    /// Routes past relays, by their sockets.
    straight: BTreeMap<SocketId, Straight>,
    /// Sockets whose paths by relays are up.
    up: BTreeSet<SocketId>,
}

/// A route past a relay.
struct Straight {
    addr: SocketAddr,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The path by the relay comes first: whatever joins and leaves goes over paths that are up.
    Waits,
    /// The session tries it beside the relay.
    Tried,
    /// It carries the stream, and the relay nothing.
    Up,
    /// The other end does not answer there any more; the session goes back to the relay.
    Down,
    /// It has gone back. The relay is asked anew then.
    Over(Instant),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Said {
    Registered,
    Lost,
    Refused,
}

/// Signs by a key of the user's.
struct Key(Identity);

impl Signer for Key {
    fn sign(&self, message: &[u8]) -> Option<Proof> {
        self.0.sign(message).map(|(public, signature)| Proof { public, signature })
    }
}

/// What signs for relays by a key of the user's.
pub(super) fn signer(key: Identity) -> Arc<dyn Signer> {
    Arc::new(Key(key))
}

impl Through {
    /// For the paths called so. `key`: that by which relays with a list know this end. `hidden`: the other end is
    /// not to know this one's addresses, so that all goes by the relays.
    pub(crate) fn new(place: Place, key: Option<Identity>, hidden: bool, paths: BTreeSet<String>) -> Outcome<Self> {
        let epoch = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default();
        let signer = key.map(signer);
        let credentials = Credentials { place, epoch, signer, hidden };
        let legs = Legs::new(common::rng(None)?);
        Ok(Self { legs, credentials, paths, said: BTreeSet::new(), straight: BTreeMap::new(), up: BTreeSet::new() })
    }

    /// Returns `true` if the path called `name` has a relay.
    pub(super) fn has(&self, name: &str) -> bool {
        self.paths.contains(name)
    }

    /// A path called `name` has this socket now.
    pub(super) fn join(&mut self, now: Instant, route: Route, name: &str) {
        if self.paths.contains(name) {
            let leg = (self.credentials.place.side() == Side::Owner).then_some(FIRST);
            self.legs.add(now, route, self.credentials.clone(), leg);
        }
    }

    /// A route to a relay as the session knows it: it leads to the other end.
    pub(super) fn inside(&self, route: Route) -> Route {
        self.legs.relay(route.socket).map_or(route, |_| Route::new(route.socket, address_of(FIRST)))
    }

    /// And back.
    pub(super) fn outside(&self, route: Route) -> Route {
        self.legs.relay(route.socket).unwrap_or(route)
    }

    /// The other end was heard from `addr`, past the relay. Returns the route that the session is to try, if it tries
    /// none yet.
    pub(super) fn heard(&mut self, socket: SocketId, addr: SocketAddr) -> Option<Route> {
        let busy = self.straight.get(&socket).is_some_and(|it| !matches!(it.state, State::Over(_)));
        if busy {
            return None;
        }
        let state = if self.up.contains(&socket) { State::Tried } else { State::Waits };
        self.straight.insert(socket, Straight { addr, state });
        (state == State::Tried).then(|| Route::new(socket, addr))
    }

    /// The other end answers over `route`, by a relay: returns the one past it, if that waits.
    pub(super) fn by_relay_up(&mut self, route: Route) -> Option<Route> {
        leg_of(route.remote)?;
        self.up.insert(route.socket);
        let it = self.straight.get_mut(&route.socket).filter(|it| it.state == State::Waits)?;
        it.state = State::Tried;
        Some(Route::new(route.socket, it.addr))
    }

    /// The other end answers over `route`. If that leads past a relay, returns the route by the relay, which is not
    /// needed any more.
    pub(super) fn up(&mut self, route: Route) -> Option<Route> {
        let it = self.straight.get_mut(&route.socket).filter(|it| it.addr == route.remote)?;
        let is_new = std::mem::replace(&mut it.state, State::Up) != State::Up;
        self.up.remove(&route.socket);
        is_new.then(|| Route::new(route.socket, address_of(FIRST)))
    }

    /// It does not answer over `route` any more.
    pub(super) fn down(&mut self, route: Route) {
        if leg_of(route.remote).is_some() {
            self.up.remove(&route.socket);
        }
        if let Some(it) = self.straight.get_mut(&route.socket).filter(|it| it.addr == route.remote) {
            it.state = State::Down;
        }
    }

    /// It does not answer at all any more.
    pub(super) fn all_down(&mut self) {
        self.up.clear();
        let used = self.straight.values_mut().filter(|it| !matches!(it.state, State::Over(_)));
        used.for_each(|it| it.state = State::Down);
    }

    /// Returns routes by relays that are needed again, each with the one that it takes the place of.
    pub(super) fn take_back(&mut self, now: Instant) -> Vec<(Route, Route)> {
        let mut all = Vec::new();
        for (socket, it) in self.straight.iter_mut().filter(|(_, it)| it.state == State::Down) {
            it.state = State::Over(now + AGAIN);
            let old = Route::new(*socket, it.addr);
            self.legs.forget_straight(old);
            all.push((Route::new(*socket, address_of(FIRST)), old));
        }
        all
    }

    /// When [`try_again`](Self::try_again) has something to do.
    pub(super) fn next(&self) -> Option<Instant> {
        let over = |it: &Straight| if let State::Over(at) = it.state { Some(at) } else { None };
        self.straight.values().filter_map(over).min()
    }

    /// Has relays say again where the other ends are, past which there was a route once.
    pub(super) fn try_again(&mut self, now: Instant) {
        let Self { legs, straight, .. } = self;
        straight.retain(|socket, it| {
            let is_due = matches!(it.state, State::Over(at) if at <= now);
            if is_due {
                legs.renew(now, *socket);
            }
            !is_due
        });
    }

    /// The session does not try it.
    pub(super) fn leave_straight(&mut self, socket: SocketId) {
        self.straight.remove(&socket);
    }

    /// A socket is closed: returns its route past the relay, if the session has one.
    pub(super) fn leave(&mut self, socket: SocketId) -> Option<Route> {
        self.legs.remove(socket);
        self.up.remove(&socket);
        let it = self.straight.remove(&socket)?;
        (!matches!(it.state, State::Over(_))).then(|| Route::new(socket, it.addr))
    }

    /// Says what a relay said about the path called `name`.
    pub(super) fn say(&mut self, name: &str, event: &LegEvent, live: &Live) {
        let relay = event.route.remote;
        let what = match event.what {
            ClientEvent::Registered(_) => Said::Registered,
            ClientEvent::Lost => Said::Lost,
            _ => Said::Refused,
        };
        let is_new = self.said.insert((name.to_owned(), what));
        match event.what {
            ClientEvent::Registered(seen) if is_new => {
                live.note(format!("{name} is at the relay {relay}, which sees it as {}", seen.0));
            }
            ClientEvent::Registered(_) => live.note(format!("{name} is at the relay {relay} again")),
            ClientEvent::Straight(_) => {}
            ClientEvent::Lost => live.warn(format!("the relay {relay} has lost {name}; asking it again")),
            // The other end may come later.
            ClientEvent::Refused(why @ Reason::NoCircuit) => live.note(format!("{name}: {why}; waiting for it")),
            ClientEvent::Refused(why) => live.warn(format!("{name}: {why} ({}); asking again", hint(why))),
            _ => {}
        }
    }
}

/// What the user may do.
const fn hint(why: Reason) -> &'static str {
    match why {
        Reason::NotAuthorized => "its --authorized file needs the fingerprint of this end's --relay-key",
        Reason::Replaced => "another `braidcast receive` uses the same ticket",
        Reason::OverQuota => "quota= in its --authorized file is for a day, a week or a month",
        Reason::Full => "its user has a limit of circuits, or it has one of addresses",
        _ => "use the same version there",
    }
}
