//! Asks once if anybody listens at a UDP port. The protocol's own sockets are not connected, so the system does not
//! tell them of the ICMP messages that say so.
#![allow(clippy::disallowed_types, reason = "a socket of the system's own: it only asks, and carries nothing")]

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// One address that was knocked at.
struct Door {
    to: SocketAddr,
    /// `None` if nothing could be sent.
    socket: Option<UdpSocket>,
    closed: Option<String>,
}

/// Addresses of one other end.
pub(crate) struct Knock(Vec<Door>);

impl Knock {
    /// Sends a datagram that no protocol takes to each of `addresses`.
    pub(crate) fn at(addresses: impl Iterator<Item = SocketAddr>) -> Self {
        Self(addresses.map(Door::knock).collect())
    }

    /// Why nobody can be there, if that is known of all addresses.
    pub(crate) fn refused(&mut self) -> Option<String> {
        self.0.iter_mut().for_each(Door::look);
        let closed: Vec<&str> = self.0.iter().filter_map(|door| door.closed.as_deref()).collect();
        (!closed.is_empty() && closed.len() == self.0.len()).then(|| closed.join("; "))
    }
}

impl Door {
    fn knock(to: SocketAddr) -> Self {
        let any: SocketAddr =
            if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
        let sent = UdpSocket::bind(any).and_then(|socket| {
            socket.set_nonblocking(true)?;
            socket.connect(to)?;
            socket.send(&[0])?;
            Ok(socket)
        });
        match sent {
            Ok(socket) => Self { to, socket: Some(socket), closed: None },
            Err(error) => {
                let mut door = Self { to, socket: None, closed: None };
                door.note(error.kind());
                door
            }
        }
    }

    fn look(&mut self) {
        if let Some(Ok(Some(error))) = self.socket.as_ref().map(UdpSocket::take_error) {
            self.note(error.kind());
        }
    }

    /// Other errors say nothing of the other end.
    fn note(&mut self, kind: ErrorKind) {
        let to = self.to;
        self.closed = match kind {
            ErrorKind::ConnectionRefused => Some(format!("nobody listens at UDP port {} of {}", to.port(), to.ip())),
            ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => {
                Some(format!("there is no route to {}", to.ip()))
            }
            _ => return,
        };
        self.socket = None;
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "these tests are about real sockets and clocks")]
mod tests {
    use super::*;

    #[test]
    fn a_port_where_nobody_listens_is_told_from_one_where_somebody_does() {
        let here = UdpSocket::bind("127.0.0.1:0").unwrap();
        let open = here.local_addr().unwrap();
        let gone = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut knock = Knock::at([gone].into_iter());
        let end = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let refused = loop {
            if let Some(refused) = knock.refused() {
                break refused;
            }
            assert!(std::time::Instant::now() < end, "the system says so at once");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert_eq!(refused, format!("nobody listens at UDP port {} of 127.0.0.1", gone.port()));
        assert_eq!(knock.refused(), Some(refused), "it stays so");
        let mut both = Knock::at([gone, open].into_iter());
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert_eq!(both.refused(), None, "one of them may be there");
    }
}
