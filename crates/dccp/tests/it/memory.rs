//! No allocation per packet once things run, and little memory for a connection that rests.

use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::{
    Ccid, ConnectionId, Endpoint, Options, ReorderOptions, SecurityOptions, SendError, SendOptions, ServiceCode, State,
};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use braidcast_testing::Counting;
use core::time::Duration;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SERVICE: ServiceCode = ServiceCode(42);
const PORT: u16 = 5001;

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

fn address(host: u8) -> std::net::SocketAddr {
    std::net::SocketAddr::from(([10, 0, 0, host], 6511))
}

/// The route of the client, 1, or the server, 2.
fn route(host: u8) -> Route {
    Route::new(SocketId(0), address(3 - host))
}

impl Pipe {
    fn new(options: &Options) -> Self {
        let rng = Rng::from_seed(1);
        let mut server = Endpoint::new(options.clone(), rng.stream("server")).unwrap();
        server.listen(PORT, SERVICE).unwrap();
        let client = Endpoint::new(options.clone(), rng.stream("client")).unwrap();
        let now = Instant::from_millis(1);
        Self { client, server, now, packet: Vec::new(), message: Vec::new(), packets: 0, received: 0 }
    }

    fn connect(&mut self) -> ConnectionId {
        let id = self.client.connect(self.now, route(1), 0, PORT, SERVICE).unwrap();
        self.advance(Duration::from_millis(1));
        id
    }

    /// Goes on by `by`, from timer to timer: one that is heard late would be told to all connections.
    fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while self.now < end {
            let due = Instant::first_of([self.client.poll_timeout(), self.server.poll_timeout()]);
            self.now = due.unwrap_or(end).clamp(self.now, end);
            for endpoint in [&mut self.client, &mut self.server] {
                if endpoint.poll_timeout().is_some_and(|at| at <= self.now) {
                    endpoint.handle_timeout(self.now);
                }
            }
            self.carry();
        }
    }

    /// Carries packets in both directions, as long as there are any.
    fn carry(&mut self) {
        loop {
            let there = carry(&mut self.client, &mut self.server, self.now, &mut self.packet, 2);
            let id = self.server.connections().next();
            if let Some(connection) = id.and_then(|id| self.server.connection_mut(id)) {
                while connection.recv(&mut self.message) {
                    self.received += 1;
                }
            }
            let back = carry(&mut self.server, &mut self.client, self.now, &mut self.packet, 1);
            self.packets += there + back;
            if there + back == 0 {
                break;
            }
        }
    }

    fn send(&mut self, id: ConnectionId, payload: &[u8], count: u64) {
        let goal = self.received + count;
        let mut left = count;
        while self.received < goal {
            while left > 0 {
                match self.client.connection_mut(id).unwrap().send(self.now, payload, SendOptions::default()) {
                    Ok(()) => left -= 1,
                    Err(SendError::QueueFull { .. }) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            self.advance(Duration::from_micros(200));
        }
    }
}

/// Moves all that `from` has to the other end, and returns the number of packets.
fn carry(from: &mut Endpoint, to: &mut Endpoint, now: Instant, packet: &mut Vec<u8>, host: u8) -> u64 {
    let mut packets = 0;
    while let Some(transmit) = from.poll_transmit(now, packet) {
        for payload in transmit.datagrams(packet) {
            packets += 1;
            to.handle_datagram(now, Datagram { route: route(host), ecn: transmit.ecn, payload });
        }
    }
    while from.poll_event().is_some() {}
    packets
}

#[test]
fn a_steady_flow_allocates_nothing_for_a_packet() {
    let reorder = Some(ReorderOptions::new(Duration::from_millis(50)));
    for options in [
        Options::default(),
        Options { short_seqnos: true, ndp_count: true, ..Options::default() },
        Options { ccids: vec![Ccid::Three], reorder, ..Options::default() },
    ] {
        steady(&options);
    }
}

fn steady(options: &Options) {
    let mut pipe = Pipe::new(options);
    let id = pipe.connect();
    let payload = [7; 1000];
    // As long as the window grows, so do the buffers.
    for _ in 0..30 {
        pipe.send(id, &payload, 5000);
    }
    let (calls, packets) = (Counting::calls(), pipe.packets);
    pipe.send(id, &payload, 5000);
    let (calls, packets) = (Counting::calls() - calls, pipe.packets - packets);
    assert!(packets > 5000);
    assert_eq!(calls, 0, "for {packets} packets");
}

/// With ciphers without C, and keys that everybody knows.
fn protected(ccid: Ccid) -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::ChaCha20Poly1305 });
    let security = SecurityOptions::new(method);
    Options { ccids: vec![ccid], security: Some(security), ..Options::default() }
}

#[test]
fn nor_does_it_where_every_packet_carries_a_record() {
    for ccid in [Ccid::Two, Ccid::Three] {
        steady(&protected(ccid));
    }
}

#[test]
fn ten_thousand_idle_connections_take_less_than_200_mb_at_both_ends_together() {
    for ccid in Ccid::ALL.map(|(_, ccid)| ccid) {
        idle_connections(&Options { ccids: vec![ccid], ..Options::default() }, 10_000, 200);
    }
}

#[test]
fn three_hundred_idle_connections_with_protection_take_less_than_24_mb_at_both_ends_together() {
    // The cipher's own library, which is not counted here, keeps a kilobyte or two for each. Not more of them, as each
    // newcomer has all older connections of its peer asked for signs of life.
    idle_connections(&protected(Ccid::Two), 300, 24);
}

/// `count` connections take less than `megabytes` at both ends together.
fn idle_connections(options: &Options, count: isize, megabytes: isize) {
    let mut pipe = Pipe::new(options);
    let before = Counting::bytes();
    for _ in 0..count {
        let id = pipe.connect();
        pipe.client.connection_mut(id).unwrap().send(pipe.now, &[1; 500], SendOptions::default()).unwrap();
        pipe.advance(Duration::from_millis(500));
    }
    for _ in 0..10 {
        pipe.advance(Duration::from_secs(60));
    }
    let open = |endpoint: &Endpoint| {
        endpoint.connections().filter(|&id| endpoint.connection(id).unwrap().state() == State::Open).count()
    };
    assert_eq!((open(&pipe.client), open(&pipe.server)), (count as usize, count as usize));
    let each = (Counting::bytes() - before) / count;
    println!("{:?}: {each} bytes for a connection, both ends together", options.ccids);
    assert!(each * count < megabytes * 1_000_000, "{each} bytes each");
}

/// A flood of Requests from 10,000 addresses: connections that the server then has besides one, bytes with the answers
/// waiting, and bytes when they have left.
fn flood(options: &Options) -> (usize, isize, isize) {
    let mut pipe = Pipe::new(options);
    pipe.connect();
    let mut client = Endpoint::new(Options::default(), Rng::from_seed(9)).unwrap();
    client.connect(pipe.now, route(1), 0, PORT, SERVICE).unwrap();
    let mut request = Vec::new();
    client.poll_transmit(pipe.now, &mut request).unwrap();
    let before = Counting::bytes();
    for n in 0..10_000_u32 {
        let [_, _, a, b] = n.to_be_bytes();
        let route = Route::new(SocketId(0), std::net::SocketAddr::from(([10, 9, a, b], 6511)));
        let datagram = Datagram { route, ecn: braidcast_core::Ecn::NotEct, payload: &request };
        pipe.server.handle_datagram(pipe.now, datagram);
    }
    let waiting = Counting::bytes() - before;
    while pipe.server.poll_transmit(pipe.now, &mut request).is_some() {}
    (pipe.server.connections().count() - 1, waiting, Counting::bytes() - before)
}

#[test]
fn a_flood_of_requests_takes_no_more_memory_than_half_open_connections_may() {
    let (connections, waiting, left) = flood(&Options::default());
    println!("{left} bytes for {connections} half-open connections, {waiting} with their answers");
    assert_eq!(connections, Options::default().half_open);
    assert!(waiting < 1 << 20 && left < 1 << 20, "{waiting} bytes, {left} bytes");
    let (connections, waiting, left) = flood(&Options { half_open: 0, ..Options::default() });
    assert_eq!(connections, 0, "nothing is kept");
    assert!(waiting < 256 << 10, "{waiting} bytes in replies that nobody takes");
    assert!(left < 32 << 10, "{left} bytes");
}
