//! The address that the kernel sends from, and if a route leads there at all.
#![allow(clippy::disallowed_types, reason = "the routing table is asked by a socket")]

use super::Via;
use crate::watch::Interfaces;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The local end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Local {
    /// Packets leave from this address.
    From(IpAddr),
    /// From whatever address the kernel takes.
    Open,
    /// No route leads there now.
    Unrouted,
}

impl Local {
    pub(super) const fn addr(self) -> Option<IpAddr> {
        match self {
            Self::From(addr) => Some(addr),
            Self::Open | Self::Unrouted => None,
        }
    }

    pub(super) fn is_routed(self) -> bool {
        self != Self::Unrouted
    }
}

/// Returns `true` for an IPv6 address that is good on one link only.
fn is_link_local(addr: SocketAddr) -> bool {
    matches!(addr.ip(), IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// The local end of packets to `remote` through `via`; `None` if that is not there, or has no
/// address of the family.
pub(super) fn of(via: &Via, remote: SocketAddr, interfaces: &Interfaces) -> Option<Local> {
    match via {
        Via::Any => Some(ask(None, remote).map_or(Local::Unrouted, Local::From)),
        Via::Addr(addr) => {
            let is_there = addr.is_ipv4() == remote.is_ipv4() && via.addrs(interfaces).is_some();
            is_there.then_some(Local::From(*addr))
        }
        Via::Device(name) if is_link_local(remote) => interfaces.has_link_local(name).then_some(Local::Open),
        Via::Device(name) => {
            let addrs = interfaces.addrs(name)?;
            // The kernel leaves deprecated addresses (RFC 6724 §5 rule 3) if it has a route. Where the
            // route is in a table that is chosen by the source, it has none before it knows that.
            let asked = ask(Some(name), remote).ok().filter(|addr| addrs.contains(addr));
            let local = asked.or_else(|| addrs.iter().copied().find(|addr| addr.is_ipv4() == remote.is_ipv4()));
            local.map(Local::From)
        }
    }
}

/// The local address that packets to `remote` leave from, as the kernel has it.
///
/// # Errors
/// No route leads there.
pub fn ask(device: Option<&str>, remote: SocketAddr) -> io::Result<IpAddr> {
    let (domain, any): (_, IpAddr) = match remote {
        SocketAddr::V4(_) => (Domain::IPV4, Ipv4Addr::UNSPECIFIED.into()),
        SocketAddr::V6(_) => (Domain::IPV6, Ipv6Addr::UNSPECIFIED.into()),
    };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    if let Some(device) = device {
        socket.bind_device(Some(device.as_bytes()))?;
    }
    socket.bind(&SockAddr::from(SocketAddr::new(any, 0)))?;
    // Nothing is sent. Without a port the kernel refuses some addresses.
    let mut remote = remote;
    remote.set_port(remote.port().max(1));
    socket.connect(&SockAddr::from(remote))?;
    let local = socket.local_addr()?.as_socket().map(|addr| addr.ip());
    local.ok_or_else(|| io::Error::other("a socket without address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_sends_to_itself_from_itself() {
        let (interfaces, remote) = (Interfaces::list().unwrap(), "127.0.0.1:9".parse().unwrap());
        let there = Some(Local::From(Ipv4Addr::LOCALHOST.into()));
        assert_eq!(of(&Via::Any, remote, &interfaces), there);
        assert_eq!(of(&Via::Device("lo".into()), remote, &interfaces), there);
        assert_eq!(of(&Via::Addr(Ipv4Addr::LOCALHOST.into()), remote, &interfaces), there);
        assert_eq!(of(&Via::Addr(Ipv4Addr::LOCALHOST.into()), "[::1]:9".parse().unwrap(), &interfaces), None);
        assert_eq!(of(&Via::Device("nothere0".into()), remote, &interfaces), None);
    }
}
