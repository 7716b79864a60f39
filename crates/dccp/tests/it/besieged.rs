//! A server with one member, and strangers who send what they like: no member's connection is
//! touched, and what strangers have the server keep stays below what is stated.

use crate::common::hostile::{Hostile, Stranger};
use crate::common::{PORT, SERVICE, packet_between};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Strangers};
use braidcast_dccp::wire::{Checksum, Kind, Packet};
use braidcast_dccp::{ConnectionId, Endpoint, Event, Options, SecurityOptions, SendOptions, State};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use braidcast_testing::Counting;
use core::time::Duration;
use std::net::SocketAddr;
use std::sync::Arc;

fn options() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    Options { security: Some(SecurityOptions::new(method)), ..Options::default() }
}

struct Besieged {
    client: Endpoint,
    server: Endpoint,
    now: Instant,
    member: ConnectionId,
    hostile: Hostile,
    received: u64,
}

const MEMBER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 6511);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 6511);

impl Besieged {
    fn new(seed: u64) -> Self {
        let mut other = Self::alone(seed + 1000);
        (0..10).for_each(|_| other.exchange());
        let mut it = Self::alone(seed);
        it.hostile.others = other.hostile.data;
        it
    }

    fn alone(seed: u64) -> Self {
        let rng = Rng::from_seed(seed);
        let mut server = Endpoint::new(options(), rng.stream("server")).unwrap();
        server.listen(PORT, SERVICE).unwrap();
        let mut client = Endpoint::new(options(), rng.stream("client")).unwrap();
        let now = Instant::from_millis(1);
        let member = client.connect(now, Route::new(SocketId(0), SERVER), 0, PORT, SERVICE).unwrap();
        let mut it = Self { client, server, now, member, hostile: Hostile::new(rng, MEMBER), received: 0 };
        (0..20).for_each(|_| it.wait(Duration::from_millis(20)));
        it.exchange();
        it
    }

    fn below(&mut self, most: u64) -> u64 {
        self.hostile.below(most)
    }

    fn wait(&mut self, by: Duration) {
        self.now += by;
        for endpoint in [&mut self.client, &mut self.server] {
            if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                endpoint.handle_timeout(self.now);
            }
        }
        self.carry();
    }

    /// The member sends a message, which arrives as soon as its congestion control lets it.
    fn exchange(&mut self) {
        let goal = self.received + 1;
        let connection = self.client.connection_mut(self.member).expect("the member is there");
        assert_eq!(connection.state(), State::Open);
        connection.send(self.now, &[1; 700], SendOptions::default()).expect("room");
        let begun = self.now;
        self.carry();
        while self.received < goal {
            self.wait(Duration::from_millis(10));
            assert!(self.now - begun < Duration::from_secs(2), "the member's message arrives");
        }
    }

    /// Carries all packets of both ends; those to strangers get to them.
    fn carry(&mut self) {
        let (now, mut buf) = (self.now, Vec::new());
        loop {
            let mut any = false;
            while let Some(transmit) = self.client.poll_transmit(now, &mut buf) {
                any = true;
                for payload in transmit.datagrams(&buf) {
                    let packet = Packet::parse(payload, Checksum::Udp).expect("well-formed");
                    self.hostile.see(&packet);
                    let route = Route::new(SocketId(0), MEMBER);
                    self.server.handle_datagram(now, Datagram { route, ecn: transmit.ecn, payload });
                }
            }
            while let Some(transmit) = self.server.poll_transmit(now, &mut buf) {
                any = true;
                for payload in transmit.datagrams(&buf) {
                    let packet = Packet::parse(payload, Checksum::Udp).expect("well-formed");
                    if !self.hostile.answered(transmit.route, &packet) && transmit.route.remote == MEMBER {
                        let route = Route::new(SocketId(0), SERVER);
                        self.client.handle_datagram(now, Datagram { route, ecn: transmit.ecn, payload });
                    }
                }
            }
            let mut message = Vec::new();
            while let Some((id, event)) = self.server.poll_event() {
                // Whoever is asked for messages is polled again: only those that have some.
                if event != Event::Readable {
                    continue;
                }
                while self.server.connection_mut(id).is_some_and(|connection| connection.recv(&mut message)) {
                    assert_eq!(message, [1; 700], "nobody but the member gets anything through");
                    self.received += 1;
                }
            }
            while let Some((id, event)) = self.client.poll_event() {
                assert!(!matches!(event, Event::Closed(_)), "{id:?} {event:?}");
            }
            while self.server.poll_turned_away().is_some() {}
            if !any {
                return;
            }
        }
    }

    fn deliver(&mut self, route: Route, payload: &[u8]) {
        self.server.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload });
    }

    /// One packet of a stranger's, or some time.
    fn step(&mut self) {
        let as_member = |bytes| Some((Route::new(SocketId(0), MEMBER), bytes));
        let packet = match self.below(13) {
            0..=2 => self.hostile.come(),
            3..=9 => self.hostile.go_on(),
            10 => as_member(self.hostile.end_in_clear(true)),
            11 => as_member(self.hostile.splice()),
            _ => {
                let by = self.below(40);
                self.wait(Duration::from_millis(by));
                None
            }
        };
        if let Some((route, bytes)) = packet {
            self.deliver(route, &bytes);
        }
        if self.below(20) == 0 {
            self.exchange();
        }
        self.carry();
    }
}

#[test]
fn strangers_touch_no_member_and_fill_no_memory() {
    const MOST: isize = (Strangers::<u32>::PLACES * Strangers::<u32>::EACH) as isize;
    for seed in 0..3 {
        let mut it = Besieged::new(seed);
        let (before, mut most, mut places) = (Counting::bytes(), 0, 0);
        for n in 0..12_000 {
            it.step();
            most = most.max(Counting::bytes() - before);
            if n % 200 == 0 {
                places = places.max(it.server.connections().count());
            }
        }
        println!("seed {seed}: {most} bytes, {places} connections, {} messages of the member", it.received);
        assert!(most < MOST, "{most} bytes, and {MOST} are stated");
        let half_open = options().half_open;
        assert!((200..=Strangers::<u32>::PLACES + half_open + 1).contains(&places), "{places} connections");
        assert!(most as usize / places < Strangers::<u32>::EACH, "{most} bytes for {places}");
        it.exchange();
    }
}

/// All places are held by one host, who renews what expires: a member comes in all the same (S2).
#[test]
fn one_host_that_holds_all_places_keeps_nobody_out() {
    let mut it = Besieged::new(9);
    let mut comer = None;
    let host = |port| Route::new(SocketId(0), SocketAddr::from(([172, 16, 0, 9], port)));
    for n in 0..4000_u16 {
        let (route, port, seq) = (host(2000 + n), 2000 + n, u64::from(n) * 1000);
        it.hostile.strangers.push(Stranger::new(route, port, seq));
        let request = packet_between((port, PORT), seq, Kind::Request { service: SERVICE }, &it.hostile.asks, &[]);
        it.deliver(route, &request);
        it.wait(Duration::from_millis(1));
        let stranger = it.hostile.strangers.last().expect("it was put there");
        let ack = Kind::Ack { ack: stranger.theirs };
        let bytes = packet_between((port, PORT), seq + 1, ack, &stranger.cookie.clone(), &[]);
        it.deliver(route, &bytes);
        it.carry();
        if n == 3000 {
            let there = it.server.connections().count();
            assert!(there >= Strangers::<u32>::PLACES, "{there} places are taken");
            let route = Route::new(SocketId(0), SERVER);
            // The member's own client, by another port.
            comer = Some(it.client.connect(it.now, route, 7777, PORT, SERVICE).expect("a free port"));
            let begun = it.now;
            while it.client.connection(comer.expect("it was begun")).is_none_or(|it| it.standing().is_none()) {
                it.wait(Duration::from_millis(5));
                assert!(it.now - begun < Duration::from_secs(3), "a member gets in");
            }
        }
    }
    assert!(comer.is_some_and(|id| it.client.connection(id).is_some_and(|it| it.state() == State::Open)));
}
