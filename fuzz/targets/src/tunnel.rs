//! Any bytes as the header of a tunnel's message; then two tunnels, back to back, with applications
//! at both ends and any sequence of losses, copies, changed packets, new paths, sockets that come
//! late or never, and a client that is hostile.
//!
//! Nothing may panic, no loop may go on without end, flows are bounded. While nothing was changed
//! in flight, what comes out went in at the other end, at the port it belongs to, and comes out
//! once; in the end the tunnel still carries a datagram.

use braidcast_core::events::{EventSink, TraceEvent, Tracer};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::{
    Ccid, ConnectionId, Endpoint, Limits, Method, Options, Priority, ReorderOptions, SendOptions, ServiceCode, Wanted,
};
use braidcast_session::tunnel::{Class, FlowId, HEADER_LEN, Header, LinkId, MAX_FLOWS, Settings, Tunnel, TunnelEvent};
use core::time::Duration;
use arbitrary::{Result, Unstructured};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

const CLIENT: usize = 0;
const SERVER: usize = 1;
/// Maximum number of packets in flight to one end; what comes on top is lost.
const ON_THE_WAY: usize = 512;
/// Transmits, or timers at one instant, after which a loop counts as endless.
const ENDLESS: usize = 20_000;
const DCCP_PORT: u16 = 6511;
/// The client's paths, each with a socket of this number.
const PATHS: u16 = 3;
/// Sockets from here on are entrances, and from there on exits.
const ENTRANCES: u16 = 10;
const EXITS: u16 = 100;
/// What a hostile client's datagrams begin with; ours begin with a number that is less.
const HOSTILE: u8 = 0xff;

const SERVER_ADDR: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 1)), 9000);

fn client_addr(path: u16) -> SocketAddr {
    ([10, 0, 0, 1 + path as u8], 5000).into()
}

fn hostile_addr() -> SocketAddr {
    ([10, 0, 2, 1], 7000).into()
}

fn application(number: u16) -> SocketAddr {
    ([127, 0, 0, 1], 10_000 + number).into()
}

/// Listens to events and forgets them: what makes them runs too.
struct Listener;

impl EventSink for Listener {
    fn tell(&self, _: Instant, _: u32, event: &TraceEvent) {
        core::hint::black_box(event);
    }
}

/// Where a datagram went in.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Origin {
    /// From an application to the n-th entrance.
    Entrance(u8),
    /// From where an exit leads to.
    Answer,
    /// To an exit, from somebody who was not asked.
    Stranger,
}

struct End {
    tunnel: Tunnel,
    forwards: Vec<SocketAddr>,
    wants: VecDeque<(LinkId, FlowId, SocketAddr)>,
    /// Exits in use and where they lead to.
    exits: BTreeMap<SocketId, SocketAddr>,
    next_exit: u16,
    /// Who has sent to which entrance.
    applications: BTreeSet<(SocketId, SocketAddr)>,
    /// What is in flight to here: from where, to where.
    inbox: VecDeque<(SocketAddr, SocketAddr, Vec<u8>)>,
}

struct World {
    now: Instant,
    ends: [End; 2],
    hostile: Option<(Endpoint, ConnectionId)>,
    met_hostile: bool,
    forged: bool,
    closed: bool,
    /// Which end each datagram went in at.
    sent: Vec<(usize, Origin)>,
    came: BTreeSet<u32>,
    buf: Vec<u8>,
}

fn options(congestion: u8) -> Options {
    let ccids = match congestion & 3 {
        0 => vec![Ccid::Two],
        1 => vec![Ccid::Three],
        2 => vec![Ccid::Four, Ccid::Two],
        _ => vec![Ccid::Cubic, Ccid::Two],
    };
    Options {
        ccids,
        reorder: (congestion & 4 != 0).then_some(ReorderOptions::new(Duration::from_millis(50))),
        max_packet: 1452,
        send_queue: Limits::messages(64),
        request_timeout: Duration::from_secs(15),
        events: if congestion & 8 != 0 { Tracer::new(Arc::new(Listener)) } else { Tracer::default() },
        ..Options::default()
    }
}

impl World {
    fn new(congestion: u8, settings: u8) -> Self {
        let now = Instant::from_millis(1);
        let choice = Settings {
            lifetime: Duration::from_millis(if settings & 1 != 0 { 50 } else { 2000 }),
            wanted: Wanted { min: (settings & 2 != 0).then_some(8000.0), max: None },
            queue: Method::ALL[usize::from(settings >> 3) % Method::ALL.len()].1,
            queue_length: if settings & 1 != 0 { 4 } else { 512 },
            ..Settings::default()
        };
        // What is said of ports changes what goes first, and no more than that.
        let class = Class { priority: Priority::new(settings >> 5).ok(), lifetime: None };
        let mut ends = ["client", "server"].map(|name| {
            // The server may have fewer than the client has entrances.
            let count = if name == "server" && settings & 4 != 0 { 1 } else { 2 };
            let first = if name == "server" { 6000 } else { 5000 };
            let forwards: Vec<SocketAddr> = (0..count).map(|n| ([127, 0, 0, 1], first + n).into()).collect();
            let rng = Rng::from_seed(1).stream(name);
            let classes = [class, Class::default()];
            let exits = forwards.iter().copied().zip(classes).collect();
            let mut tunnel = Tunnel::new(options(congestion), rng, choice.clone(), exits).expect("options that work");
            (0..).zip(classes).for_each(|(n, class)| tunnel.add_entrance(SocketId(ENTRANCES + n), n as u8, class));
            End {
                tunnel,
                forwards,
                wants: VecDeque::new(),
                exits: BTreeMap::new(),
                next_exit: EXITS,
                applications: BTreeSet::new(),
                inbox: VecDeque::new(),
            }
        });
        ends[SERVER].tunnel.serve(SocketId(0), DCCP_PORT).expect("a port");
        ends[CLIENT].tunnel.dial(now, Route::new(SocketId(0), SERVER_ADDR), DCCP_PORT);
        let (sent, came, buf) = (Vec::new(), BTreeSet::new(), Vec::new());
        Self { now, ends, hostile: None, met_hostile: false, forged: false, closed: false, sent, came, buf }
    }

    /// Polls both ends dry, and the hostile client, whose path is the quickest.
    fn settle(&mut self) {
        let mut turns = 0;
        loop {
            let moved = self.poll_end(CLIENT) | self.poll_end(SERVER) | self.poll_hostile();
            if !moved {
                break;
            }
            turns += 1;
            assert!(turns < ENDLESS, "the ends never rest");
        }
        for end in &mut self.ends {
            assert!(end.tunnel.links().count() <= usize::from(PATHS) + 1, "links without end");
            assert!(end.tunnel.links().all(|(_, link)| link.flows.len() <= MAX_FLOWS), "flows without end");
        }
    }

    fn poll_end(&mut self, at: usize) -> bool {
        let mut turns = 0;
        let mut buf = std::mem::take(&mut self.buf);
        let mut to_hostile = Vec::new();
        while let Some(transmit) = self.ends[at].tunnel.poll_transmit(self.now, &mut buf) {
            turns += 1;
            assert!(turns < ENDLESS, "transmits without end");
            let Route { socket, remote } = transmit.route;
            if socket.0 >= ENTRANCES {
                assert_eq!(transmit.segment_size, None);
                self.check(at, transmit.route, &buf);
                continue;
            }
            let from = if at == SERVER { SERVER_ADDR } else { client_addr(socket.0) };
            for bytes in transmit.datagrams(&buf) {
                if remote == hostile_addr() {
                    to_hostile.push(bytes.to_vec());
                } else if self.ends[1 - at].inbox.len() < ON_THE_WAY {
                    self.ends[1 - at].inbox.push_back((from, remote, bytes.to_vec()));
                }
            }
        }
        self.buf = buf;
        if let Some((hostile, _)) = &mut self.hostile {
            let route = Route::new(SocketId(0), SERVER_ADDR);
            for payload in &to_hostile {
                hostile.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload });
            }
        }
        while let Some(event) = self.ends[at].tunnel.poll_event() {
            let end = &mut self.ends[at];
            match event {
                TunnelEvent::WantSocket(link, flow, target) => end.wants.push_back((link, flow, target)),
                TunnelEvent::FreeSocket(socket) => {
                    assert!(end.exits.remove(&socket).is_some(), "a socket given back that is not in use");
                }
                TunnelEvent::TooLong(len, limit) => assert!(len > limit),
                _ => {}
            }
        }
        turns > 0
    }

    fn poll_hostile(&mut self) -> bool {
        let Some((hostile, _)) = &mut self.hostile else { return false };
        let mut all = Vec::new();
        while let Some(transmit) = hostile.poll_transmit(self.now, &mut self.buf) {
            all.extend(transmit.datagrams(&self.buf).map(<[u8]>::to_vec));
            assert!(all.len() < ENDLESS, "transmits without end");
        }
        while hostile.poll_event().is_some() {}
        let route = Route::new(SocketId(0), hostile_addr());
        for payload in &all {
            self.ends[SERVER].tunnel.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload });
        }
        !all.is_empty()
    }

    /// A datagram comes out at `route`.
    fn check(&mut self, at: usize, route: Route, payload: &[u8]) {
        let end = &self.ends[at];
        let exit = end.exits.get(&route.socket);
        assert!(exit.is_none_or(|&target| target == route.remote), "an exit leads elsewhere");
        assert!(exit.is_some() || end.applications.contains(&(route.socket, route.remote)), "to nobody's socket");
        let id = payload.first_chunk().map(|id| u32::from_be_bytes(*id)).filter(|_| payload[0] != HOSTILE);
        let (Some(id), false) = (id, self.forged) else {
            assert!(self.forged || at == SERVER && self.met_hostile, "a datagram that nobody sent");
            return;
        };
        assert!(self.came.insert(id), "delivered twice");
        let (from, origin) = self.sent[id as usize];
        assert_eq!(from, 1 - at, "it came back");
        match origin {
            Origin::Entrance(port) => {
                assert_eq!(exit, end.forwards.get(usize::from(port)), "it came out at another port");
            }
            Origin::Answer => assert!(exit.is_none(), "an answer that comes out at an exit"),
            Origin::Stranger => panic!("a stranger was let in"),
        }
    }

    /// A datagram goes in.
    fn put(&mut self, at: usize, route: Route, origin: Origin, len: usize) {
        let mut payload = (self.sent.len() as u32).to_be_bytes().to_vec();
        payload.resize(4 + len % 1500, 7);
        self.sent.push((at, origin));
        let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &payload };
        self.ends[at].tunnel.handle_datagram(self.now, datagram);
    }

    fn application_sends(&mut self, at: usize, port: u8, number: u16, len: usize) {
        let route = Route::new(SocketId(ENTRANCES + u16::from(port)), application(number));
        self.ends[at].applications.insert((route.socket, route.remote));
        self.put(at, route, Origin::Entrance(port), len);
    }

    fn answer(&mut self, at: usize, which: usize, stranger: bool) {
        let exits = &self.ends[at].exits;
        let Some((&socket, &target)) = exits.iter().nth(which % exits.len().max(1)) else { return };
        if stranger {
            self.put(at, Route::new(socket, application(9)), Origin::Stranger, 100);
        } else {
            self.put(at, Route::new(socket, target), Origin::Answer, 100);
        }
    }

    /// Answers what asked for a socket, the oldest first.
    fn serve_wants(&mut self, at: usize, most: usize, give: bool) {
        let end = &mut self.ends[at];
        let most = most.min(end.wants.len());
        for (link, flow, target) in end.wants.drain(..most) {
            if !give || end.next_exit == u16::MAX {
                end.tunnel.refuse_flow(link, flow);
                continue;
            }
            let socket = SocketId(end.next_exit);
            end.next_exit += 1;
            end.exits.insert(socket, target);
            end.tunnel.give_socket(link, flow, socket);
        }
    }

    fn deliver(&mut self, at: usize, index: usize, keep: bool) {
        let end = &mut self.ends[at];
        let index = index % end.inbox.len().max(1);
        let packet = if keep { end.inbox.get(index).cloned() } else { end.inbox.remove(index) };
        let Some((from, to, payload)) = packet else { return };
        let socket = if at == SERVER {
            SocketId(0)
        } else {
            SocketId(u16::from(to == client_addr(1)) + 2 * u16::from(to == client_addr(2)))
        };
        let datagram = Datagram { route: Route::new(socket, from), ecn: Ecn::NotEct, payload: &payload };
        end.tunnel.handle_datagram(self.now, datagram);
        self.settle();
    }

    fn deliver_all(&mut self) {
        for _ in 0..ENDLESS {
            if self.ends.iter().all(|end| end.inbox.is_empty()) {
                return;
            }
            self.deliver(CLIENT, 0, false);
            self.deliver(SERVER, 0, false);
        }
        panic!("packets without end");
    }

    fn advance(&mut self, by: Duration) {
        if by > Duration::from_secs(1) {
            // Late, but before flows are forgotten.
            (0..2).for_each(|at| self.serve_wants(at, usize::MAX, true));
        }
        self.now += by;
        for at in 0..2 {
            let mut turns = 0;
            while self.ends[at].tunnel.poll_timeout().is_some_and(|due| due <= self.now) {
                turns += 1;
                assert!(turns < ENDLESS, "a timer that is always due at {:?}", self.now);
                self.ends[at].tunnel.handle_timeout(self.now);
                self.settle();
            }
        }
        if let Some((hostile, _)) = &mut self.hostile {
            hostile.handle_timeout(self.now);
        }
        self.settle();
    }

    fn next_timer(&mut self) {
        let due = self.ends.iter().filter_map(|end| end.tunnel.poll_timeout()).min();
        self.advance(due.map_or(Duration::ZERO, |due| due - self.now));
    }

    fn reroute(&mut self, path: Option<u16>) {
        let route = path.map(|path| Route::new(SocketId(path), SERVER_ADDR));
        self.ends[CLIENT].tunnel.reroute(self.now, route);
    }

    /// A client that says what it likes.
    fn hostile_message(&mut self, message: &[u8]) {
        let now = self.now;
        let gone = |(hostile, id): &(Endpoint, ConnectionId)| hostile.connection(*id).is_none();
        if self.hostile.as_ref().is_none_or(gone) {
            let mut hostile = Endpoint::new(options(0), Rng::from_seed(2)).expect("options that work");
            let route = Route::new(SocketId(0), SERVER_ADDR);
            let service = ServiceCode(u32::from_be_bytes(*b"BRTU"));
            let Ok(id) = hostile.connect(now, route, 0, DCCP_PORT, service) else { return };
            (self.hostile, self.met_hostile) = (Some((hostile, id)), true);
        }
        if let Some((hostile, id)) = &mut self.hostile
            && let Some(connection) = hostile.connection_mut(*id)
        {
            _ = connection.send(now, message, SendOptions::default());
        }
    }

    /// It opens flows, one after the other.
    fn hostile_flows(&mut self, first: u16, count: u16) {
        for number in 0..count {
            let flow = FlowId { ours: true, number: first.wrapping_add(number) };
            let mut message = Vec::new();
            Header::Datagram { flow, port: 0, number: 0, stamp: 0 }.emit(&mut message);
            message.extend([HOSTILE; 8]);
            self.hostile_message(&message);
            self.settle();
        }
    }

    /// Nothing was changed in flight: with a path that loses nothing, the tunnel must carry
    /// datagrams again.
    fn finish(&mut self) {
        self.hostile = None;
        self.ends.iter_mut().for_each(|end| end.inbox.clear());
        self.reroute(Some(0));
        self.settle();
        let full = |end: &End| end.tunnel.links().any(|(_, link)| link.flows.len() + 1 >= MAX_FLOWS);
        if self.ends.iter().any(full) {
            return;
        }
        for round in 0..200 {
            let id = self.sent.len() as u32;
            self.application_sends(CLIENT, 0, 0, 10);
            self.settle();
            self.deliver_all();
            self.serve_wants(SERVER, usize::MAX, true);
            self.settle();
            if self.came.range(id..).next().is_some() {
                return;
            }
            self.advance(Duration::from_millis(if round < 100 { 500 } else { 30_000 }));
            self.deliver_all();
        }
        panic!("the tunnel carries nothing any more");
    }
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    if let Ok(header) = Header::parse(bytes) {
        let mut out = Vec::new();
        header.emit(&mut out);
        let swapped = match bytes[0] {
            1 => 2,
            2 => 1,
            other => other,
        };
        // What is mine there is yours here.
        assert_eq!((out[0], &out[1..]), (swapped, &bytes[1..out.len()]));
        assert!(out.len() == if header == Header::Ping { 1 } else { HEADER_LEN });
    }
    let mut input = Unstructured::new(bytes);
    let _ = run(&mut input);
}

fn run(input: &mut Unstructured<'_>) -> Result<()> {
    let mut world = World::new(input.arbitrary()?, input.arbitrary()?);
    world.settle();
    for _ in 0..300 {
        if input.is_empty() || step(&mut world, input).is_err() {
            break;
        }
        world.settle();
    }
    if !world.forged && !world.closed {
        world.finish();
    }
    for end in &world.ends {
        for (_, link) in end.tunnel.links() {
            for flow in link.flows.values() {
                let (whole, recent) = (flow.whole(world.now), flow.recent(world.now));
                assert!(recent.received.datagrams <= whole.received.datagrams && recent.seconds <= whole.seconds);
                assert!((0.0..=1.0).contains(&whole.heard.loss()));
            }
        }
    }
    Ok(())
}

fn step(world: &mut World, input: &mut Unstructured<'_>) -> Result<()> {
    let op: u8 = input.arbitrary()?;
    let at = usize::from(op >> 7);
    match op & 31 {
        0 | 1 => world.advance(Duration::from_millis(u64::from(input.arbitrary::<u8>()?))),
        2 => world.advance(Duration::from_millis(100 * u64::from(input.arbitrary::<u8>()?))),
        3 => world.next_timer(),
        4 if input.ratio(1, 8)? => world.advance(Duration::from_secs(310)),
        5..=8 => {
            let (number, len) = (u16::from(input.arbitrary::<u8>()? & 7), usize::from(input.arbitrary::<u16>()?));
            world.application_sends(at, op >> 6 & 1, number, len);
        }
        9 | 10 => {
            let which = usize::from(input.arbitrary::<u8>()?);
            world.answer(at, which, op & 0x60 == 0x60);
        }
        11..=14 => (0..16).for_each(|_| world.deliver(at, 0, false)),
        15 | 16 => world.deliver_all(),
        17 => world.deliver(at, usize::from(input.arbitrary::<u16>()?), false),
        18 => world.deliver(at, usize::from(input.arbitrary::<u16>()?), true),
        19 => _ = world.ends[at].inbox.pop_front(),
        20 => world.ends[at].inbox.clear(),
        21..=23 => world.serve_wants(at, usize::from(input.arbitrary::<u8>()?), true),
        24 => world.serve_wants(at, 1, false),
        25 => {
            let path = input.arbitrary::<u8>()?;
            world.reroute((path & 7 != 0).then_some(u16::from(path) % PATHS));
        }
        26 => {
            let message: Vec<u8> = input.bytes(usize::from(op >> 5).min(input.len()))?.to_vec();
            let mut all = input.bytes(HEADER_LEN.min(input.len()))?.to_vec();
            // Too short to be taken for a datagram of ours.
            all.extend(message.iter().take(3));
            world.hostile_message(&all);
        }
        27 if input.ratio(1, 8)? => {
            let (first, count) = (input.arbitrary()?, input.arbitrary::<u16>()? % 1200);
            world.hostile_flows(first, count);
        }
        28 if input.ratio(1, 8)? => (0..1100).for_each(|number| world.application_sends(at, 0, 100 + number, 0)),
        29 => {
            let (index, flip) = (usize::from(input.arbitrary::<u16>()?), input.arbitrary::<u8>()?);
            if let Some((_, _, bytes)) = world.ends[at].inbox.front_mut() {
                world.forged = true;
                let index = index % bytes.len();
                bytes[index] ^= flip;
                world.deliver(at, 0, false);
            }
        }
        30 if input.ratio(1, 16)? => {
            world.closed = true;
            world.ends[at].tunnel.close(world.now);
        }
        _ => {}
    }
    Ok(())
}
