//! No allocation per packet once things run, and little memory for an association that rests.

use crate::common;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Strangers};
use braidcast_sctp::wire::chunk::{Abort, CookieEcho, IData, Redundancy};
use braidcast_sctp::wire::{Causes, Chunk, Packet};
use braidcast_sctp::{
    AssociationId, Endpoint, Event, Limits, Method, Options, QueueScope, Reliability, SecurityOptions, SendError,
    SendOptions,
};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use braidcast_testing::Counting;
use common::{packet, tag};
use core::time::Duration;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A client and a server, and their packets carried by hand in no time.
struct Pipe {
    client: Endpoint,
    server: Endpoint,
    now: Instant,
    packet: Vec<u8>,
    message: Vec<u8>,
    packets: u64,
    received: u64,
}

impl Pipe {
    fn new(options: &Options) -> Self {
        let rng = Rng::from_seed(1);
        let mut server = Endpoint::new(options.clone(), rng.stream("server")).unwrap();
        server.listen();
        let client = Endpoint::new(options.clone(), rng.stream("client")).unwrap();
        let now = Instant::from_millis(1);
        Self { client, server, now, packet: Vec::new(), message: Vec::new(), packets: 0, received: 0 }
    }

    /// Connects from this socket; the server sees each at an address of its own.
    fn connect(&mut self, socket: u16) -> AssociationId {
        let route = Route::new(SocketId(socket), address(2, 9899));
        let id = self.client.connect(self.now, 9899, &[route]).unwrap();
        self.advance(Duration::from_millis(1));
        id
    }

    /// The client's congestion window.
    fn window(&self, id: AssociationId) -> usize {
        self.client.association(id).unwrap().paths().map(|path| path.cwnd).sum()
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        for endpoint in [&mut self.client, &mut self.server] {
            if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                endpoint.handle_timeout(self.now);
            }
        }
        loop {
            let there = carry(&mut self.client, &mut self.server, self.now, &mut self.packet, true);
            self.read();
            let back = carry(&mut self.server, &mut self.client, self.now, &mut self.packet, false);
            self.packets += there + back;
            if there + back == 0 {
                break;
            }
        }
    }

    /// Takes what the server's first association has received.
    fn read(&mut self) {
        let id = self.server.associations().next();
        let Some(association) = id.and_then(|id| self.server.association_mut(id)) else { return };
        while association.recv(self.now, &mut self.message).is_some() {
            self.received += 1;
        }
    }

    /// Sends `count` messages like `payload`, as fast as they fit.
    fn send(&mut self, id: AssociationId, payload: &[u8], how: SendOptions, count: u64) {
        let goal = self.received + count;
        let mut left = count;
        while self.received < goal {
            while left > 0 {
                match self.client.association_mut(id).unwrap().send(self.now, payload, how) {
                    Ok(()) => left -= 1,
                    Err(SendError::BufferFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            self.advance(Duration::from_micros(200));
        }
    }
}

/// Moves all that `from` has for `to`, and returns the number of packets.
fn carry(from: &mut Endpoint, to: &mut Endpoint, now: Instant, packet: &mut Vec<u8>, by_client: bool) -> u64 {
    let mut packets = 0;
    while let Some(transmit) = from.poll_transmit(now, packet) {
        let route = if by_client {
            Route::new(SocketId(0), address(1, 10_000 + transmit.route.socket.0))
        } else {
            Route::new(SocketId(transmit.route.remote.port() - 10_000), address(2, 9899))
        };
        for payload in transmit.datagrams(packet) {
            packets += 1;
            to.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload });
        }
    }
    while from.poll_event().is_some() {}
    packets
}

fn address(host: u8, port: u16) -> std::net::SocketAddr {
    std::net::SocketAddr::from(([10, 0, 0, host], port))
}

#[test]
fn a_steady_path_allocates_nothing_for_a_packet() {
    steady(&Options::default());
}

#[test]
fn nor_does_it_with_redundancy_as_long_as_nothing_is_lost() {
    for code in ["block:10,8", "convolutional:10,9,20", "tetrys:10,9,200"] {
        steady(&Options::default().with(|it| it.redundancy.fec = Some(code.parse().unwrap())));
    }
}

#[test]
fn nor_does_it_where_every_packet_is_sealed() {
    steady(&protected());
}

/// With ciphers without C, and keys that everybody knows.
fn protected() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::ChaCha20Poly1305 });
    Options::default().with(|it| it.security = Some(SecurityOptions::new(method)))
}

fn steady(options: &Options) {
    for interleaving in [true, false] {
        for (len, unordered) in [(1200, false), (1200, true), (20_000, false), (20_000, true), (100, false)] {
            // A send buffer that is full all the time, with no more messages than buffers are kept for (256).
            let options = options.clone().with(|it| {
                it.interleaving = interleaving;
                it.limits.send_buffer = 200_000.min(200 * len);
                it.limits.max_message = it.limits.send_buffer;
            });
            let mut pipe = Pipe::new(&options);
            let id = pipe.connect(0);
            let payload = common::pattern(len, 1);
            let how = SendOptions { unordered, ..SendOptions::default() };
            let count = (4_000_000 / len as u64).min(5000);
            // As long as the window grows, each burst is the largest so far.
            while pipe.window(id) < options.limits.send_buffer {
                pipe.send(id, &payload, how, count);
            }
            // Storage of redundancy goes from one chunk to the next, and so comes to hold the largest.
            for _ in 0..if options.redundancy.fec.is_some() { 4 } else { 1 } {
                pipe.send(id, &payload, how, count);
            }
            let (calls, packets) = (Counting::calls(), pipe.packets);
            pipe.send(id, &payload, how, count);
            let (calls, packets) = (Counting::calls() - calls, pipe.packets - packets);
            assert!(packets > 200);
            assert_eq!(calls, 0, "for {packets} packets; {len} bytes, unordered {unordered}, I-DATA {interleaving}");
        }
    }
}

#[test]
fn a_queue_of_any_method_allocates_nothing_for_a_message() {
    for (name, method) in Method::ALL {
        for queue_scope in [QueueScope::Alone, QueueScope::Under] {
            let send_queue = Limits::messages(40);
            let options = Options::default().with(|it| {
                it.queue.method = Some(method);
                it.queue.scope = queue_scope;
                it.queue.limits = send_queue;
                it.limits.send_buffer = 160_000;
                it.limits.max_message = 160_000;
            });
            let mut pipe = Pipe::new(&options);
            let id = pipe.connect(0);
            let payload = common::pattern(1200, 1);
            let lifetime = Reliability::Lifetime(Duration::from_secs(60));
            let how = SendOptions { unordered: true, reliability: lifetime, ..SendOptions::default() };
            let mut round = |count| {
                for _ in 0..count {
                    while pipe.client.association(id).unwrap().send_room() >= payload.len() {
                        pipe.client.association_mut(id).unwrap().send(pipe.now, &payload, how).unwrap();
                    }
                    pipe.advance(Duration::from_micros(200));
                }
                pipe.packets
            };
            round(3000);
            let (calls, before) = (Counting::calls(), round(0));
            let packets = round(500) - before;
            assert!(packets > 500, "{packets}");
            assert_eq!(Counting::calls() - calls, 0, "{name} {queue_scope}: for {packets} packets");
        }
    }
}

/// Bytes that one of 100 associations holds, both ends together.
fn idle_bytes(options: &Options, message: Option<usize>) -> isize {
    const COUNT: u16 = 100;
    let mut pipe = Pipe::new(options);
    let before = Counting::bytes();
    for socket in 0..COUNT {
        let id = pipe.connect(socket);
        if let Some(len) = message {
            let payload = vec![1; len];
            pipe.client.association_mut(id).unwrap().send(pipe.now, &payload, SendOptions::default()).unwrap();
        }
        for _ in 0..50 {
            pipe.advance(Duration::from_millis(20));
        }
        let ids: Vec<_> = pipe.server.associations().collect();
        for id in ids {
            let mut buf = Vec::new();
            while pipe.server.association_mut(id).unwrap().recv(pipe.now, &mut buf).is_some() {}
        }
    }
    for _ in 0..100 {
        pipe.advance(Duration::from_secs(1));
    }
    assert_eq!(pipe.server.associations().count(), usize::from(COUNT));
    (Counting::bytes() - before) / isize::from(COUNT as i16)
}

#[test]
fn an_idle_association_takes_less_than_64_kib_at_both_ends_together() {
    let fresh = idle_bytes(&Options::default(), None);
    assert!(fresh < 64 << 10, "{fresh} bytes");
    let used = idle_bytes(&Options::default(), Some(1000));
    assert!(used < 64 << 10, "{used} bytes after a message");
    let fresh = idle_bytes(&Options::default().with(|it| it.redundancy.fec_receive = true), None);
    assert!(fresh < 64 << 10, "{fresh} bytes with redundancy");
    // So 10,000 of them at one end take less than 640 MB, besides what the cipher's own library
    // keeps: a kilobyte or two.
    let fresh = idle_bytes(&protected(), Some(1000));
    assert!(fresh < 64 << 10, "{fresh} bytes with protection");
}

/// What redundancy waits with is bounded, whatever it says.
#[test]
fn a_flood_of_redundancy_takes_no_more_than_the_receive_buffer() {
    let options = Options::default().with(|it| {
        it.redundancy.fec_receive = true;
        it.limits.receive_buffer = 300_000;
        it.limits.max_message = 100_000;
    });
    let mut pipe = Pipe::new(&options);
    let id = pipe.connect(0);
    let (mut first, mut packet) = (None, Vec::new());
    pipe.client.association_mut(id).unwrap().send(pipe.now, b"first", SendOptions::default()).unwrap();
    while let Some(transmit) = pipe.client.poll_transmit(pipe.now, &mut packet) {
        let _ = transmit;
        first = Some(packet.clone());
    }
    let first = first.unwrap();
    let tag = common::tag(&first);
    let tsn = u32::from_be_bytes(first[16..20].try_into().unwrap());
    let route = Route::new(SocketId(0), address(1, 10_000));
    let before = Counting::bytes();
    let coded = common::pattern(1400, 1);
    for n in 0..20_000_u16 {
        // Two chunks that never come, so that nothing can be solved; other ones each time.
        let (first_tsn, count) = (tsn.wrapping_add(u32::from(n % 900)), 2 + n / 900);
        let covered = [0xff; 4];
        let rule = Redundancy::RANDOM;
        let covered = &covered[..usize::from(count.div_ceil(8))];
        let chunk = Redundancy { rule, first_tsn, count, key: n, covered, coded: &coded };
        let payload = &common::packet(tag, &[Chunk::Redundancy(chunk)]);
        pipe.server.handle_datagram(pipe.now, Datagram { route, ecn: Ecn::NotEct, payload });
    }
    let held = Counting::bytes() - before;
    assert!(held > 50_000, "{held} bytes: something waits");
    assert!(held < 300_000, "{held} bytes");
}

#[test]
fn a_flood_of_inits_takes_no_memory() {
    let mut pipe = Pipe::new(&Options::default());
    pipe.connect(0);
    let mut client = Endpoint::new(Options::default(), Rng::from_seed(9)).unwrap();
    let mut init = Vec::new();
    client.connect(pipe.now, 9899, &[Route::new(SocketId(0), address(2, 9899))]).unwrap();
    client.handle_timeout(pipe.now);
    client.poll_transmit(pipe.now, &mut init).unwrap();
    let before = Counting::bytes();
    for n in 0..10_000_u32 {
        let [_, _, a, b] = n.to_be_bytes();
        let route = Route::new(SocketId(0), std::net::SocketAddr::from(([10, 9, a, b], 9899)));
        pipe.server.handle_datagram(pipe.now, Datagram { route, ecn: Ecn::NotEct, payload: &init });
    }
    let waiting = Counting::bytes() - before;
    assert!(waiting < 256 << 10, "{waiting} bytes in replies that nobody takes");
    while pipe.server.poll_transmit(pipe.now, &mut init).is_some() {}
    let left = Counting::bytes() - before;
    assert!(left < 32 << 10, "{left} bytes");
}

/// Somebody without a key: what it knows of its association, if it has one.
struct Stranger {
    route: Route,
    peer_tag: u32,
    tsn: u32,
    cookie: Vec<u8>,
}

/// A listener with one member, and strangers who send what they like.
struct Besieged {
    pipe: Pipe,
    member: AssociationId,
    /// The member's tags, to the server and to the client.
    tags: (u32, u32),
    init: Vec<u8>,
    strangers: Vec<Stranger>,
    /// What the server sent to `COMER`.
    to_comer: Vec<Vec<u8>>,
    rng: Rng,
}

/// Where one more client is.
const COMER: u8 = 3;

impl Besieged {
    fn new(seed: u64) -> Self {
        let mut pipe = Pipe::new(&protected());
        let route = Route::new(SocketId(0), address(2, 9899));
        let member = pipe.client.connect(pipe.now, 9899, &[route]).unwrap();
        let mut init = Vec::new();
        pipe.client.handle_timeout(pipe.now);
        pipe.client.poll_transmit(pipe.now, &mut init).unwrap();
        pipe.deliver(&init, Route::new(SocketId(0), address(1, 10_000)));
        pipe.advance(Duration::from_millis(1));
        pipe.advance(Duration::from_millis(300));
        let (strangers, to_comer, rng) = (Vec::new(), Vec::new(), Rng::from_seed(seed));
        let mut it = Self { pipe, member, tags: (0, 0), init, strangers, to_comer, rng };
        it.exchange();
        it
    }

    /// The member sends a message, which arrives. Returns the tags of both directions.
    fn exchange(&mut self) -> (u32, u32) {
        let received = self.pipe.received;
        let (now, member) = (self.pipe.now, self.member);
        let association = self.pipe.client.association_mut(member).expect("the member is there");
        association.send(now, &[1; 700], SendOptions::default()).expect("room");
        self.carry();
        self.pipe.read();
        assert_eq!(self.pipe.received, received + 1, "the member's message arrives");
        self.tags
    }

    /// Carries all packets of both ends; those to strangers get to them.
    fn carry(&mut self) {
        let (now, mut buf) = (self.pipe.now, Vec::new());
        loop {
            let mut any = false;
            while let Some(transmit) = self.pipe.client.poll_transmit(now, &mut buf) {
                any = true;
                for payload in transmit.datagrams(&buf) {
                    self.tags.0 = tag(payload);
                    self.pipe.deliver(payload, Route::new(SocketId(0), address(1, 10_000)));
                }
            }
            while let Some(transmit) = self.pipe.server.poll_transmit(now, &mut buf) {
                any = true;
                for payload in transmit.datagrams(&buf) {
                    if transmit.route.remote == address(1, 10_000) {
                        self.tags.1 = tag(payload);
                        let route = Route::new(SocketId(0), address(2, 9899));
                        self.pipe.client.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload });
                    }
                    if transmit.route.remote == address(COMER, 9899) {
                        self.to_comer.push(payload.to_vec());
                    }
                    self.answered(transmit.route, payload);
                }
            }
            while self.pipe.server.poll_event().is_some() {}
            if !any {
                return;
            }
        }
    }

    /// The server sent a stranger this.
    fn answered(&mut self, route: Route, packet: &[u8]) {
        let Ok(read) = Packet::parse(packet) else { return };
        let Some(Ok(Chunk::InitAck(ack))) = read.chunks().next().and_then(Result::ok).map(Chunk::parse) else { return };
        let cookie = ack.parameters.iter().flatten().find(|raw| raw.kind == 7).map(|raw| raw.value.to_vec());
        if let Some(stranger) = self.strangers.iter_mut().find(|stranger| stranger.route == route) {
            stranger.peer_tag = ack.initiate_tag;
            stranger.cookie = cookie.unwrap_or_default();
        }
    }

    fn below(&mut self, most: u64) -> u64 {
        self.rng.below(most)
    }

    /// One packet of a stranger's, or some time.
    fn step(&mut self) {
        let networks = 1 + self.below(400);
        match self.below(12) {
            0..=2 => {
                // INIT, perhaps from the member's address.
                let (network, host) = (self.below(networks) as u16, self.below(60_000) as u16);
                let remote = if self.below(20) == 0 { address(1, 10_000) } else { far(network, 1000 + host % 60_000) };
                let (tag, route) = (self.rng.u32() | 1, Route::new(SocketId(0), remote));
                let mut init = self.init.clone();
                init[16..20].copy_from_slice(&tag.to_be_bytes());
                braidcast_sctp::wire::seal(&mut init);
                let tsn = u32::from_be_bytes(init[28..32].try_into().unwrap());
                self.strangers.retain(|stranger| stranger.route != route);
                if self.strangers.len() > 3000 {
                    self.strangers.remove(0);
                }
                self.strangers.push(Stranger { route, peer_tag: 0, tsn, cookie: Vec::new() });
                self.pipe.deliver(&init, route);
            }
            3..=5 if !self.strangers.is_empty() => {
                let (of, from) = (self.any(), self.any());
                let chunk = Chunk::CookieEcho(CookieEcho { cookie: &self.strangers[of].cookie.clone() });
                let own = self.below(8) > 0;
                let route = self.strangers[if own { of } else { from }].route;
                let bytes = packet(self.strangers[of].peer_tag, &[chunk]);
                self.pipe.deliver(&bytes, route);
            }
            6..=9 if !self.strangers.is_empty() => {
                // Data that is ahead, large, of any identifier; key messages that never end.
                let of = self.any();
                let ppid = if self.below(3) == 0 { 7 } else { 4242 };
                let (ahead, first, last) = (self.below(40) as u32, self.below(2) == 0, self.below(4) == 0);
                let stranger = &mut self.strangers[of];
                stranger.tsn = stranger.tsn.wrapping_add(1);
                let data = IData {
                    tsn: stranger.tsn.wrapping_add(ahead),
                    stream: 0,
                    mid: ahead % 3,
                    ppid,
                    fsn: if first { 0 } else { ahead },
                    first,
                    last,
                    unordered: false,
                    immediate: false,
                    timed: false,
                    payload: &[9; 1300],
                };
                let bytes = packet(stranger.peer_tag, &[Chunk::IData(data)]);
                let route = stranger.route;
                self.pipe.deliver(&bytes, route);
            }
            10 => {
                // Ends in clear, with the member's tags and from its address.
                let reflected = self.below(2) == 0;
                let tag = if reflected { self.tags.1 } else { self.tags.0 };
                let abort = Chunk::Abort(Abort { reflected, causes: Causes::new(&[]) });
                self.pipe.deliver(&packet(tag, &[abort]), Route::new(SocketId(0), address(1, 10_000)));
            }
            _ => {
                let by = self.below(40);
                self.pipe.now += Duration::from_millis(by);
                if self.pipe.server.poll_timeout().is_some_and(|at| at <= self.pipe.now) {
                    self.pipe.server.handle_timeout(self.pipe.now);
                }
                if self.pipe.client.poll_timeout().is_some_and(|at| at <= self.pipe.now) {
                    self.pipe.client.handle_timeout(self.pipe.now);
                }
            }
        }
        if self.below(4) == 0 {
            self.exchange();
        }
        self.carry();
    }

    fn any(&mut self) -> usize {
        self.below(self.strangers.len() as u64) as usize
    }
}

/// An address in a network of its own.
fn far(network: u16, port: u16) -> std::net::SocketAddr {
    let [high, low] = network.to_be_bytes();
    std::net::SocketAddr::from(([172, high, low, 1], port))
}

impl Pipe {
    fn deliver(&mut self, payload: &[u8], route: Route) {
        self.server.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload });
    }
}

/// Whatever strangers send, no member's association is touched, and what they have this end keep
/// stays below what is stated.
#[test]
fn strangers_touch_no_member_and_fill_no_memory() {
    const MOST: isize = (Strangers::<u32>::PLACES * Strangers::<u32>::EACH) as isize;
    for seed in 0..3 {
        let mut it = Besieged::new(seed);
        let (before, mut most) = (Counting::bytes(), 0);
        for _ in 0..12_000 {
            it.step();
            most = most.max(Counting::bytes() - before);
        }
        assert!(most < MOST, "{most} bytes, and {MOST} are stated");
        let count = it.pipe.server.associations().count();
        assert!((20..=Strangers::<u32>::PLACES + 1).contains(&count), "{count} associations");
        let each = most as usize / count;
        assert!(each < Strangers::<u32>::EACH, "{each} bytes each");
        it.exchange();
        while let Some((id, event)) = it.pipe.client.poll_event() {
            assert!(!matches!(event, Event::Closed(_)), "{id:?} {event:?}");
        }
    }
}

/// All places are held by one network, which renews what expires: a member comes in all the same (S2).
#[test]
fn one_network_that_holds_all_places_keeps_nobody_out() {
    let mut it = Besieged::new(9);
    let mut comer = Endpoint::new(protected(), Rng::from_seed(3)).unwrap();
    let (server, here) = (Route::new(SocketId(0), address(2, 9899)), Route::new(SocketId(0), address(COMER, 9899)));
    let (mut begun, mut connected, mut buf) = (None, None, Vec::new());
    for n in 0..6000_u16 {
        let route = Route::new(SocketId(0), far(7, 2000 + n));
        it.strangers.push(Stranger { route, peer_tag: 0, tsn: 0, cookie: Vec::new() });
        it.pipe.deliver(&it.init.clone(), route);
        it.carry();
        let Stranger { peer_tag, cookie, .. } = it.strangers.pop().unwrap();
        it.pipe.deliver(&packet(peer_tag, &[Chunk::CookieEcho(CookieEcho { cookie: &cookie })]), route);
        it.pipe.now += Duration::from_millis(1);
        if n == 3000 {
            let there = it.pipe.server.associations().count();
            assert!(there >= Strangers::<u32>::PLACES, "{there} places are taken");
            comer.connect(it.pipe.now, 9899, &[server]).unwrap();
            begun = Some(it.pipe.now);
        }
        let now = it.pipe.now;
        for end in [&mut it.pipe.server, &mut it.pipe.client, &mut comer] {
            if end.poll_timeout().is_some_and(|at| at <= now) {
                end.handle_timeout(now);
            }
        }
        while let Some(transmit) = comer.poll_transmit(now, &mut buf) {
            transmit.datagrams(&buf).for_each(|payload| it.pipe.deliver(payload, here));
        }
        it.carry();
        for payload in it.to_comer.drain(..) {
            comer.handle_datagram(now, Datagram { route: server, ecn: Ecn::NotEct, payload: &payload });
        }
        while let Some((_, event)) = comer.poll_event() {
            assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            connected = connected.or((event == Event::Connected).then_some(now));
        }
    }
    let took = connected.zip(begun).map(|(at, begun)| at.since(begun));
    assert!(took.is_some_and(|it| it < Duration::from_secs(3)), "{took:?}");
    it.exchange();
}
