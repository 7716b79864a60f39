//! All places of an end at its relays, by the sockets that they are asked for from.

use crate::client::{Client, ClientEvent, Credentials};
use crate::over::Over;
use crate::wire::Leg;
use braidcast_core::{Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use std::collections::{BTreeMap, VecDeque};

/// What became of a place, and whose it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LegEvent {
    /// The socket, and the relay's address.
    pub route: Route,
    /// What happened.
    pub what: ClientEvent,
}

/// Each socket's place.
#[derive(Debug)]
pub struct Legs {
    all: BTreeMap<SocketId, (Route, Client)>,
    /// Of places that were left.
    last: VecDeque<(Route, Vec<u8>)>,
    rng: Rng,
    pub(crate) spare: Vec<u8>,
    /// The latest time that is known here.
    pub(crate) now: Instant,
}

impl Legs {
    /// None yet.
    pub const fn new(rng: Rng) -> Self {
        Self { all: BTreeMap::new(), last: VecDeque::new(), rng, spare: Vec::new(), now: Instant::ZERO }
    }

    /// Asks the relay at `route` for the place at `leg`, or at one drawn at random, as guests do.
    pub fn add(&mut self, now: Instant, route: Route, credentials: Credentials, leg: Option<Leg>) {
        self.now = self.now.max(now);
        let mut rng = self.rng.fork();
        // The first ones are owners'.
        let leg = leg.unwrap_or_else(|| Leg((rng.u32() & 0xffff) as u16 | 0x8000));
        self.all.insert(route.socket, (route, Client::new(now, route.remote, credentials, leg, rng)));
    }

    /// Asks for the place of a socket again.
    pub fn renew(&mut self, now: Instant, socket: SocketId) {
        if let Some((_, client)) = self.all.get_mut(&socket) {
            client.renew(now);
        }
    }

    /// The other end does not answer over `route` any more, which led straight to it.
    pub fn forget_straight(&mut self, route: Route) {
        if let Some((_, client)) = self.all.get_mut(&route.socket) {
            client.forget_straight(route.remote);
        }
    }

    /// Leaves the place of a socket.
    pub fn remove(&mut self, socket: SocketId) {
        if let Some((route, mut client)) = self.all.remove(&socket) {
            client.leave();
            self.last.extend(core::iter::from_fn(|| client.poll()).map(|bytes| (route, bytes)));
        }
    }

    /// Leaves all places.
    pub fn remove_all(&mut self) {
        let all: Vec<SocketId> = self.all.keys().copied().collect();
        all.into_iter().for_each(|socket| self.remove(socket));
    }

    /// The relay that `socket` sends to.
    pub fn relay(&self, socket: SocketId) -> Option<Route> {
        self.all.get(&socket).map(|(route, _)| *route)
    }

    /// Returns `true` if packets go through a place.
    pub fn are_any_up(&self) -> bool {
        self.all.values().any(|(_, client)| client.is_member())
    }

    /// What happened, oldest first for each place.
    pub fn poll_event(&mut self) -> Option<LegEvent> {
        self.all
            .values_mut()
            .find_map(|(route, client)| client.poll_event().map(|what| LegEvent { route: *route, what }))
    }

    /// `machine`, whose routes to legs lead through relays.
    pub const fn over<'a, M: Machine>(&'a mut self, machine: &'a mut M) -> Over<'a, M> {
        Over::new(machine, self)
    }

    pub(crate) fn client(&mut self, socket: SocketId) -> Option<&mut (Route, Client)> {
        self.all.get_mut(&socket)
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        self.all.values_mut().for_each(|(_, client)| client.handle_timeout(now));
    }

    pub(crate) fn next(&self) -> Option<Instant> {
        self.all.values().map(|(_, client)| client.next(self.now)).min()
    }

    pub(crate) fn poll_transmit(&mut self, buf: &mut Vec<u8>) -> Option<Transmit> {
        let own = self.all.values_mut().find_map(|(route, client)| {
            let to_relay = client.poll().map(|bytes| (*route, bytes));
            to_relay.or_else(|| client.poll_straight().map(|(to, bytes)| (Route::new(route.socket, to), bytes)))
        });
        let (route, bytes) = own.or_else(|| self.last.pop_front())?;
        buf.clear();
        buf.extend_from_slice(&bytes);
        Some(Transmit { route, ecn: Ecn::NotEct, segment_size: None })
    }
}
