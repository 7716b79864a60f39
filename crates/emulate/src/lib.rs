//! A link in real time between UDP ports, without root or kernel modules: the simulator's own
//! [`Link`](braidcast_sim::link::Link)s between real sockets.

mod fabric;
mod mesh;
mod relay;
mod report;
#[cfg(test)]
mod tests;

pub use mesh::{Mesh, MeshLink};
pub use report::{DirectionReport, EmulatorReport};

use braidcast_core::{Instant, Machine, Rng};
use braidcast_driver::{Bind, Driver, Wake};
use braidcast_sim::link::LinkModel;
use relay::{Relay, Request};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Forwards datagrams between clients and one address, each direction through a link of its own that all clients
/// share.
///
/// It works like a NAT: clients send to one port, and each is given a socket of its own towards the address, by which
/// the answers find back. At most 256 clients are served at once, 65535 in all; one that was silent for five minutes
/// is forgotten.
/// Packets inside the links take at most 256 MiB; what comes on top is dropped and counted.
#[derive(Debug)]
pub struct Emulator {
    driver: Driver,
    relay: Relay,
    listen: SocketAddr,
    forward: SocketAddr,
}

impl Emulator {
    /// An emulator for clients that send to `listen` (port 0: any) and are forwarded to `forward`.
    ///
    /// `to_forward` treats what clients send, `to_clients` the answers. The same `rng` seed and the same packets at
    /// the same times give the same losses. Fails if `listen` cannot be bound; the error says why.
    pub fn new(
        listen: SocketAddr,
        forward: SocketAddr,
        to_forward: LinkModel,
        to_clients: LinkModel,
        rng: &Rng,
    ) -> io::Result<Self> {
        let mut driver = Driver::new()?;
        let socket = driver.bind(&Bind::to_addr(listen))?;
        let listen = driver.socket(socket).map_or(listen, |socket| socket.local_addr());
        let relay = Relay::new(socket, forward, [to_forward, to_clients], rng);
        Ok(Self { driver, relay, listen, forward })
    }

    /// Forwards until `until`, or until an interrupt or input that was registered with the [`driver`](Self::driver).
    pub fn run(&mut self, until: Option<Instant>) -> io::Result<Wake> {
        loop {
            let wake = self.driver.drive(&mut self.relay, until)?;
            while let Some(request) = self.relay.poll_event() {
                match request {
                    Request::Open(client) => {
                        let any: IpAddr = match self.forward {
                            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                        };
                        let bound = self.driver.bind(&Bind::to_addr(SocketAddr::new(any, 0)));
                        self.relay.opened(client, bound.ok());
                    }
                    Request::Close(socket) => self.driver.unbind(socket),
                }
            }
            if wake != Wake::Machine {
                return Ok(wake);
            }
        }
    }

    /// The address that clients send to.
    pub fn listen_addr(&self) -> SocketAddr {
        self.listen
    }

    /// The driver below, for its clock and to catch interrupts.
    pub fn driver(&mut self) -> &mut Driver {
        &mut self.driver
    }

    /// What happened so far.
    pub fn report(&self) -> EmulatorReport {
        self.relay.report(self.driver.now(), self.listen)
    }
}
