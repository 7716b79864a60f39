//! Peers behind a NAT that forgets them, so that they come from another port.

use crate::common::{PORT, SERVICE};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::{Connection, ConnectionId, Endpoint, Event, Options, SecurityOptions, SendOptions};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes of the headers of IPv4 and UDP.
const HEADERS: usize = 28;

fn server_at() -> Route {
    Route::new(SocketId(0), ([10, 0, 0, 2], 9000).into())
}

/// A client behind a NAT, and a server, on a network that takes no time.
struct Behind {
    now: Instant,
    client: Endpoint,
    server: Endpoint,
    /// What the server sees of the client.
    address: SocketAddr,
    /// What goes to the client gets lost.
    deaf: bool,
    ids: [Option<ConnectionId>; 2],
    /// Addresses and lengths of what the server sent, as IP packets.
    answers: Vec<(SocketAddr, usize)>,
    moves: Vec<Route>,
    /// The last packet of the client.
    last: Vec<u8>,
}

impl Behind {
    fn new() -> Self {
        let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
        let security = Some(SecurityOptions::new(method));
        let options = Options { security, max_segments: 1, ..Options::default() };
        let end = |name| Endpoint::new(options.clone(), Rng::from_seed(1).stream(name)).unwrap();
        let (mut client, mut server) = (end("client"), end("server"));
        let now = Instant::from_millis(1);
        server.listen(PORT, SERVICE).unwrap();
        client.connect(now, server_at(), 0, PORT, SERVICE).unwrap();
        let (address, ids) = (([192, 0, 2, 1], 40_000).into(), [None; 2]);
        let (deaf, answers, moves, last) = (false, Vec::new(), Vec::new(), Vec::new());
        let mut it = Self { now, client, server, address, deaf, ids, answers, moves, last };
        it.wait(500);
        assert!(it.ids.iter().all(Option::is_some), "connected");
        it.answers.clear();
        it
    }

    fn settle(&mut self) {
        let (mut buf, mut moved) = (Vec::new(), true);
        while moved {
            moved = false;
            while self.client.poll_transmit(self.now, &mut buf).is_some() {
                (moved, self.last) = (true, buf.clone());
                self.take(self.address, &buf);
            }
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut buf) {
                moved = true;
                self.answers.push((transmit.route.remote, buf.len() + HEADERS));
                if transmit.route.remote == self.address && !self.deaf {
                    let datagram = Datagram { route: server_at(), ecn: Ecn::NotEct, payload: &buf };
                    self.client.handle_datagram(self.now, datagram);
                }
            }
            while let Some((id, event)) = self.client.poll_event() {
                if event == Event::Connected {
                    self.ids[0] = Some(id);
                }
            }
            while let Some((id, event)) = self.server.poll_event() {
                match event {
                    Event::Connected => self.ids[1] = Some(id),
                    Event::Moved(route) => self.moves.push(route),
                    _ => {}
                }
            }
        }
    }

    /// The server gets a packet from there.
    fn take(&mut self, from: SocketAddr, payload: &[u8]) {
        let route = Route::new(SocketId(0), from);
        self.server.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload });
    }

    fn wait(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        self.settle();
        let due = |it: &Self| it.client.poll_timeout().into_iter().chain(it.server.poll_timeout()).min();
        let mut turns = 0;
        while let Some(at) = due(self).filter(|&at| at <= end) {
            turns += 1;
            assert!(turns < 100_000, "a timer that does nothing");
            self.now = self.now.max(at);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    fn on_server<R>(&mut self, f: impl FnOnce(&mut Connection, Instant) -> R) -> R {
        let it = f(self.server.connection_mut(self.ids[1].unwrap()).unwrap(), self.now);
        self.settle();
        it
    }

    fn send(&mut self, count: usize) {
        let (now, id) = (self.now, self.ids[0].unwrap());
        for _ in 0..count {
            let connection = self.client.connection_mut(id).unwrap();
            connection.send(now, &[7; 100], SendOptions::default()).unwrap();
            self.settle();
        }
    }

    fn send_back(&mut self, count: usize, len: usize) {
        for _ in 0..count {
            self.on_server(|it, now| it.send(now, &vec![8; len], SendOptions::default())).unwrap();
        }
    }

    /// Messages that came, at the client and at the server.
    fn came(&mut self) -> [usize; 2] {
        let mut buf = Vec::new();
        let [client, server] = self.ids.map(Option::unwrap);
        let mut count = |it: &mut Connection| core::iter::from_fn(|| it.recv(&mut buf).then_some(())).count();
        [count(self.client.connection_mut(client).unwrap()), count(self.server.connection_mut(server).unwrap())]
    }

    /// Bytes that went to this address.
    fn went_to(&self, address: SocketAddr) -> usize {
        self.answers.iter().filter(|(to, _)| *to == address).map(|(_, len)| len).sum()
    }
}

fn elsewhere() -> SocketAddr {
    ([192, 0, 2, 1], 41_111).into()
}

#[test]
fn a_client_that_gets_another_port_loses_nothing_in_either_direction() {
    let mut it = Behind::new();
    for port in 0..100 {
        it.address.set_port(50_000 + port);
        it.send(1);
        it.send_back(1, 300);
        it.wait(20);
    }
    it.wait(1000);
    assert_eq!(it.came(), [100, 100]);
    assert_eq!(it.server.connections().count(), 1, "it is the same connection");
    assert_eq!((it.moves.len(), it.moves.last().unwrap().remote.port()), (100, 50_099));
}

#[test]
fn little_goes_to_an_address_that_is_not_proved_and_then_the_proved_one_is_used_again() {
    let mut it = Behind::new();
    let (before, new) = (it.address, elsewhere());
    // Somebody in between sends the client's newest packet once more from elsewhere, sooner than it comes.
    (it.address, it.deaf) = (new, true);
    it.send(1);
    let most = 3 * (it.last.len() + HEADERS);
    it.send_back(40, 1000);
    it.wait(150);
    let went = it.went_to(new);
    assert!((1..=most).contains(&went), "{went} of {most} bytes, {:?}", it.answers);
    assert_eq!(it.on_server(|it, _| it.route().remote), new);
    // Nobody answers there.
    it.address = before;
    it.wait(10_000);
    assert_eq!(it.on_server(|it, _| it.route().remote), before);
    assert!(it.went_to(new) <= most, "{} of {most} bytes", it.went_to(new));
    it.deaf = false;
    it.send(1);
    it.wait(10_000);
    it.came();
    it.send_back(3, 1000);
    it.wait(1000);
    assert_eq!(it.came()[0], 3);
}

#[test]
fn an_answer_from_there_proves_the_address() {
    let mut it = Behind::new();
    it.address = elsewhere();
    it.send(1);
    it.wait(10);
    it.send_back(20, 1000);
    it.wait(5000);
    assert_eq!(it.came(), [20, 1]);
    assert!(it.went_to(elsewhere()) > 20_000);
}

#[test]
fn what_is_old_or_forged_or_in_clear_moves_nothing() {
    let mut it = Behind::new();
    let before = it.address;
    it.send(5);
    it.wait(100);
    let old = it.last.clone();
    it.send(5);
    it.wait(100);
    it.answers.clear();
    it.take(elsewhere(), &old);
    // Newer than all that came, as nobody but the client can make it, with a bit changed.
    it.deaf = true;
    it.address = before;
    let mut forged = it.last.clone();
    forged[9..16].iter_mut().rev().take(1).for_each(|byte| *byte = byte.wrapping_add(20));
    it.take(elsewhere(), &forged);
    it.take(elsewhere(), &[0; 200]);
    it.wait(1000);
    assert_eq!((it.moves.len(), it.on_server(|it, _| it.route().remote)), (0, before));
    // A stranger is told that there is no connection, in fewer bytes than it sent.
    assert!(it.went_to(elsewhere()) <= old.len() + forged.len() + 200, "{:?}", it.answers);
}
