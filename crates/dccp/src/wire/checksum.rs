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

/// The sum of the 16-bit words of `bytes`, a zero byte added where their number is odd.
fn words(bytes: &[u8]) -> u64 {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let sum: u64 = pairs.iter().map(|&pair| u64::from(u16::from_be_bytes(pair))).sum();
    sum + rest.first().map_or(0, |&byte| u64::from(byte) << 8)
}
