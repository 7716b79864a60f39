//! A protected stream while everybody who has no key does what they can, all at once: strangers,
//! whoever sees packets and sends its own, and fades right behind that.

use crate::common::keyed::keyed;
use crate::common::*;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Writer};
use braidcast_sctp::wire::chunk::{Abort, CookieEcho, Data, IData, Shutdown, ShutdownComplete};
use braidcast_sctp::wire::param::kind as parameter;
use braidcast_sctp::wire::{self, Causes, Chunk, Header, Packet};
use braidcast_session::{Event, ReceiverOptions, SenderOptions};
use braidcast_sim::link::{LinkModel, Loss, Reorder, ReorderHow};
use braidcast_sim::{NodeId, TapAction};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

/// Paths of the stream.
const PATHS: usize = 2;
/// Between two rounds of attacks.
const ROUND: u64 = 10;
/// From then on, ms, the stream is protected: before there are keys, who can change packets can keep
/// it from coming about (docs/security.md).
const PROTECTED: u64 = 2000;
/// Strangers that go on talking.
const STRANGERS: usize = 1500;

/// What can be seen of all that is sent.
#[derive(Default)]
struct Seen {
    /// The sender's first INIT.
    init: Vec<u8>,
    /// The last packets to the receiver and to the sender, and over which path.
    last: [VecDeque<(usize, Vec<u8>)>; 2],
    /// What the receiver sent to anybody else.
    answers: Vec<(SocketAddr, Vec<u8>)>,
    /// Bytes, of IP packets, that anybody else got from the receiver.
    got: BTreeMap<IpAddr, usize>,
}

/// Somebody without a key, and what it knows of its association.
struct Stranger {
    address: SocketAddr,
    peer_tag: u32,
    tsn: u32,
    cookie: Vec<u8>,
}

/// All of them.
struct Siege {
    rng: Rng,
    seen: Rc<RefCell<Seen>>,
    strangers: VecDeque<Stranger>,
    /// Bytes, of IP packets, that were sent as from somebody who has nothing to do with it.
    spoofed: BTreeMap<IpAddr, usize>,
    /// What two other ends with the same keys sent, to the receiver and to the sender.
    others: [Vec<(usize, Vec<u8>)>; 2],
    packets: u64,
    cookies: u64,
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn packet_of(tag: u32, chunks: &[Chunk<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::begin(&mut bytes, Header { source_port: PORT, destination_port: PORT, verification_tag: tag });
    chunks.iter().for_each(|chunk| chunk.emit(&mut Writer::new(&mut bytes)));
    wire::seal(&mut bytes);
    bytes
}

fn tag_of(packet: &[u8]) -> u32 {
    Packet::parse(packet).map_or(0, |packet| packet.header.verification_tag)
}

impl Siege {
    fn of(scene: &mut Scene) -> Self {
        let seen = Rc::new(RefCell::new(Seen::default()));
        let tapped = Rc::clone(&seen);
        let to_whom = [SINK_ADDRESSES, SOURCE_ADDRESSES].map(|list| list.map(address));
        scene.net.set_tap(move |event| {
            let mut seen = tapped.borrow_mut();
            if event.action == TapAction::Unroutable && seen.answers.len() < 4096 {
                seen.answers.push((event.to, event.payload.to_vec()));
                *seen.got.entry(event.to.ip()).or_default() += event.payload.len() + 28;
            }
            if event.action != TapAction::Sent {
                return;
            }
            for (end, list) in to_whom.iter().enumerate() {
                let Some(path) = list.iter().position(|address| *address == event.to) else { continue };
                if seen.init.is_empty() {
                    seen.init = event.payload.to_vec();
                }
                seen.last[end].push_back((path, event.payload.to_vec()));
                if seen.last[end].len() > 64 {
                    seen.last[end].pop_front();
                }
            }
        });
        let (strangers, spoofed, others) = (VecDeque::new(), BTreeMap::new(), [Vec::new(), Vec::new()]);
        Self { rng: Rng::from_seed(40), seen, strangers, spoofed, others, packets: 0, cookies: 0 }
    }

    /// The same of somebody who has watched two other ends.
    fn prepared(scene: &mut Scene) -> Self {
        let (send, receive) = ends();
        let mut other = Scene::seeded(7, send.transport(), send, receive, camera(4), &links());
        let before = Self::of(&mut other);
        other.net.run_until(Instant::from_millis(START + 2000));
        let others = before.seen.borrow().last.clone().map(Vec::from);
        assert!(others.iter().all(|packets| packets.len() > 30));
        Self { others, ..Self::of(scene) }
    }

    fn below(&mut self, most: usize) -> usize {
        self.rng.below(most as u64) as usize
    }

    /// Hands an end a packet as if it came from there, over its socket `socket`.
    fn send(&mut self, scene: &mut Scene, to: NodeId, socket: usize, from: SocketAddr, payload: &[u8]) {
        self.packets += 1;
        let route = Route::new(SocketId(socket as u16), from);
        scene.net.with(to, |node, now| node.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload }));
    }

    /// The same as from the other end, to the receiver (0) or the sender (1).
    fn send_as_member(&mut self, scene: &mut Scene, end: usize, path: usize, payload: &[u8]) {
        let (node, from) = match end {
            0 => (scene.sink, SOURCE_ADDRESSES[path]),
            _ => (scene.source, SINK_ADDRESSES[path]),
        };
        self.send(scene, node, path, address(from), payload);
    }

    /// The tags in packets to the receiver and to the sender.
    fn tags(&self) -> [u32; 2] {
        let seen = self.seen.borrow();
        [0, 1].map(|end| seen.last[end].back().map_or(0, |(_, packet)| tag_of(packet)))
    }

    /// Reads what the receiver answered to strangers.
    fn read(&mut self) {
        for (to, packet) in core::mem::take(&mut self.seen.borrow_mut().answers) {
            let Ok(read) = Packet::parse(&packet) else { continue };
            let Some(Ok(Chunk::InitAck(ack))) = read.chunks().next().and_then(Result::ok).map(Chunk::parse) else {
                continue;
            };
            let cookie = ack.parameters.iter().flatten().find(|raw| raw.kind == parameter::STATE_COOKIE);
            if let (Some(stranger), Some(cookie)) =
                (self.strangers.iter_mut().find(|it| it.address == to && it.cookie.is_empty()), cookie)
            {
                (stranger.peer_tag, stranger.cookie) = (ack.initiate_tag, cookie.value.to_vec());
                self.cookies += 1;
            }
        }
    }

    /// An INIT with a tag of its own.
    fn init(&mut self) -> Option<(Vec<u8>, u32)> {
        let mut init = Some(self.seen.borrow().init.clone()).filter(|init| init.len() > 32)?;
        let tag = self.rng.u32() | 1;
        init[16..20].copy_from_slice(&tag.to_be_bytes());
        wire::seal(&mut init);
        let tsn = u32::from_be_bytes([init[28], init[29], init[30], init[31]]);
        Some((init, tsn))
    }

    /// A new stranger asks: from any network, from one that many are in, or from a member's address.
    fn come(&mut self, scene: &mut Scene) {
        let Some((init, tsn)) = self.init() else { return };
        let (network, port) = (self.below(60_000) as u16, 1024 + self.below(60_000) as u16);
        let [high, low] = network.to_be_bytes();
        let from = match self.below(20) {
            0 => address(SOURCE_ADDRESSES[self.below(PATHS)]),
            1..=9 => SocketAddr::from(([198, 18, 0, low], port)),
            _ => SocketAddr::from(([172, high, low, 1], port)),
        };
        self.strangers.push_back(Stranger { address: from, peer_tag: 0, tsn, cookie: Vec::new() });
        if self.strangers.len() > STRANGERS {
            self.strangers.pop_front();
        }
        let (sink, socket) = (scene.sink, self.below(PATHS));
        self.send(scene, sink, socket, from, &init);
    }

    /// A cookie comes back: from where it was sent, or as from somebody who never asked.
    fn echo(&mut self, scene: &mut Scene) {
        let Some(n) = (!self.strangers.is_empty()).then(|| self.below(self.strangers.len())) else { return };
        let (cookie, tag) = (self.strangers[n].cookie.clone(), self.strangers[n].peer_tag);
        if cookie.is_empty() {
            return;
        }
        let echo = packet_of(tag, &[Chunk::CookieEcho(CookieEcho { cookie: &cookie })]);
        let (mut from, sink) = (self.strangers[n].address, scene.sink);
        if self.below(4) == 0 {
            from = SocketAddr::from(([203, 0, 113, self.below(200) as u8], 9899));
            *self.spoofed.entry(from.ip()).or_default() += echo.len() + 28;
        }
        (0..PATHS).for_each(|socket| self.send(scene, sink, socket, from, &echo));
    }

    /// Data of a stranger: key messages that never end, far ahead, and what is none.
    fn fill(&mut self, scene: &mut Scene) {
        let Some(n) = (!self.strangers.is_empty()).then(|| self.below(self.strangers.len())) else { return };
        let (ppid, ahead) = ([4242, 4242, 0, 51][self.below(4)], self.below(40) as u32);
        let (first, last, stream) = (self.below(2) == 0, self.below(4) == 0, self.below(8) as u16 / 7);
        let stranger = &mut self.strangers[n];
        stranger.tsn = stranger.tsn.wrapping_add(1);
        let (tsn, payload, mid) = (stranger.tsn.wrapping_add(ahead), &[9; 1300][..], ahead % 3);
        let (unordered, immediate, timed, fsn) = (false, false, false, if first { 0 } else { ahead });
        let data = IData { tsn, stream, mid, ppid, fsn, first, last, unordered, immediate, timed, payload };
        let chunk = Chunk::IData(data);
        let (bytes, from, sink) = (packet_of(stranger.peer_tag, &[chunk]), stranger.address, scene.sink);
        (0..PATHS).for_each(|socket| self.send(scene, sink, socket, from, &bytes));
    }

    /// All that would end or change an association in clear, with the right tags, from the right
    /// addresses, to both ends.
    fn end_in_clear(&mut self, scene: &mut Scene) {
        let tags = self.tags();
        for (end, reflected) in [(0, false), (0, true), (1, false), (1, true)] {
            let tag = tags[if reflected { 1 - end } else { end }];
            let tsn = self.rng.u32();
            let data = Data {
                tsn,
                stream: 0,
                ssn: 0,
                ppid: 4242,
                unordered: false,
                first: true,
                last: true,
                immediate: true,
                timed: false,
                payload: &[0; 1500],
            };
            let chunks = [
                Chunk::Abort(Abort { reflected, causes: Causes::new(&[]) }),
                Chunk::ShutdownComplete(ShutdownComplete { reflected }),
                Chunk::Shutdown(Shutdown { cumulative_tsn: tsn }),
                Chunk::Data(data),
            ];
            for chunk in chunks {
                let (path, packet) = (self.below(PATHS), packet_of(tag, &[chunk]));
                self.send_as_member(scene, end, path, &packet);
            }
        }
    }

    /// Packets that were seen, again or to the other end: as they are, cut, longer, or with a bit
    /// changed.
    fn repeat(&mut self, scene: &mut Scene) {
        for end in 0..2 {
            let len = self.seen.borrow().last[end].len();
            if len == 0 {
                continue;
            }
            let n = self.below(len);
            let (path, mut packet) = self.seen.borrow().last[end][n].clone();
            let place = self.below(packet.len());
            match self.below(4) {
                0 => packet[place] ^= 1 << self.below(8),
                1 => packet.truncate(place),
                2 => packet.extend_from_slice(&[0; 8]),
                _ => {}
            }
            if packet.len() > 12 && self.below(2) == 0 {
                wire::seal(&mut packet); // With the right checksum.
            }
            let end = if self.below(8) == 0 { 1 - end } else { end };
            self.send_as_member(scene, end, path, &packet);
        }
    }

    /// Records of the other two ends, with the tags of these.
    fn splice(&mut self, scene: &mut Scene) {
        for (end, tag) in self.tags().into_iter().enumerate() {
            let n = self.below(self.others[end].len());
            let (path, mut packet) = self.others[end][n].clone();
            packet[4..8].copy_from_slice(&tag.to_be_bytes());
            if self.below(2) == 0 {
                wire::seal(&mut packet);
            }
            self.send_as_member(scene, end, path, &packet);
        }
    }

    /// Bytes of no meaning.
    fn garble(&mut self, scene: &mut Scene) {
        let mut bytes = vec![0; 12 + self.below(1400)];
        self.rng.fill(&mut bytes);
        let (end, path) = (self.below(2), self.below(PATHS));
        let tag = self.tags()[end];
        bytes[..4].copy_from_slice(&[PORT.to_be_bytes(), PORT.to_be_bytes()].concat());
        bytes[4..8].copy_from_slice(&tag.to_be_bytes());
        wire::seal(&mut bytes);
        self.send_as_member(scene, end, path, &bytes);
    }

    /// One round of all.
    fn round(&mut self, scene: &mut Scene, number: u64) {
        self.read();
        (0..4).for_each(|_| self.come(scene));
        (0..3).for_each(|_| self.echo(scene));
        (0..3).for_each(|_| self.fill(scene));
        if number * ROUND < PROTECTED {
            return;
        }
        self.repeat(scene);
        self.splice(scene);
        self.garble(scene);
        if number.is_multiple_of(5) {
            self.end_in_clear(scene);
        }
    }
}

/// One network fades for 1 s in every 7, both for 400 ms in every 19, right behind what would end an
/// association.
fn fade(siege: &mut Siege, scene: &mut Scene, at: u64) {
    let (one, both) = (at % 7000, at % 19_000);
    if one == 3000 || both == 5000 {
        siege.end_in_clear(scene);
    }
    for path in 0..PATHS {
        let down = (path as u64 == at / 7000 % 2 && (3000..4000).contains(&one)) || (5000..5400).contains(&both);
        let (there, back) = scene.links[path];
        scene.net.set_down(there, down);
        scene.net.set_down(back, down);
    }
}

fn ends() -> (SenderOptions, ReceiverOptions) {
    let send = SenderOptions::default().with(|it| {
        it.latency = ms(1500);
        it.security = keyed(1);
    });
    (send, ReceiverOptions::default().with(|it| it.security = keyed(2)))
}

fn links() -> [LinkModel; PATHS] {
    [LinkModel::wire(20_000_000, ms(15)), LinkModel::wire(10_000_000, ms(40))]
}

/// With somebody in between, who loses, holds, repeats and changes single packets in both directions.
fn meddled() -> [LinkModel; PATHS] {
    links().map(|link| LinkModel {
        loss: Loss::Uniform(0.01),
        reorder: Reorder { share: 0.02, how: ReorderHow::Late(ms(30)) },
        duplicate: 0.01,
        corrupt: 0.01,
        ..link
    })
}

/// A stream of `seconds` over `links`, under siege from before its handshake to its end.
fn all_of_it_is_on_time(seconds: u64, links: &[LinkModel; PATHS]) {
    let (send, receive) = ends();
    let latency = send.latency;
    let units = camera(seconds);
    let mut scene = Scene::new(send, receive, units.clone(), links);
    let mut siege = Siege::prepared(&mut scene);
    for number in 0.. {
        let at = number * ROUND;
        if at > START + seconds * 1000 {
            break;
        }
        fade(&mut siege, &mut scene, at);
        siege.round(&mut scene, number);
        scene.net.run_until(Instant::from_millis(at + ROUND));
    }
    scene.set_down(false); // The last fade is over too.
    scene.run_to_end(ms(START + seconds * 1000 + 20_000));
    let (sink, source) = (scene.sink(), scene.source());
    let delays = delays(sink, &units);
    let all: u64 = units.iter().map(|(_, unit)| u64::from(unit.runs[0].count)).sum();
    let late = delays.iter().skip(200).filter(|(_, delay)| *delay > latency + ms(40)).count();
    let missing: u64 = sink.report().kinds.iter().map(|kind| kind.missing).sum();
    println!(
        "{seconds} s: {} packets of attackers, {} cookies; {} of {all} packets came out, {late} late",
        siege.packets,
        siege.cookies,
        delays.len()
    );
    assert_eq!((delays.len() as u64, late, missing), (all, 0, 0));
    for events in [&sink.events, &source.events] {
        let closed = events.iter().filter(|it| matches!(it, Event::Restarted | Event::Back | Event::Lost(..))).count();
        assert_eq!(closed, 0, "{events:?}");
    }
    assert!(siege.packets > seconds * 1500 && siege.cookies > seconds * 100, "{} {}", siege.packets, siege.cookies);
    // Whoever never asked got no more than three times what was sent in its name.
    let got = &siege.seen.borrow().got;
    assert!(siege.spoofed.len() > 50);
    for (victim, spoofed) in &siege.spoofed {
        let got = got.get(victim).copied().unwrap_or_default();
        assert!(got <= 3 * spoofed, "{victim} got {got} bytes for {spoofed}");
    }
}

/// 8 s, with a fade of each sort, or as long as SIEGE_SECONDS says: `make more-siege` takes ten minutes.
fn seconds() -> u64 {
    std::env::var("SIEGE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8)
}

#[test]
fn a_keyed_stream_under_all_attacks_at_once_is_on_time() {
    all_of_it_is_on_time(seconds(), &links());
}

#[test]
fn and_with_somebody_in_between_who_loses_holds_repeats_and_changes_packets() {
    all_of_it_is_on_time(seconds(), &meddled());
}

/// What somebody on the first of two networks answers to each INIT that it sees there.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// There is no association to be had.
    Abort,
    /// A cookie that nobody made.
    Cookie,
}

impl Answer {
    fn to(self, init: &[u8]) -> Option<Vec<u8>> {
        let read = Packet::parse(init).ok()?;
        let Chunk::Init(mut init) = Chunk::parse(read.chunks().next()?.ok()?).ok()? else { return None };
        let tag = init.initiate_tag;
        let mut parameters = Vec::new();
        wire::Parameter::StateCookie(&[7; 100]).emit(&mut Writer::new(&mut parameters));
        for raw in init.parameters.iter().flatten().filter(|raw| raw.kind != parameter::PADDING) {
            parameters.extend_from_slice(raw.bytes);
            parameters.resize(parameters.len().next_multiple_of(4), 0);
        }
        (init.parameters, init.initiate_tag) = (wire::Parameters::new(&parameters), 77);
        Some(match self {
            Self::Abort => packet_of(tag, &[Chunk::Abort(Abort { reflected: false, causes: Causes::new(&[]) })]),
            Self::Cookie => packet_of(tag, &[Chunk::InitAck(init)]),
        })
    }
}

/// One network of two is enough for a stream to come about, whatever the other one says before there
/// are keys.
#[test]
fn one_hostile_network_of_two_keeps_no_stream_from_coming_about() {
    for answer in [Answer::Abort, Answer::Cookie] {
        let send = SenderOptions::default().with(|it| it.security = keyed(1));
        let receive = ReceiverOptions::default().with(|it| it.security = keyed(2));
        let mut scene = Scene::new(send, receive, camera(2), &links());
        let mut siege = Siege::of(&mut scene);
        let mut answered = 0;
        while !scene.source().events.contains(&Event::Connected) {
            assert!(scene.net.now() < Instant::from_millis(8000), "{answer:?}: {:?}", scene.source().events);
            let next = scene.net.now() + ms(1);
            scene.net.run_until(next);
            let seen: Vec<_> = siege.seen.borrow_mut().last[0].drain(..).collect();
            for answer in seen.iter().filter(|(path, _)| *path == 0).filter_map(|(_, init)| answer.to(init)) {
                siege.send_as_member(&mut scene, 1, 0, &answer);
                answered += 1;
            }
        }
        assert!(answered > 0);
    }
}
