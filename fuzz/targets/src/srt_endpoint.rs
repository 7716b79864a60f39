//! A caller and a listener of SRT, or of SRTLA's receiving half, back to back, with any sequence of losses, copies,
//! changed packets, forgeries and strangers between them.
//!
//! Nothing may panic, no loop may go on without end, and nothing grows without bound. While nothing was changed on its
//! way, payloads come out in order, each once.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_gateway::srt::{Direction, Endpoint, Options, Passphrase};
use core::time::Duration;
use arbitrary::{Result, Unstructured};
use std::collections::VecDeque;
use std::net::SocketAddr;

const CALLER: usize = 0;
const LISTENER: usize = 1;
/// Packets on their way to one end; what comes on top is lost.
const ON_THE_WAY: usize = 512;
/// Packets or timers at one instant after which a loop counts as endless.
const ENDLESS: usize = 20_000;
/// Packets that an end keeps.
const BUFFER: usize = 64;

struct World {
    ends: [Endpoint; 2],
    flight: [VecDeque<Vec<u8>>; 2],
    now: Instant,
    pushed: u64,
    last: Option<u64>,
    honest: bool,
}

fn address(end: usize) -> SocketAddr {
    ([10, 0, 0, 1 + end as u8], 1000).into()
}

impl World {
    fn hear(&mut self, end: usize, from: SocketAddr, bytes: &[u8]) {
        let route = Route::new(SocketId(0), from);
        self.ends[end].handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: bytes });
        self.settle();
    }

    /// Lets both ends send, and takes what is due.
    fn settle(&mut self) {
        let mut buf = Vec::new();
        for end in [CALLER, LISTENER] {
            let mut turns = 0;
            while let Some(transmit) = self.ends[end].poll_transmit(self.now, &mut buf) {
                turns += 1;
                assert!(turns < ENDLESS, "an end that never stops sending");
                if transmit.route.remote == address(1 - end) && self.flight[1 - end].len() < ON_THE_WAY {
                    self.flight[1 - end].push_back(buf.clone());
                }
            }
            while self.ends[end].poll_event().is_some() {}
        }
        while self.ends[LISTENER].deliver(self.now, &mut buf).is_some() {
            if self.honest {
                let number = u64::from_be_bytes(buf[..8].try_into().expect("a whole payload"));
                assert!(number < self.pushed && self.last.is_none_or(|last| last < number));
                self.last = Some(number);
            }
        }
        for (_, report) in self.ends[LISTENER].reports() {
            assert!(report.waiting <= BUFFER);
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let mut turns = 0;
        loop {
            let due = [0, 1].map(|end| self.ends[end].poll_timeout()).into_iter().flatten().min();
            let Some(at) = due.filter(|at| *at <= until) else { break };
            turns += 1;
            assert!(turns < ENDLESS, "timers that never end");
            self.now = self.now.max(at);
            let now = self.now;
            self.ends
                .iter_mut()
                .filter(|end| end.poll_timeout().is_some_and(|at| at <= now))
                .for_each(|end| end.handle_timeout(now));
            self.settle();
        }
        self.now = until;
    }
}

fn act(world: &mut World, u: &mut Unstructured<'_>) -> Result<()> {
    let end = usize::from(u.arbitrary::<bool>()?);
    match u.int_in_range(0..=9)? {
        0..=3 => {
            if let Some(bytes) = world.flight[end].pop_front() {
                world.hear(end, address(1 - end), &bytes);
            }
        }
        4 => drop(world.flight[end].pop_front()),
        5 => {
            if let Some(bytes) = world.flight[end].front().cloned() {
                world.hear(end, address(1 - end), &bytes);
            }
        }
        6 => {
            let Some(mut bytes) = world.flight[end].pop_front() else { return Ok(()) };
            world.honest = false;
            for _ in 0..u.int_in_range(1..=4)? {
                let at = u.choose_index(bytes.len())?;
                bytes[at] = u.arbitrary()?;
            }
            let len = u.int_in_range(0..=bytes.len())?;
            let from = if u.arbitrary()? { address(1 - end) } else { address(7) };
            world.hear(end, from, &bytes[..len]);
        }
        7 => {
            world.honest = false;
            let len = u.int_in_range(0..=300)?;
            let bytes = u.bytes(len.min(u.len()))?.to_vec();
            world.hear(end, address(u.int_in_range(0..=9)?), &bytes);
        }
        8 => {
            let time = Duration::from_millis(u.int_in_range(0..=2000)?);
            world.pass(time);
        }
        _ => {
            for _ in 0..u.int_in_range(1..=20)? {
                let payload = [&world.pushed.to_be_bytes()[..], &[0x47; 180]].concat();
                world.pushed += 1;
                world.ends[CALLER].push(world.now, &payload);
            }
            world.settle();
        }
    }
    Ok(())
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let Ok(kind) = u.arbitrary::<u8>() else { return };
    let passphrase = (kind & 0x31 == 0x31).then(|| Passphrase::new("correct horse".into()).expect("long enough"));
    // By a list of streams, which has the caller's.
    let keys = passphrase.clone().filter(|_| kind & 8 != 0).map(|secret| vec![("cam1".to_owned(), secret)]);
    let stream_id = keys.as_ref().map(|_| "live/cam1".to_owned());
    let options =
        Options { passphrase, buffer: BUFFER, key_refresh: 8000, connections: 2, stream_id, ..Options::default() };
    let listening = Options { keys, ..options.clone() };
    let rng = Rng::from_seed(1);
    let listener = match kind & 2 {
        0 => Endpoint::listener(Instant::ZERO, Direction::Receive, listening, rng.stream("listener")),
        _ => Endpoint::bonded_listener(Instant::ZERO, listening, rng.stream("listener")),
    };
    let caller = Endpoint::caller(Instant::ZERO, address(LISTENER), options, rng.stream("caller"));
    let mut world = World {
        ends: [caller, listener],
        flight: Default::default(),
        now: Instant::ZERO,
        pushed: 0,
        last: None,
        honest: true,
    };
    // Up to a connection without anything going wrong, unless the first byte says otherwise.
    for _ in 0..if kind & 4 == 0 { 6 } else { 0 } {
        world.pass(Duration::from_millis(1));
        for end in [LISTENER, CALLER] {
            while let Some(bytes) = world.flight[end].pop_front() {
                world.hear(end, address(1 - end), &bytes);
            }
        }
    }
    while !u.is_empty() {
        if act(&mut world, &mut u).is_err() {
            break;
        }
    }
    world.pass(Duration::from_secs(6));
}
