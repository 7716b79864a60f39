//! A live stream over two paths, in memory: what its sender does for a packet, its receiver, and the playout.

use super::{PAYLOAD, noise};
use crate::counted;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_media::{Kind, Run, Unit};
use braidcast_secure::identity::Identity;
use braidcast_secure::tls::{Tls, Trust};
use braidcast_secure::{SecurityOptions, Suite};
use braidcast_session::{ChannelId, Receiver, ReceiverOptions, Sender, SenderOptions};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

const PORT: u16 = 9899;
/// One way, of the first and the second path.
const DELAYS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(45)];
/// How far the clock goes at once.
const STEP: Duration = Duration::from_millis(5);
/// Frames at 25 a second, of which the first 25 are not counted: paths are joined then, windows grow.
const FRAMES: u64 = 100;
const WARM_UP: u64 = 25;
/// Datagrams' worth of transport stream in a frame: 4.2 Mbit/s.
const DATAGRAMS: u64 = 16;

/// What of it is counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Sender,
    Receiver,
    Playout,
}

/// What protects the stream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Protection {
    Plain,
    /// As `braidcast send` has it by default: AES-128-GCM, each end with keys of its own.
    Keys,
}

impl Protection {
    fn options(self) -> Option<SecurityOptions> {
        let tls = || Tls::new(Identity::ephemeral().expect("random numbers"), Trust::Anyone, &Suite::ALL);
        (self == Self::Keys).then(|| SecurityOptions::new(Arc::new(tls())))
    }
}

/// Datagrams in flight: when they arrive, over which path, and their bytes.
type Wire = VecDeque<(Instant, u16, Vec<u8>)>;

struct Stream {
    part: Part,
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    there: Wire,
    back: Wire,
    buffer: Vec<u8>,
    /// Datagrams that the sender sent, and frames that came out, since the counting began.
    packets: u64,
    played_bytes: u64,
    counting: bool,
}

fn address(host: u8, path: u16) -> SocketAddr {
    SocketAddr::from(([10, path as u8, 0, host], PORT))
}

impl Stream {
    fn new(part: Part, protection: Protection) -> Self {
        let (rng, now) = (Rng::from_seed(1), Instant::from_millis(1));
        let routes = [0, 1].map(|path| Route::new(SocketId(path), address(2, path)));
        let options = SenderOptions::default().with(|it| it.security = protection.options());
        let sender = Sender::new(now, options, rng.stream("source"), PORT, &routes);
        let options = ReceiverOptions::default().with(|it| it.security = protection.options());
        let receiver = Receiver::new(options, rng.stream("sink"));
        Self {
            part,
            now,
            sender: sender.expect("the defaults work"),
            receiver: receiver.expect("the defaults work"),
            there: Wire::new(),
            back: Wire::new(),
            buffer: Vec::new(),
            packets: 0,
            played_bytes: 0,
            counting: false,
        }
    }

    /// Does the work, and counts it if that is what this row counts.
    fn does(&mut self, part: Part, mut work: impl FnMut(&mut Self)) {
        if self.counting && self.part == part { counted(&mut || work(self)) } else { work(self) }
    }

    /// Lets a step of time pass, with all that is due at both ends.
    fn step(&mut self) {
        self.now += STEP;
        let now = self.now;
        while self.back.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, path, payload) = self.back.pop_front().expect("just seen");
            let route = Route::new(SocketId(path), address(2, path));
            let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &payload };
            self.does(Part::Sender, |it| it.sender.handle_datagram(now, datagram));
        }
        self.does(Part::Sender, |it| {
            if it.sender.poll_timeout().is_some_and(|at| at <= now) {
                it.sender.handle_timeout(now);
            }
        });
        while self.there.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, path, payload) = self.there.pop_front().expect("just seen");
            let route = Route::new(SocketId(path), address(1, path));
            let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &payload };
            self.does(Part::Receiver, |it| it.receiver.handle_datagram(now, datagram));
        }
        self.does(Part::Receiver, |it| {
            if it.receiver.poll_timeout().is_some_and(|at| at <= now) {
                it.receiver.handle_timeout(now);
            }
        });
        while self.outputs() {}
        while self.sends(Part::Sender) {}
        while self.sends(Part::Receiver) {}
        while self.sender.poll_event().is_some() {}
        while self.receiver.poll_event().is_some() {}
    }

    /// Returns `true` if something was played.
    fn outputs(&mut self) -> bool {
        let mut any = false;
        self.does(Part::Playout, |it| {
            any = it.receiver.poll_output(it.now, ChannelId(0), &mut it.buffer);
        });
        if any && self.counting {
            self.played_bytes += self.buffer.len() as u64;
        }
        any
    }

    /// Puts what one end has to send on its wire. Returns `false` if it has nothing.
    fn sends(&mut self, part: Part) -> bool {
        let mut sent = None;
        self.does(part, |it| {
            sent = match part {
                Part::Sender => it.sender.poll_transmit(it.now, &mut it.buffer),
                _ => it.receiver.poll_transmit(it.now, &mut it.buffer),
            };
        });
        let Some(transmit) = sent else { return false };
        let path = transmit.route.socket.0;
        let at = self.now + DELAYS[usize::from(path)];
        let wire = if part == Part::Sender { &mut self.there } else { &mut self.back };
        for payload in transmit.datagrams(&self.buffer) {
            let place = wire.iter().rposition(|(other, ..)| *other <= at).map_or(0, |n| n + 1);
            wire.insert(place, (at, path, payload.to_vec()));
            self.packets += u64::from(part == Part::Sender && self.counting);
        }
        true
    }

    /// Runs a stream of [`FRAMES`] to its end.
    fn run(&mut self) {
        while self.now < Instant::from_millis(1_000) {
            self.step();
        }
        for n in 0..FRAMES {
            self.counting = n >= WARM_UP;
            let unit = frame(n, self.now);
            let mut unit = Some(unit);
            let now = self.now;
            self.does(Part::Sender, |it| {
                let refused = unit.take().and_then(|unit| it.sender.push(now, unit));
                assert!(refused.is_none(), "a live session takes every unit");
            });
            for _ in 0..8 {
                self.step();
            }
        }
        for _ in 0..200 {
            self.step();
        }
    }
}

/// A frame of a group of 25, as a demultiplexer makes it.
fn frame(n: u64, captured: Instant) -> Unit {
    let packets = DATAGRAMS * 7;
    let kind = match n % 25 {
        0 => Kind::I,
        k if k % 3 == 1 => Kind::P,
        _ => Kind::B,
    };
    let mut bytes = noise(DATAGRAMS as usize * PAYLOAD, n);
    for packet in bytes.chunks_mut(188) {
        packet[..4].copy_from_slice(&[0x47, 0x01, 0x00, 0x10]);
    }
    Unit {
        kind,
        reference: kind != Kind::B,
        continues: false,
        more: false,
        pid: 256,
        runs: vec![Run { first: n * packets, count: packets as u32, null: false }],
        bytes,
        first_captured: captured,
        last_captured: captured,
        pts: None,
        dts: None,
    }
}

fn stream(part: Part, protection: Protection) -> Stream {
    let mut stream = Stream::new(part, protection);
    stream.run();
    // A little fewer than datagrams, as headers of transport packets that repeat are left out.
    assert!(stream.packets > (FRAMES - WARM_UP) * DATAGRAMS * 9 / 10, "{} packets", stream.packets);
    assert!(stream.played_bytes >= (FRAMES - WARM_UP) * DATAGRAMS * PAYLOAD as u64, "all is played");
    stream
}

pub(super) fn send(protection: Protection) -> u64 {
    stream(Part::Sender, protection).packets
}

pub(super) fn receive(protection: Protection) -> u64 {
    stream(Part::Receiver, protection).packets
}

pub(super) fn playout() -> u64 {
    let _ = stream(Part::Playout, Protection::Plain);
    FRAMES - WARM_UP
}
