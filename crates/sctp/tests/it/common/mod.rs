//! A client and a server on a simulated network, for tests that read like a story.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod hand;

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Writer};
use braidcast_sctp::wire::{self, Chunk, Header, Packet};
use braidcast_sctp::{
    Association, AssociationId, Endpoint, Event, Options, PathReport, PathState, Received, Reliability, SendError,
    SendOptions,
};
use braidcast_sim::link::LinkModel;
use braidcast_sim::testing::{Seed, seed_from_env};
use braidcast_sim::{Duplex, LinkId, Network, NodeId, TapAction};
use core::time::Duration;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

pub(crate) const CLIENT: [&str; 4] = ["10.1.0.1:9899", "10.2.0.1:9899", "10.3.0.1:9899", "10.4.0.1:9899"];
pub(crate) const SERVER: [&str; 4] = ["10.1.0.2:9899", "10.2.0.2:9899", "10.3.0.2:9899", "10.4.0.2:9899"];

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A link of `mbit` Mbit/s and `delay_ms`, the same in each direction.
pub(crate) fn link(mbit: u64, delay_ms: u64) -> LinkModel {
    LinkModel { rate: format!("{mbit}mbit").parse().unwrap(), delay: ms(delay_ms), ..LinkModel::default() }
}

/// Two endpoints with one path for each link.
pub(crate) struct Pair {
    pub(crate) net: Network<Endpoint>,
    pub(crate) client: NodeId,
    pub(crate) server: NodeId,
    pub(crate) links: Vec<(LinkId, LinkId)>,
    pub(crate) client_id: AssociationId,
    pub(crate) client_events: Vec<Event>,
    pub(crate) server_events: Vec<Event>,
    /// Says how to run it again if the test fails.
    _seed: Seed,
}

impl Pair {
    pub(crate) fn new(options: &Options, links: Vec<Duplex>) -> Self {
        Self::with(options.clone(), options.clone(), links)
    }

    /// A pair whose paths are all up.
    pub(crate) fn connected(options: &Options, links: Vec<Duplex>) -> Self {
        let mut pair = Self::new(options, links);
        pair.connect();
        pair
    }

    /// Runs until every path is active and measured at both ends.
    pub(crate) fn connect(&mut self) {
        let count = self.links.len();
        self.until(ms(15_000), "connect", |pair| {
            let active = |path: PathReport| path.state == PathState::Active && path.srtt.is_some();
            pair.server_exists()
                && pair.on_client(|association, _| association.paths().filter(|&it| active(it)).count()) == count
                && pair.on_server(|association, _| association.paths().filter(|&it| active(it)).count()) == count
        });
    }

    /// A network where the client is about to connect over all links.
    pub(crate) fn with(client_options: Options, server_options: Options, links: Vec<Duplex>) -> Self {
        let routes = links.len();
        Self::over(routes, client_options, server_options, links)
    }

    /// The same over the first `routes` links only.
    pub(crate) fn over(routes: usize, client_options: Options, server_options: Options, links: Vec<Duplex>) -> Self {
        Self::build(seed_from_env(1).get(), routes, client_options, server_options, links)
    }

    /// The same as [`new`](Self::new) with a seed of its own.
    pub(crate) fn seeded(seed: u64, options: &Options, links: Vec<Duplex>) -> Self {
        Self::build(seed, links.len(), options.clone(), options.clone(), links)
    }

    fn build(seed: u64, routes: usize, client_options: Options, server_options: Options, links: Vec<Duplex>) -> Self {
        let mut net = Network::new(seed);
        let rng = Rng::from_seed(seed);
        let port = server_options.local_port;
        let client = net
            .add(Endpoint::new(client_options, rng.stream("client")).unwrap(), CLIENT[..links.len()].iter().copied());
        let server = net
            .add(Endpoint::new(server_options, rng.stream("server")).unwrap(), SERVER[..links.len()].iter().copied());
        let links: Vec<_> = links
            .into_iter()
            .enumerate()
            .map(|(i, duplex)| net.connect((client, i as u16), (server, i as u16), duplex))
            .collect();
        net.with(server, |endpoint, _| endpoint.listen());
        let routes: Vec<_> = (0..routes).map(route).collect();
        let client_id = net.with(client, |endpoint, now| endpoint.connect(now, port, &routes).unwrap());
        Self {
            net,
            client,
            server,
            links,
            client_id,
            client_events: vec![],
            server_events: vec![],
            _seed: seed_from_env(seed),
        }
    }

    pub(crate) fn run(&mut self, duration: Duration) {
        self.net.run_for(duration);
        while let Some((_, event)) = self.net.poll_event(self.client) {
            self.client_events.push(event);
        }
        while let Some((_, event)) = self.net.poll_event(self.server) {
            self.server_events.push(event);
        }
    }

    /// Runs until `done`, at most `limit`; panics if it does not come about.
    pub(crate) fn until(&mut self, limit: Duration, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.net.now() + limit;
        while !done(self) {
            assert!(
                self.net.now() < end,
                "{what}: not within {limit:?}; client {:?} server {:?}",
                self.client_events,
                self.server_events
            );
            self.run(ms(1));
        }
    }

    pub(crate) fn now(&self) -> Instant {
        self.net.now()
    }

    pub(crate) fn on_client<R>(&mut self, f: impl FnOnce(&mut Association, Instant) -> R) -> R {
        let id = self.client_id;
        self.net.with(self.client, |endpoint, now| f(endpoint.association_mut(id).expect("association"), now))
    }

    pub(crate) fn server_exists(&self) -> bool {
        self.net.node(self.server).associations().next().is_some()
    }

    /// The client's report on the path over link `i`, if there is one.
    pub(crate) fn client_path(&mut self, i: usize) -> Option<PathReport> {
        self.on_client(|association, _| association.paths().find(|path| path.route == route(i)))
    }

    /// Records every packet from now on.
    pub(crate) fn record(&mut self) -> Recording {
        let recording = Recording::default();
        let shared = Rc::clone(&recording.0);
        self.net.set_tap(move |event| {
            let (at, action, from, to, ecn) = (event.at, event.action, event.from, event.to, event.ecn);
            shared.borrow_mut().push(Seen { at, action, from, to, ecn, bytes: event.payload.to_vec() });
        });
        recording
    }

    /// Hands the server a datagram as if it had come from `from` over its socket `socket`.
    pub(crate) fn inject_server(&mut self, socket: u16, from: &str, payload: &[u8]) {
        inject(&mut self.net, self.server, socket, from, payload);
    }

    /// Hands the client a datagram as if it had come from `from` over its socket `socket`.
    pub(crate) fn inject_client(&mut self, socket: u16, from: &str, payload: &[u8]) {
        inject(&mut self.net, self.client, socket, from, payload);
    }

    pub(crate) fn server_id(&self) -> AssociationId {
        self.net.node(self.server).associations().last().expect("the server has an association")
    }

    pub(crate) fn on_server<R>(&mut self, f: impl FnOnce(&mut Association, Instant) -> R) -> R {
        let id = self.server_id();
        self.net.with(self.server, |endpoint, now| f(endpoint.association_mut(id).expect("association"), now))
    }

    pub(crate) fn client_send(&mut self, payload: &[u8], how: SendOptions) {
        self.on_client(|association, now| association.send(now, payload, how)).unwrap();
    }

    /// All that the server has to read.
    pub(crate) fn server_recv(&mut self) -> Vec<(Received, Vec<u8>)> {
        if self.net.node(self.server).associations().next().is_none() {
            return Vec::new();
        }
        self.on_server(drain)
    }

    pub(crate) fn client_recv(&mut self) -> Vec<(Received, Vec<u8>)> {
        self.on_client(drain)
    }

    pub(crate) fn cut(&mut self, path: usize, down: bool) {
        let (there, back) = self.links[path];
        self.net.set_down(there, down);
        self.net.set_down(back, down);
    }
}

/// Sends `total` bytes in messages of `size` on stream 0, ordered; checks that they come out the same.
pub(crate) fn transfer(pair: &mut Pair, total: usize, size: usize) {
    let data = pattern(total, 7);
    let mut received = Vec::with_capacity(total);
    let mut at = 0;
    pair.until(ms(120_000), "transfer", |pair| {
        while at < data.len() {
            let chunk = &data[at..(at + size).min(data.len())];
            match pair.on_client(|association, now| association.send(now, chunk, SendOptions::default())) {
                Ok(()) => at += chunk.len(),
                Err(SendError::BufferFull { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        for (_, message) in pair.server_recv() {
            received.extend_from_slice(&message);
        }
        received.len() == data.len()
    });
    assert!(received == data, "bytes differ");
}

/// Sends messages of `size` as fast as they are taken, for `duration`, and returns how many arrived.
pub(crate) fn bulk(pair: &mut Pair, size: usize, duration: Duration) -> usize {
    let message = pattern(size, 1);
    let (end, mut received) = (pair.now() + duration, 0);
    while pair.now() < end {
        while match pair.on_client(|it, now| it.send(now, &message, SendOptions::default())) {
            Ok(()) => true,
            Err(SendError::BufferFull { .. }) => false,
            Err(error) => panic!("{error}"),
        } {}
        pair.run(ms(5));
        received += pair.server_recv().len();
    }
    received
}

/// Messages of 1000 bytes, numbered, as many as the association takes; all of them arrive intact and in order, once.
#[derive(Default)]
pub(crate) struct Flow {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Flow {
    /// Sends for `duration`.
    pub(crate) fn run(&mut self, pair: &mut Pair, duration: Duration) {
        let end = pair.now() + duration;
        while pair.now() < end {
            let mut payload = pattern(1000, self.sent);
            payload[..8].copy_from_slice(&self.sent.to_be_bytes());
            match pair.on_client(|association, now| association.send(now, &payload, SendOptions::default())) {
                Ok(()) => self.sent += 1,
                Err(SendError::BufferFull { .. }) => {}
                Err(error) => panic!("{error}"),
            }
            pair.run(ms(2));
            self.take(pair);
        }
    }

    pub(crate) fn take(&mut self, pair: &mut Pair) {
        for (_, message) in pair.server_recv() {
            assert_eq!(message[..8], self.received.to_be_bytes());
            assert_eq!(message[8..], pattern(1000, self.received)[8..]);
            self.received += 1;
        }
    }

    /// How long it takes until something arrives.
    pub(crate) fn resumes(&mut self, pair: &mut Pair) -> Duration {
        let (before, begin) = (self.received, pair.now());
        while self.received == before {
            assert!(pair.now() - begin < ms(20_000), "nothing arrives; {:?}", pair.client_events);
            self.run(pair, ms(2));
        }
        pair.now() - begin
    }

    /// Waits at most `limit` for the rest.
    pub(crate) fn finish_within(&mut self, pair: &mut Pair, limit: Duration) {
        pair.until(limit, "the rest", |pair| {
            self.take(pair);
            self.received == self.sent
        });
    }

    pub(crate) fn finish(&mut self, pair: &mut Pair) {
        self.finish_within(pair, ms(30_000));
    }
}

/// What happened to a packet.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    pub(crate) action: TapAction,
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) ecn: Ecn,
    pub(crate) bytes: Vec<u8>,
}

impl Seen {
    /// The types of its chunks.
    pub(crate) fn kinds(&self) -> Vec<u8> {
        kinds(&self.bytes)
    }

    pub(crate) fn is_from(&self, addresses: &[&str]) -> bool {
        addresses.iter().any(|text| text.parse() == Ok(self.from))
    }
}

/// The types of the chunks of a packet.
pub(crate) fn kinds(bytes: &[u8]) -> Vec<u8> {
    let Ok(packet) = Packet::parse(bytes) else { return Vec::new() };
    packet.chunks().map_while(Result::ok).map(|raw| raw.kind).collect()
}

/// All that the tap saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording(Rc<RefCell<Vec<Seen>>>);

impl Recording {
    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Packets sent from one of `addresses`, in order.
    pub(crate) fn sent(&self, addresses: &[&str]) -> Vec<Seen> {
        let seen = self.0.borrow();
        seen.iter().filter(|it| it.action == TapAction::Sent && it.is_from(addresses)).cloned().collect()
    }

    /// How many chunks of type `kind` were sent from one of `addresses`.
    pub(crate) fn count(&self, addresses: &[&str], kind: u8) -> usize {
        self.sent(addresses).iter().flat_map(Seen::kinds).filter(|&it| it == kind).count()
    }

    /// The last packet sent from one of `addresses` that has a chunk of type `kind`.
    pub(crate) fn last(&self, addresses: &[&str], kind: u8) -> Option<Vec<u8>> {
        self.sent(addresses).into_iter().rev().find(|it| it.kinds().contains(&kind)).map(|it| it.bytes)
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.borrow().clone()
    }
}

/// Hands `node` a datagram outside of all links.
pub(crate) fn inject(net: &mut Network<Endpoint>, node: NodeId, socket: u16, from: &str, payload: &[u8]) {
    let route = Route::new(SocketId(socket), from.parse().unwrap());
    net.with(node, |endpoint, now| endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload }));
}

/// A packet of these chunks, between the usual ports.
pub(crate) fn packet(verification_tag: u32, chunks: &[Chunk<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in chunks {
        chunk.emit(&mut Writer::new(&mut bytes));
    }
    raw_packet(verification_tag, &bytes)
}

/// A packet of these bytes, between the usual ports.
pub(crate) fn raw_packet(verification_tag: u32, chunks: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::begin(&mut bytes, Header { source_port: 9899, destination_port: 9899, verification_tag });
    bytes.extend_from_slice(chunks);
    wire::seal(&mut bytes);
    bytes
}

/// The verification tag of a packet.
pub(crate) fn tag(bytes: &[u8]) -> u32 {
    Packet::parse(bytes).unwrap().header.verification_tag
}

/// How to send on `stream`.
pub(crate) fn on(stream: u16, reliability: Reliability) -> SendOptions {
    SendOptions { stream, reliability, ..SendOptions::default() }
}

fn drain(association: &mut Association, now: Instant) -> Vec<(Received, Vec<u8>)> {
    let mut buf = Vec::new();
    core::iter::from_fn(|| association.recv(now, &mut buf).map(|info| (info, core::mem::take(&mut buf)))).collect()
}

/// The client's route over link `i`.
pub(crate) fn route(i: usize) -> Route {
    Route::new(SocketId(i as u16), SERVER[i].parse().unwrap())
}

/// Bytes that tell any two places apart.
pub(crate) fn pattern(len: usize, salt: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::from_seed(salt).fill(&mut bytes);
    bytes
}

/// From now on the server sees link `i`'s client at `new` and reaches it there alone.
pub(crate) fn rebind(pair: &mut Pair, i: usize, old: &str, new: &str) {
    let (there, back) = pair.links[i];
    let (client, server) = ((pair.client, i as u16), (pair.server, i as u16));
    let dead = pair.net.add_link(link(10, 15));
    pair.net.set_down(dead, true);
    pair.net.route(client, SERVER[i].parse().unwrap(), &[there], server, new.parse().unwrap());
    pair.net.route(server, new.parse().unwrap(), &[back], client, SERVER[i].parse().unwrap());
    pair.net.route(server, old.parse().unwrap(), &[dead], client, SERVER[i].parse().unwrap());
}
