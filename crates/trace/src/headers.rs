//! The IP and UDP headers that a datagram had on the wire, made again for the capture.

use braidcast_core::Ecn;
use etherparse::err::packet::BuildWriteError;
use etherparse::{IpEcn, IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// What a capture is of; all packets of one capture are of one protocol, as those of a socket are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Protocol {
    /// SCTP.
    #[default]
    Sctp,
    /// DCCP.
    Dccp,
}

impl Protocol {
    /// The port over UDP by which dissectors know it (RFC 6951 §4, RFC 6773 §3.8).
    const fn port(self) -> u16 {
        match self {
            Self::Sctp => 9899,
            Self::Dccp => 6511,
        }
    }

    /// The number straight over IP.
    const fn number(self) -> IpNumber {
        match self {
            Self::Sctp => IpNumber::SCTP,
            Self::Dccp => IpNumber::DCCP,
        }
    }
}

/// The hop limit written; what the packets really had is the kernel's business.
const HOPS: u8 = 64;

/// Which UDP ports a capture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ports {
    /// The ports in use; a dissector must be told what they carry (`tshark -d udp.port==9000,sctp`).
    #[default]
    Real,
    /// The destination port is shown as the protocol's own: 9899 (RFC 6951 §4), by which dissectors
    /// know SCTP unasked, or 6511 (RFC 6773 §3.8), where tshark 4 sees UDP only.
    Encapsulation,
}

/// Writes a whole IP packet around `payload` into `buf`, which is cleared first: IP and UDP, or IP alone with
/// the protocol's number if both ports are 0.
///
/// Addresses of different families are both shown as IPv6, the IPv4 one mapped (RFC 4291 §2.5.5.2).
pub(crate) fn wrap(
    buf: &mut Vec<u8>,
    (protocol, ports): (Protocol, Ports),
    from: SocketAddr,
    to: SocketAddr,
    ecn: Ecn,
    payload: &[u8],
) -> io::Result<()> {
    buf.clear();
    let builder = PacketBuilder::ip(ip(from.ip(), to.ip(), ecn));
    let done = if from.port() == 0 && to.port() == 0 {
        builder.write(buf, protocol.number(), payload)
    } else {
        let destination = if ports == Ports::Real { to.port() } else { protocol.port() };
        builder.udp(from.port(), destination).write(buf, payload)
    };
    done.map_err(|error| match error {
        BuildWriteError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidInput, format!("a datagram of {} bytes: {other}", payload.len())),
    })
}

/// Lengths and checksums are filled in by the builder.
fn ip(from: IpAddr, to: IpAddr, ecn: Ecn) -> IpHeaders {
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let header = Ipv4Header {
                ecn: codepoint(ecn),
                dont_fragment: true,
                fragment_offset: IpFragOffset::ZERO,
                time_to_live: HOPS,
                source: from.octets(),
                destination: to.octets(),
                ..Ipv4Header::default()
            };
            IpHeaders::Ipv4(header, Default::default())
        }
        (from, to) => {
            let octets = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            let header = Ipv6Header {
                traffic_class: codepoint(ecn).value(),
                hop_limit: HOPS,
                source: octets(from),
                destination: octets(to),
                ..Ipv6Header::default()
            };
            IpHeaders::Ipv6(header, Default::default())
        }
    }
}

fn codepoint(ecn: Ecn) -> IpEcn {
    match ecn {
        Ecn::NotEct => IpEcn::ZERO,
        Ecn::Ect1 => IpEcn::ONE,
        Ecn::Ect0 => IpEcn::TWO,
        Ecn::Ce => IpEcn::THREE,
    }
}
