//! A protected flow in both directions while everybody who has no key does what they can, all at once: the twin of
//! `braidcast-session`'s siege. DCCP repeats nothing, so its networks lose nothing; what would end a connection comes
//! right before fades, and what is sent a second after those is on time again.

use crate::common::hostile::Hostile;
use crate::common::*;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::wire::{Checksum, Packet};
use braidcast_dccp::{Connection, ConnectionId, Event, Options, SecurityOptions, SendOptions};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use braidcast_sim::link::{LinkModel, Reorder, ReorderHow};
use braidcast_sim::{Duplex, NodeId, TapAction};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// Between two rounds of attacks, ms.
const ROUND: u64 = 10;
/// Between two messages in each direction, ms.
const APART: u64 = 20;
/// A delay of the link, what somebody in between holds, and two rounds.
const ON_TIME: u64 = 20 + 10 + 2 * ROUND;
/// A fade begins each so many ms, and lasts for the second number; nothing is judged until the third has passed.
const FADES: (u64, u64, u64) = (7000, 400, 1400);

/// What can be seen of all that is sent.
struct Seen {
    hostile: Hostile,
    /// The last packets to the server and to the client.
    last: [VecDeque<Vec<u8>>; 2],
    /// Bytes, of IP packets, that were sent as from somebody who has nothing to do with it, and to them.
    spoofed: BTreeMap<IpAddr, usize>,
    got: BTreeMap<IpAddr, usize>,
}

struct Siege {
    pair: Pair,
    /// The server's connection with the client.
    member: ConnectionId,
    fades: bool,
    seen: Rc<RefCell<Seen>>,
    packets: u64,
    cookies: u64,
    /// When each message of the server and of the client left; `None` once it has come.
    sent: [Vec<Option<Instant>>; 2],
    /// Which came late: at which end, its number, and when it had left.
    late: Vec<(usize, u32, Instant)>,
}

fn options() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    Options { security: Some(SecurityOptions::new(method)), ..Options::default() }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

impl Siege {
    fn of(seed: u64, fades: bool, link: &LinkModel) -> Self {
        let mut pair = Pair::seeded(seed, &options(), Duplex::both(link.clone()));
        let hostile = Hostile::new(Rng::from_seed(seed + 40), address(CLIENT));
        let seen = Seen { hostile, last: Default::default(), spoofed: BTreeMap::new(), got: BTreeMap::new() };
        let seen = Rc::new(RefCell::new(seen));
        let tapped = Rc::clone(&seen);
        pair.net.set_tap(move |event| {
            let mut seen = tapped.borrow_mut();
            let to_server = event.to == address(SERVER);
            if event.action != TapAction::Sent && event.action != TapAction::Unroutable {
                return;
            }
            if event.action == TapAction::Unroutable {
                *seen.got.entry(event.to.ip()).or_default() += event.payload.len() + 28;
            }
            let packet = Packet::parse(event.payload, Checksum::Udp).expect("what is sent is well-formed");
            if to_server {
                seen.hostile.see(&packet);
            } else if seen.hostile.answered(Route::new(SocketId(0), event.to), &packet) {
                return;
            }
            if event.action == TapAction::Sent {
                let last = &mut seen.last[usize::from(!to_server)];
                last.push_back(event.payload.to_vec());
                if last.len() > 64 {
                    last.pop_front();
                }
            }
        });
        pair.connect();
        let member = pair.server_id().expect("the client is connected");
        Self { pair, member, fades, seen, packets: 0, cookies: 0, sent: Default::default(), late: Vec::new() }
    }

    fn below(&mut self, most: usize) -> usize {
        self.seen.borrow_mut().hostile.below(most as u64) as usize
    }

    /// Hands an end a packet as if it came from there.
    fn send(&mut self, node: NodeId, from: SocketAddr, payload: &[u8]) {
        self.packets += 1;
        let route = Route::new(SocketId(0), from);
        self.pair
            .net
            .with(node, |endpoint, now| endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload }));
    }

    /// The same as from the other end, to the server (0) or the client (1).
    fn send_as_member(&mut self, end: usize, payload: &[u8]) {
        let (node, from) = [(self.pair.server, CLIENT), (self.pair.client, SERVER)][end];
        self.send(node, address(from), payload);
    }

    /// Strangers ask and go on, a few as from somebody who never asked.
    fn strangers(&mut self) {
        for n in 0..12 {
            let packet = {
                let hostile = &mut self.seen.borrow_mut().hostile;
                if n < 4 { hostile.come() } else { hostile.go_on() }
            };
            let Some((mut route, bytes)) = packet else { continue };
            if n == 11 {
                route.remote = SocketAddr::from(([203, 0, 113, self.below(200) as u8], 6511));
                *self.seen.borrow_mut().spoofed.entry(route.remote.ip()).or_default() += bytes.len() + 28;
            }
            self.cookies += u64::from(n >= 4);
            self.send(self.pair.server, route.remote, &bytes);
        }
    }

    /// All that would end a connection in clear, to both ends.
    fn end_in_clear(&mut self) {
        for end in [0, 1, 0, 1] {
            let bytes = self.seen.borrow_mut().hostile.end_in_clear(end == 0);
            self.send_as_member(end, &bytes);
        }
    }

    /// Packets that were seen, again or to the other end: as they are, cut, longer, or with a bit changed; records of
    /// another client; and bytes of no meaning.
    fn repeat(&mut self) {
        for end in 0..2 {
            let n = self.below(64);
            let Some(mut packet) = self.seen.borrow().last[end].get(n).cloned() else { continue };
            let place = self.below(packet.len());
            match self.below(4) {
                0 => packet[place] ^= 1 << self.below(8),
                1 => packet.truncate(place),
                2 => packet.extend_from_slice(&[0; 8]),
                _ => {}
            }
            let end = if self.below(8) == 0 { 1 - end } else { end };
            self.send_as_member(end, &packet);
            let start = 24.min(packet.len());
            self.seen.borrow_mut().hostile.rng.fill(&mut packet[start..]);
            self.send_as_member(end, &packet);
        }
        let spliced = self.seen.borrow_mut().hostile.splice();
        self.send_as_member(0, &spliced);
    }

    /// One round of all.
    fn round(&mut self, number: u64) {
        self.strangers();
        self.repeat();
        if number.is_multiple_of(5) {
            self.end_in_clear();
        }
    }

    /// Calls `act` with the connection at the server (0) or the client (1).
    fn on<T>(&mut self, end: usize, act: impl FnOnce(&mut Connection, Instant) -> T) -> T {
        let (node, id) = [(self.pair.server, self.member), (self.pair.client, self.pair.client_id)][end];
        self.pair.net.with(node, |endpoint, now| act(endpoint.connection_mut(id).expect("the connection lasts"), now))
    }

    /// Each end sends a message.
    fn speak(&mut self) {
        let now = self.pair.net.now();
        for end in 0..2 {
            let message = message(self.sent[end].len() as u32, 700);
            self.on(end, |it, now| it.send(now, &message, SendOptions::default())).expect("there is room");
            self.sent[end].push(Some(now));
        }
    }

    /// What came at each end, and if it was on time.
    fn listen(&mut self) {
        let (now, mut message) = (self.pair.net.now(), Vec::new());
        for end in 0..2 {
            while self.on(end, |it, _| it.recv(&mut message)) {
                let number = number(&message);
                let sent = self.sent[1 - end][number as usize].take().expect("it was sent, and comes once");
                if now.since(sent) > ms(ON_TIME) && self.is_judged(sent) {
                    self.late.push((end, number, sent));
                }
            }
        }
        self.pair.server_events.clear();
    }

    fn is_judged(&self, sent: Instant) -> bool {
        !self.fades || sent.as_micros() / 1000 % FADES.0 >= FADES.2
    }
}

/// A flow of `seconds` under siege; with `fades` or without.
fn all_of_it_is_on_time(seconds: u64, fades: bool, link: &LinkModel) {
    let mut other = Siege::of(7, false, link);
    for _ in 0..20 {
        other.speak();
        other.pair.run(ms(APART));
        other.listen();
    }
    let mut siege = Siege::of(1, fades, link);
    siege.seen.borrow_mut().hostile.others = other.seen.borrow().hostile.data.clone();
    let (begun, links) = (siege.pair.net.now().as_micros() / 1000, [siege.pair.links.0, siege.pair.links.1]);
    for number in 0..seconds * 1000 / ROUND {
        let at = begun + number * ROUND;
        if fades {
            let down = at % FADES.0 < FADES.1;
            if down && at % FADES.0 < ROUND {
                siege.end_in_clear();
            }
            links.iter().for_each(|&link| siege.pair.net.set_down(link, down));
        }
        if number.is_multiple_of(APART / ROUND) {
            siege.speak();
        }
        siege.round(number);
        siege.pair.run(ms(ROUND));
        siege.listen();
    }
    links.iter().for_each(|&link| siege.pair.net.set_down(link, false));
    for _ in 0..50 {
        siege.pair.run(ms(ROUND));
        siege.listen();
    }
    let missing = siege.sent.iter().flatten().flatten().filter(|at| siege.is_judged(**at)).count();
    let all = siege.sent.iter().map(Vec::len).sum::<usize>();
    println!(
        "{seconds} s over DCCP{}: {} packets of attackers; of {all} messages {missing} missing, {} late",
        if fades { ", with fades" } else { "" },
        siege.packets,
        siege.late.len()
    );
    assert!(missing == 0 && siege.late.is_empty(), "{missing} missing; {:?}", siege.late);
    // At the server strangers come and go; the flow itself says that its connection there is the same.
    let closed = siege.pair.client_events.iter().filter(|it| matches!(it, Event::Closed(_))).count();
    assert_eq!(closed, 0, "{:?}", siege.pair.client_events);
    assert!(siege.packets > seconds * 1500 && siege.cookies > seconds * 500, "{} {}", siege.packets, siege.cookies);
    // Whoever never asked got no more than three times what was sent in its name.
    let seen = siege.seen.borrow();
    assert!(seen.spoofed.len() > 50);
    for (victim, spoofed) in &seen.spoofed {
        let got = seen.got.get(victim).copied().unwrap_or_default();
        assert!(got <= 3 * spoofed, "{victim} got {got} bytes for {spoofed}");
    }
}

/// As long as SIEGE_SECONDS says, or 5 s in `make test`; `make more-siege` takes ten minutes.
fn seconds() -> u64 {
    std::env::var("SIEGE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5)
}

#[test]
fn a_keyed_flow_under_all_attacks_at_once_is_on_time() {
    all_of_it_is_on_time(seconds(), false, &link(10, 20));
}

#[test]
fn and_with_fades_and_somebody_in_between_who_holds_and_repeats_packets() {
    let reorder = Reorder { share: 0.02, how: ReorderHow::Late(ms(10)) };
    all_of_it_is_on_time(seconds().max(8), true, &LinkModel { reorder, duplicate: 0.01, ..link(10, 20) });
}
