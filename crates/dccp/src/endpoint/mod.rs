//! All connections, the ports that are listened at, and the packets that belong to no connection.

mod cookie;
mod half_open;
mod listen;
mod moved;
mod places;
mod ports;
mod succession;

use crate::api::{CloseReason, ConnectError, Event, ListenError, Options};
use crate::conn::{Connection, Handshake};
use crate::rate_limit::RateLimit;
use crate::seq::Seq;
use crate::wire::{Checksum, Packet, ServiceCode};
use braidcast_core::{
    Datagram, Ecn, Heard, Instant, Key, Lobby, Machine, Member, Misuse, Rng, Roster, Route, SocketId, Strangers,
    Transmit, Turn,
};
use braidcast_secure::Alias;
use cookie::{CookieJar, Ends};
use core::time::Duration;
use half_open::HalfOpen;
use moved::ByPorts;
use ports::Ports;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// Names a connection of an [`Endpoint`]; not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(Key);

impl From<Key> for ConnectionId {
    fn from(key: Key) -> Self {
        Self(key)
    }
}

impl From<ConnectionId> for Key {
    fn from(ConnectionId(key): ConnectionId) -> Self {
        key
    }
}

/// Identity of a flow: with UDP, the six numbers of RFC 6773 §3.8.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct FlowId {
    route: Route,
    local_port: u16,
    remote_port: u16,
}

impl From<FlowId> for Ends {
    fn from(FlowId { route, local_port, remote_port }: FlowId) -> Self {
        Self { route, local_port, remote_port }
    }
}

#[derive(Clone, Copy, Debug)]
enum Flow {
    Connection(ConnectionId),
    /// Nothing new may begin here for a while (RFC 4340 §8.3).
    TimeWait,
}

#[derive(Debug)]
struct Entry {
    connection: Connection,
    flow: FlowId,
    /// The flow that it had, while its peer has not proved to be at the new one.
    flow_before: Option<FlowId>,
    /// Counted in `half_open`.
    half_open: bool,
    /// Over, and here only for what was not read yet.
    over: bool,
    /// A client's that came by itself.
    guest: bool,
    /// When its peer proved by the key handshake who it is.
    proved: Option<Instant>,
    /// Finds out for this connection whether its peer still has its state; nobody is told of it.
    asks_for: Option<ConnectionId>,
    /// The one that finds out for it.
    asked_by: Option<ConnectionId>,
    /// A newcomer proved to be the same peer; this one stays unless that denies it.
    succeeded_by: Option<ConnectionId>,
}

impl Member for Entry {
    type Id = ConnectionId;
    type Event = Event;

    fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
    }

    fn handle_late_wake(&mut self, now: Instant, late: Duration) {
        self.connection.handle_late_wake(now, late);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.connection.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.connection.poll_event();
        if self.asks_for.is_some() {
            while self.connection.poll_event().is_some() {}
            return None;
        }
        // Of a stranger that left before it had a key nobody was told.
        let unknown = self.guest && !self.connection.was_told();
        event.filter(|it| {
            !unknown || !matches!(it, Event::Closed(reason) if !matches!(reason, CloseReason::Insecure(_)))
        })
    }
}

/// A machine that speaks DCCP over any number of sockets: a client, a server, or both.
///
/// `true` if a packet goes straight over IP or in UDP (RFC 6773) is seen by its route: a remote port
/// of 0 means IP, and then the checksum needs [`set_local_address`](Self::set_local_address).
///
/// Call [`connect`](Self::connect) or [`listen`](Self::listen), then drive it as [`Machine`] says.
/// Events carry the connection they are about; get at it by
/// [`connection_mut`](Self::connection_mut). After [`Event::Closed`] the connection is gone once
/// the last packets have left and all that came has been read, or a minute later.
///
/// Requests are answered within the rate of a [`Lobby`], once the connections have sent what they
/// have, and with no more bytes than [`Route::longest_answer`].
#[derive(Debug)]
pub struct Endpoint {
    options: Arc<Options>,
    rng: Rng,
    cookies: CookieJar,
    addresses: HashMap<SocketId, IpAddr>,
    listeners: HashMap<u16, Vec<ServiceCode>>,
    roster: Roster<Entry>,
    /// Requests that wait until the connections have sent what they have.
    lobby: Lobby,
    /// Whose keys are not agreed on yet, of those who are not half open.
    strangers: Strangers<ConnectionId>,
    /// What the last datagram was.
    heard: Heard,
    half_open: HalfOpen,
    ports: Ports,
    /// By their ports, for those whose peer may send from another address.
    by_ports: ByPorts,
    /// Packets from new addresses that may still be looked into.
    trials: RateLimit,
    /// Protected ones, by what both ends call them.
    by_alias: HashMap<Alias, ConnectionId>,
    flows: HashMap<FlowId, Flow>,
    /// The connection of the last packet: often that of the next one too.
    last: Option<(FlowId, ConnectionId)>,
    /// When flows that must rest are free again, oldest first.
    resting: VecDeque<(Instant, FlowId)>,
    /// When connections that are over are gone whether all was read or not, oldest first.
    unread: VecDeque<(Instant, ConnectionId)>,
    resets: RateLimit,
    /// Who asked for a connection and got none, as protection was not to be agreed on.
    turned_away: VecDeque<(Route, CloseReason)>,
}

impl Endpoint {
    /// Answers to packets of no connection that wait at most; further ones are dropped, and the peer repeats.
    pub const MAX_REPLIES: usize = Roster::<Entry>::MAX_REPLIES;
    /// Flows that rest at most; the oldest are freed early beyond that.
    const MAX_RESTING: usize = 65_536;
    /// For so long what came before the end can still be read.
    const KEEP_UNREAD: Duration = Duration::from_secs(60);
    /// Resets per second on behalf of no connection (RFC 4340 §8.1.3).
    const RESETS_PER_SECOND: u32 = 1024;
    /// Records from new addresses that are opened each second to see whose they are.
    const TRIALS_PER_SECOND: u32 = 256;
    /// Who was turned away, and waits to be told of, at most.
    const MAX_TURNED_AWAY: usize = 16;
    /// First port that is given out to connections that name none (RFC 6335 §6).
    const EPHEMERAL: u16 = 49_152;

    /// An endpoint that neither listens nor is connected. `rng` must be unguessable outside of
    /// experiments: sequence numbers and the cookie secret are drawn from it.
    ///
    /// # Errors
    /// [`Misuse`], as [`Options::check`] has it.
    pub fn new(options: Options, rng: Rng) -> Result<Self, Misuse> {
        options.check()?;
        Ok(Self {
            cookies: CookieJar::new(rng.stream("cookies"), options.cookie_life),
            options: Arc::new(options),
            rng,
            addresses: HashMap::new(),
            listeners: HashMap::new(),
            roster: Roster::default(),
            lobby: Lobby::default(),
            strangers: Strangers::default(),
            heard: Heard::Nothing,
            half_open: HalfOpen::default(),
            ports: Ports::default(),
            by_ports: ByPorts::default(),
            trials: RateLimit::new(Self::TRIALS_PER_SECOND),
            by_alias: HashMap::new(),
            flows: HashMap::new(),
            last: None,
            resting: VecDeque::new(),
            unread: VecDeque::new(),
            resets: RateLimit::new(Self::RESETS_PER_SECOND),
            turned_away: VecDeque::new(),
        })
    }

    /// Says which address a socket has, for checksums straight over IP. Packets of such sockets are dropped without it.
    pub fn set_local_address(&mut self, socket: SocketId, address: IpAddr) {
        self.addresses.insert(socket, address);
    }

    /// Accepts connections to DCCP port `port` for this service code, besides those for others that it has already.
    ///
    /// # Errors
    /// [`ListenError`].
    pub fn listen(&mut self, port: u16, service: ServiceCode) -> Result<(), ListenError> {
        if port == 0 {
            return Err(ListenError::PortZero);
        }
        if service == ServiceCode::INVALID {
            return Err(ListenError::BadServiceCode);
        }
        let services = self.listeners.entry(port).or_default();
        if !services.contains(&service) {
            services.push(service);
        }
        Ok(())
    }

    /// Accepts no more connections to `port`; those that there are go on.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Begins a connection with DCCP port `remote_port` at the other end of `route`. A `local_port`
    /// of 0 has one chosen.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing was begun then.
    pub fn connect(
        &mut self,
        now: Instant,
        route: Route,
        local_port: u16,
        remote_port: u16,
        service: ServiceCode,
    ) -> Result<ConnectionId, ConnectError> {
        if remote_port == 0 {
            return Err(ConnectError::PortZero);
        }
        if service == ServiceCode::INVALID {
            return Err(ConnectError::BadServiceCode);
        }
        self.free_rested(now);
        let limit = self.options.max_connections;
        if self.roster.len() >= limit {
            return Err(ConnectError::TooMany { limit });
        }
        let checksum = self.checksum(route).ok_or(ConnectError::NoLocalAddress)?;
        let flow = self.free_flow(route, local_port, remote_port).ok_or(ConnectError::PortsInUse)?;
        let mut rng = self.rng.fork();
        let iss = Seq::new(rng.u64());
        let handshake = Handshake { route, checksum, local_port: flow.local_port, remote_port, service, iss };
        let connection = Connection::connect(now, Arc::clone(&self.options), rng, handshake);
        Ok(self.insert(flow, connection, false))
    }

    /// A flow that is in no use, with a port of our choice where `local_port` is 0.
    fn free_flow(&mut self, route: Route, local_port: u16, remote_port: u16) -> Option<FlowId> {
        let free = |local_port| {
            let flow = FlowId { route, local_port, remote_port };
            (!self.flows.contains_key(&flow)).then_some(flow)
        };
        if local_port != 0 {
            return free(local_port);
        }
        let count = u16::MAX - Self::EPHEMERAL;
        let first = self.rng.below(u64::from(count)) as u16;
        (0..count).find_map(|n| free(Self::EPHEMERAL + (first + n) % count))
    }

    /// The connection `id`, unless it is gone.
    pub fn connection(&self, id: ConnectionId) -> Option<&Connection> {
        self.roster.get(id).map(|entry| &entry.connection)
    }

    /// The connection `id`, unless it is gone.
    pub fn connection_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.roster.wake(id).map(|entry| &mut entry.connection)
    }

    /// Who asked for a connection and got none before there was any, as protection was not to be
    /// agreed on; the oldest that was not told yet.
    pub fn poll_turned_away(&mut self) -> Option<(Route, CloseReason)> {
        self.turned_away.pop_front()
    }

    /// All connections, in no particular order of meaning, but always the same.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.roster.ids().filter(|id| self.roster.get(*id).is_some_and(|entry| entry.asks_for.is_none()))
    }

    fn checksum(&self, route: Route) -> Option<Checksum> {
        if route.remote.port() != 0 {
            return Some(Checksum::Udp);
        }
        self.addresses.get(&route.socket).map(|&local| Checksum::Ip(local, route.remote.ip()))
    }

    fn insert(&mut self, flow: FlowId, connection: Connection, guest: bool) -> ConnectionId {
        let half_open = connection.is_half_open();
        self.half_open.count += usize::from(half_open);
        self.ports.begin(flow.local_port);
        let (over, proved, asks_for, asked_by, succeeded_by) = (false, None, None, None, None);
        let flow_before = None;
        let entry =
            Entry { connection, flow, flow_before, half_open, over, guest, proved, asks_for, asked_by, succeeded_by };
        let id = self.roster.insert(entry);
        self.by_ports.enter(flow, id);
        self.flows.insert(flow, Flow::Connection(id));
        id
    }

    fn receive(&mut self, now: Instant, route: Route, ecn: Ecn, payload: &[u8]) {
        let Some(checksum) = self.checksum(route) else { return };
        let Ok(packet) = Packet::parse(payload, checksum) else { return }; // §8.5 step 1
        let header = &packet.header;
        let flow = FlowId { route, local_port: header.destination_port, remote_port: header.source_port };
        self.free_rested(now);
        let last = self.last.filter(|&(it, id)| it == flow && self.connection(id).is_some());
        let known = last.map(|(_, id)| Flow::Connection(id)).or_else(|| self.flows.get(&flow).copied());
        match known {
            Some(Flow::Connection(id)) => {
                self.last = Some((flow, id));
                if let Some(entry) = self.roster.wake(id)
                    && entry.connection.handle_packet_from(now, ecn, route, &packet)
                {
                    self.heard = Heard::Peer;
                    self.settle_flow(id);
                }
            }
            Some(Flow::TimeWait) => self.no_connection(now, flow, &packet),
            None if self.take_moved(now, flow, ecn, &packet) => self.heard = Heard::Peer,
            None => self.handle_stray(now, flow, ecn, checksum, &packet),
        }
    }

    /// Answers the Request that has waited longest. Returns `true` if there was one.
    fn receive_stranger(&mut self, now: Instant) -> bool {
        let Some((route, bytes)) = self.lobby.take() else { return false };
        self.receive(now, route, Ecn::NotEct, &bytes);
        self.lobby.recycle(bytes);
        true
    }

    /// The connection has been polled dry; it goes if it is over.
    fn rest(&mut self, now: Instant, id: ConnectionId) {
        self.settle_flow(id);
        let Some(entry) = self.roster.get_mut(id) else { return };
        if entry.half_open && !entry.connection.is_half_open() {
            entry.half_open = false;
            self.half_open.count -= 1;
            let host = entry.flow.route.remote.ip();
            if self.options.security.is_some() {
                if !self.make_room_for_stranger(now, host) {
                    return self.forget(id); // It asks again, and finds a place in time.
                }
                self.strangers.enter(now, host, id);
            }
        }
        if self.options.security.is_some() {
            self.tend_succession(now, id);
        }
        let finished = self.connection(id).is_some_and(Connection::is_finished);
        self.roster.set_timer(id);
        if finished {
            self.remove(now, id);
        }
    }

    /// Frees the ports of a connection that is over, and takes it out once all that came has been read.
    fn remove(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self.roster.get(id) else { return };
        // Nobody was told of one that only asks, so nobody will read it.
        let unread = entry.connection.has_unread() && entry.asks_for.is_none();
        let must_rest = entry.connection.needs_time_wait() || entry.connection.could_come_back();
        self.end_question(now, id);
        if let Some(flow) = self.end(id) {
            self.ports.end(flow.local_port, now + self.options.time_wait);
            if must_rest && !self.options.time_wait.is_zero() {
                self.flows.insert(flow, Flow::TimeWait);
                self.resting.push_back((now + self.options.time_wait, flow));
            } else {
                self.flows.remove(&flow);
            }
            if self.resting.len() > Self::MAX_RESTING {
                self.free_first_resting();
            }
            if unread {
                self.unread.push_back((now + Self::KEEP_UNREAD, id));
            }
        }
        if !unread {
            self.roster.remove(id);
        }
    }

    /// A connection is over: it has no timer any more, and is half open no longer. Its flow, the first time.
    fn end(&mut self, id: ConnectionId) -> Option<FlowId> {
        let entry = self.roster.get_mut(id).filter(|entry| !entry.over)?;
        entry.over = true;
        let (flow, half_open) = (entry.flow, core::mem::take(&mut entry.half_open));
        let before = entry.flow_before.take();
        self.half_open.count -= usize::from(half_open);
        self.by_ports.leave(flow, id);
        before.into_iter().for_each(|it| _ = self.flows.remove(&it));
        self.roster.clear_timer(id);
        self.last = self.last.filter(|&(_, last)| last != id);
        Some(flow)
    }

    /// Drops a half-open connection, of which nobody was told yet.
    fn forget(&mut self, id: ConnectionId) {
        self.strangers.leave(id);
        if let Some(flow) = self.end(id) {
            self.flows.remove(&flow);
            self.ports.end(flow.local_port, Instant::ZERO);
            self.roster.remove(id);
        }
    }

    /// Frees what has rested, or waited to be read, for long enough.
    fn free_rested(&mut self, now: Instant) {
        while self.resting.front().is_some_and(|&(at, _)| at <= now) {
            self.free_first_resting();
        }
        while let Some(&(_, id)) = self.unread.front().filter(|&&(at, _)| at <= now) {
            self.unread.pop_front();
            self.roster.remove(id);
        }
    }

    fn free_first_resting(&mut self) {
        if let Some((_, flow)) = self.resting.pop_front() {
            self.flows.remove(&flow);
        }
    }
}

impl Machine for Endpoint {
    type Event = (ConnectionId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.roster.notice_late_wake(now);
        let Datagram { route, ecn, payload } = datagram;
        self.heard = Heard::Nothing;
        if is_request(payload) {
            self.heard = if self.listeners.is_empty() { Heard::Nothing } else { Heard::Stranger };
            return self.lobby.enter(now, route, payload);
        }
        self.receive(now, route, ecn, payload);
    }

    fn heard(&self) -> Heard {
        self.heard
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.roster.notice_late_wake(now);
        self.roster.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            match self.roster.poll_transmit(now, buf) {
                Turn::Packet(transmit) => {
                    if self.lobby.wait() {
                        self.receive_stranger(now);
                    }
                    return Some(transmit);
                }
                Turn::Dry(id) => self.rest(now, id),
                Turn::Over if self.receive_stranger(now) => {}
                Turn::Over => return None,
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.roster.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.roster.poll_event()
    }
}

/// Returns `true` if a packet says that it is a Request, told by its type alone.
fn is_request(packet: &[u8]) -> bool {
    packet.get(8).is_some_and(|typed| typed >> 1 & 15 == 0)
}
