//! What an end asks that looks at the network, and sends no stream.

use super::{Message, VERSION, WireError};
use braidcast_core::{Reader, Writer};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

pub(super) const LOOK: u8 = 10;
pub(super) const SEEN: u8 = 11;

/// The bit of [`Seen::measures`].
const MEASURES: u8 = 0x01;

/// The answer to a look: what the other end has seen of the path that it came over.
///
/// ```text
/// +---------------+---------------+---------------+---------------+
/// |  Version = 1  |   Type = 11   |    Flags    |M|       0       |
/// +---------------+---------------+---------------+---------------+
/// |                    Number of the look (64)                    |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |       Clock: µs since 1970, or 0 if it is not told (64)       |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |      Packets that came over this path and said ECT (64)       |
/// |                                                               |
/// +---------------------------------------------------------------+
/// |  Address that they came from: IPv6, or IPv4-mapped (128)      |
/// \                                                               \
/// +-------------------------------+-------------------------------+
/// |       Port (16)               |
/// +-------------------------------+
/// ```
///
/// M: it takes what is to be counted, as `perf server` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// The number of the look that this answers.
    pub number: u64,
    /// The other end's clock, µs since 1970.
    pub clock: Option<u64>,
    /// Packets that came over this path with an ECN codepoint other than Not-ECT.
    pub ect_packets: u64,
    /// Where they came from.
    pub from: SocketAddr,
    /// `true` if the other end counts what comes, and plays no streams.
    pub measures: bool,
}

/// Writes a look with this number into `out`, which is cleared first. Who answers it is not disturbed: it begins no
/// stream, and takes nobody's place.
///
/// ```text
/// +---------------+---------------+-------------------------------+
/// |  Version = 1  |   Type = 10   |               0               |
/// +---------------+---------------+-------------------------------+
/// |                          Number (64)                          |
/// |                                                               |
/// +---------------------------------------------------------------+
/// ```
///
/// What comes behind it is ignored, so that a look can be as long as a packet.
pub fn write_look(out: &mut Vec<u8>, number: u64) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, LOOK, 0, 0]);
    w.u64(number);
}

/// Writes the answer to a look into `out`, which is cleared first.
pub fn write_seen(out: &mut Vec<u8>, seen: &Seen) {
    out.clear();
    let mut w = Writer::new(out);
    w.bytes(&[VERSION, SEEN, if seen.measures { MEASURES } else { 0 }, 0]);
    w.u64(seen.number);
    w.u64(seen.clock.unwrap_or(0));
    w.u64(seen.ect_packets);
    let ip = match seen.from.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    w.bytes(&ip.octets());
    w.u16(seen.from.port());
}

pub(super) fn parse_look(mut reader: Reader<'_>) -> Result<Message<'_>, WireError> {
    let _zero = reader.u16()?;
    Ok(Message::Look(reader.u64()?))
}

pub(super) fn parse_seen(mut reader: Reader<'_>) -> Result<Message<'_>, WireError> {
    let (flags, _zero) = (reader.u8()?, reader.u8()?);
    let (number, clock, ect_packets) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let ip = IpAddr::V6(Ipv6Addr::from(reader.array::<16>()?)).to_canonical();
    let from = SocketAddr::new(ip, reader.u16()?);
    let clock = Some(clock).filter(|clock| *clock > 0);
    Ok(Message::Seen(Seen { number, clock, ect_packets, from, measures: flags & MEASURES != 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_and_their_answers_are_read_as_written() {
        let mut out = Vec::new();
        write_look(&mut out, 7);
        assert_eq!(Message::parse(&out), Ok(Message::Look(7)));
        assert!(Message::parse(&out[..11]).is_err());
        for from in ["192.0.2.1:9", "[2001:db8::1]:9"] {
            let from = from.parse().unwrap();
            for seen in [
                Seen { number: 7, clock: None, ect_packets: 3, from, measures: false },
                Seen { number: 8, clock: Some(5), ect_packets: 0, from, measures: true },
            ] {
                write_seen(&mut out, &seen);
                assert_eq!(Message::parse(&out), Ok(Message::Seen(seen)));
                assert!(Message::parse(&out[..out.len() - 1]).is_err());
            }
        }
    }
}
