//! Two ends of a tunnel in memory, over a network that loses nothing and takes no time.
#![allow(missing_docs, reason = "a test")]

use crate::common::keyed::keyed;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_dccp::{Call, Ccid, Method, Options, Wanted};
use braidcast_session::RateLimits;
use braidcast_session::tunnel::{Class, Discards, FLOWS_PER_HOST, Settings, Tunnel, TunnelEvent};
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
    /// What a NAT adds to the client's port.
    shift: u16,
    /// Nothing of the server's arrives.
    deaf: bool,
    /// What came out: at which end, where to.
    came: Vec<(usize, Route)>,
    /// What they and their owners were told.
    told: Vec<TunnelEvent>,
}

impl Pair {
    fn new() -> Self {
        Self::with(Options::default(), Settings::default(), [Class::default(); 2])
    }

    /// Both ends have these options and settings, and the client's entrances these classes.
    fn with(options: Options, settings: Settings, classes: [Class; 2]) -> Self {
        let mut ends = ["client", "server"].map(|name| {
            let forwards = [5000, 5001].map(|port| (address(9, port), Class::default())).to_vec();
            // What leaves is one datagram each time.
            let options = Options { max_packet: 1452, max_segments: 1, ..options.clone() };
            let mut end = Tunnel::new(options, Rng::from_seed(1).stream(name), settings.clone(), forwards).unwrap();
            (0..).zip(classes).for_each(|(n, class)| end.add_entrance(SocketId(ENTRANCE + n), n as u8, class));
            end
        });
        let now = Instant::from_millis(1);
        ends[1].serve(SocketId(0), 6511).unwrap();
        ends[0].dial(now, Route::new(SocketId(0), address(2, 9000)), 6511);
        let mut pair = Self { now, ends, exits: EXIT, shift: 0, deaf: false, came: Vec::new(), told: Vec::new() };
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
                    if self.deaf && at == 1 {
                        continue;
                    }
                    // The client's sockets have addresses of their own.
                    let (to, from) = match at {
                        0 => (SocketId(0), address(1, 7000 + self.shift + route.socket.0)),
                        _ => match route.remote.port().checked_sub(7000 + self.shift) {
                            Some(socket) => (SocketId(socket), address(2, 9000)),
                            None => continue, // The NAT has forgotten it.
                        },
                    };
                    let datagram = Datagram { route: Route::new(to, from), ecn: Ecn::NotEct, payload: &buf };
                    self.ends[1 - at].handle_datagram(self.now, datagram);
                }
                while let Some(event) = self.ends[at].poll_event() {
                    self.told.push(event.clone());
                    if let TunnelEvent::WantSocket(link, flow, _) = event {
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
    let mut pair = Pair::new();
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
    let mut pair = Pair::new();
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

/// A CGNAT that gives a new port now and then, while both applications talk.
#[test]
fn a_client_with_a_new_port_goes_on_without_a_gap() {
    let options = Options { security: keyed(1), ..Options::default() };
    let mut pair = Pair::with(options, Settings::default(), [Class::default(); 2]);
    let exit = pair.put(0, Route::new(SocketId(ENTRANCE), address(8, 1)))[0].1;
    for shift in 1..20 {
        pair.shift = 100 * shift;
        let (there, back) = (pair.put(0, Route::new(SocketId(ENTRANCE), address(8, 1))), pair.put(1, exit));
        assert_eq!((there.len(), back.len()), (1, 1), "port {shift}");
    }
    let links: Vec<_> = pair.ends[1].links().map(|(_, link)| (link.connections, link.route.remote)).collect();
    assert_eq!(links, [(1, address(1, 8900))]);
}

#[test]
fn a_server_that_does_not_answer_is_told_of_before_the_connection_breaks_and_once_it_answers() {
    let options = Options { security: keyed(1), ..Options::default() };
    let mut pair = Pair::with(options, Settings::default(), [Class::default(); 2]);
    pair.put(0, Route::new(SocketId(ENTRANCE), address(8, 1)));
    pair.told.clear();
    let paths = |pair: &Pair| -> Vec<bool> {
        let of_path = |event: &TunnelEvent| if let TunnelEvent::Path(_, _, up) = event { Some(*up) } else { None };
        pair.told.iter().filter_map(of_path).collect()
    };
    pair.deaf = true;
    pair.wait(Duration::from_secs(2));
    assert!(paths(&pair).is_empty());
    pair.wait(Duration::from_secs(3));
    assert_eq!(paths(&pair), [false]);
    pair.deaf = false;
    pair.wait(Duration::from_secs(4));
    assert_eq!(paths(&pair), [false, true]);
    assert_eq!(pair.ends[0].links().map(|(_, link)| link.connections).collect::<Vec<_>>(), [1]);
}

/// A second of audio, 50 datagrams a second, and of bursts of frames, at the two entrances; then
/// both ends come to rest.
fn call(queue: Method, queue_length: usize, classes: [Class; 2]) -> (Pair, [u64; 2], [Discards; 2]) {
    let settings = Settings { queue, queue_length, ..Settings::default() };
    let options = Options { ccids: vec![Ccid::Three], ..Options::default() };
    let mut pair = Pair::with(options, settings, classes);
    let at = |entrance| Route::new(SocketId(ENTRANCE + entrance), address(8, entrance));
    let put = |pair: &mut Pair, entrance, len: usize| {
        let payload = vec![0; len];
        pair.ends[0].handle_datagram(pair.now, Datagram { route: at(entrance), ecn: Ecn::NotEct, payload: &payload });
    };
    for tick in 0..50 {
        put(&mut pair, 0, 100);
        if tick % 5 == 0 {
            (0..40).for_each(|_| put(&mut pair, 1, 1000));
        }
        pair.settle();
        pair.wait(Duration::from_millis(20));
    }
    pair.wait(Duration::from_secs(5));
    let figures = |end: &Tunnel, port| {
        let (_, link) = end.links().next().unwrap();
        link.flows.values().find(|flow| flow.port == port).unwrap().whole(pair.now)
    };
    let came = [0, 1].map(|port| figures(&pair.ends[1], port).received.datagrams);
    let gone = [0, 1].map(|port| figures(&pair.ends[0], port).discarded);
    (pair, came, gone)
}

#[test]
fn a_burst_of_pictures_takes_no_room_from_sound_and_its_own_losses_are_told() {
    // The network takes no time here: only the room is short, and nothing is said of the flows.
    let (_, came, gone) = call(Method::RingSbpn2, 8, [Class::default(); 2]);
    assert_eq!((came[0], gone[0].total()), (50, 0), "{gone:?}");
    assert!(gone[1].replaced > 100 && gone[1].no_room == 0, "{gone:?}");
    assert_eq!(came[1] + gone[1].total(), 400, "{gone:?} {came:?}");
    // The other way round, if the user wants it so.
    let class = |level: &str| Class { priority: level.parse().ok(), lifetime: None };
    let (_, came, gone) = call(Method::RingSbpn2, 8, [class("7"), class("0")]);
    assert!(came[0] < 50 && gone[0].total() == 50 - came[0], "{came:?} {gone:?}");
}

#[test]
fn a_call_too_many_is_refused_until_another_one_is_over_and_what_is_no_call_is_carried() {
    // 25 kB/s are two calls.
    let call = Call { payload: 200, rate: 50.0, max_loss: 0.02 };
    let wanted = Wanted { max: Some(25_000.0), min: None };
    let settings = Settings { wanted, admission: Some(call), ..Settings::default() };
    let options = Options { ccids: vec![Ccid::Three], ..Options::default() };
    let video = Class::named("video").unwrap();
    let mut pair = Pair::with(options, settings, [Class::default(), video]);
    let speak = |pair: &mut Pair, entrance, application| {
        pair.put(0, Route::new(SocketId(ENTRANCE + entrance), address(8, application))).len()
    };
    let round = |pair: &mut Pair| [1, 2, 3].map(|application| speak(pair, 0, application));
    assert_eq!(round(&mut pair), [1, 1, 0]);
    assert_eq!((speak(&mut pair, 1, 4), speak(&mut pair, 1, 5)), (1, 1));
    assert_eq!(round(&mut pair), [1, 1, 0]);
    for _ in 0..11 {
        assert_eq!(speak(&mut pair, 0, 1), 1);
    }
    // The second one was silent for ten seconds, and the third one has its place.
    assert_eq!(speak(&mut pair, 0, 3), 1);
    assert_eq!(round(&mut pair), [1, 0, 1]);
    let refused: Vec<_> = pair.told.iter().filter(|it| matches!(it, TunnelEvent::CallRefused(..))).collect();
    let [third, second] = [3, 2].map(|application| TunnelEvent::CallRefused(0, address(8, application)));
    assert_eq!(refused, [&third, &second]);
    let (_, link) = pair.ends[0].links().next().unwrap();
    assert_eq!(link.dropped.refused_calls, 3);
}

#[test]
fn applications_are_told_what_congestion_control_allows() {
    let limits = RateLimits::new(200_000, 2_000_000);
    let settings = Settings { encoder: limits, ..Settings::default() };
    let options = Options { ccids: vec![Ccid::Three], ..Options::default() };
    let mut pair = Pair::with(options, settings, [Class::default(); 2]);
    pair.put(0, Route::new(SocketId(ENTRANCE), address(8, 1)));
    let (_, link) = pair.ends[0].links().next().unwrap();
    let allowed = pair.ends[0].report(pair.now, link).unwrap().ccid.allowed_rate.unwrap() * 8.0;
    let told = pair.ends[0].rate_report(pair.now, link).unwrap();
    assert_eq!(told.rate, allowed.clamp(2e5, 2e6).round(), "{told:?}");
    assert_eq!((told.waiting_ms, told.frame_interval_ms, told.below_least), (0.0, 40.0, allowed < 2e5), "{told:?}");
}

#[test]
fn a_way_that_takes_longer_than_datagrams_live_is_said_once() {
    for (queue, said) in [(Method::RingSbpn2, 1), (Method::Fifo, 0)] {
        let way = Duration::from_millis(250);
        let settings = Settings { one_way_delay: Some(way), queue, ..Settings::default() };
        let classes = [Class::named("audio").unwrap(), Class::default()];
        let mut pair = Pair::with(Options::default(), settings, classes);
        for _ in 0..10 {
            pair.put(0, Route::new(SocketId(ENTRANCE), address(8, 1)));
        }
        let too_far =
            |it: &&TunnelEvent| matches!(it, TunnelEvent::TooFar(_, w, life) if (*w, life.as_millis()) == (way, 200));
        assert_eq!(pair.told.iter().filter(too_far).count(), said, "{queue}");
    }
}

#[test]
fn a_clock_that_steps_back_holds_a_tunnel_up_and_breaks_nothing() {
    let (mut pair, before, _) = call(Method::RingSbpn2, 512, [Class::default(); 2]);
    assert_eq!(before, [50, 400]);
    pair.now = Instant::from_millis(100);
    let route = Route::new(SocketId(ENTRANCE), address(8, 0));
    // What is sent meanwhile may expire, as the time at which it could leave lies ahead.
    pair.put(0, route);
    pair.wait(Duration::from_secs(10));
    assert!(matches!(pair.put(0, route)[..], [(1, _)]), "and then it goes on");
    let (_, link) = pair.ends[0].links().next().unwrap();
    assert_eq!((link.connections, link.flows.len()), (1, 2));
}

/// A server and clients on many hosts, each with a socket of its own, over a network that loses
/// nothing and takes no time.
struct Crowd {
    now: Instant,
    server: Tunnel,
    clients: Vec<(SocketAddr, Tunnel)>,
    /// Sockets that flows of the server have now, and those that were given back.
    held: std::collections::BTreeSet<SocketId>,
    next_socket: u16,
    /// At which clients datagrams of the server's applications came out.
    rang: Vec<usize>,
    /// Datagrams that came out at the server.
    came: usize,
}

impl Crowd {
    fn new(settings: Settings) -> Self {
        let forwards = vec![(address(9, 5000), Class::default())];
        let options = Options { max_connections: 2 * settings.clients, ..Options::default() };
        let mut server = Tunnel::new(options, Rng::from_seed(3), settings, forwards).unwrap();
        server.serve(SocketId(0), 6511).unwrap();
        server.add_entrance(SocketId(1), 0, Class::default());
        let now = Instant::from_millis(1);
        Self {
            now,
            server,
            clients: Vec::new(),
            held: std::collections::BTreeSet::new(),
            next_socket: 100,
            rang: Vec::new(),
            came: 0,
        }
    }

    /// One more client, on that host.
    fn join(&mut self, host: u8) -> usize {
        let n = self.clients.len();
        let forwards = vec![(address(9, 6000), Class::default())];
        let mut client =
            Tunnel::new(Options::default(), Rng::from_seed(n as u64), Settings::default(), forwards).unwrap();
        client.add_entrance(SocketId(ENTRANCE), 0, Class::default());
        client.dial(self.now, Route::new(SocketId(0), address(2, 9000)), 6511);
        self.clients.push((address(host, 10_000 + n as u16), client));
        self.settle();
        n
    }

    fn settle(&mut self) {
        let mut buf = Vec::new();
        loop {
            let mut moved = false;
            for n in 0..self.clients.len() {
                let (from, client) = &mut self.clients[n];
                while let Some(Transmit { route, .. }) = client.poll_transmit(self.now, &mut buf) {
                    moved = true;
                    if route.socket != SocketId(0) {
                        self.rang.push(n);
                        continue;
                    }
                    let route = Route::new(SocketId(0), *from);
                    self.server.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: &buf });
                }
                while let Some(event) = client.poll_event() {
                    if let TunnelEvent::WantSocket(link, flow, _) = event {
                        client.give_socket(link, flow, SocketId(500 + flow.number % 100));
                        moved = true;
                    }
                }
            }
            while let Some(Transmit { route, .. }) = self.server.poll_transmit(self.now, &mut buf) {
                moved = true;
                if route.socket != SocketId(0) {
                    self.came += 1;
                    continue;
                }
                if let Some((_, client)) = self.clients.iter_mut().find(|(address, _)| *address == route.remote) {
                    let route = Route::new(SocketId(0), address(2, 9000));
                    client.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: &buf });
                }
            }
            while let Some(event) = self.server.poll_event() {
                match event {
                    TunnelEvent::WantSocket(link, flow, _) => {
                        self.next_socket += 1;
                        self.held.insert(SocketId(self.next_socket));
                        self.server.give_socket(link, flow, SocketId(self.next_socket));
                        moved = true;
                    }
                    TunnelEvent::FreeSocket(socket) => assert!(self.held.remove(&socket), "{socket:?} is not held"),
                    _ => {}
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(100);
            self.server.handle_timeout(self.now);
            self.clients.iter_mut().for_each(|(_, client)| client.handle_timeout(self.now));
            self.settle();
        }
    }

    /// An application at the client sends. Returns `true` if that came out at the server.
    fn reaches(&mut self, client: usize, application: u16) -> bool {
        self.came = 0;
        let route = Route::new(SocketId(ENTRANCE), address(8, application));
        self.clients[client].1.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: b"hello" });
        self.settle();
        self.wait(Duration::from_millis(200));
        self.came > 0
    }

    /// An application at the server sends; the client that it came out at.
    fn rings(&mut self, application: u16) -> Vec<usize> {
        self.rang.clear();
        let route = Route::new(SocketId(1), address(7, application));
        self.server.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: b"ring" });
        self.settle();
        self.wait(Duration::from_millis(200));
        std::mem::take(&mut self.rang)
    }
}

#[test]
fn who_comes_later_takes_no_flows_away() {
    let mut crowd = Crowd::new(Settings::default());
    let first = crowd.join(1);
    assert_eq!(crowd.rings(1), [first]);
    let second = crowd.join(3);
    crowd.wait(Duration::from_secs(3));
    assert_eq!((crowd.rings(1), crowd.rings(2)), (vec![first], vec![first]));
    // The first falls silent: what begins now goes to who is there, and comes back to stay.
    crowd.clients[first].0 = address(4, 1);
    crowd.wait(Duration::from_secs(6));
    assert_eq!(crowd.rings(3), [second]);
}

#[test]
fn one_host_cannot_take_all_connections() {
    let mut crowd = Crowd::new(Settings { clients: 8, ..Settings::default() });
    let honest = crowd.join(1);
    assert!(crowd.reaches(honest, 1));
    for n in 0..20 {
        let stranger = crowd.join(3);
        crowd.reaches(stranger, 1);
        if n % 4 == 0 {
            crowd.wait(Duration::from_secs(3));
        }
    }
    let connected = crowd.server.links().filter(|(_, link)| link.connected).count();
    assert!(connected <= 8, "{connected} are connected");
    assert!(crowd.reaches(honest, 1));
    let late = crowd.join(5);
    assert!(crowd.reaches(late, 1));
}

#[test]
fn one_host_cannot_take_all_flows() {
    let mut crowd = Crowd::new(Settings::default());
    let honest = crowd.join(1);
    assert!(crowd.reaches(honest, 1));
    let stranger = crowd.join(3);
    for application in 0..600 {
        let route = Route::new(SocketId(ENTRANCE), address(8, application));
        let datagram = Datagram { route, ecn: Ecn::NotEct, payload: b"hello" };
        crowd.clients[stranger].1.handle_datagram(crowd.now, datagram);
        if application % 2 == 0 {
            crowd.wait(Duration::from_millis(100));
        }
    }
    crowd.wait(Duration::from_secs(3));
    assert!((400..=FLOWS_PER_HOST + 1).contains(&crowd.held.len()), "{} sockets", crowd.held.len());
    assert!(crowd.reaches(honest, 1) && crowd.reaches(honest, 2));
    // Without a socket left, who has most gives one up.
    let before = crowd.held.len();
    assert!(crowd.server.give_way());
    crowd.settle();
    assert_eq!(crowd.held.len(), before - 1);
    assert!(crowd.reaches(honest, 1));
}
