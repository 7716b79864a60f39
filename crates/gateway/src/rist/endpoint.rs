use super::receiver::Receiver;
use super::sender::Sender;
use super::tunnel::{Refusal, Shape, Tunnel};
use super::{Options, Profile, WAITING};
use crate::reception::Received;
use crate::srt::Sent;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Time between two refusals of one reason that are told of.
const REFUSALS: Duration = Duration::from_secs(1);

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A stream comes in, or who takes ours has answered: its number.
    Came(u32),
    /// It has ended; at a sender, its receiver is silent.
    Went(u32),
    /// It has given way to another one, or its sender began anew: its number.
    Replaced(u32),
    /// Somebody was not heeded. Each reason is told of once a second at most.
    Refused {
        /// Who it was.
        peer: SocketAddr,
        /// Why.
        why: Refusal,
    },
}

/// How a stream goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Its number, counted from 1.
    pub stream: u32,
    /// What the other end calls itself.
    pub name: String,
    /// Addresses of the other end.
    pub remotes: Vec<SocketAddr>,
    /// The profile that is spoken.
    pub profile: Profile,
    /// Bytes of a key; 0: not encrypted.
    pub key_bytes: usize,
    /// How long a payload is held here, or kept.
    pub latency: Duration,
    /// The round trip.
    pub rtt: Duration,
    /// How long a packet may be overtaken before it is asked for.
    pub reordering: Duration,
    /// What came in.
    pub received: Received,
    /// What went out.
    pub sent: Sent,
}

/// Datagrams and events that wait to be fetched.
#[derive(Default)]
pub(super) struct Outbox {
    datagrams: VecDeque<(Route, Vec<u8>)>,
    events: VecDeque<Event>,
    spare: Vec<Vec<u8>>,
    /// When each reason was told of last.
    refused: Vec<(Refusal, Instant)>,
}

impl Outbox {
    fn tell(&mut self, event: Event) {
        if self.events.len() < WAITING {
            self.events.push_back(event);
        }
    }

    pub(super) fn came(&mut self, stream: u32) {
        self.tell(Event::Came(stream));
    }

    pub(super) fn went(&mut self, stream: u32) {
        self.tell(Event::Went(stream));
    }

    pub(super) fn replaced(&mut self, stream: u32) {
        self.tell(Event::Replaced(stream));
    }

    pub(super) fn refuse(&mut self, now: Instant, peer: SocketAddr, why: Refusal) {
        self.refused.retain(|(_, at)| now.since(*at) < REFUSALS);
        if self.refused.iter().all(|(told, _)| *told != why) {
            self.refused.push((why, now));
            self.tell(Event::Refused { peer, why });
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.datagrams.len() >= WAITING
    }

    /// A buffer for a datagram; none if as many wait as may.
    pub(super) fn buffer(&mut self) -> Option<Vec<u8>> {
        (!self.is_full()).then(|| self.spare.pop().unwrap_or_default())
    }

    pub(super) fn send(&mut self, route: Route, datagram: Vec<u8>) {
        self.datagrams.push_back((route, datagram));
    }

    /// Sends `payload` as it is, or in the tunnel as an answer to what came in this `shape`.
    pub(super) fn send_sealed(&mut self, route: Route, shape: Option<Shape>, payload: &[u8], tunnel: &mut Tunnel) {
        let Some(mut buffer) = self.buffer() else { return };
        match shape {
            None => buffer.extend_from_slice(payload),
            Some(shape) => tunnel.seal(shape.reversed(), payload, &mut buffer),
        }
        self.send(route, buffer);
    }
}

enum Side {
    Receiver(Box<Receiver>),
    Sender(Box<Sender>),
}

/// One end of RIST.
///
/// Socket 0 has the simple profile's RTP and all of the main profile. Socket 1, on the port behind it, has the simple
/// profile's RTCP; without it that profile's streams come, and what they lose is not repaired.
pub struct Endpoint {
    side: Side,
    out: Outbox,
}

impl Endpoint {
    /// Waits for a sender.
    pub fn receiver(now: Instant, options: Options, rng: Rng) -> Self {
        Self { side: Side::Receiver(Box::new(Receiver::new(now, options, rng))), out: Outbox::default() }
    }

    /// Sends to `peer`; its RTCP of the simple profile goes to the port behind.
    pub fn sender(now: Instant, peer: SocketAddr, options: Options, rng: Rng) -> Self {
        Self { side: Side::Sender(Box::new(Sender::new(now, peer, options, rng))), out: Outbox::default() }
    }

    /// Sends `bytes`, in packets of seven transport stream packets. The main profile sends nothing before a receiver
    /// has answered.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        if let Side::Sender(sender) = &mut self.side {
            sender.push(now, bytes, &mut self.out);
        }
    }

    /// The next payload that is due at `now`, into `buf`; returns its stream, and when it was due.
    pub fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<(u32, Instant)> {
        if let Side::Receiver(receiver) = &mut self.side { receiver.deliver(now, buf) } else { None }
    }

    /// How the stream goes, while there is one.
    pub fn report(&self) -> Option<Report> {
        match &self.side {
            Side::Receiver(receiver) => receiver.report(),
            Side::Sender(sender) => sender.report(),
        }
    }
}

impl Machine for Endpoint {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match &mut self.side {
            Side::Receiver(receiver) => receiver.handle(now, datagram, &mut self.out),
            Side::Sender(sender) => sender.handle(now, datagram, &mut self.out),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match &mut self.side {
            Side::Receiver(receiver) => receiver.tick(now, &mut self.out),
            Side::Sender(sender) => sender.tick(now, &mut self.out),
        }
    }

    fn poll_transmit(&mut self, _now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let (route, mut datagram) = self.out.datagrams.pop_front()?;
        std::mem::swap(buf, &mut datagram);
        datagram.clear();
        if self.out.spare.len() < 64 {
            self.out.spare.push(datagram);
        }
        Some(Transmit { route, ecn: Ecn::NotEct, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match &self.side {
            Side::Receiver(receiver) => receiver.timeout(),
            Side::Sender(sender) => sender.timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.out.events.pop_front()
    }
}

/// The simple profile's sockets.
pub(super) const MEDIA: SocketId = SocketId(0);
pub(super) const CONTROL: SocketId = SocketId(1);
