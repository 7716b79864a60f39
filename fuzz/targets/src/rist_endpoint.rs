//! A sender and a receiver of RIST back to back, with any sequence of losses, copies, changed packets, forgeries and
//! strangers between them.
//!
//! Nothing may panic, no loop may go on without end, and nothing grows without bound. While nothing was changed on its
//! way, the payloads of a stream come out in order, each once.

use arbitrary::{Result, Unstructured};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_gateway::rist::wire::{gre, rtcp};
use braidcast_gateway::rist::{Endpoint, Options, Profile, Secret};
use braidcast_gateway::srt::KeyLength;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

const SENDER: usize = 0;
const RECEIVER: usize = 1;
/// Packets in flight to one end; what comes on top is lost.
const IN_FLIGHT: usize = 512;
/// Packets or timers at one instant after which a loop counts as endless.
const ENDLESS: usize = 20_000;
/// Packets that an end keeps.
const BUFFER: usize = 64;

struct World {
    ends: [Endpoint; 2],
    flight: [VecDeque<(u16, Vec<u8>)>; 2],
    now: Instant,
    pushed: u64,
    /// The stream that comes out, and its last payload.
    last: Option<(u32, u64)>,
    honest: bool,
}

/// The simple profile's second socket has the port behind.
fn address(end: usize, socket: u16) -> SocketAddr {
    ([10, 0, 0, 1 + end as u8], 1000 + socket).into()
}

impl World {
    fn hear(&mut self, end: usize, from: SocketAddr, socket: u16, bytes: &[u8]) {
        let route = Route::new(SocketId(socket), from);
        self.ends[end].handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: bytes });
        self.settle();
    }

    /// Lets both ends send, and takes what is due.
    fn settle(&mut self) {
        let mut buf = Vec::new();
        for end in [SENDER, RECEIVER] {
            let mut turns = 0;
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut buf) {
                turns += 1;
                assert!(turns < ENDLESS, "an end that never stops sending");
                let socket = transmit.route.socket.0;
                if transmit.route.remote.ip() == address(1 - end, 0).ip() && self.flight[1 - end].len() < IN_FLIGHT {
                    self.flight[1 - end].push_back((socket, buf.clone()));
                }
            }
            while self.ends[end].poll_event().is_some() {}
        }
        while let Some((stream, _)) = self.ends[RECEIVER].deliver(self.now, &mut buf) {
            assert!(buf.len() % 188 == 0);
            if self.honest {
                let number = u64::from_be_bytes(buf[1..9].try_into().expect("a whole payload"));
                assert!(number < self.pushed && self.last.is_none_or(|last| last < (stream, number)));
                self.last = Some((stream, number));
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut turns = 0;
        loop {
            let due = self.ends.iter().filter_map(Machine::poll_timeout).min();
            let Some(at) = due.filter(|at| *at <= until) else { break };
            turns += 1;
            assert!(turns < ENDLESS, "timers without end");
            self.now = self.now.max(at);
            for end in [SENDER, RECEIVER] {
                if self.ends[end].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.ends[end].handle_timeout(self.now);
                }
            }
            self.settle();
        }
        self.now = until;
    }
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let latency = Duration::from_millis(u.int_in_range(0..=400)?);
    let profile = if u.arbitrary()? { Profile::Main } else { Profile::Simple };
    let secret = |has: bool| has.then(|| Secret::new("correct horse".into()).expect("short enough"));
    let (keyed, mixed) = (u.ratio(1, 4)?, u.ratio(1, 16)?);
    let key_length = if u.arbitrary()? { KeyLength::Aes256 } else { KeyLength::Aes128 };
    let options = Options { latency, profile, key_length, buffer: BUFFER, secret: secret(keyed), ..Options::default() };
    let other = Options { secret: secret(keyed != mixed), ..options.clone() };
    let start = Instant::ZERO;
    let sender = Endpoint::sender(start, address(RECEIVER, 0), options, Rng::from_seed(1));
    let receiver = Endpoint::receiver(start, other, Rng::from_seed(2));
    let mut world = World {
        ends: [sender, receiver],
        flight: Default::default(),
        now: start,
        pushed: 0,
        last: None,
        honest: true,
    };
    world.settle();
    while !u.is_empty() {
        let end = usize::from(u.arbitrary::<bool>()?);
        match u.int_in_range(0..=9)? {
            0..=2 => {
                for _ in 0..u.int_in_range(1..=8)? {
                    let mut payload = [0x47; 188];
                    payload[1..9].copy_from_slice(&world.pushed.to_be_bytes());
                    world.pushed += 1;
                    let now = world.now;
                    world.ends[SENDER].push(now, &payload);
                }
                world.settle();
            }
            3..=5 => {
                for _ in 0..u.int_in_range(1..=16)? {
                    let Some((socket, packet)) = world.flight[end].pop_front() else { break };
                    world.hear(end, address(1 - end, socket), socket, &packet);
                }
            }
            6 => world.pass(Duration::from_millis(u.int_in_range(0..=300)?)),
            7 => {
                // Lost, overtaken, or twice.
                let Some(packet) = world.flight[end].pop_front() else { continue };
                match u.int_in_range(0..=2)? {
                    0 => {}
                    1 => world.flight[end].push_back(packet),
                    _ => {
                        world.flight[end].push_front(packet.clone());
                        world.flight[end].push_back(packet);
                    }
                }
            }
            8 => {
                let Some((socket, mut packet)) = world.flight[end].pop_front() else { continue };
                world.honest = false;
                for _ in 0..u.int_in_range(1..=4)? {
                    let at = u.choose_index(packet.len().max(1))?;
                    if let Some(byte) = packet.get_mut(at) {
                        *byte = u.arbitrary()?;
                    }
                }
                if u.ratio(1, 4)? {
                    packet.truncate(u.choose_index(packet.len().max(1))?);
                }
                world.hear(end, address(1 - end, socket), socket, &packet);
            }
            _ => {
                // From a stranger, or in the name of the other end.
                world.honest = false;
                let (socket, port) = (u.int_in_range(0..=1)?, u.int_in_range(1..=40)?);
                let from = if u.arbitrary()? { address(1 - end, socket) } else { ([10, 0, 9, 9], port).into() };
                let len = u.int_in_range(0..=80)?;
                let bytes = u.bytes(len.min(u.len()))?;
                if let Some((header, body)) = gre::Header::parse(bytes) {
                    let _ = header.content(body);
                }
                let asked = rtcp::Items::new(bytes).filter_map(|item| match item {
                    rtcp::Item::Missing(missing) => Some(missing.numbers().count()),
                    _ => None,
                });
                assert!(asked.into_iter().all(|count| count <= 4096));
                world.hear(end, from, socket, bytes);
            }
        }
    }
    Ok(())
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let _ = run(&mut Unstructured::new(bytes));
}
