//! A client and a server on a simulated network, for tests that read like a story.
#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod hostile;

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::wire::{Builder, Checksum, Header, Kind, Packet};
use braidcast_dccp::{
    CloseReason, Connection, ConnectionId, Endpoint, Event, Options, SendError, SendOptions, ServiceCode, State,
};
use braidcast_sim::link::LinkModel;
use braidcast_sim::testing::{Seed, seed_from_env};
use braidcast_sim::{Duplex, LinkId, Network, NodeId, TapAction};
use core::time::Duration;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

pub(crate) const CLIENT: &str = "10.1.0.1:6511";
pub(crate) const SERVER: &str = "10.1.0.2:6511";
pub(crate) const PORT: u16 = 5001;
pub(crate) const SERVICE: ServiceCode = ServiceCode(0x7465_7374);

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// A link of `mbit` Mbit/s and `delay_ms`, the same in each direction.
pub(crate) fn link(mbit: u64, delay_ms: u64) -> LinkModel {
    LinkModel { rate: format!("{mbit}mbit").parse().unwrap(), delay: ms(delay_ms), ..LinkModel::default() }
}

/// The same with random loss.
pub(crate) fn lossy(mbit: u64, delay_ms: u64, loss: &str) -> LinkModel {
    LinkModel { loss: loss.parse().unwrap(), ..link(mbit, delay_ms) }
}

pub(crate) struct Pair {
    pub(crate) net: Network<Endpoint>,
    pub(crate) client: NodeId,
    pub(crate) server: NodeId,
    pub(crate) links: (LinkId, LinkId),
    pub(crate) client_id: ConnectionId,
    pub(crate) client_events: Vec<Event>,
    pub(crate) server_events: Vec<Event>,
    pub(crate) record: Recording,
    /// Says how to run it again if the test fails.
    _seed: Seed,
}

impl Pair {
    pub(crate) fn new(options: &Options, link: Duplex) -> Self {
        Self::with(options.clone(), options.clone(), link)
    }

    /// A pair whose connection is open.
    pub(crate) fn connected(options: &Options, link: Duplex) -> Self {
        let mut pair = Self::new(options, link);
        pair.connect();
        pair
    }

    pub(crate) fn connect(&mut self) {
        self.until(ms(30_000), "connect", |pair| {
            pair.client_events.contains(&Event::Connected) && pair.server_events.contains(&Event::Connected)
        });
    }

    pub(crate) fn with(client: Options, server: Options, link: Duplex) -> Self {
        Self::build(seed_from_env(1), client, server, link, [CLIENT, SERVER])
    }

    /// The same as [`new`](Self::new) with a seed of its own.
    pub(crate) fn seeded(seed: u64, options: &Options, link: Duplex) -> Self {
        Self::build(seed_from_env(seed), options.clone(), options.clone(), link, [CLIENT, SERVER])
    }

    /// Straight over IP, version 4 or 6.
    pub(crate) fn native(options: &Options, link: Duplex, addresses: [&str; 2]) -> Self {
        Self::build(seed_from_env(1), options.clone(), options.clone(), link, addresses)
    }

    fn build(seed: Seed, client: Options, server: Options, link: Duplex, addresses: [&str; 2]) -> Self {
        let mut net = Network::new(seed.get());
        let rng = Rng::from_seed(seed.get());
        let client = net.add(Endpoint::new(client, rng.stream("client")).unwrap(), [addresses[0]]);
        let server = net.add(Endpoint::new(server, rng.stream("server")).unwrap(), [addresses[1]]);
        let links = net.connect((client, 0), (server, 0), link);
        let record = Recording::default();
        record.listen(&mut net);
        let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
        let route = Route::new(SocketId(0), parse(addresses[1]));
        net.with(server, |endpoint, _| {
            endpoint.set_local_address(SocketId(0), parse(addresses[1]).ip());
            endpoint.listen(PORT, SERVICE).unwrap();
        });
        let client_id = net.with(client, |endpoint, now| {
            endpoint.set_local_address(SocketId(0), parse(addresses[0]).ip());
            endpoint.connect(now, route, 4001, PORT, SERVICE).unwrap()
        });
        let (client_events, server_events) = (vec![], vec![]);
        Self { net, client, server, links, client_id, client_events, server_events, record, _seed: seed }
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
                "{what}: not within {limit:?}; client {:?} server {:?}\n{}",
                self.client_events,
                self.server_events,
                self.record.text()
            );
            self.run(ms(1));
        }
    }

    pub(crate) fn server_id(&self) -> Option<ConnectionId> {
        self.net.node(self.server).connections().last()
    }

    pub(crate) fn on_client<R>(&mut self, f: impl FnOnce(&mut Connection, Instant) -> R) -> R {
        let id = self.client_id;
        self.net.with(self.client, |endpoint, now| f(endpoint.connection_mut(id).expect("connection"), now))
    }

    pub(crate) fn on_server<R>(&mut self, f: impl FnOnce(&mut Connection, Instant) -> R) -> R {
        let id = self.server_id().expect("the server has a connection");
        self.net.with(self.server, |endpoint, now| f(endpoint.connection_mut(id).expect("connection"), now))
    }

    pub(crate) fn client_send(&mut self, payload: &[u8]) -> Result<(), SendError> {
        self.on_client(|connection, now| connection.send(now, payload, SendOptions::default()))
    }

    pub(crate) fn server_send(&mut self, payload: &[u8]) -> Result<(), SendError> {
        self.on_server(|connection, now| connection.send(now, payload, SendOptions::default()))
    }

    pub(crate) fn client_recv(&mut self) -> Vec<Vec<u8>> {
        self.on_client(drain)
    }

    pub(crate) fn server_recv(&mut self) -> Vec<Vec<u8>> {
        if self.server_id().is_none() { Vec::new() } else { self.on_server(drain) }
    }

    /// Both ends, if they still have a connection.
    pub(crate) fn states(&self) -> (Option<State>, Option<State>) {
        let state = |node, id| {
            let state = self.net.node(node).connection(id).map(Connection::state);
            state.filter(|&state| state != State::Closed) // there for what was not read yet
        };
        (state(self.client, self.client_id), self.server_id().and_then(|id| state(self.server, id)))
    }

    /// Hands `node` a packet as if it came from the other end.
    pub(crate) fn inject(&mut self, node: NodeId, payload: &[u8]) {
        let from = if node == self.client { SERVER } else { CLIENT };
        inject(&mut self.net, node, from, payload);
    }

    /// Ends with `reason` at both ends.
    pub(crate) fn until_closed(&mut self, client: &CloseReason, server: &CloseReason) {
        self.until(ms(30_000), "close", |pair| {
            pair.client_events.contains(&Event::Closed(client.clone()))
                && pair.server_events.contains(&Event::Closed(server.clone()))
        });
    }
}

pub(crate) fn inject(net: &mut Network<Endpoint>, node: NodeId, from: &str, payload: &[u8]) {
    let route = Route::new(SocketId(0), from.parse().unwrap());
    net.with(node, |endpoint, now| endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload }));
}

fn drain(connection: &mut Connection, _: Instant) -> Vec<Vec<u8>> {
    let mut buf = Vec::new();
    core::iter::from_fn(|| connection.recv(&mut buf).then(|| core::mem::take(&mut buf))).collect()
}

/// A packet that was sent or dropped.
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
    pub(crate) fn packet(&self) -> Packet<'_> {
        let checksum = if self.from.port() == 0 { Checksum::Ip(self.from.ip(), self.to.ip()) } else { Checksum::Udp };
        Packet::parse(&self.bytes, checksum).expect("what is sent is well-formed")
    }

    pub(crate) fn name(&self) -> &'static str {
        self.packet().header.kind.name()
    }
}

/// All that the tap saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recording(Rc<RefCell<Vec<Seen>>>);

impl Recording {
    pub(crate) fn listen(&self, net: &mut Network<Endpoint>) {
        let seen = self.0.clone();
        net.set_tap(move |event| {
            let bytes = event.payload.to_vec();
            let (at, action, from, to, ecn) = (event.at, event.action, event.from, event.to, event.ecn);
            seen.borrow_mut().push(Seen { at, action, from, to, ecn, bytes });
        });
    }

    pub(crate) fn all(&self) -> Vec<Seen> {
        self.0.borrow().clone()
    }

    pub(crate) fn clear(&self) {
        self.0.borrow_mut().clear();
    }

    /// Packets sent from `address`, in order.
    pub(crate) fn sent(&self, address: &str) -> Vec<Seen> {
        let from: SocketAddr = address.parse().unwrap();
        self.0.borrow().iter().filter(|it| it.action == TapAction::Sent && it.from == from).cloned().collect()
    }

    /// The types of the packets sent from `address`.
    pub(crate) fn names(&self, address: &str) -> Vec<&'static str> {
        self.sent(address).iter().map(Seen::name).collect()
    }

    pub(crate) fn last(&self, address: &str, name: &str) -> Option<Seen> {
        self.sent(address).into_iter().rev().find(|it| it.name() == name)
    }

    pub(crate) fn text(&self) -> String {
        let seen = self.0.borrow();
        let line = |it: &Seen| format!("{:?} {} {:?} {:?}\n", it.at, it.from, it.action, it.packet().header);
        seen.iter().filter(|it| it.action == TapAction::Sent).take(60).map(line).collect()
    }
}

/// A packet from the client to the server, or back, with these options and data.
pub(crate) fn packet(by_client: bool, seq: u64, kind: Kind, options: &[u8], payload: &[u8]) -> Vec<u8> {
    packet_between(if by_client { (4001, PORT) } else { (PORT, 4001) }, seq, kind, options, payload)
}

/// A packet from the first of two ports to the second.
pub(crate) fn packet_between(ports: (u16, u16), seq: u64, kind: Kind, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let (source_port, destination_port) = ports;
    let header = Header { source_port, destination_port, ccval: 0, coverage: 0, short: false, seq, kind };
    let mut bytes = Vec::new();
    let mut builder = Builder::begin(&mut bytes, &header);
    builder.options().bytes(options);
    builder.finish(payload, Checksum::Udp);
    bytes
}

/// Messages that hold their number.
pub(crate) fn message(number: u32, len: usize) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.resize(len.max(4), number as u8);
    bytes
}

pub(crate) fn number(message: &[u8]) -> u32 {
    u32::from_be_bytes(message[..4].try_into().unwrap())
}
