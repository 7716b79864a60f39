use super::caller::Caller;
use super::event::{ConnectionId, Event};
use super::link::{Ended, Link, MAX_PAYLOAD, Report};
use super::listener::Listener;
use super::options::{Direction, Options};
use super::secret::Passphrase;
use super::wire::Packet;
use crate::srtla::{Bonds, LinkReport};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Payload of a packet: seven packets of transport stream, as everyone sends it.
const TS_PAYLOAD: usize = 7 * 188;

/// One end of SRT live: a caller or a listener.
///
/// A caller goes on calling until it is [closed](Self::close). All packets go over socket 0.
pub struct Endpoint {
    side: Side,
    /// Callers come over several links each.
    bonds: Option<Bonds>,
    /// Copies of the packet in `copied` that are still to be sent.
    copies: Vec<SocketAddr>,
    copied: Vec<u8>,
    events: VecDeque<Event>,
}

enum Side {
    Caller(Box<Caller>),
    Listener(Box<Listener>),
}

/// A payload that is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// Whose it is.
    pub connection: ConnectionId,
    /// When it was due: a latency after it was sent, by our clock.
    pub due: Instant,
}

impl Endpoint {
    /// Calls `peer`.
    pub fn caller(now: Instant, peer: SocketAddr, options: Options, rng: Rng) -> Self {
        Self::of(Side::Caller(Box::new(Caller::new(now, peer, options, rng))))
    }

    /// Waits for callers. `direction` says which way media goes: a caller that says it wants the other one is
    /// refused.
    pub fn listener(now: Instant, direction: Direction, options: Options, rng: Rng) -> Self {
        Self::of(Side::Listener(Box::new(Listener::new(now, direction, options, rng))))
    }

    /// Waits for callers that send over several links each ([`srtla`](crate::srtla)). A caller's address is the alias
    /// of its group; [`bonded`](Self::bonded) has the links.
    pub fn bonded_listener(now: Instant, options: Options, mut rng: Rng) -> Self {
        let bonds = Some(Bonds::new(&mut rng));
        Self { bonds, ..Self::listener(now, Direction::Receive, options, rng) }
    }

    fn of(side: Side) -> Self {
        Self { side, bonds: None, copies: Vec::new(), copied: Vec::new(), events: VecDeque::new() }
    }

    /// The links of the caller with this address; none if it has but one.
    pub fn bonded(&self, caller: SocketAddr) -> Vec<LinkReport> {
        self.bonds.as_ref().map(|bonds| bonds.links(caller)).unwrap_or_default()
    }

    fn links(&self) -> impl Iterator<Item = &Link> {
        let (caller, listener) = match &self.side {
            Side::Caller(caller) => (caller.link(), None),
            Side::Listener(listener) => (None, Some(listener.links())),
        };
        caller.into_iter().chain(listener.into_iter().flatten())
    }

    fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        let (caller, listener) = match &mut self.side {
            Side::Caller(caller) => (caller.link_mut(), None),
            Side::Listener(listener) => (None, Some(listener.links_mut())),
        };
        caller.into_iter().chain(listener.into_iter().flatten())
    }

    /// Sends `bytes` over all connections, in packets of seven transport stream packets, or of 1316 bytes if it is
    /// something else. Without a connection they are dropped.
    pub fn push(&mut self, now: Instant, bytes: &[u8]) {
        const { assert!(TS_PAYLOAD <= MAX_PAYLOAD) };
        for link in self.links_mut().filter(|link| !link.is_ending()) {
            bytes.chunks(TS_PAYLOAD).for_each(|payload| link.push(now, payload));
        }
    }

    /// Has who sends to us over a connection that is there hear how much the path behind us carries, bit/s: its
    /// acknowledgements say so from now on as the capacity of the link (draft-sharabayko-srt §3.2.4). Without it they
    /// say what comes.
    pub fn tell_capacity(&mut self, bits_per_second: u64) {
        self.links_mut().for_each(|link| link.tell_capacity(bits_per_second));
    }

    /// The next payload that is due at `now`, into `buf`.
    pub fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Delivered> {
        self.links_mut().find_map(|link| {
            let due = link.deliver(now, buf)?;
            Some(Delivered { connection: ConnectionId(link.agreed.own_id), due })
        })
    }

    /// How each connection goes.
    pub fn reports(&self) -> impl Iterator<Item = (ConnectionId, Report)> {
        self.links().map(|link| (ConnectionId(link.agreed.own_id), link.report()))
    }

    /// How this one goes.
    pub fn report(&self, connection: ConnectionId) -> Option<Report> {
        self.links().find(|link| link.agreed.own_id == connection.0).map(Link::report)
    }

    /// Returns `true` if there is a connection.
    pub fn is_connected(&self) -> bool {
        self.links().any(|link| !link.is_ending())
    }

    /// Returns `true` if all that was pushed is acknowledged, or too late.
    pub fn is_drained(&self) -> bool {
        self.links().all(Link::is_drained)
    }

    fn write_next(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        loop {
            buf.clear();
            if let Some(to) = self.copies.pop() {
                buf.extend_from_slice(&self.copied);
                return Some(to);
            }
            if let Some(to) = self.bonds.as_mut().and_then(|bonds| bonds.poll_answer(buf)) {
                return Some(to);
            }
            let remote = match &mut self.side {
                Side::Caller(caller) => caller.write_next(now, buf)?,
                Side::Listener(listener) => listener.write_next(now, buf)?,
            };
            let Some(bonds) = &self.bonds else { return Some(remote) };
            self.copies.extend(bonds.routes(now, remote, buf));
            std::mem::swap(&mut self.copied, buf);
        }
    }

    /// Has a listener take another list of [`Options::keys`]. Connections that came by a passphrase that is no longer
    /// their stream's are ended. Of a caller nothing changes.
    pub fn set_keys(&mut self, now: Instant, keys: Vec<(String, Passphrase)>) {
        if let Side::Listener(listener) = &mut self.side {
            listener.set_keys(now, keys);
        }
    }

    /// Ends a connection. Its other end is told, and may call again.
    pub fn disconnect(&mut self, now: Instant, connection: ConnectionId) {
        if let Some(link) = self.links_mut().find(|link| link.agreed.own_id == connection.0) {
            link.close(now, Ended::ByUs);
        }
    }

    /// Ends all connections and takes no more.
    pub fn close(&mut self, now: Instant) {
        match &mut self.side {
            Side::Caller(caller) => caller.close(now),
            Side::Listener(listener) => listener.close(now),
        }
    }
}

impl Machine for Endpoint {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let mut from = datagram.route.remote;
        if let Some(bonds) = &mut self.bonds {
            let Some(alias) = bonds.handle(now, from, datagram.payload) else { return };
            from = alias;
        }
        let Ok(packet) = Packet::parse(datagram.payload) else { return };
        match &mut self.side {
            Side::Caller(caller) => caller.handle(now, from, &packet, &mut self.events),
            Side::Listener(listener) => listener.handle(now, from, &packet, &mut self.events),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.bonds.iter_mut().for_each(|bonds| bonds.tend(now));
        match &mut self.side {
            Side::Caller(caller) => caller.tick(now, &mut self.events),
            Side::Listener(listener) => listener.tick(now, &mut self.events),
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let remote = self.write_next(now, buf)?;
        Some(Transmit { route: Route::new(SocketId(0), remote), ecn: Ecn::NotEct, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let own = match &self.side {
            Side::Caller(caller) => caller.timeout(),
            Side::Listener(listener) => listener.timeout(),
        };
        Instant::first_of([own, self.bonds.as_ref().and_then(Bonds::timeout)])
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
