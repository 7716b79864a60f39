//! Media that comes and goes as plain UDP datagrams: `udp://` inputs and outputs.
#![allow(clippy::disallowed_types, reason = "the media's own sockets belong to the command line, not to a protocol")]

use super::common;
use super::resolve::resolve;
use crate::args::media::{Local, UdpMedia};
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_driver::{Batch, DatagramReader, DatagramWriter, Interfaces};
use braidcast_gateway::rtp;
use rustix::net::{netdevice, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A packet of transport stream.
const TS_PACKET: usize = 188;
/// Payload of one datagram of transport stream: seven packets, as everyone sends it.
const TS_DATAGRAM: usize = 7 * TS_PACKET;

/// Datagrams from somewhere.
pub(crate) struct UdpInput(DatagramReader);

/// Datagrams to somewhere.
pub(crate) struct UdpOutput {
    socket: DatagramWriter,
    /// Of the second network, which gets the same packets.
    copy: Option<DatagramWriter>,
    /// Longest datagram of transport stream, whole packets.
    size: usize,
    unsent: u64,
    /// What puts them into RTP, and the packets that it makes.
    rtp: Option<(rtp::Sender, Vec<u8>)>,
}

/// The end of this machine that an option names.
struct Here {
    addr: IpAddr,
    /// Index of its interface.
    index: u32,
}

impl UdpInput {
    /// Listens on the address of `media`; joins the group if it is a multicast one.
    pub(crate) fn open(media: &UdpMedia) -> Outcome<Self> {
        let addr = resolve(&media.at, |_| true)?;
        let here = media.local.as_ref().map(|local| here(local, addr)).transpose()?;
        let group = addr.ip().is_multicast();
        let addr = match &here {
            Some(here) if addr.ip().is_unspecified() => SocketAddr::new(here.addr, addr.port()),
            Some(here) if !group && here.addr != addr.ip() => {
                return Err(Failure::usage(
                    format!("{media} listens on {} only: localaddr= cannot name another address", addr.ip()),
                    "leave localaddr= out, or write udp://:PORT?localaddr=ADDR",
                ));
            }
            _ => addr,
        };
        let socket = Self::bind(addr, here.as_ref()).and_then(|socket| DatagramReader::new(socket.into()));
        socket.map(Self).map_err(|e| {
            Failure::new(
                format!("cannot listen on {media}: {e}"),
                "the address must be one of this machine and the port free: udp://127.0.0.1:PORT, or udp://:PORT for all",
            )
        })
    }

    fn bind(addr: SocketAddr, here: Option<&Here>) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind(addr)?;
        match (addr.ip(), here) {
            (IpAddr::V4(group), Some(here)) if group.is_multicast() => {
                sockopt::set_ip_add_membership_with_ifindex(&socket, &group, &Ipv4Addr::UNSPECIFIED, here.index)?;
            }
            (IpAddr::V4(group), None) if group.is_multicast() => {
                socket.join_multicast_v4(&group, &Ipv4Addr::UNSPECIFIED)?;
            }
            (IpAddr::V6(group), here) if group.is_multicast() => {
                socket.join_multicast_v6(&group, here.map_or(0, |here| here.index))?;
            }
            _ => {}
        }
        Ok(socket)
    }

    /// Hands the datagrams that are there to `take`, or a batch of them, each with the time that it has waited to
    /// be read.
    pub(crate) fn receive(&mut self, take: impl FnMut(&[u8], Duration)) -> io::Result<Batch> {
        self.0.receive(take)
    }
}

impl AsRawFd for UdpInput {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

impl UdpOutput {
    /// Sends to the address of `media`.
    pub(crate) fn open(media: &UdpMedia) -> Outcome<Self> {
        let socket = Self::towards(media)?;
        let copy = media.second().as_ref().map(Self::towards).transpose()?;
        let size = media.pkt_size.map_or(TS_DATAGRAM, |size| usize::from(size) / TS_PACKET * TS_PACKET);
        let rtp = if media.rtp { Some((rtp::Sender::new(&mut common::rng(None)?), Vec::new())) } else { None };
        Ok(Self { socket, copy, size, unsent: 0, rtp })
    }

    fn towards(media: &UdpMedia) -> Outcome<DatagramWriter> {
        let addr = resolve(&media.at, |_| true)?;
        let here = media.local.as_ref().map(|local| here(local, addr)).transpose()?;
        Self::connect(addr, here.as_ref(), media.ttl).map_err(|e: io::Error| {
            Failure::new(format!("cannot send to {media}: {e}"), "check that the address can be reached from here")
        })
    }

    fn connect(addr: SocketAddr, here: Option<&Here>, ttl: Option<u8>) -> io::Result<DatagramWriter> {
        let any = if addr.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        // A source address chooses the interface of IPv4's groups too; IPv6's have a scope.
        let socket = UdpSocket::bind((here.map_or(any, |here| here.addr), 0))?;
        let addr = match (addr, here) {
            (SocketAddr::V6(v6), Some(here)) if v6.ip().is_multicast() => {
                SocketAddrV6::new(*v6.ip(), v6.port(), 0, here.index).into()
            }
            _ => addr,
        };
        match (ttl, addr.is_ipv4(), addr.ip().is_multicast()) {
            (None, ..) => {}
            (Some(ttl), true, true) => sockopt::set_ip_multicast_ttl(&socket, ttl.into())?,
            (Some(ttl), true, false) => sockopt::set_ip_ttl(&socket, ttl.into())?,
            (Some(ttl), false, true) => sockopt::set_ipv6_multicast_hops(&socket, ttl.into())?,
            (Some(ttl), false, false) => sockopt::set_ipv6_unicast_hops(&socket, Some(ttl))?,
        }
        socket.connect(addr)?;
        DatagramWriter::new(socket.into())
    }

    /// Sends `bytes`, cut at packet boundaries if they are more than a datagram of transport stream. Nobody listening
    /// is no error: a player may start late or restart.
    pub(crate) fn send(&mut self, now: Instant, bytes: &[u8]) {
        let whole = bytes.len().is_multiple_of(TS_PACKET);
        if self.rtp.is_some() && !whole {
            // RTP says that it carries MPEG-TS.
            self.unsent += 1;
            return;
        }
        let size = if whole { self.size } else { bytes.len() };
        self.unsent += match &mut self.rtp {
            None => self.socket.send(bytes, size),
            Some((rtp, packets)) => {
                packets.clear();
                bytes.chunks(size).for_each(|payload| rtp.write(now, payload, packets));
                let copied = self.copy.as_mut().map_or(0, |copy| copy.send(packets, size + rtp::HEADER));
                copied + self.socket.send(packets, size + rtp::HEADER)
            }
        };
    }

    /// Datagrams that the system did not take.
    pub(crate) const fn unsent(&self) -> u64 {
        self.unsent
    }
}

/// The address and interface of this machine that `local` names, in the family of `peer`.
fn here(local: &Local, peer: SocketAddr) -> Outcome<Here> {
    let interfaces = Interfaces::list().map_err(|e| {
        Failure::new(format!("cannot list the interfaces of this machine: {e}"), "leave out localaddr=")
    })?;
    let fits = |addr: &IpAddr| addr.is_ipv4() == peer.is_ipv4();
    let found = match local {
        Local::Addr(addr) => interfaces.iter().find(|(_, addrs)| addrs.contains(addr)).map(|(name, _)| (name, *addr)),
        Local::Interface(name) => interfaces
            .iter()
            .find(|(other, _)| other == name)
            .and_then(|(name, addrs)| Some((name, *addrs.iter().find(|addr| fits(addr))?))),
    };
    let Some((name, addr)) = found.filter(|(_, addr)| fits(addr)) else {
        let family = if peer.is_ipv4() { "IPv4" } else { "IPv6" };
        return Err(Failure::new(
            format!("there is no {local} with an {family} address; this machine has {interfaces}"),
            "give localaddr= an address or interface that is there",
        ));
    };
    let index = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| Ok(netdevice::name_to_index(&socket, name)?))
        .map_err(|e| Failure::new(format!("cannot find the interface {name}: {e}"), "name another one"))?;
    Ok(Here { addr, index })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::media::{Direction, udp};

    #[test]
    fn a_group_is_joined_and_sent_to_on_the_interface_that_is_named_in_datagrams_of_the_length_asked_for() {
        let media = |text: &str, direction| udp(text, direction).unwrap().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut input =
            UdpInput::open(&media(&format!("udp://239.255.77.1:{port}?localaddr=lo"), Direction::In)).unwrap();
        let to = format!("udp://239.255.77.1:{port}?localaddr=127.0.0.1&pkt_size=400&ttl=1");
        let mut output = UdpOutput::open(&media(&to, Direction::Out)).unwrap();
        output.send(Instant::ZERO, &[0x47; 3 * TS_PACKET]);
        let mut lengths = Vec::new();
        for _ in 0..200 {
            input.receive(|datagram, _| lengths.push(datagram.len())).unwrap();
            if lengths.len() == 2 {
                break;
            }
            #[allow(clippy::disallowed_methods, reason = "a real socket takes real time")]
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(lengths, [2 * TS_PACKET, TS_PACKET]);
    }

    #[test]
    fn an_address_that_is_not_here_is_named_with_what_is() {
        let media = udp("udp://239.255.77.1:5000?localaddr=192.0.2.77", Direction::In).unwrap().unwrap();
        let failure = UdpInput::open(&media).err().unwrap().to_string();
        assert!(failure.contains("there is no 192.0.2.77 with an IPv4 address; this machine has"), "{failure}");
    }
}
