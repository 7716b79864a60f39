//! Our end of DCCP, straight over IP; it keeps a record of all packets.

use crate::host::Host;
use crate::linux::{GUEST, HOST};
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_dccp::wire::{Checksum, Packet};
use braidcast_dccp::{CloseReason, Connection, ConnectionId, Endpoint, Event, Options, ServiceCode};
use braidcast_driver::{Bind, entropy};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The IP protocol number of DCCP.
const DCCP: u8 = 33;

/// A packet that left or came.
#[derive(Clone, Debug)]
pub struct Seen {
    /// When.
    pub at: Instant,
    /// It left.
    pub sent: bool,
    /// Its bytes above IP.
    pub bytes: Vec<u8>,
}

impl Seen {
    /// The packet; `None` if there is something wrong with it. To the checksum both directions are the same.
    pub fn packet(&self) -> Option<Packet<'_>> {
        let address = |text: &str| IpAddr::V4(text.parse().unwrap_or(Ipv4Addr::UNSPECIFIED));
        Packet::parse(&self.bytes, Checksum::Ip(address(HOST[0]), address(GUEST[0]))).ok()
    }
}

/// An endpoint that writes down what passes.
#[derive(Debug)]
pub struct Recorder {
    endpoint: Endpoint,
    seen: Vec<Seen>,
}

impl Machine for Recorder {
    type Event = (ConnectionId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.seen.push(Seen { at: now, sent: false, bytes: datagram.payload.to_vec() });
        self.endpoint.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, buf)?;
        self.seen.push(Seen { at: now, sent: true, bytes: buf.clone() });
        Some(transmit)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.endpoint.poll_event()
    }
}

/// A DCCP endpoint with a raw socket on the first link to the guest.
pub type Dccp = Host<Recorder>;

impl Host<Recorder> {
    /// An endpoint that neither listens nor is connected.
    ///
    /// # Panics
    /// If the socket cannot be opened.
    pub fn new(options: Options) -> Self {
        let address: IpAddr = HOST[0].parse().expect("an address");
        let mut endpoint =
            Endpoint::new(options, Rng::from_entropy(entropy().expect("randomness"))).expect("options that work");
        endpoint.set_local_address(SocketId(0), address);
        Self::run(Recorder { endpoint, seen: Vec::new() }, &[Bind::to_ip(address, DCCP)])
    }

    /// Accepts connections to `port` for `service`.
    ///
    /// # Panics
    /// If either is not valid.
    pub fn listen(&mut self, port: u16, service: ServiceCode) {
        self.machine.endpoint.listen(port, service).expect("port and service code are valid");
    }

    /// Begins a connection to `port` of the guest.
    ///
    /// # Panics
    /// If it cannot begin.
    pub fn connect(&mut self, port: u16, service: ServiceCode) -> ConnectionId {
        let route = Route::new(SocketId(0), SocketAddr::new(GUEST[0].parse().expect("an address"), 0));
        self.machine.endpoint.connect(self.driver.now(), route, 0, port, service).expect("the ports are free")
    }

    /// Calls `action` on a connection with the present time; `None` if it is gone.
    pub fn with<R>(&mut self, id: ConnectionId, action: impl FnOnce(&mut Connection, Instant) -> R) -> Option<R> {
        let now = self.driver.now();
        self.machine.endpoint.connection_mut(id).map(|connection| action(connection, now))
    }

    /// The connections that there are at our port `port`.
    pub fn at_port(&self, port: u16) -> Vec<ConnectionId> {
        let endpoint = &self.machine.endpoint;
        endpoint.connections().filter(|&id| endpoint.connection(id).is_some_and(|it| it.ports().0 == port)).collect()
    }

    /// Whether `id` has been reported as connected.
    pub fn is_connected(&self, id: ConnectionId) -> bool {
        self.events.iter().any(|(of, event)| *of == id && *event == Event::Connected)
    }

    /// Why `id` ended, once it has.
    pub fn closed(&self, id: ConnectionId) -> Option<&CloseReason> {
        self.events.iter().find_map(|(of, event)| match event {
            Event::Closed(reason) if *of == id => Some(reason),
            _ => None,
        })
    }

    /// All packets that left or came, oldest first.
    pub fn seen(&self) -> &[Seen] {
        &self.machine.seen
    }

    /// Forgets the packets so far.
    pub fn forget_seen(&mut self) {
        self.machine.seen.clear();
    }
}
