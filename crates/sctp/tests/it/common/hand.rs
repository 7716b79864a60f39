//! Two endpoints without a network: the test carries each packet by hand.
#![allow(dead_code, reason = "each test file uses a part")]

use super::{CLIENT, SERVER};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_sctp::{AssociationId, Endpoint, Event, Options};

pub(crate) struct Hand {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) now: Instant,
}

impl Hand {
    /// A client that has not connected yet, and a server that listens.
    pub(crate) fn new(options: &Options) -> Self {
        let rng = Rng::from_seed(1);
        let client = Endpoint::new(options.clone(), rng.stream("client")).unwrap();
        let mut server = Endpoint::new(options.clone(), rng.stream("server")).unwrap();
        server.listen();
        Self { client, server, now: Instant::from_millis(1000) }
    }

    /// A handshake up to the COOKIE ECHO, which is not delivered.
    pub(crate) fn up_to_the_cookie(options: &Options) -> (Self, Vec<u8>) {
        let mut hand = Self::new(options);
        hand.connect();
        let init = hand.client_sends().remove(0);
        hand.server_gets(0, &init);
        let init_ack = hand.server_sends().remove(0);
        hand.client_gets(0, &init_ack);
        let echo = hand.client_sends().remove(0);
        assert_eq!(hand.server.associations().count(), 0);
        (hand, echo)
    }

    pub(crate) fn connect(&mut self) -> AssociationId {
        self.client.connect(self.now, 9899, &[super::route(0)]).unwrap()
    }

    /// Everything that the client wants to send.
    pub(crate) fn client_sends(&mut self) -> Vec<Vec<u8>> {
        drain(&mut self.client, self.now)
    }

    /// Everything that the server wants to send.
    pub(crate) fn server_sends(&mut self) -> Vec<Vec<u8>> {
        drain(&mut self.server, self.now)
    }

    /// Hands the server a packet that came from the client's `i`th address.
    pub(crate) fn server_gets(&mut self, i: usize, payload: &[u8]) {
        feed(&mut self.server, self.now, i, CLIENT[i], payload);
    }

    /// Hands the client a packet that came from the server's `i`th address.
    pub(crate) fn client_gets(&mut self, i: usize, payload: &[u8]) {
        feed(&mut self.client, self.now, i, SERVER[i], payload);
    }

    /// Goes on until neither has anything to send.
    pub(crate) fn settle(&mut self) {
        loop {
            let (there, back) = (self.client_sends(), self.server_sends());
            if there.is_empty() && back.is_empty() {
                break;
            }
            there.iter().for_each(|packet| self.server_gets(0, packet));
            back.iter().for_each(|packet| self.client_gets(0, packet));
        }
    }

    pub(crate) fn server_events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.server.poll_event()).map(|(_, event)| event).collect()
    }

    pub(crate) fn client_events(&mut self) -> Vec<Event> {
        core::iter::from_fn(|| self.client.poll_event()).map(|(_, event)| event).collect()
    }
}

pub(crate) fn feed(endpoint: &mut Endpoint, now: Instant, socket: usize, from: &str, payload: &[u8]) {
    let route = Route::new(SocketId(socket as u16), from.parse().unwrap());
    endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload });
}

fn drain(endpoint: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let (mut buf, mut packets) = (Vec::new(), Vec::new());
    if endpoint.poll_timeout().is_some_and(|at| at <= now) {
        endpoint.handle_timeout(now);
    }
    while let Some(transmit) = endpoint.poll_transmit(now, &mut buf) {
        packets.extend(transmit.datagrams(&buf).map(<[u8]>::to_vec));
    }
    packets
}
