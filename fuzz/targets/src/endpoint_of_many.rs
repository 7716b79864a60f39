//! One endpoint with members, who have keys, and strangers, who have none: those ask, bring cookies
//! back from where they got them and from elsewhere, send any chunk with their own tags and with a
//! member's, and repeat and change what members send.
//!
//! Nothing may panic, no loop may go on without end. No member's association may end or begin
//! anew, and all that members send must arrive, once and in order. Nobody whose address is not
//! proved may be sent more than three times what came from there. There are no more strangers than
//! they have places. When they are gone, one more member must get in.

use crate::association::{Hints, forge};
use crate::many::{Accounts, ENDLESS, Last, MEMBERS, member_at, stranger_at, tick};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Strangers, Writer};
use braidcast_sctp::wire::chunk::{CookieEcho, kind};
use braidcast_sctp::wire::param::kind as parameter;
use braidcast_sctp::wire::{Chunk, Header, Packet, begin, seal};
use braidcast_sctp::{AssociationId, Endpoint, Event, Options, SecurityOptions, SendOptions};
use braidcast_secure::known::Known;
use braidcast_secure::Suite;
use core::time::Duration;
use arbitrary::{Result, Unstructured};
use std::net::SocketAddr;
use std::sync::Arc;

/// What one exchange of strangers' packets may have the server hold.
const MOST: usize = Strangers::<u32>::PLACES;

struct Member {
    endpoint: Endpoint,
    id: AssociationId,
    address: SocketAddr,
    sent: u32,
    received: u32,
    connected: bool,
    /// Tags in packets to the server, and to the member.
    tags: [u32; 2],
    last: Last,
}

struct Stranger {
    address: SocketAddr,
    peer_tag: u32,
    tsn: u32,
    cookie: Vec<u8>,
}

struct World {
    now: Instant,
    server: Endpoint,
    members: Vec<Member>,
    /// The server's associations with those who are there from the beginning.
    theirs: Vec<AssociationId>,
    strangers: Vec<Stranger>,
    accounts: Accounts,
    init: Vec<u8>,
    buf: Vec<u8>,
}

fn options() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    Options::live().with(|it| it.security = Some(SecurityOptions::new(method)))
}

const SERVER: Route =
    Route::new(SocketId(0), SocketAddr::V4(std::net::SocketAddrV4::new(std::net::Ipv4Addr::new(10, 0, 0, 1), 9899)));

fn packet(tag: u32, chunks: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    begin(&mut bytes, Header { source_port: 9899, destination_port: 9899, verification_tag: tag });
    bytes.extend_from_slice(chunks);
    seal(&mut bytes);
    bytes
}

fn tag(bytes: &[u8]) -> u32 {
    Packet::parse(bytes).map_or(0, |packet| packet.header.verification_tag)
}

impl World {
    fn new() -> Self {
        let mut server = Endpoint::new(options(), Rng::from_seed(1)).expect("options that are possible");
        server.listen();
        let now = Instant::from_millis(1000);
        let (members, theirs, strangers) = (Vec::new(), Vec::new(), Vec::new());
        let (accounts, init, buf) = (Accounts::default(), Vec::new(), Vec::new());
        let mut it = Self { now, server, members, theirs, strangers, accounts, init, buf };
        (0..MEMBERS).for_each(|_| it.join());
        it.run(4);
        assert!(it.members.iter().all(|member| member.connected), "nobody disturbs them");
        it.theirs = it.server.associations().collect();
        it
    }

    fn join(&mut self) {
        let n = self.members.len();
        let mut endpoint = Endpoint::new(options(), Rng::from_seed(100 + n as u64)).expect("options that are possible");
        let id = endpoint.connect(self.now, 9899, &[SERVER]).expect("nothing is in the way");
        let address = member_at(n, 9899);
        self.accounts.prove(address);
        let (connected, tags, last) = (false, [0; 2], Last::default());
        self.members.push(Member { endpoint, id, address, sent: 0, received: 0, connected, tags, last });
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
        let (now, mut buf) = (self.now, core::mem::take(&mut self.buf));
        let mut left = ENDLESS;
        loop {
            let mut any = false;
            for member in &mut self.members {
                while let Some(transmit) = member.endpoint.poll_transmit(now, &mut buf) {
                    any = true;
                    for payload in transmit.datagrams(&buf) {
                        left = left.checked_sub(1).expect("a loop without end");
                        if self.init.is_empty() {
                            self.init = payload.to_vec();
                        }
                        member.tags[0] = tag(payload);
                        member.last.push(payload);
                        let route = Route::new(SocketId(0), member.address);
                        self.server.handle_datagram(now, Datagram { route, ecn: transmit.ecn, payload });
                    }
                }
                while let Some((id, event)) = member.endpoint.poll_event() {
                    assert!(id == member.id && !matches!(event, Event::Closed(_) | Event::Restarted), "{event:?}");
                    member.connected |= event == Event::Connected;
                }
            }
            while let Some(transmit) = self.server.poll_transmit(now, &mut buf) {
                any = true;
                for payload in transmit.datagrams(&buf) {
                    left = left.checked_sub(1).expect("a loop without end");
                    Packet::parse(payload).expect("what is sent is well-formed");
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
        if let Some(member) = self.members.iter_mut().find(|member| member.address == to) {
            if payload.get(12) == Some(&kind::DTLS) {
                member.tags[1] = tag(payload);
            }
            member.endpoint.handle_datagram(self.now, Datagram { route: SERVER, ecn: Ecn::NotEct, payload });
        }
        self.accounts.sent(to, payload);
        let Some(stranger) = self.strangers.iter_mut().rev().find(|stranger| stranger.address == to) else { return };
        let Ok(read) = Packet::parse(payload) else { return };
        if let Some(Ok(Chunk::InitAck(ack))) = read.chunks().next().and_then(Result::ok).map(Chunk::parse) {
            let cookie = ack.parameters.iter().flatten().find(|raw| raw.kind == parameter::STATE_COOKIE);
            stranger.cookie = cookie.map(|raw| raw.value.to_vec()).unwrap_or_default();
            stranger.peer_tag = ack.initiate_tag;
        }
    }

    /// Takes what arrived at the server.
    fn read(&mut self) {
        while let Some((id, event)) = self.server.poll_event() {
            let over = matches!(event, Event::Closed(_) | Event::Restarted);
            assert!(!(over && self.theirs.contains(&id)), "{event:?}");
        }
        while self.server.poll_turned_away().is_some() {}
        let ids: Vec<_> = self.server.associations().collect();
        assert!(ids.len() <= MOST + self.members.len(), "{} associations", ids.len());
        let mut message = Vec::new();
        for id in ids {
            while self.server.association_mut(id).and_then(|it| it.recv(self.now, &mut message)).is_some() {
                let number = u32::from_be_bytes(message[..4].try_into().expect("a member's message"));
                let (who, number) = (number as usize >> 24, number & 0xFF_FFFF);
                assert_eq!(number, self.members[who].received, "in order, and once");
                self.members[who].received += 1;
            }
        }
    }

    fn say(&mut self, who: usize) {
        let (now, member) = (self.now, &mut self.members[who]);
        let association = member.endpoint.association_mut(member.id).expect("its association is there");
        let mut message = ((who as u32) << 24 | member.sent).to_be_bytes().to_vec();
        message.resize(600, 7);
        let how = SendOptions { stream: 1, ..SendOptions::default() };
        if association.send(now, &message, how).is_ok() {
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
            (7..=9, Some(of)) => {
                // Back from where it was sent, or from another stranger's address.
                let from = if what & 0x30 == 0 { self.strangers.len() / 2 } else { of };
                let mut echo = Vec::new();
                Chunk::CookieEcho(CookieEcho { cookie: &self.strangers[of].cookie }).emit(&mut Writer::new(&mut echo));
                let bytes = packet(self.strangers[of].peer_tag, &echo);
                let address = self.strangers[from].address;
                if address == self.strangers[of].address && !self.strangers[of].cookie.is_empty() {
                    self.accounts.prove(address);
                }
                self.deliver(address, &bytes);
            }
            (10..=12, Some(of)) => {
                // Any chunks of its own.
                let (mut chunks, hints) = (Vec::new(), Hints { peer_tsn: self.strangers[of].tsn, ..Hints::default() });
                let (tag, address) = (self.strangers[of].peer_tag, self.strangers[of].address);
                forge(input, hints, &mut chunks)?;
                self.strangers[of].tsn = self.strangers[of].tsn.wrapping_add(1);
                self.deliver(address, &packet(tag, &chunks));
            }
            (13 | 14, _) => {
                // Any chunks, as from a member or the server, in clear.
                let (mut chunks, hints) = (Vec::new(), Hints::default());
                forge(input, hints, &mut chunks)?;
                let (address, tags) = (self.members[who].address, self.members[who].tags);
                let bytes = packet(tags[n & 1], &chunks);
                if n & 2 == 0 {
                    self.deliver(address, &bytes);
                } else {
                    let (now, endpoint) = (self.now, &mut self.members[who].endpoint);
                    endpoint.handle_datagram(now, Datagram { route: SERVER, ecn: Ecn::NotEct, payload: &bytes });
                }
            }
            _ => {
                // What a member sent, again, changed or cut.
                let Some(mut bytes) = self.members[who].last.again(input, n)? else { return Ok(()) };
                if n & 32 != 0 && bytes.len() >= 12 {
                    seal(&mut bytes);
                }
                let address = self.members[who].address;
                self.deliver(address, &bytes);
            }
        }
        self.carry();
        Ok(())
    }

    /// A stranger asks: from a network of its own, or of many, or from a member's address.
    fn come(&mut self, input: &mut Unstructured<'_>, what: u8, n: usize) -> Result<()> {
        let (mut init, own) = (self.init.clone(), input.arbitrary::<u16>()?);
        init[16..20].copy_from_slice(&(u32::from(own) << 8 | 0x9000_0000 | n as u32).to_be_bytes());
        seal(&mut init);
        let address = stranger_at(what, n, own, 9899);
        let tsn = u32::from_be_bytes(init[28..32].try_into().expect("four bytes"));
        self.strangers.push(Stranger { address, peer_tag: 0, tsn, cookie: Vec::new() });
        self.deliver(address, &init);
        Ok(())
    }
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut world = World::new();
    while !input.is_empty() && world.step(&mut input).is_ok() {}
    // They are gone, and all is as if they had never been there.
    world.join();
    for _ in 0..8 {
        (0..world.members.len()).filter(|&who| who < MEMBERS).for_each(|who| world.say(who));
        world.run(10);
    }
    for member in &world.members {
        assert!(member.connected, "who comes now gets in");
        assert_eq!(member.received, member.sent);
    }
}
