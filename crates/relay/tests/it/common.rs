//! A relay, two ends, and the NATs between them.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_relay::{
    Admission, Circuit, ClientEvent, Credentials, Leg, LegEvent, Legs, OwnerSecret, Place, Relay, RelayOptions,
    address_of, leg_of,
};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

pub(crate) const RELAY: &str = "203.0.113.1:9000";

pub(crate) fn addr(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

pub(crate) fn relay(admission: Admission) -> Relay {
    Relay::new(RelayOptions { admission, members: 1000 }, Rng::from_seed(7)).unwrap()
}

/// Hands `payload` to the relay as coming from `from`; what it answers, and to whom.
pub(crate) fn ask(relay: &mut Relay, now: Instant, from: SocketAddr, payload: &[u8]) -> Vec<(SocketAddr, Vec<u8>)> {
    relay.handle_datagram(now, Datagram { route: Route::new(SocketId(0), from), ecn: Ecn::NotEct, payload });
    drain(relay, now).into_iter().map(|(transmit, bytes)| (transmit.route.remote, bytes)).collect()
}

pub(crate) fn drain<M: Machine>(machine: &mut M, now: Instant) -> Vec<(Transmit, Vec<u8>)> {
    let (mut all, mut buf) = (Vec::new(), Vec::new());
    while let Some(transmit) = machine.poll_transmit(now, &mut buf) {
        all.extend(transmit.datagrams(&buf).map(|bytes| (transmit, bytes.to_vec())));
    }
    all
}

/// What stands in place of SCTP: sends what it is told to, and keeps what comes.
#[derive(Default)]
pub(crate) struct Above {
    pub(crate) out: VecDeque<(Route, Vec<u8>, Option<usize>)>,
    pub(crate) came: Vec<(Leg, Vec<u8>)>,
    /// Past the relay.
    pub(crate) straight: Vec<(SocketAddr, Vec<u8>)>,
}

impl Machine for Above {
    type Event = ();

    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        match leg_of(datagram.route.remote) {
            Some(leg) => self.came.push((leg, datagram.payload.to_vec())),
            None => self.straight.push((datagram.route.remote, datagram.payload.to_vec())),
        }
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let (route, bytes, segment_size) = self.out.pop_front()?;
        buf.clear();
        buf.extend_from_slice(&bytes);
        Some(Transmit { route, ecn: Ecn::Ect0, segment_size })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

/// An end with one socket, and the address that the relay sees.
pub(crate) struct End {
    pub(crate) legs: Legs,
    pub(crate) above: Above,
    pub(crate) outside: SocketAddr,
    pub(crate) events: Vec<ClientEvent>,
}

impl End {
    pub(crate) fn new(now: Instant, place: Place, leg: Option<u16>, outside: &str, seed: u64) -> Self {
        Self::started(now, place, leg, outside, (seed, 1))
    }

    pub(crate) fn started(
        now: Instant,
        place: Place,
        leg: Option<u16>,
        outside: &str,
        (seed, epoch): (u64, u64),
    ) -> Self {
        let mut legs = Legs::new(Rng::from_seed(seed));
        let credentials = Credentials { place, epoch, hidden: false, signer: None };
        legs.add(now, Route::new(SocketId(0), addr(RELAY)), credentials, leg.map(Leg));
        Self { legs, above: Above::default(), outside: addr(outside), events: Vec::new() }
    }

    /// Asks anew, and is not to be told of.
    pub(crate) fn hide(&mut self, now: Instant, place: Place, leg: u16) {
        let credentials = Credentials { place, epoch: 1, hidden: true, signer: None };
        self.legs.add(now, Route::new(SocketId(0), addr(RELAY)), credentials, Some(Leg(leg)));
    }

    pub(crate) fn send(&mut self, leg: Leg, bytes: &[u8]) {
        self.above.out.push_back((Route::new(SocketId(0), address_of(leg)), bytes.to_vec(), None));
    }
}

/// Everybody, and the time.
pub(crate) struct World {
    pub(crate) now: Instant,
    /// `None`: it does not run.
    pub(crate) relay: Option<Relay>,
    pub(crate) ends: Vec<End>,
    /// What one end sends to the address at which the relay sees the other one arrives.
    pub(crate) nats_let_through: bool,
}

impl World {
    pub(crate) fn new(ends: Vec<End>) -> Self {
        Self { now: Instant::ZERO, relay: Some(relay(Admission::Open(None))), ends, nats_let_through: false }
    }

    /// Moves what there is until nobody has anything to say.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1000 {
            let mut any = false;
            let mut straight = Vec::new();
            for end in &mut self.ends {
                for (transmit, bytes) in drain(&mut end.legs.over(&mut end.above), self.now) {
                    any = true;
                    if transmit.route.remote != addr(RELAY) {
                        straight.push((end.outside, transmit, bytes));
                        continue;
                    }
                    if let Some(relay) = &mut self.relay {
                        let route = Route::new(SocketId(0), end.outside);
                        relay.handle_datagram(self.now, Datagram { route, ecn: transmit.ecn, payload: &bytes });
                    }
                }
            }
            for (from, transmit, bytes) in straight.drain(..).filter(|_| self.nats_let_through) {
                let to = self.ends.iter_mut().find(|end| end.outside == transmit.route.remote);
                let Some(End { legs, above, .. }) = to else { continue };
                let route = Route::new(SocketId(0), from);
                legs.over(above).handle_datagram(self.now, Datagram { route, ecn: transmit.ecn, payload: &bytes });
            }
            let from_relay = self.relay.as_mut().map(|relay| drain(relay, self.now)).unwrap_or_default();
            for (transmit, bytes) in from_relay {
                any = true;
                let to = self.ends.iter_mut().find(|end| end.outside == transmit.route.remote);
                let Some(End { legs, above, .. }) = to else { continue };
                let route = Route::new(SocketId(0), addr(RELAY));
                legs.over(above).handle_datagram(self.now, Datagram { route, ecn: transmit.ecn, payload: &bytes });
            }
            for end in &mut self.ends {
                end.events.extend(core::iter::from_fn(|| end.legs.poll_event()).map(|LegEvent { what, .. }| what));
            }
            if !any {
                return;
            }
        }
        panic!("they never stop");
    }

    /// Lets time pass, timer by timer.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let relay = self.relay.as_ref().and_then(Machine::poll_timeout);
            let timers = self.ends.iter_mut().filter_map(|end| end.legs.over(&mut end.above).poll_timeout());
            let Some(next) = timers.chain(relay).min().filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            if let Some(relay) = &mut self.relay {
                relay.handle_timeout(self.now);
            }
            self.ends.iter_mut().for_each(|end| end.legs.over(&mut end.above).handle_timeout(self.now));
        }
        self.now = end;
    }
}

pub(crate) fn owner() -> (OwnerSecret, Circuit) {
    let secret = OwnerSecret([5; 16]);
    (secret, secret.circuit())
}
