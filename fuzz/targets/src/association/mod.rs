//! Two endpoints, what is in flight between them, and what each should get.

mod forge;
mod sealed;
mod steps;

pub(crate) use forge::forge;
pub(crate) use steps::run;

use crate::tap;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_sctp::wire::{Chunk, Header, Packet, begin, seal};
use braidcast_sctp::{
    Artx, Association, AssociationId, Endpoint, Event, Limits, Method, Options, PathState, QueueScope, Reliability,
    SchedulerKind, SendOptions, StreamOrder,
};
use core::time::Duration;
use sealed::Spy;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Maximum number of packets in flight to one end; what comes on top is lost.
const ON_THE_WAY: usize = 512;
/// Transmits, or timers at one instant, after which a loop counts as endless.
const ENDLESS: usize = 20_000;
/// What key messages may take beyond the send buffer, whose limit is that of messages of the
/// application: those of two handshakes.
const KEY_MESSAGES: usize = 2 * (1500 + 250);
const PATHS: usize = 3;

/// Numbers that a forger who saw the packets would use.
#[derive(Clone, Copy, Default)]
pub(crate) struct Hints {
    /// Highest TSN that the peer sent.
    pub(crate) peer_tsn: u32,
    /// Highest TSN that end 0 sent.
    pub(crate) our_tsn: u32,
    /// The tag that a packet to end 0 must bear.
    pub(crate) tag: u32,
    /// Something was forged: what arrives proves nothing any more.
    pub(crate) forged: bool,
}

/// A packet in flight, in clear.
#[derive(Clone)]
struct Waiting {
    /// By which it arrives.
    route: Route,
    bytes: Vec<u8>,
    /// What it is sealed in.
    epoch: Option<u64>,
}

struct End {
    endpoint: Endpoint,
    id: Option<AssociationId>,
    /// What comes to this end is marked as having met congestion.
    marking: bool,
    /// Packets towards this end.
    inbox: VecDeque<Waiting>,
    /// Reliable messages that this end is to get: number, then stream, order and bytes.
    expected: BTreeMap<u32, (u16, bool, usize)>,
    /// Number of the last ordered message, by stream.
    last: BTreeMap<u16, u32>,
}

pub(crate) struct World {
    now: Instant,
    ends: [End; 2],
    hints: Hints,
    next_message: u32,
    /// The end that began the association.
    client: usize,
    options: Options,
    spy: Option<Spy>,
    buf: Vec<u8>,
}

fn address(end: usize, path: usize) -> SocketAddr {
    SocketAddr::from(([10, path as u8, 0, end as u8], 9899))
}

/// The route of `end` over path `path`.
fn route(end: usize, path: usize) -> Route {
    Route::new(SocketId(path as u16), address(1 - end, path))
}

impl World {
    pub(crate) fn new(settings: u8, protected: bool) -> Self {
        let base = if settings & 1 == 0 { Options::default() } else { Options::live() };
        let options = base.with(|it| {
            it.congestion.ecn = true;
            it.interleaving = settings & 2 == 0;
            it.reconfiguration = settings & 1 == 0;
            it.queue.stream_order = StreamOrder::ALL[usize::from(settings >> 2) % StreamOrder::ALL.len()].1;
            it.paths.scheduler = if settings & 4 == 0 { SchedulerKind::default() } else { SchedulerKind::RoundRobin };
            it.papers.loss_detection = braidcast_sctp::LossDetection::ALL[usize::from(settings >> 3 & 1)].1;
            it.congestion.pacing = settings & 16 == 0;
            // Bits that mean something else as well, as there are no others.
            it.redundancy.fec = (settings & 20 == 20).then(|| "tetrys:3,2,20".parse().expect("a code"));
            it.redundancy.artx = (settings & 8 == 0).then_some(Artx::Slowest);
            it.timed_messages = settings.is_multiple_of(5);
            it.limits.send_buffer = 100_000;
            it.limits.receive_buffer = if settings & 32 == 0 { 200_000 } else { 65_000 };
            it.limits.max_message = 60_000;
            it.limits.streams = 4;
            it.paths.max_paths = PATHS;
            it.queue.method = (settings % 3 == 2).then(|| Method::ALL[usize::from(settings / 3) % Method::ALL.len()].1);
            it.queue.scope = QueueScope::ALL[usize::from(settings >> 7)].1;
            it.queue.limits = Limits::messages(5);
        });
        let options = options.with(|it| it.security = protected.then(tap::security));
        let client = usize::from(settings >> 6 & 1);
        let end = |name| End {
            endpoint: Endpoint::new(options.clone(), Rng::from_seed(1).stream(name)).expect("options that work"),
            id: None,
            marking: false,
            inbox: VecDeque::new(),
            expected: BTreeMap::new(),
            last: BTreeMap::new(),
        };
        let ends = [end("ours"), end("peer")];
        let mut world = Self {
            now: Instant::ZERO,
            ends,
            hints: Hints::default(),
            next_message: 0,
            client,
            options,
            spy: protected.then(Spy::default),
            buf: Vec::new(),
        };
        world.ends[1 - client].endpoint.listen();
        let routes: Vec<Route> = (0..=usize::from(settings >> 7)).map(|path| route(client, path)).collect();
        let id = world.ends[client].endpoint.connect(world.now, 9899, &routes).expect("connects");
        world.ends[client].id = Some(id);
        for _ in 0..8 {
            world.settle();
            world.deliver_all();
            world.advance(Duration::from_millis(10));
        }
        for end in &world.ends {
            let id = end.id.expect("both ends have an association");
            assert!(end.endpoint.association(id).expect("it is there").is_established());
        }
        world
    }

    pub(crate) const fn client(&self) -> usize {
        self.client
    }

    pub(crate) const fn hints(&self) -> Hints {
        self.hints
    }

    /// Polls both ends dry.
    pub(crate) fn settle(&mut self) {
        for at in 0..2 {
            let mut turns = 0;
            loop {
                turns += 1;
                assert!(turns < ENDLESS, "transmits without end");
                let Some(transmit) = self.ends[at].endpoint.poll_transmit(self.now, &mut self.buf) else { break };
                let Some(path) = (0..PATHS).find(|&path| route(at, path) == transmit.route) else { continue };
                for datagram in transmit.datagrams(&self.buf) {
                    let seen = match &mut self.spy {
                        Some(spy) => spy.uncover(at, datagram),
                        None => Some((datagram.to_vec(), None)),
                    };
                    let several = self.spy.as_ref().is_some_and(|spy| spy.saw_several());
                    assert!(seen.is_some() || self.hints.forged || several, "a record that the keys do not open");
                    let Some((bytes, epoch)) = seen else { continue };
                    note(&mut self.hints, at, &bytes);
                    let inbox = &mut self.ends[1 - at].inbox;
                    if inbox.len() < ON_THE_WAY {
                        inbox.push_back(Waiting { route: route(1 - at, path), bytes, epoch });
                    }
                }
            }
            while let Some((_, event)) = self.ends[at].endpoint.poll_event() {
                if let Event::Abandoned { ppid, why: Some(_), .. } = event {
                    self.ends[1 - at].expected.remove(&ppid);
                }
            }
            let end = &mut self.ends[at];
            end.id = end.id.or_else(|| end.endpoint.associations().last());
            if let Some(association) = end.id.and_then(|id| end.endpoint.association(id)) {
                let keys = if self.spy.is_some() { KEY_MESSAGES } else { 0 };
                assert!(association.buffered() <= self.options.limits.send_buffer + keys);
                assert!(association.paths().count() <= PATHS);
            }
        }
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.now += by;
        for at in 0..2 {
            let mut turns = 0;
            while self.ends[at].endpoint.poll_timeout().is_some_and(|due| due <= self.now) {
                turns += 1;
                assert!(turns < ENDLESS / 10, "end {at}: a timer that is always due\n{}", self.summary());
                self.ends[at].endpoint.handle_timeout(self.now);
                self.settle();
            }
        }
    }

    pub(crate) fn next_timer(&mut self) {
        let due = self.ends.iter().filter_map(|end| end.endpoint.poll_timeout()).min();
        let by = due.map_or(Duration::ZERO, |due| due - self.now);
        self.advance(by);
    }

    pub(crate) fn association(&mut self, at: usize, action: impl FnOnce(&mut Association, Instant)) {
        let end = &mut self.ends[at];
        if let Some(association) = end.id.and_then(|id| end.endpoint.association_mut(id)) {
            action(association, self.now);
        }
    }

    /// Sends a message that holds its number, as far as it is long enough.
    pub(crate) fn send(&mut self, at: usize, len: usize, how: SendOptions) {
        let number = self.next_message;
        self.next_message += 1;
        let payload = payload(number, len);
        let mut taken = false;
        let deadline = match how.reliability {
            Reliability::Lifetime(life) if self.options.timed_messages => Some(self.now + life),
            _ => None,
        };
        self.association(at, |association, now| {
            taken = association.send(now, &payload, SendOptions { ppid: number, deadline, ..how }).is_ok()
        });
        if taken && how.reliability == Reliability::Reliable {
            self.ends[1 - at].expected.insert(number, (how.stream, how.unordered, len));
        }
    }

    pub(crate) fn recv(&mut self, at: usize, most: usize) {
        let End { endpoint, id, expected, last, .. } = &mut self.ends[at];
        let Some(association) = id.and_then(|id| endpoint.association_mut(id)) else { return };
        let mut buf = Vec::new();
        for _ in 0..most {
            let Some(received) = association.recv(self.now, &mut buf) else { break };
            let number = received.ppid;
            let Some((stream, unordered, len)) = expected.remove(&number) else { continue };
            if self.hints.forged {
                continue;
            }
            assert_eq!((received.stream, received.unordered, buf.len()), (stream, unordered, len));
            assert!(buf == payload(number, len), "message {number} is not what was sent");
            // Most queues choose the order themselves.
            if !unordered && matches!(self.options.queue.method, None | Some(Method::Fifo | Method::FifoTimed)) {
                let before = last.insert(stream, number);
                assert!(before < Some(number), "{number} after {before:?}");
            }
        }
    }

    fn take(&mut self, at: usize, nth: usize) -> Option<Waiting> {
        let inbox = &mut self.ends[at].inbox;
        let nth = nth.checked_rem(inbox.len())?;
        inbox.remove(nth)
    }

    fn give(&mut self, at: usize, packet: &Waiting) {
        let Waiting { route, ref bytes, epoch } = *packet;
        let covered = self.spy.as_mut().map(|spy| spy.cover(1 - at, epoch, bytes));
        let payload = covered.as_ref().unwrap_or(bytes);
        let ecn = if self.ends[at].marking { Ecn::Ce } else { Ecn::NotEct };
        let datagram = Datagram { route, ecn, payload };
        self.ends[at].endpoint.handle_datagram(self.now, datagram);
    }

    /// The way to end `at` begins to mark packets, or ceases to.
    pub(crate) fn toggle_marking(&mut self, at: usize) {
        self.ends[at].marking ^= true;
    }

    /// What is in flight now arrives.
    pub(crate) fn deliver_all(&mut self) {
        for at in 0..2 {
            for packet in core::mem::take(&mut self.ends[at].inbox) {
                self.give(at, &packet);
                self.settle();
            }
        }
    }

    pub(crate) fn deliver(&mut self, at: usize, nth: usize) {
        if let Some(packet) = self.take(at, nth) {
            self.give(at, &packet);
        }
    }

    pub(crate) fn drop_one(&mut self, at: usize, nth: usize) {
        self.take(at, nth);
    }

    pub(crate) fn drop_all(&mut self, at: usize) {
        self.ends[at].inbox.clear();
    }

    pub(crate) fn duplicate(&mut self, at: usize, nth: usize) {
        if let Some(packet) = self.take(at, nth) {
            self.give(at, &packet);
            self.ends[at].inbox.push_back(packet);
        }
    }

    pub(crate) fn join(&mut self, at: usize, path: usize) {
        self.association(at, |association, now| {
            let _ = association.join(now, route(at, path % PATHS));
        });
    }

    pub(crate) fn leave(&mut self, at: usize, path: usize) {
        self.association(at, |association, now| association.leave(now, route(at, path % PATHS)));
    }

    /// Delivers all that is under way to end 0, last first.
    pub(crate) fn reverse(&mut self) {
        self.ends[0].inbox.make_contiguous().reverse();
    }

    /// Delivers a packet to end 0 with some bytes changed and the checksum right.
    pub(crate) fn deliver_changed(&mut self, nth: usize, changes: &[(u16, u8)]) {
        self.hints.forged = true;
        let Some(mut packet) = self.take(0, nth) else { return };
        let bytes = &mut packet.bytes;
        for &(at, change) in changes {
            let at = usize::from(at) % bytes.len();
            // The ports and the tag stay, so that it gets past the door.
            if at >= Header::LEN {
                bytes[at] ^= change;
            }
        }
        seal(bytes);
        self.give(0, &packet);
    }

    /// Delivers a packet to end 0 that the peer never sent: protected, if the peer protects its
    /// own, but for one of two.
    pub(crate) fn inject(&mut self, path: u8, write: impl FnOnce(&mut Vec<u8>)) {
        self.hints.forged = true;
        let mut packet = Vec::new();
        let epoch = self.spy.as_ref().filter(|_| path & 32 == 0).and_then(|spy| spy.epoch(1));
        // An INIT has the tag 0.
        let verification_tag = if path & 64 == 0 { self.hints.tag } else { 0 };
        begin(&mut packet, Header { source_port: 9899, destination_port: 9899, verification_tag });
        write(&mut packet);
        seal(&mut packet);
        self.give(0, &Waiting { route: route(0, usize::from(path) % PATHS), bytes: packet, epoch });
    }

    /// The peer loses its state and connects anew.
    pub(crate) fn restart(&mut self, seed: u8) {
        self.hints.forged = true;
        let mut endpoint =
            Endpoint::new(self.options.clone(), Rng::from_seed(u64::from(seed))).expect("options that work");
        self.ends[1].id = endpoint.connect(self.now, 9899, &[route(1, 0)]).ok();
        self.ends[1].endpoint = endpoint;
        self.ends[0].endpoint.listen();
    }

    fn summary(&self) -> String {
        let mut text = String::new();
        for end in &self.ends {
            let Some(association) = end.id.and_then(|id| end.endpoint.association(id)) else { continue };
            text += &format!("buffered {} {:?}\n", association.buffered(), association.stats());
            for path in association.paths() {
                text += &format!("  {} {:?} {} in flight\n", path.route, path.state, path.in_flight);
            }
        }
        text
    }

    /// Lets all networks come back and all arrive; if both ends are still up then, nothing that was
    /// promised may be missing.
    pub(crate) fn finish(&mut self) {
        for at in 0..2 {
            // Each end may have left another network.
            let left = |association: &Association| association.paths().all(|path| path.state != PathState::Active);
            if self.ends[at].id.and_then(|id| self.ends[at].endpoint.association(id)).is_some_and(left) {
                (0..PATHS).for_each(|path| self.join(at, path));
            }
        }
        for _ in 0..3000 {
            self.settle();
            self.deliver_all();
            self.settle();
            for at in 0..2 {
                self.recv(at, usize::MAX);
            }
            self.settle();
            if self.ends.iter().all(|end| end.expected.is_empty()) {
                return;
            }
            let up =
                |end: &End| end.id.and_then(|id| end.endpoint.association(id)).is_some_and(Association::is_established);
            if !self.ends.iter().all(up) {
                return;
            }
            self.next_timer();
        }
        let missing: Vec<_> = self.ends.iter().map(|end| end.expected.len()).collect();
        panic!("messages that never came, towards each end: {missing:?}\n{}", self.summary());
    }
}

fn payload(number: u32, len: usize) -> Vec<u8> {
    number
        .to_be_bytes()
        .into_iter()
        .chain((0_u32..).map(|i| (i.wrapping_mul(number + 7) >> 3) as u8))
        .take(len)
        .collect()
}

/// What everybody on the path can see. Whatever we send must be valid.
fn note(hints: &mut Hints, from: usize, datagram: &[u8]) {
    let packet = Packet::parse(datagram).expect("a valid packet");
    if from == 1 && packet.header.verification_tag != 0 {
        hints.tag = packet.header.verification_tag;
    }
    for raw in packet.chunks() {
        let tsn = match Chunk::parse(raw.expect("framed")).expect("a valid chunk") {
            Chunk::Data(data) => data.tsn,
            Chunk::IData(data) => data.tsn,
            Chunk::Init(init) | Chunk::InitAck(init) => init.initial_tsn,
            _ => continue,
        };
        *(if from == 0 { &mut hints.our_tsn } else { &mut hints.peer_tsn }) = tsn;
    }
}
