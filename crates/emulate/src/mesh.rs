use crate::fabric::{Fabric, MeshPath};
use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_driver::{Bind, Driver, Wake};
use braidcast_sim::link::{LinkModel, LinkStats};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// A link of a [`Mesh`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MeshLink(usize);

/// Links in real time between sockets of this machine, which paths may share, one behind another,
/// as they do in the simulator.
///
/// Payload inside all links together takes at most 128 MiB; what comes on top is dropped and counted.
#[derive(Debug)]
pub struct Mesh {
    driver: Driver,
    fabric: Fabric,
}

impl Mesh {
    /// A mesh without links.
    ///
    /// # Errors
    /// If the system gives no event loop.
    pub fn new() -> io::Result<Self> {
        Ok(Self { driver: Driver::new()?, fabric: Fabric::default() })
    }

    /// Adds one direction of a link. Everything random about it follows from `rng`'s seed: give
    /// each link a stream of its own.
    pub fn add_link(&mut self, model: LinkModel, rng: Rng) -> MeshLink {
        MeshLink(self.fabric.add_link(model, rng))
    }

    /// Joins the sockets at `a` and `b`, both of IPv4 on this machine, by `there` from `a` to `b`
    /// and by `back` from `b` to `a`. Links count `headers` bytes on top of each datagram's
    /// payload.
    ///
    /// Returns the addresses that `a` and `b` have to send to.
    ///
    /// # Errors
    /// If no more sockets can be opened.
    pub fn join(
        &mut self,
        [a, b]: [SocketAddr; 2],
        [there, back]: [&[MeshLink]; 2],
        headers: usize,
    ) -> io::Result<[SocketAddr; 2]> {
        let ((at_a, to_a), (at_b, to_b)) = (self.bind()?, self.bind()?);
        let (near, far) = (Route::new(at_a, a), Route::new(at_b, b));
        for (entrance, exit, links) in [(near, far, there), (far, near, back)] {
            let links = links.iter().map(|link| link.0).collect();
            self.fabric.add_path(MeshPath { entrance, exit, links, headers });
        }
        Ok([to_a, to_b])
    }

    fn bind(&mut self) -> io::Result<(SocketId, SocketAddr)> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let socket = self.driver.bind(&Bind::to_addr(any))?;
        Ok((socket, self.driver.socket(socket).map_or(any, |socket| socket.local_addr())))
    }

    /// Carries packets until `until`.
    ///
    /// # Errors
    /// If the system's event loop fails.
    pub fn run(&mut self, until: Instant) -> io::Result<()> {
        while self.driver.drive(&mut self.fabric, Some(until))? == Wake::Machine {}
        Ok(())
    }

    /// The time of its clock.
    pub fn now(&self) -> Instant {
        self.driver.now()
    }

    /// What a link did so far.
    pub fn stats(&self, link: MeshLink) -> LinkStats {
        self.fabric.stats(link.0).unwrap_or_default()
    }

    /// Datagrams that no link saw: too much was inside, or nobody knows who sent them.
    pub fn refused(&self) -> u64 {
        self.fabric.dropped_memory() + self.fabric.strays()
    }
}
