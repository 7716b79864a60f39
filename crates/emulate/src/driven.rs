use crate::relay::{Relay, Request};
use crate::{EmulatorReport, Stopped};
use braidcast_core::{Instant, Machine, Rng};
use braidcast_driver::{Bind, Driver, Interfaces, Wake};
use braidcast_sim::link::LinkModel;
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

    /// Ctrl-C and its like end [`run`](Self::run) from now on, and no longer the process.
    pub fn catch_interrupts(&mut self) -> io::Result<()> {
        self.driver.catch_interrupts()
    }

    /// Forwards until `until`, or until an interrupt.
    pub fn run(&mut self, until: Option<Instant>) -> io::Result<Stopped> {
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
            match wake {
                Wake::Until => return Ok(Stopped::Until),
                Wake::Interrupt => return Ok(Stopped::Interrupt),
                // Nothing else is registered with the driver.
                _ => {}
            }
        }
    }

    /// The address that clients send to.
    pub fn listen_addr(&self) -> SocketAddr {
        self.listen
    }

    /// Time since the emulator was made.
    pub fn now(&self) -> Instant {
        self.driver.now()
    }

    /// What happened so far.
    pub fn report(&self) -> EmulatorReport {
        self.relay.report(self.driver.now(), self.listen)
    }
}

/// Returns `true` if `ip` is an address of this machine.
pub fn is_local(ip: IpAddr) -> bool {
    Interfaces::list().is_ok_and(|all| all.iter().any(|(_, addrs)| addrs.contains(&ip)))
}
