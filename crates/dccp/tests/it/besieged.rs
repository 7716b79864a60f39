//! A server with one member, and strangers who send what they like: no member's connection is
//! touched, and what strangers have the server keep stays below what is stated.

use crate::common::{PORT, SERVICE, packet_between};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Strangers, Writer};
use braidcast_dccp::wire::{Checksum, Kind, Packet, Reset, ResetCode, option};
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

/// Somebody without a key: what it knows of its connection, if it has one.
struct Stranger {
    route: Route,
    port: u16,
    seq: u64,
    /// The last number that the server sent it.
    theirs: u64,
    /// The Init Cookie options of the Response, as they are.
    cookie: Vec<u8>,
    /// Where its key messages are.
    place: u32,
}

struct Besieged {
    client: Endpoint,
    server: Endpoint,
    now: Instant,
    member: ConnectionId,
    /// Of the member's last packets: number and port, to the server and to the client.
    last: [(u64, u16); 2],
    /// Options of the member's Request.
    asks: Vec<u8>,
    strangers: Vec<Stranger>,
    /// Records that another client with the same keys sent to a server.
    others: Vec<Vec<u8>>,
    rng: Rng,
    received: u64,
}

const MEMBER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)), 6511);
const SERVER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)), 6511);

/// The Init Cookie options of a packet, as they are.
fn cookies(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let cookies = packet.options.iter().flatten().filter(|it| it.raw.kind == option::kind::INIT_COOKIE);
    cookies.for_each(|it| it.raw.emit(&mut Writer::new(&mut bytes)));
    bytes
}

impl Besieged {
    fn new(seed: u64) -> Self {
        let mut other = Self::alone(seed + 1000);
        (0..10).for_each(|_| other.exchange());
        Self { others: other.others, ..Self::alone(seed) }
    }

    fn alone(seed: u64) -> Self {
        let rng = Rng::from_seed(seed);
        let mut server = Endpoint::new(options(), rng.stream("server")).unwrap();
        server.listen(PORT, SERVICE).unwrap();
        let mut client = Endpoint::new(options(), rng.stream("client")).unwrap();
        let now = Instant::from_millis(1);
        let member = client.connect(now, Route::new(SocketId(0), SERVER), 0, PORT, SERVICE).unwrap();
        let (last, asks, strangers, others) = ([(0, 0); 2], Vec::new(), Vec::new(), Vec::new());
        let mut it = Self { client, server, now, member, last, asks, strangers, others, rng, received: 0 };
        (0..20).for_each(|_| it.wait(Duration::from_millis(20)));
        it.exchange();
        it
    }

    fn below(&mut self, most: u64) -> u64 {
        self.rng.below(most)
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
                    self.last[0] = (packet.header.seq, packet.header.source_port);
                    if let Kind::Request { .. } = packet.header.kind {
                        self.asks = packet.options.as_bytes().to_vec();
                    }
                    if self.others.len() < 64 && !packet.payload.is_empty() {
                        self.others.push(packet.payload.to_vec());
                    }
                    let route = Route::new(SocketId(0), MEMBER);
                    self.server.handle_datagram(now, Datagram { route, ecn: transmit.ecn, payload });
                }
            }
            while let Some(transmit) = self.server.poll_transmit(now, &mut buf) {
                any = true;
                for payload in transmit.datagrams(&buf) {
                    let packet = Packet::parse(payload, Checksum::Udp).expect("well-formed");
                    let port = packet.header.destination_port;
                    let answered = |it: &&mut Stranger| it.route == transmit.route && it.port == port;
                    if let Some(stranger) = self.strangers.iter_mut().find(answered) {
                        stranger.theirs = packet.header.seq;
                        let cookie = cookies(&packet);
                        if !cookie.is_empty() {
                            stranger.cookie = cookie;
                        }
                    } else if transmit.route.remote == MEMBER {
                        self.last[1] = (packet.header.seq, packet.header.source_port);
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

    fn any(&mut self) -> usize {
        self.below(self.strangers.len() as u64) as usize
    }

    /// A Request, perhaps from the member's address.
    fn come(&mut self) {
        let networks = 1 + self.below(400);
        let [high, low] = (self.below(networks) as u16).to_be_bytes();
        let far = SocketAddr::from(([172, high, low, 1], 1000 + self.below(60_000) as u16));
        let remote = if self.below(20) == 0 { MEMBER } else { far };
        let (route, port, seq) =
            (Route::new(SocketId(0), remote), 1024 + self.below(60_000) as u16, self.below(1 << 48));
        if port == self.last[0].1 {
            return;
        }
        if self.strangers.len() > 3000 {
            self.strangers.remove(0);
        }
        self.strangers.push(Stranger { route, port, seq, theirs: 0, cookie: Vec::new(), place: 0 });
        let request = packet_between((port, PORT), seq, Kind::Request { service: SERVICE }, &self.asks, &[]);
        self.deliver(route, &request);
    }

    /// A stranger's packet: the cookie comes back, perhaps from elsewhere, with key messages that
    /// never end, far ahead, or with anything.
    fn go_on(&mut self) {
        if self.strangers.is_empty() {
            return;
        }
        let (of, from) = (self.any(), self.any());
        let (ahead, sort) = (self.below(40) as u32 * 900, self.below(8));
        let elsewhere = self.below(10) == 0;
        let stranger = &mut self.strangers[of];
        stranger.seq = (stranger.seq + 1) & ((1 << 48) - 1);
        let mut data = vec![22];
        data.extend_from_slice(&0_u32.to_be_bytes());
        data.extend_from_slice(&(stranger.place + ahead).to_be_bytes());
        data.extend_from_slice(&[60; 900]);
        if ahead == 0 {
            stranger.place += 900;
        }
        match sort {
            0 => data.clear(),
            1 => data[0] = 48,
            2 => data.truncate(9),
            _ => {}
        }
        let kind =
            if data.is_empty() { Kind::Ack { ack: stranger.theirs } } else { Kind::DataAck { ack: stranger.theirs } };
        let bytes = packet_between((stranger.port, PORT), stranger.seq, kind, &stranger.cookie, &data);
        let route = self.strangers[if elsewhere { from } else { of }].route;
        self.deliver(route, &bytes);
    }

    /// Ends in clear, with the member's numbers and from its address.
    fn end_in_clear(&mut self) {
        let [(ours, port), (theirs, _)] = self.last;
        let code = [ResetCode::NO_CONNECTION, ResetCode::CLOSED, ResetCode::ABORTED][self.below(3) as usize];
        let kinds = [
            Kind::Reset { ack: theirs, reset: Reset::new(code) },
            Kind::Close { ack: theirs },
            Kind::Sync { ack: theirs },
        ];
        let kind = kinds[self.below(3) as usize];
        let ahead = self.below(3);
        self.deliver(
            Route::new(SocketId(0), MEMBER),
            &packet_between((port, PORT), ours + ahead, kind, &[], b"go away"),
        );
    }

    /// A record of the other client, in the member's next packet.
    fn splice(&mut self) {
        let [(ours, port), (theirs, _)] = self.last;
        let (n, ahead) = (self.below(self.others.len() as u64) as usize, self.below(4));
        let kind = Kind::DataAck { ack: theirs };
        let bytes = packet_between((port, PORT), ours + ahead, kind, &[], &self.others[n]);
        self.deliver(Route::new(SocketId(0), MEMBER), &bytes);
    }

    /// One packet of a stranger's, or some time.
    fn step(&mut self) {
        match self.below(13) {
            0..=2 => self.come(),
            3..=9 => self.go_on(),
            10 => self.end_in_clear(),
            11 => self.splice(),
            _ => {
                let by = self.below(40);
                self.wait(Duration::from_millis(by));
            }
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
        it.strangers.push(Stranger { route, port, seq, theirs: 0, cookie: Vec::new(), place: 0 });
        let request = packet_between((port, PORT), seq, Kind::Request { service: SERVICE }, &it.asks.clone(), &[]);
        it.deliver(route, &request);
        it.wait(Duration::from_millis(1));
        let stranger = it.strangers.last().expect("it was put there");
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
