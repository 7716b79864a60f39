//! Two ends of a tunnel in memory, over a network that loses nothing and takes no time.
#![allow(missing_docs, reason = "a test")]

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_dccp::{Options, Wanted};
use braidcast_session::tunnel::{Happening, Settings, Tunnel};
use std::net::SocketAddr;
use std::time::Duration;

/// Sockets below are those towards the other end; the client has one for each of its addresses.
const ENTRANCE: u16 = 10;
const EXIT: u16 = 20;

fn address(host: u8, port: u16) -> SocketAddr {
    ([10, 0, 0, host], port).into()
}

struct Pair {
    now: Instant,
    ends: [Tunnel; 2],
    exits: u16,
    /// What came out: at which end, where to.
    came: Vec<(usize, Route)>,
}

impl Pair {
    fn new(probe: bool) -> Self {
        let settings = Settings {
            lifetime: Duration::from_secs(1),
            wanted: Wanted::default(),
            jitter_buffer: Duration::from_millis(100),
        };
        let mut ends = ["client", "server"].map(|name| {
            let forwards = vec![address(9, 5000), address(9, 5001)];
            let options = Options { max_packet: 1452, probe, ..Options::default() };
            let mut end = Tunnel::new(options, Rng::from_seed(1).stream(name), settings.clone(), forwards);
            (0..2).for_each(|n| end.add_entrance(SocketId(ENTRANCE + n), n as u8));
            end
        });
        let now = Instant::from_millis(1);
        ends[1].serve(SocketId(0), 6511).unwrap();
        ends[0].dial(now, Route::new(SocketId(0), address(2, 9000)), 6511);
        let mut pair = Self { now, ends, exits: EXIT, came: Vec::new() };
        pair.settle();
        pair
    }

    fn settle(&mut self) {
        let mut buf = Vec::new();
        loop {
            let mut moved = false;
            for at in 0..2 {
                while let Some(Transmit { route, .. }) = self.ends[at].poll_transmit(self.now, &mut buf) {
                    moved = true;
                    if route.socket.0 >= ENTRANCE {
                        self.came.push((at, route));
                        continue;
                    }
                    // The client's sockets have addresses of their own.
                    let (to, from) = match at {
                        0 => (SocketId(0), address(1, 7000 + route.socket.0)),
                        _ => (SocketId(route.remote.port() - 7000), address(2, 9000)),
                    };
                    let datagram = Datagram { route: Route::new(to, from), ecn: Ecn::NotEct, payload: &buf };
                    self.ends[1 - at].handle_datagram(self.now, datagram);
                }
                while let Some(happening) = self.ends[at].poll_event() {
                    if let Happening::WantSocket(link, flow, _) = happening {
                        self.ends[at].give_socket(link, flow, SocketId(self.exits));
                        self.exits += 1;
                        moved = true;
                    }
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.ends.iter().filter_map(Machine::poll_timeout).min().filter(|&due| due <= end) {
            self.now = self.now.max(due);
            for at in 0..2 {
                self.ends[at].handle_timeout(self.now);
                self.settle();
            }
        }
        self.now = end;
    }

    /// A datagram goes in at a socket of an end; where it came out.
    fn put(&mut self, at: usize, route: Route) -> Vec<(usize, Route)> {
        self.came.clear();
        self.ends[at].handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: b"hello" });
        self.settle();
        self.wait(Duration::from_secs(1));
        std::mem::take(&mut self.came)
    }

    /// An application sends to the n-th entrance of the server; where it came out at the client.
    fn call(&mut self, entrance: u16, application: u16) -> Route {
        let came = self.put(1, Route::new(SocketId(ENTRANCE + entrance), address(8, application)));
        assert!(matches!(came[..], [(0, _)]), "{came:?}");
        came[0].1
    }
}

#[test]
fn an_answer_finds_its_application() {
    let mut pair = Pair::new(false);
    let exits = [pair.call(0, 1), pair.call(0, 2), pair.call(1, 1)];
    assert_eq!(exits.map(|exit| exit.remote), [address(9, 5000), address(9, 5000), address(9, 5001)]);
    let entrances = [(0, 1), (0, 2), (1, 1)]
        .map(|(entrance, application): (u16, u16)| Route::new(SocketId(ENTRANCE + entrance), address(8, application)));
    for (exit, entrance) in exits.into_iter().zip(entrances) {
        assert_eq!(pair.put(0, exit), [(1, entrance)]);
    }
    // Somebody who was not asked.
    assert_eq!(pair.put(0, Route::new(exits[0].socket, address(7, 7))), []);
}

#[test]
fn a_client_that_comes_from_another_address_mixes_up_no_flows() {
    let mut pair = Pair::new(false);
    let first: Vec<Route> = (0..20).map(|application| pair.call(0, application)).collect();
    let now = pair.now;
    pair.ends[0].reroute(now, Some(Route::new(SocketId(1), address(2, 9000))));
    pair.settle();
    pair.wait(Duration::from_secs(20));
    // To the server it is a new end, whose flows it numbers anew; the client remembers the old ones.
    for application in 100..120 {
        let exit = pair.call(1, application);
        assert_eq!(exit.remote, address(9, 5001));
        assert!(first.iter().all(|old| old.socket != exit.socket), "the socket of another application");
    }
}

#[test]
fn samples_carry_the_number_of_their_connection() {
    let mut pair = Pair::new(true);
    pair.call(0, 1);
    let now = pair.now;
    pair.ends[0].reroute(now, Some(Route::new(SocketId(1), address(2, 9000))));
    pair.settle();
    pair.wait(Duration::from_secs(5));
    pair.call(0, 1);
    let samples: Vec<_> = std::iter::from_fn(|| pair.ends[0].poll_sample()).collect();
    let mut numbers: Vec<u64> = samples.iter().map(|(number, _)| *number).collect();
    numbers.dedup();
    assert_eq!(numbers, [1, 2]);
    assert!(samples.iter().any(|(_, sample)| !sample.sent && sample.kind.starts_with("Data")), "{samples:?}");
}
