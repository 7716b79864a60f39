//! A relay and two ends of a circuit, with any sequence of losses, copies, changed packets, forgeries and strangers
//! between them, and restarts.
//!
//! Nothing may panic, no loop may go on without end. Nobody who has no place gets more bytes than it sent. What one
//! end gets, the other one sent, unless something was forged from its own address.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_relay::{Admission, Client, Control, Credentials, Header, Leg, OwnerSecret, Place, Relay, RelayOptions};
use core::time::Duration;
use arbitrary::{Result, Unstructured};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Packets in flight; what comes on top is lost.
const ON_THE_WAY: usize = 256;

struct World {
    relay: Relay,
    ends: [Client; 2],
    /// To the relay, by end.
    up: [VecDeque<Vec<u8>>; 2],
    /// To the ends.
    down: [VecDeque<Vec<u8>>; 2],
    now: Instant,
    restarts: u64,
}

fn new_relay(seed: u64) -> Relay {
    let options = RelayOptions { admission: Admission::Open(Some(8_000_000)), members: 8 };
    Relay::new(options, Rng::from_seed(seed)).expect("good options")
}

fn address(end: usize) -> SocketAddr {
    ([10, 0, 0, 1 + end as u8], 1000).into()
}

fn push(to: &mut VecDeque<Vec<u8>>, bytes: Vec<u8>) {
    if to.len() < ON_THE_WAY {
        to.push_back(bytes);
    }
}

impl World {
    fn relay_hears(&mut self, from: SocketAddr, bytes: &[u8]) {
        let route = Route::new(SocketId(0), from);
        self.relay.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: bytes });
        let (mut buf, mut answered) = (Vec::new(), 0);
        while let Some(transmit) = self.relay.poll_transmit(self.now, &mut buf) {
            let to = (0..2).find(|end| address(*end) == transmit.route.remote);
            match to {
                Some(end) => push(&mut self.down[end], buf.clone()),
                None => assert_eq!(transmit.route.remote, from, "somebody who sent nothing"),
            }
            answered += usize::from(transmit.route.remote == from) * buf.len();
        }
        // Members are also told of each other.
        let is_end = (0..2).any(|end| address(end) == from);
        assert!(is_end || answered <= bytes.len(), "{answered} bytes for {}", bytes.len());
    }

    fn end_hears(&mut self, end: usize, bytes: &[u8]) {
        if let Some((_, payload)) = self.ends[end].handle(self.now, bytes) {
            assert!(payload.len() < bytes.len());
        }
        self.settle();
    }

    fn settle(&mut self) {
        for end in 0..2 {
            while let Some(bytes) = self.ends[end].poll() {
                push(&mut self.up[end], bytes);
            }
            while self.ends[end].poll_straight().is_some() {}
            while self.ends[end].poll_event().is_some() {}
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.relay.handle_timeout(self.now);
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            assert!(self.ends[end].next(self.now) > self.now, "a timer that is always due");
        }
        self.settle();
    }
}

fn act(world: &mut World, u: &mut Unstructured<'_>) -> Result<()> {
    let end = usize::from(u.arbitrary::<bool>()?);
    match u.int_in_range(0..=9)? {
        0 | 1 => {
            if let Some(bytes) = world.up[end].pop_front() {
                world.relay_hears(address(end), &bytes);
            }
        }
        2 | 3 => {
            if let Some(bytes) = world.down[end].pop_front() {
                world.end_hears(end, &bytes);
            }
        }
        4 => drop(world.up[end].pop_front()),
        5 => {
            // A copy, or a changed one, from anywhere.
            let Some(mut bytes) = world.up[end].front().cloned() else { return Ok(()) };
            for _ in 0..u.int_in_range(0..=3)? {
                let at = u.choose_index(bytes.len())?;
                bytes[at] = u.arbitrary()?;
            }
            world.relay_hears(address(u.int_in_range(0..=9)?), &bytes);
        }
        6 => {
            let len = u.int_in_range(0..=200)?;
            let bytes = u.bytes(len.min(u.len()))?.to_vec();
            let _ = (Control::read(&bytes), Header::read(&bytes));
            let _ = world.ends[end].handle_straight(address(u.int_in_range(0..=9)?), &bytes);
            if u.arbitrary()? {
                world.relay_hears(address(u.int_in_range(0..=9)?), &bytes);
            } else {
                world.end_hears(end, &bytes);
            }
        }
        7 => {
            let mut bytes = vec![7; u.int_in_range(0..=300)?];
            let segment = u.int_in_range(1..=300)?;
            if world.ends[end].wrap(world.now, Leg(end as u16), &mut bytes, segment, &mut Vec::new()) {
                push(&mut world.up[end], bytes);
            }
        }
        8 => world.pass(Duration::from_millis(u.int_in_range(0..=20_000)?)),
        _ => {
            world.restarts += 1;
            world.relay = new_relay(world.restarts);
        }
    }
    Ok(())
}

/// Takes one input.
pub fn fuzz(bytes: &[u8]) {
    let mut u = Unstructured::new(bytes);
    let secret = OwnerSecret([3; 16]);
    let end = |place, leg, seed| {
        let credentials = Credentials { place, epoch: 1, hidden: false, signer: None };
        Client::new(Instant::ZERO, address(9), credentials, Leg(leg), Rng::from_seed(seed))
    };
    let mut world = World {
        relay: new_relay(0),
        ends: [end(Place::Owner(secret), 1, 1), end(Place::Guest(secret.circuit()), 0, 2)],
        up: Default::default(),
        down: Default::default(),
        now: Instant::ZERO,
        restarts: 0,
    };
    world.settle();
    while !u.is_empty() {
        if act(&mut world, &mut u).is_err() {
            break;
        }
    }
    world.pass(Duration::from_secs(100));
}
