//! Our end of DCCP, straight over IP; it keeps a record of all packets.

use crate::host::Host;
use crate::linux::{GUEST, GUEST_V6, HOST, HOST_V6};
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_dccp::wire::{Checksum, Packet};
use braidcast_dccp::{CloseReason, Connection, ConnectionId, Endpoint, Event, Options, ServiceCode};
use braidcast_driver::{Bind, entropy};
use std::net::{IpAddr, SocketAddr};

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
    ends: Ends,
}

/// Our address and the guest's.
#[derive(Clone, Copy, Debug)]
struct Ends {
    ours: IpAddr,
    guest: IpAddr,
}

impl Seen {
    /// The packet; `None` if there is something wrong with it. To the checksum both directions are the same.
    pub fn packet(&self) -> Option<Packet<'_>> {
        Packet::parse(&self.bytes, Checksum::Ip(self.ends.ours, self.ends.guest)).ok()
    }
}

/// An endpoint that writes down what passes.
#[derive(Debug)]
pub struct Recorder {
    endpoint: Endpoint,
    seen: Vec<Seen>,
    ends: Ends,
}

impl Recorder {
    fn saw(&mut self, at: Instant, sent: bool, bytes: &[u8]) {
        self.seen.push(Seen { at, sent, bytes: bytes.to_vec(), ends: self.ends });
    }
}

impl Machine for Recorder {
    type Event = (ConnectionId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.saw(now, false, datagram.payload);
        self.endpoint.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.endpoint.poll_transmit(now, buf)?;
        self.saw(now, true, buf);
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
        Self::between(HOST[0], GUEST[0], options)
    }

    /// The same over IPv6.
    ///
    /// # Panics
    /// If the socket cannot be opened.
    pub fn over_ipv6(options: Options) -> Self {
        Self::between(HOST_V6[0], GUEST_V6[0], options)
    }

    fn between(ours: &str, guest: &str, options: Options) -> Self {
        let [ours, guest] = [ours, guest].map(|text| text.parse::<IpAddr>().expect("an address"));
        let mut endpoint =
            Endpoint::new(options, Rng::from_entropy(entropy().expect("randomness"))).expect("options that work");
        endpoint.set_local_address(SocketId(0), ours);
        let recorder = Recorder { endpoint, seen: Vec::new(), ends: Ends { ours, guest } };
        Self::run(recorder, &[Bind::to_ip(ours, DCCP)])
    }

    /// Our address.
    pub const fn address(&self) -> IpAddr {
        self.machine.ends.ours
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
        let route = Route::new(SocketId(0), SocketAddr::new(self.machine.ends.guest, 0));
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

    /// Returns `true` if `id` has been reported as connected.
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
