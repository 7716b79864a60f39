//! A sender that has the key and no manners: whatever it says, a receiver's memory stays bounded.

use crate::common::keyed::keyed;
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_media::{Kind, Run};
use braidcast_sctp::{AssociationId, Endpoint, SendOptions};
use braidcast_session::wire::{self, Clock, Hello, PPID, SESSION_VERSION, UnitHeader};
use braidcast_session::{Admission, Event, Identity, Receiver, ReceiverOptions};
use braidcast_testing::Counting;
use core::net::SocketAddr;
use core::time::Duration;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Of the receiver, bytes; the bound goes with it.
const BUFFER: usize = 2 << 20;
/// Bytes of a receiver whose transport is full too (4 MiB of data), with what finding it costs.
const BOUND: isize = 8 << 20;
const MESSAGES: u64 = 120_000;

/// What is wrong about its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unruly {
    /// They are due in an hour, and every second packet is missing.
    Parked,
    /// Each is the first of 65,535 parts.
    Torn,
    /// Each says that it came before.
    Again,
    /// Their packets have numbers of chance.
    Scattered,
    /// They are due in an hour, and the clock jumps back and forth.
    Unclocked,
}

struct Pipe {
    sender: Endpoint,
    receiver: Receiver,
    id: AssociationId,
    now: Instant,
    packets: Vec<u8>,
    output: Vec<u8>,
    /// What the receiver holds, and held at most, bytes.
    held: isize,
    most: isize,
    streams: usize,
}

fn at(host: u8) -> Route {
    Route::new(SocketId(0), SocketAddr::from(([10, 0, 0, host], 9899)))
}

impl Pipe {
    fn new(options: ReceiverOptions) -> Self {
        let options = options.with(|it| {
            it.security = keyed(2);
            it.buffer = BUFFER;
        });
        let transport = options.transport().with(|it| it.security = keyed(1));
        let receiver = Receiver::new(options, Rng::from_seed(1)).unwrap();
        let mut sender = Endpoint::new(transport, Rng::from_seed(2)).unwrap();
        let now = Instant::from_millis(1000);
        let id = sender.connect(now, 9899, &[at(1)]).unwrap();
        let (packets, output) = (vec![0; 1 << 16], Vec::new());
        let mut pipe = Self { sender, receiver, id, now, packets, output, held: 0, most: 0, streams: 0 };
        pipe.run(20);
        pipe
    }

    /// The next one that connects, under the same name or another.
    fn again(&mut self) {
        self.id = self.sender.connect(self.now, 9899, &[at(1)]).unwrap();
        self.run(20);
    }

    /// Steps of 5 ms, in which all packets arrive.
    fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.now += Duration::from_millis(5);
            self.carry();
        }
    }

    fn carry(&mut self) {
        let now = self.now;
        if self.sender.poll_timeout().is_some_and(|at| at <= now) {
            self.sender.handle_timeout(now);
        }
        let before = Counting::bytes();
        if self.receiver.poll_timeout().is_some_and(|at| at <= now) {
            self.receiver.handle_timeout(now);
        }
        self.held += Counting::bytes() - before;
        loop {
            let mut any = false;
            while let Some(transmit) = self.sender.poll_transmit(now, &mut self.packets) {
                any = true;
                let before = Counting::bytes();
                for payload in transmit.datagrams(&self.packets) {
                    self.receiver.handle_datagram(now, Datagram { route: at(2), ecn: transmit.ecn, payload });
                }
                self.held += Counting::bytes() - before;
            }
            while let Some(transmit) = self.answer() {
                any = true;
                for payload in transmit.datagrams(&self.packets) {
                    self.sender.handle_datagram(now, Datagram { route: at(1), ecn: transmit.ecn, payload });
                }
            }
            if !any {
                break;
            }
        }
        let before = Counting::bytes();
        let channels: Vec<_> = self.receiver.channels().map(|(channel, _)| channel).collect();
        for channel in channels {
            while self.receiver.poll_output(now, channel, &mut self.output) {}
        }
        while let Some((_, event)) = self.receiver.poll_event() {
            self.streams += usize::from(matches!(event, Event::Offered(_)));
        }
        self.held += Counting::bytes() - before;
        while self.sender.poll_event().is_some() {}
        let mut message = Vec::new();
        if let Some(association) = self.sender.association_mut(self.id) {
            while association.recv(now, &mut message).is_some() {}
        }
        self.most = self.most.max(self.held);
    }

    fn answer(&mut self) -> Option<Transmit> {
        let before = Counting::bytes();
        let answer = self.receiver.poll_transmit(self.now, &mut self.packets);
        self.held += Counting::bytes() - before;
        answer
    }

    fn say(&mut self, stream: u16, message: &[u8]) -> bool {
        let how = SendOptions { stream, ppid: PPID, ..SendOptions::default() };
        let now = self.now;
        self.sender.association_mut(self.id).is_some_and(|it| it.send(now, message, how).is_ok())
    }

    fn hello(&mut self, name: &str, number: u8) {
        let (identity, name) = (Identity([number; 16]), name.to_owned());
        let (session, incarnation, reliable, size) = (SESSION_VERSION, 7, false, None);
        let mut out = Vec::new();
        let before = Clock::default().captured;
        wire::write_hello(&mut out, &Hello { session, identity, incarnation, reliable, size, before, name });
        assert!(self.say(0, &out));
    }
}

/// What the sender's clock shows, µs.
fn clock(now: Instant) -> u64 {
    1_000_000_000 + now.as_nanos() / 1000
}

fn header(now: Instant, sequence: u32, latency: u32) -> UnitHeader {
    UnitHeader {
        kind: Kind::P,
        reference: true,
        reliable: false,
        again: false,
        sequence,
        part: 0,
        parts: 1,
        more: false,
        captured: clock(now),
        span: 0,
        latency,
        pts: None,
    }
}

#[test]
fn whatever_a_sender_with_the_key_says_a_receivers_memory_is_bounded() {
    let packet: Vec<u8> = [0x47, 1, 0, 0x10].into_iter().chain([0x33; 184]).collect();
    for unruly in [Unruly::Parked, Unruly::Torn, Unruly::Again, Unruly::Scattered, Unruly::Unclocked] {
        let mut pipe = Pipe::new(ReceiverOptions::default());
        pipe.hello("", 1);
        pipe.run(10);
        let mut out = Vec::new();
        // What is not taken is held up: the sender's buffer is full, and it tries again for 2 s.
        let (mut sent, mut last) = (0, pipe.now);
        while sent < MESSAGES && pipe.now.since(last) < Duration::from_secs(2) {
            for _ in 0..40 {
                let (first, latency) = match unruly {
                    Unruly::Parked | Unruly::Unclocked => (2 * sent, 4_000_000_000),
                    Unruly::Scattered => (sent.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 12, 500_000),
                    Unruly::Torn | Unruly::Again => (sent, 500_000),
                };
                let mut header = header(pipe.now, sent as u32, latency);
                header.again = unruly == Unruly::Again;
                header.parts = if unruly == Unruly::Torn { u16::MAX } else { 1 };
                wire::write_unit(&mut out, &header, &[Run { first, count: 1, null: false }], &packet, false);
                if pipe.say(3, &out) {
                    (sent, last) = (sent + 1, pipe.now);
                }
            }
            if sent / 40 % 20 == 0 {
                let jump = if unruly == Unruly::Unclocked && sent / 800 % 2 == 1 { 50_000_000_000 } else { 0 };
                let clock = Clock { sent: clock(pipe.now) + jump, rtt: 1000, ..Clock::default() };
                wire::write_clock(&mut out, &clock, false);
                pipe.say(0, &out);
            }
            pipe.run(1);
        }
        println!("{unruly:?}: {sent} messages, {} bytes at most, {} streams", pipe.most, pipe.streams);
        assert!(pipe.streams > 0, "{unruly:?}: its stream was not taken");
        assert!(sent > 15_000, "{unruly:?}: {sent} messages are not more than the buffers hold");
        assert!(pipe.most < BOUND, "{unruly:?}: {} bytes", pipe.most);
    }
}

#[test]
fn a_sender_that_comes_under_one_name_after_the_other_leaves_nothing_behind() {
    let mut pipe = Pipe::new(ReceiverOptions::default().with(|it| {
        it.keep = true;
        it.admission = Admission::Each(64);
    }));
    let packet: Vec<u8> = [0x47, 1, 0, 0x10].into_iter().chain([0x33; 184]).collect();
    let mut after = Vec::new();
    for round in 0..300_u32 {
        let mut out = Vec::new();
        pipe.hello(&format!("name{round}"), round as u8);
        wire::write_unit(
            &mut out,
            &header(pipe.now, 0, 10_000),
            &[Run { first: 0, count: 1, null: false }],
            &packet,
            false,
        );
        assert!(pipe.say(3, &out));
        let end = Clock { sent: clock(pipe.now), rtt: 1000, captured: [0, 0, 0, 1, 0, 0, 0] };
        wire::write_clock(&mut out, &end, true);
        assert!(pipe.say(0, &out));
        pipe.run(10);
        let now = pipe.now;
        if let Some(association) = pipe.sender.association_mut(pipe.id) {
            association.shutdown(now);
        }
        pipe.run(10);
        if round % 100 == 99 {
            pipe.run(2000);
            after.push(pipe.held);
        }
        pipe.again();
    }
    println!("{} streams, bytes {after:?}", pipe.streams);
    assert!(pipe.streams >= 300, "{} streams of 300 were taken", pipe.streams);
    assert!(after[2] - after[0] < 16 << 10, "{after:?}");
}
