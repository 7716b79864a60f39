use crate::bind::{Bind, BindError};
use crate::driver::Driver;
use braidcast_core::SocketId;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Sockets with ports of their own for flows that come and go, as a tunnel or a NAT needs them: one
/// that a flow no longer uses serves the next one.
#[derive(Debug, Default)]
pub struct SocketPool {
    /// Unused ones, by the address that they are bound to.
    free: BTreeMap<IpAddr, Vec<SocketId>>,
}

impl SocketPool {
    /// A socket for a flow towards `target`: a free one, or a new one. For a target on this machine
    /// it is bound to the loopback address, so that nobody else reaches it.
    ///
    /// # Errors
    /// [`BindError`] if there is none free and no other can be opened, as at the limit of open
    /// files.
    pub fn take(&mut self, driver: &mut Driver, target: SocketAddr) -> Result<SocketId, BindError> {
        let local: IpAddr = match target.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(ip) if ip.is_loopback() => Ipv6Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        match self.free.get_mut(&local).and_then(Vec::pop) {
            Some(socket) => Ok(socket),
            None => driver.bind(&Bind::to_addr(SocketAddr::new(local, 0))),
        }
    }

    /// The flow that used `socket` is over. Does nothing if it was closed.
    pub fn give_back(&mut self, driver: &Driver, socket: SocketId) {
        if let Some(local) = driver.socket(socket) {
            self.free.entry(local.local_addr().ip()).or_default().push(socket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_socket_serves_the_next_flow_to_the_same_kind_of_address() {
        let (mut driver, mut pool) = (Driver::new().unwrap(), SocketPool::default());
        let [near, far] = ["127.0.0.1:9", "192.0.2.1:9"].map(|it| it.parse::<SocketAddr>().unwrap());
        let first = pool.take(&mut driver, near).unwrap();
        assert!(driver.socket(first).unwrap().local_addr().ip().is_loopback());
        pool.give_back(&driver, first);
        let second = pool.take(&mut driver, far).unwrap();
        assert!(second != first && driver.socket(second).unwrap().local_addr().ip().is_unspecified());
        assert_eq!(pool.take(&mut driver, near).unwrap(), first);
        assert_ne!(pool.take(&mut driver, near).unwrap(), first);
    }
}
