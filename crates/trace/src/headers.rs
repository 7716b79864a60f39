//! The IP and UDP headers that a datagram had on the wire, made again for the capture.

use braidcast_core::Ecn;
use etherparse::err::packet::BuildWriteError;
use etherparse::{IpEcn, IpFragOffset, IpHeaders, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The port of SCTP over UDP (RFC 6951 §4), by which dissectors know it.
const SCTP_OVER_UDP: u16 = 9899;

/// The hop limit written; what the packets really had is the kernel's business.
const HOPS: u8 = 64;

/// Which UDP ports a capture shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ports {
    /// The ports in use; a dissector must be told that they carry SCTP (`tshark -d udp.port==9000,sctp`).
    #[default]
    Real,
    /// The destination port is shown as 9899 (RFC 6951 §4), so that dissectors know SCTP unasked.
    Encapsulation,
}

/// Writes a whole IP packet around `payload` into `buf`, which is cleared first: IP and UDP, or IP alone with
/// protocol 132 where both ports are 0 (native SCTP).
///
/// Addresses of different families are both shown as IPv6, the IPv4 one mapped (RFC 4291 §2.5.5.2).
pub(crate) fn wrap(
    buf: &mut Vec<u8>,
    ports: Ports,
    from: SocketAddr,
    to: SocketAddr,
    ecn: Ecn,
    payload: &[u8],
) -> io::Result<()> {
    buf.clear();
    let builder = PacketBuilder::ip(ip(from.ip(), to.ip(), ecn));
    let done = if from.port() == 0 && to.port() == 0 {
        builder.write(buf, IpNumber::SCTP, payload)
    } else {
        let destination = if ports == Ports::Real { to.port() } else { SCTP_OVER_UDP };
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
