//! A machine and its relays, as one machine for sockets.

use crate::address::{address_of, leg_of};
use crate::legs::Legs;
use crate::wire::HEADER;
use braidcast_core::{Datagram, Heard, Instant, Machine, Route, Transmit};

/// `machine` as its sockets see it: what goes to a [leg's address](address_of) goes to the relay, and
/// what comes from there comes from a leg.
#[derive(Debug)]
pub struct Over<'a, M> {
    machine: &'a mut M,
    legs: &'a mut Legs,
    /// The last datagram was the relay's own.
    own: bool,
}

impl<'a, M: Machine> Over<'a, M> {
    pub(crate) const fn new(machine: &'a mut M, legs: &'a mut Legs) -> Self {
        Self { machine, legs, own: false }
    }
}

impl<M: Machine> Machine for Over<'_, M> {
    type Event = M::Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.legs.now = now;
        let socket = datagram.route.socket;
        let Some((relay, client)) = self.legs.client(socket) else {
            self.own = false;
            return self.machine.handle_datagram(now, datagram);
        };
        self.own = true;
        // A socket that has a relay talks with it, and with the other end if that gets through.
        let came = if *relay == datagram.route {
            client.handle(now, datagram.payload).map(|(leg, payload)| (address_of(leg), payload))
        } else {
            let from = datagram.route.remote;
            client.handle_straight(from, datagram.payload).map(|payload| (from, payload))
        };
        if let Some((from, payload)) = came {
            self.own = false;
            let route = Route::new(socket, from);
            self.machine.handle_datagram(now, Datagram { route, payload, ..datagram });
        }
    }

    fn heard(&self) -> Heard {
        if self.own { Heard::Nothing } else { self.machine.heard() }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.legs.handle_timeout(now);
        if self.machine.poll_timeout().is_some_and(|at| at <= now) {
            self.machine.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(own) = self.legs.poll_transmit(buf) {
            return Some(own);
        }
        loop {
            let transmit = self.machine.poll_transmit(now, buf)?;
            let Some(leg) = leg_of(transmit.route.remote) else { return Some(transmit) };
            let mut spare = core::mem::take(&mut self.legs.spare);
            let segment = transmit.segment_size.unwrap_or(buf.len());
            let wrapped = self.legs.client(transmit.route.socket).and_then(|(relay, client)| {
                client.wrap(now, leg, buf, segment, &mut spare).then_some(Transmit {
                    route: *relay,
                    segment_size: transmit.segment_size.map(|size| size + HEADER),
                    ..transmit
                })
            });
            self.legs.spare = spare;
            if wrapped.is_some() {
                return wrapped;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Instant::first_of([self.legs.next(), self.machine.poll_timeout()])
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.machine.poll_event()
    }
}
