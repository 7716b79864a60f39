//! Media that comes and goes as plain UDP datagrams: `udp://` inputs and outputs.
#![allow(clippy::disallowed_types, reason = "the media's own sockets belong to the command line, not to a protocol")]

use super::paths::resolve;
use crate::args::values::Remote;
use crate::failure::{Failure, Outcome};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// Payload of one datagram of transport stream: seven packets, as everyone sends it.
const TS_DATAGRAM: usize = 7 * 188;

/// Datagrams from somewhere.
pub(crate) struct UdpInput(UdpSocket);

/// Datagrams to somewhere.
pub(crate) struct UdpOutput {
    socket: UdpSocket,
    unsent: u64,
}

impl UdpInput {
    /// Listens on `address`; joins the group if it is a multicast one.
    pub(crate) fn open(address: &Remote) -> Outcome<Self> {
        let addr = resolve(address, |_| true)?;
        Self::bind(addr).map(Self).map_err(|e| {
            Failure::new(
                format!("cannot listen on udp://{address}: {e}"),
                "the address must be one of this machine and the port free: udp://127.0.0.1:PORT, or udp://:PORT for all",
            )
        })
    }

    fn bind(addr: SocketAddr) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(addr)?;
        match addr.ip() {
            IpAddr::V4(group) if group.is_multicast() => socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?,
            IpAddr::V6(group) if group.is_multicast() => socket.join_multicast_v6(&group, 0)?,
            _ => {}
        }
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// The next datagram, if one is there.
    pub(crate) fn receive(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.recv(buf) {
            Ok(len) => Ok(Some(len)),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock || e.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(e) => Err(e),
        }
    }
}

impl AsRawFd for UdpInput {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl UdpOutput {
    /// Sends to `address`.
    pub(crate) fn open(address: &Remote) -> Outcome<Self> {
        let addr = resolve(address, |_| true)?;
        let any = if addr.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let open = || {
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(addr)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|e: io::Error| {
            Failure::new(
                format!("cannot send to udp://{address}: {e}"),
                "check that the address can be reached from here",
            )
        })?;
        Ok(Self { socket, unsent: 0 })
    }

    /// Sends `bytes`, cut at packet boundaries if they are more than a datagram of transport stream. Nobody listening
    /// is no error: a player may start late or restart.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let size = if bytes.len().is_multiple_of(188) { TS_DATAGRAM } else { usize::from(u16::MAX) };
        for datagram in bytes.chunks(size) {
            // An ICMP error that came meanwhile is reported once in place of sending.
            if self.socket.send(datagram).is_err() && self.socket.send(datagram).is_err() {
                self.unsent += 1;
            }
        }
    }

    /// Datagrams that the system did not take.
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent
    }
}
