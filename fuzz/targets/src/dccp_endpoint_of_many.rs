//! `endpoint_of_many` for DCCP: one endpoint with members, who have keys, and strangers, who have none.
//!
//! Those ask, bring cookies back from where they got them and from elsewhere, send any packet with their own numbers
//! and with a member's, and repeat and change what members send, from a member's address and from their own. Some
//! of what members send gets lost.
//!
//! Nothing may panic, no loop may go on without end. No member's connection may end or begin anew, and nothing may
//! be delivered twice. Nobody whose address is not proved may be sent more than three times what came from
//! there. There are no more strangers than they have places. When they are gone, members still send, and one more
//! gets in.

use crate::many::{Accounts, ENDLESS, Last, MEMBERS, member_at, stranger_at, tick};
use arbitrary::{Result, Unstructured};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Strangers, Writer};
use braidcast_dccp::wire::{Builder, Checksum, Header, Kind, Packet, Reset, ResetCode, ServiceCode, option};
use braidcast_dccp::{ConnectionId, Endpoint, Event, Options, SecurityOptions, SendOptions};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use core::time::Duration;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// Packets of a member's that get lost with no message in between that arrives. Each may take a timeout, and these
/// double (RFC 4341 §5): a network that loses all is none after which a flow goes on within seconds.
const MOST_LOST: u8 = 3;
const PORT: u16 = 7;
const SERVICE: ServiceCode = ServiceCode(1);
const SERVER: Route =
    Route::new(SocketId(0), SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 6511)));
const NUMBERS: u64 = (1 << 48) - 1;

struct Member {
    endpoint: Endpoint,
    id: ConnectionId,
    address: SocketAddr,
    sent: u32,
    /// The numbers of what arrived.
    received: BTreeSet<u32>,
    connected: bool,
    /// Numbers of the last packets to the server, and to the member.
    numbers: [u64; 2],
    port: u16,
    last: Last,
    /// Packets to the server that get lost, and that were lost since a message of its arrived.
    to_lose: u8,
    lost: u8,
}

struct Stranger {
    address: SocketAddr,
    port: u16,
    seq: u64,
    /// The last number that the server sent it.
    theirs: u64,
    /// The Init Cookie options of the Response, as they are.
    cookie: Vec<u8>,
    answered: bool,
}

struct World {
    now: Instant,
    server: Endpoint,
    members: Vec<Member>,
    /// The server's connections with those who are there from the beginning.
    theirs: Vec<ConnectionId>,
    strangers: Vec<Stranger>,
    accounts: Accounts,
    /// Options of a member's Request.
    asks: Vec<u8>,
    most: usize,
    buf: Vec<u8>,
}

fn options() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    Options { security: Some(SecurityOptions::new(method)), ..Options::default() }
}

/// The Init Cookie options of a packet, as they are.
fn cookies(packet: &Packet<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let cookies = packet.options.iter().flatten().filter(|it| it.raw.kind == option::kind::INIT_COOKIE);
    cookies.for_each(|it| it.raw.emit(&mut Writer::new(&mut bytes)));
    bytes
}

fn packet(ports: (u16, u16), seq: u64, kind: Kind, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let (source_port, destination_port) = ports;
    let seq = seq & NUMBERS;
    let header = Header { source_port, destination_port, ccval: 0, coverage: 0, short: false, seq, kind };
    let mut bytes = Vec::new();
    let mut builder = Builder::begin(&mut bytes, &header);
    builder.options().bytes(options);
    builder.finish(payload, Checksum::Udp);
    bytes
}

/// Any kind of packet that acknowledges `ack`.
fn any_kind(input: &mut Unstructured<'_>, ack: u64) -> Result<Kind> {
    let ack = ack & NUMBERS;
    let reset = Reset::new(ResetCode(input.arbitrary::<u8>()? % 16));
    Ok(match input.arbitrary::<u8>()? % 12 {
        0 => Kind::Request { service: SERVICE },
        1 => Kind::Response { ack, service: SERVICE },
        2 => Kind::Data,
        3 => Kind::Ack { ack },
        4..=6 => Kind::DataAck { ack },
        7 => Kind::CloseReq { ack },
        8 => Kind::Close { ack },
        9 => Kind::Reset { ack, reset },
        10 => Kind::Sync { ack },
        _ => Kind::SyncAck { ack },
    })
}

fn some_bytes<'a>(input: &mut Unstructured<'a>) -> Result<&'a [u8]> {
    let len = usize::from(input.arbitrary::<u8>()? >> 2).min(input.len());
    input.bytes(len)
}

impl World {
    fn new() -> Self {
        let mut server = Endpoint::new(options(), Rng::from_seed(1)).expect("options that are possible");
        server.listen(PORT, SERVICE).expect("a port");
        let (now, most) = (Instant::from_millis(1000), Strangers::<u32>::PLACES + options().half_open);
        let (members, strangers, accounts) = (Vec::new(), Vec::new(), Accounts::default());
        let (theirs, asks, buf) = (Vec::new(), Vec::new(), Vec::new());
        let mut it = Self { now, server, members, theirs, strangers, accounts, asks, most, buf };
        (0..MEMBERS).for_each(|_| it.join());
        it.run(4);
        assert!(it.members.iter().all(|member| member.connected), "nobody disturbs them");
        it.theirs = it.server.connections().collect();
        it
    }

    fn join(&mut self) {
        let n = self.members.len();
        let mut endpoint = Endpoint::new(options(), Rng::from_seed(100 + n as u64)).expect("options that are possible");
        let port = 100 + n as u16;
        let id = endpoint.connect(self.now, SERVER, port, PORT, SERVICE).expect("nothing is in the way");
        let address = member_at(n, 6511);
        self.accounts.prove(address);
        let (connected, numbers, last, to_lose, lost) = (false, [0; 2], Last::default(), 0, 0);
        let (sent, received) = (0, BTreeSet::new());
        self.members.push(Member { endpoint, id, address, sent, received, connected, numbers, port, last, to_lose, lost });
        self.carry();
    }

    /// Steps of 50 ms.
    fn run(&mut self, steps: usize) {
        (0..steps).for_each(|_| self.wait(Duration::from_millis(50)));
    }

    fn wait(&mut self, by: Duration) {
        self.now += by;
        tick(self.members.iter_mut().map(|it| &mut it.endpoint).chain([&mut self.server]), self.now);
        self.carry();
    }

    /// Carries all packets; those to strangers get to them.
    fn carry(&mut self) {
        let (now, mut buf, mut left) = (self.now, core::mem::take(&mut self.buf), ENDLESS);
        loop {
            let mut any = false;
            for member in &mut self.members {
                while let Some(transmit) = member.endpoint.poll_transmit(now, &mut buf) {
                    any = true;
                    for payload in transmit.datagrams(&buf) {
                        left = left.checked_sub(1).expect("a loop without end");
                        let packet = Packet::parse(payload, Checksum::Udp).expect("what is sent is well-formed");
                        member.numbers[0] = packet.header.seq;
                        if self.asks.is_empty() {
                            self.asks = packet.options.as_bytes().to_vec();
                        }
                        member.last.push(payload);
                        if member.to_lose > 0 && member.lost < MOST_LOST {
                            (member.to_lose, member.lost) = (member.to_lose - 1, member.lost + 1);
                            continue;
                        }
                        let route = Route::new(SocketId(0), member.address);
                        self.server.handle_datagram(now, Datagram { route, ecn: transmit.ecn, payload });
                    }
                }
                while let Some((id, event)) = member.endpoint.poll_event() {
                    assert!(!matches!(event, Event::Closed(_)), "{id:?} {event:?}");
                    member.connected |= event == Event::Connected;
                }
            }
            while let Some(transmit) = self.server.poll_transmit(now, &mut buf) {
                any = true;
                for payload in transmit.datagrams(&buf) {
                    left = left.checked_sub(1).expect("a loop without end");
                    self.arrive(transmit.route.remote, payload);
                }
            }
            if !any {
                break;
            }
        }
        self.buf = buf;
        self.read();
    }

    /// The server sent this there.
    fn arrive(&mut self, to: SocketAddr, payload: &[u8]) {
        let packet = Packet::parse(payload, Checksum::Udp).expect("what is sent is well-formed");
        let port = packet.header.destination_port;
        if let Some(member) = self.members.iter_mut().find(|it| it.address == to && it.port == port) {
            member.numbers[1] = packet.header.seq;
            member.endpoint.handle_datagram(self.now, Datagram { route: SERVER, ecn: Ecn::NotEct, payload });
        }
        self.accounts.sent(to, payload);
        let its = |it: &&mut Stranger| it.address == to && it.port == port;
        if let Some(stranger) = self.strangers.iter_mut().rev().find(its) {
            stranger.theirs = packet.header.seq;
            match packet.header.kind {
                Kind::Response { .. } => (stranger.cookie, stranger.answered) = (cookies(&packet), true),
                // Whoever asked twice may have had the Response before, and this has its connection's number too.
                Kind::Sync { .. } => stranger.answered = true,
                _ => {}
            }
        }
    }

    /// Takes what arrived at the server.
    fn read(&mut self) {
        let mut message = Vec::new();
        while let Some((id, event)) = self.server.poll_event() {
            assert!(!(matches!(event, Event::Closed(_)) && self.theirs.contains(&id)), "{event:?}");
            while self.server.connection_mut(id).is_some_and(|it| it.recv(&mut message)) {
                let number = u32::from_be_bytes(message[..4].try_into().expect("a member's message"));
                let (who, number) = (number as usize >> 24, number & 0xFF_FFFF);
                assert!(self.members[who].received.insert(number), "nothing twice");
                self.members[who].lost = 0;
            }
        }
        while self.server.poll_turned_away().is_some() {}
        let there = self.server.connections().count();
        assert!(there <= self.most + self.members.len(), "{there} connections");
    }

    fn say(&mut self, who: usize) {
        let (now, member) = (self.now, &mut self.members[who]);
        let connection = member.endpoint.connection_mut(member.id).expect("its connection is there");
        let mut message = ((who as u32) << 24 | member.sent).to_be_bytes().to_vec();
        message.resize(600, 7);
        if connection.send(now, &message, SendOptions::default()).is_ok() {
            member.sent += 1;
        }
    }

    fn deliver(&mut self, from: SocketAddr, payload: &[u8]) {
        self.accounts.came(from, payload);
        let route = Route::new(SocketId(0), from);
        self.server.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload });
    }

    /// One packet of a stranger's, something of a member's, or some time.
    fn step(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        let what: u8 = input.arbitrary()?;
        let (who, n) = (usize::from(what >> 4) % self.members.len(), usize::from(input.arbitrary::<u8>()?));
        let some =
            if self.strangers.is_empty() { None } else { Some(self.strangers.len() - 1 - n % self.strangers.len()) };
        match (what % 16, some) {
            (0 | 1, _) => self.say(who),
            (2, _) => self.wait(Duration::from_millis(4 * n as u64)),
            (3..=6, _) => self.come(input, what, n)?,
            (7..=11, Some(of)) => self.go_on(input, what, of)?,
            (12 | 13, _) => self.forge(input, who, n)?,
            (14, _) => self.members[who].to_lose = (n % 4) as u8,
            _ => self.again(input, who, n)?,
        }
        self.carry();
        Ok(())
    }

    /// A stranger asks: from a network of its own, or of many, or from a member's address.
    fn come(&mut self, input: &mut Unstructured<'_>, what: u8, n: usize) -> Result<()> {
        let own = input.arbitrary::<u16>()?;
        let address = stranger_at(what, n, own, 6511);
        let (port, seq, asks) = (1000 + own % 5000, u64::from(own) << 20, self.asks.clone());
        let (theirs, cookie, answered) = (0, Vec::new(), false);
        self.strangers.push(Stranger { address, port, seq, theirs, cookie, answered });
        self.deliver(address, &packet((port, PORT), seq, Kind::Request { service: SERVICE }, &asks, &[]));
        Ok(())
    }

    /// What follows a Response, with its cookie or without, as it should be or not, from where that was sent to or
    /// from elsewhere.
    fn go_on(&mut self, input: &mut Unstructured<'_>, what: u8, of: usize) -> Result<()> {
        let from = if what & 0x70 == 0 { self.strangers.len() / 2 } else { of };
        let address = self.strangers[from].address;
        let stranger = &mut self.strangers[of];
        stranger.seq += 1;
        // Who answers what was sent there is there.
        let proves = stranger.answered && stranger.address == address;
        let (seq, theirs, port) = (stranger.seq, stranger.theirs, stranger.port);
        let mut options = stranger.cookie.clone();
        let (kind, payload) = match what & 3 {
            0 => (Kind::Ack { ack: theirs }, &[][..]),
            1 => (Kind::DataAck { ack: theirs }, some_bytes(input)?),
            _ => {
                let kind = any_kind(input, theirs)?;
                options.extend_from_slice(some_bytes(input)?);
                (kind, some_bytes(input)?)
            }
        };
        if proves {
            self.accounts.prove(address);
        }
        self.deliver(address, &packet((port, PORT), seq, kind, &options, payload));
        Ok(())
    }

    /// Any packet in clear, as from a member or the server, with numbers near the right ones.
    fn forge(&mut self, input: &mut Unstructured<'_>, who: usize, n: usize) -> Result<()> {
        let near = |base: u64, by: i8| base.wrapping_add_signed(i64::from(by));
        let (member, to_server) = (&self.members[who], n & 1 == 0);
        let (ours, theirs) = if to_server { (0, 1) } else { (1, 0) };
        let seq = near(member.numbers[ours], input.arbitrary()?);
        let ack = near(member.numbers[theirs], input.arbitrary()?);
        let kind = any_kind(input, ack)?;
        let ports = if to_server { (member.port, PORT) } else { (PORT, member.port) };
        let bytes = packet(ports, seq, kind, some_bytes(input)?, some_bytes(input)?);
        let address = member.address;
        if to_server {
            self.deliver(address, &bytes);
        } else {
            let (now, endpoint) = (self.now, &mut self.members[who].endpoint);
            endpoint.handle_datagram(now, Datagram { route: SERVER, ecn: Ecn::NotEct, payload: &bytes });
        }
        Ok(())
    }

    /// What a member sent, again, changed or cut, from its address or a stranger's.
    fn again(&mut self, input: &mut Unstructured<'_>, who: usize, n: usize) -> Result<()> {
        let Some(bytes) = self.members[who].last.again(input, n)? else { return Ok(()) };
        let elsewhere = self.strangers.last().filter(|_| n & 32 != 0).map(|it| it.address);
        let lost = self.members.iter().map(|it| it.lost).collect::<Vec<_>>();
        self.deliver(elsewhere.unwrap_or(self.members[who].address), &bytes);
        self.read();
        // What was lost and somebody else brings is acknowledged too late to end the back-off of its sender.
        self.members.iter_mut().zip(lost).for_each(|(it, lost)| it.lost = lost);
        Ok(())
    }
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut world = World::new();
    while !input.is_empty() && world.step(&mut input).is_ok() {}
    // They are gone, and all is as if they had never been there.
    world.members.iter_mut().for_each(|it| it.to_lose = 0);
    world.join();
    let before: Vec<u32> = world.members.iter().map(|it| it.sent).collect();
    for _ in 0..8 {
        (0..MEMBERS).for_each(|who| world.say(who));
        world.run(20);
    }
    assert!(world.members.iter().all(|it| it.connected), "who comes now gets in");
    for (member, before) in world.members.iter().zip(before).take(MEMBERS) {
        let newest = member.received.last();
        assert!(newest.is_some_and(|it| *it >= before), "{newest:?} of {} messages, {before} before", member.sent);
    }
}
