use crate::report::{DirectionReport, EmulatorReport};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_sim::link::{Link, LinkModel, Offer, Outcome};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Each client takes a socket, of which a process usually may have 1024.
const MAX_CLIENTS: usize = 256;
/// How long a silent client is remembered; RFC 4787 §4.3 recommends five minutes to NATs.
const CLIENT_IDLE: Duration = Duration::from_secs(300);
/// How often idle clients are looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// Payload inside each of the two links, at most.
const MAX_HELD: usize = 128 << 20;
/// Buffers kept for reuse, at most: enough for the 64 packets of a batch many times over.
const MAX_POOL: usize = 4096;
/// Payload put into one transmit, at most; it must fit into one UDP datagram's 65507 bytes.
const MAX_BATCH: usize = 60_000;

/// A client, by the order in which they came. Never used twice, so that packets of a forgotten client reach nobody.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ClientId(u64);

/// What the relay wants done about sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    /// A socket for this client, to be told to [`Relay::opened`].
    Open(ClientId),
    /// This socket is not needed any more.
    Close(SocketId),
}

#[derive(Debug)]
struct Client {
    addr: SocketAddr,
    socket: Option<SocketId>,
    last_seen: Instant,
}

#[derive(Debug, Default)]
struct Packet {
    client: ClientId,
    payload: Vec<u8>,
}

impl Default for ClientId {
    fn default() -> Self {
        Self(u64::MAX)
    }
}

/// A packet that has arrived, how the link left it marked, and which bit to flip.
type Arrival = (Arc<Packet>, Ecn, Option<u64>);

#[derive(Debug)]
struct Direction {
    /// The packets are shared because links may duplicate them.
    link: Link<Arc<Packet>>,
    /// Arrived, but not fitting into the transmit that was being filled.
    next: Option<Arrival>,
    /// Payload inside, in bytes; a copy that the link made is not counted.
    held: usize,
    dropped_memory: u64,
}

impl Direction {
    fn report(&self) -> DirectionReport {
        DirectionReport::new(&self.link.stats(), self.dropped_memory, self.link.inside())
    }
}

/// The NAT and the two links as a machine without I/O; who drives it opens the sockets that it asks for by events.
#[derive(Debug)]
pub(crate) struct Relay {
    listen: SocketId,
    forward: SocketAddr,
    /// Towards `forward`, and back.
    directions: [Direction; 2],
    clients: BTreeMap<ClientId, Client>,
    by_addr: BTreeMap<SocketAddr, ClientId>,
    by_socket: BTreeMap<SocketId, ClientId>,
    clients_seen: u64,
    refused: u64,
    strays: u64,
    next_sweep: Instant,
    requests: VecDeque<Request>,
    /// Buffers for packets to come; nobody else holds them.
    pool: Vec<Arc<Packet>>,
}

impl Relay {
    pub(crate) fn new(listen: SocketId, forward: SocketAddr, models: [LinkModel; 2], rng: &Rng) -> Self {
        let [to_forward, to_clients] = models;
        let direction = |model, name| Direction {
            // A link's streams depend on its generator's seed alone, so each link needs a seed of its own.
            link: Link::new(model, Rng::from_seed(rng.stream(name).u64())),
            next: None,
            held: 0,
            dropped_memory: 0,
        };
        Self {
            listen,
            forward,
            directions: [direction(to_forward, "to forward"), direction(to_clients, "to clients")],
            clients: BTreeMap::new(),
            by_addr: BTreeMap::new(),
            by_socket: BTreeMap::new(),
            clients_seen: 0,
            refused: 0,
            strays: 0,
            next_sweep: Instant::ZERO,
            requests: VecDeque::new(),
            pool: Vec::new(),
        }
    }

    /// The answer to [`Request::Open`]; `None`: there is no socket to be had, and the client is forgotten.
    pub(crate) fn opened(&mut self, client: ClientId, socket: Option<SocketId>) {
        match (self.clients.get_mut(&client), socket) {
            (Some(entry), Some(socket)) => {
                entry.socket = Some(socket);
                self.by_socket.insert(socket, client);
            }
            (None, Some(socket)) => self.requests.push_back(Request::Close(socket)),
            (_, None) => self.forget(client),
        }
    }

    pub(crate) fn report(&self, now: Instant, listen: SocketAddr) -> EmulatorReport {
        EmulatorReport {
            seconds: now.as_secs_f64(),
            listen,
            forward: self.forward,
            clients: self.clients.len(),
            clients_seen: self.clients_seen,
            refused_packets: self.refused,
            stray_packets: self.strays,
            to_forward: self.directions[0].report(),
            to_clients: self.directions[1].report(),
        }
    }

    fn forget(&mut self, id: ClientId) {
        let Some(client) = self.clients.remove(&id) else { return };
        self.by_addr.remove(&client.addr);
        if let Some(socket) = client.socket {
            self.by_socket.remove(&socket);
            self.requests.push_back(Request::Close(socket));
        }
    }

    /// The client at `addr`, a new one if need be and possible.
    fn client_at(&mut self, now: Instant, addr: SocketAddr) -> Option<ClientId> {
        if let Some(id) = self.by_addr.get(&addr) {
            return Some(*id);
        }
        if self.clients.len() >= MAX_CLIENTS {
            return None;
        }
        if self.clients.is_empty() {
            self.next_sweep = now + SWEEP;
        }
        let id = ClientId(self.clients_seen);
        self.clients_seen += 1;
        self.clients.insert(id, Client { addr, socket: None, last_seen: now });
        self.by_addr.insert(addr, id);
        self.requests.push_back(Request::Open(id));
        Some(id)
    }

    /// Which client a datagram is from or for, and which direction it goes.
    fn sort(&mut self, now: Instant, route: Route) -> Option<(ClientId, usize)> {
        let sorted = if route.socket == self.listen {
            let client = self.client_at(now, route.remote);
            self.refused += u64::from(client.is_none());
            (client?, 0)
        } else {
            let client = self.by_socket.get(&route.socket).filter(|_| route.remote == self.forward).copied();
            self.strays += u64::from(client.is_none());
            (client?, 1)
        };
        if let Some(client) = self.clients.get_mut(&sorted.0) {
            client.last_seen = now;
        }
        Some(sorted)
    }

    /// Takes a packet's buffer back, unless a copy of it is still in flight.
    fn recycle(&mut self, mut packet: Arc<Packet>) {
        if self.pool.len() < MAX_POOL && Arc::get_mut(&mut packet).is_some() {
            self.pool.push(packet);
        }
    }

    /// The next packet out of a link.
    fn arrival(&mut self, now: Instant, direction: usize) -> Option<Arrival> {
        if let Some(arrival) = self.directions[direction].next.take() {
            return Some(arrival);
        }
        loop {
            let exit = self.directions[direction].link.poll_outcome(now)?;
            let (packet, flip) = match exit.outcome {
                Outcome::Arrived(packet) => (packet, None),
                Outcome::Corrupted(packet, bit) => (packet, Some(bit)),
                Outcome::Dropped(_, packet) => {
                    self.release(direction, packet);
                    continue;
                }
            };
            return Some((packet, exit.ecn, flip));
        }
    }

    /// A packet has left its link for good.
    fn release(&mut self, direction: usize, packet: Arc<Packet>) {
        // A duplicated packet counts once, so it is the last copy that makes room.
        if Arc::strong_count(&packet) == 1 {
            let held = &mut self.directions[direction].held;
            *held = held.saturating_sub(packet.payload.len());
        }
        self.recycle(packet);
    }

    /// Where a packet that came out of a link is sent; `None` if its client was forgotten meanwhile.
    fn route(&self, direction: usize, packet: &Packet) -> Option<Route> {
        let client = self.clients.get(&packet.client)?;
        match direction {
            0 => Some(Route::new(client.socket?, self.forward)),
            _ => Some(Route::new(self.listen, client.addr)),
        }
    }

    /// Fills `buf` with what came out of one link: packets of one length for one address, as many as go together.
    fn transmit(&mut self, now: Instant, direction: usize, buf: &mut Vec<u8>) -> Option<Transmit> {
        let mut filled: Option<(Transmit, usize)> = None;
        while let Some((packet, ecn, flip)) = self.arrival(now, direction) {
            let Some(route) = self.route(direction, &packet) else {
                self.refused += 1;
                self.release(direction, packet);
                continue;
            };
            let len = packet.payload.len();
            if let Some((transmit, first)) = &filled {
                let fits = transmit.route == route && transmit.ecn == ecn && len == *first;
                if !fits || len == 0 || buf.len() + len > MAX_BATCH {
                    self.directions[direction].next = Some((packet, ecn, flip));
                    break;
                }
            }
            let start = buf.len();
            buf.extend_from_slice(&packet.payload);
            if let Some(bit) = flip.and_then(|bit| bit.checked_rem(len as u64 * 8)) {
                buf[start + (bit / 8) as usize] ^= 1 << (bit % 8);
            }
            let transmit = Transmit { route, ecn, segment_size: (start > 0).then_some(len) };
            filled = Some((transmit, len));
            self.release(direction, packet);
        }
        filled.map(|(transmit, _)| transmit)
    }
}

impl Machine for Relay {
    type Event = Request;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some((client, direction)) = self.sort(now, datagram.route) else { return };
        let direction_state = &mut self.directions[direction];
        if direction_state.held + datagram.payload.len() > MAX_HELD {
            direction_state.dropped_memory += 1;
            return;
        }
        let mut packet = self.pool.pop().unwrap_or_default();
        if let Some(packet) = Arc::get_mut(&mut packet) {
            packet.client = client;
            packet.payload.clear();
            packet.payload.extend_from_slice(datagram.payload);
        }
        let headers = if datagram.route.remote.is_ipv4() { 20 + 8 } else { 40 + 8 };
        match direction_state.link.offer(now, datagram.payload.len() + headers, datagram.ecn, packet) {
            Offer::Queued => direction_state.held += datagram.payload.len(),
            Offer::Dropped(_, packet) => self.recycle(packet),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.clients.is_empty() || now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP;
        let idle = |client: &Client| now - client.last_seen >= CLIENT_IDLE;
        let gone: Vec<ClientId> = self.clients.iter().filter(|(_, client)| idle(client)).map(|(id, _)| *id).collect();
        for id in gone {
            self.forget(id);
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        // Packets of new clients wait inside until their sockets are there.
        if self.requests.iter().any(|request| matches!(request, Request::Open(_))) {
            return self.transmit(now, 1, buf);
        }
        self.transmit(now, 0, buf).or_else(|| self.transmit(now, 1, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let sweep = (!self.clients.is_empty()).then_some(self.next_sweep);
        let links = self.directions.iter().map(|direction| direction.link.poll_timeout());
        links.chain([sweep]).flatten().min()
    }

    fn poll_event(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }
}
