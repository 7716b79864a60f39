use super::Header;
use std::net::IpAddr;

/// IP protocol number of DCCP.
const PROTOCOL: u8 = 33;

/// How the checksum field is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checksum {
    /// Over UDP: the UDP checksum does the work, the field is sent as 0 and not looked at (RFC 6773 §3.3).
    Udp,
    /// Straight over IP: with a pseudo-header of these addresses, whose order does not matter (RFC 4340 §9.1).
    Ip(IpAddr, IpAddr),
}

impl Checksum {
    /// The value of the field for `covered`, the header with its options and the data that is covered, checksum field
    /// zero or to be checked, out of a packet of `len` bytes. For a packet that carries the right value this is 0.
    pub(crate) fn compute(self, covered: &[u8], len: usize) -> u16 {
        let Self::Ip(a, b) = self else { return 0 };
        let mut sum = u64::from(PROTOCOL) + (len as u64 >> 16) + (len as u64 & 0xffff);
        for address in [a, b] {
            sum += match address {
                IpAddr::V4(v4) => words(&v4.octets()),
                IpAddr::V6(v6) => words(&v6.octets()),
            };
        }
        sum += words(covered);
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

/// Writes the checksum of a whole packet anew, as for one that stood in UDP, where the field is 0,
/// and is now to stand in IP. Leaves alone what is no packet.
pub fn write_checksum(packet: &mut [u8], checksum: Checksum) {
    let Some(&[offset, coverage]) = packet.get(4..6).and_then(|it| it.first_chunk()) else { return };
    let header = usize::from(offset) * 4;
    if packet.len() < header || header < Header::MIN {
        return;
    }
    packet[6..8].fill(0);
    let payload = packet.len() - header;
    let covered = Header::covered(coverage & 15).unwrap_or(payload).min(payload);
    let sum = checksum.compute(&packet[..header + covered], packet.len());
    packet[6..8].copy_from_slice(&sum.to_be_bytes());
}

/// The sum of the 16-bit words of `bytes`, a zero byte added where their number is odd.
fn words(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u64 = pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum();
    sum + rest.first().map_or(0, |&byte| u64::from(byte) << 8)
}
