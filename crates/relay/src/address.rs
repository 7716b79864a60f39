//! Addresses that stand for the other side's legs.

use crate::wire::Leg;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The discard prefix: no machine has an address in it, and no network carries one (RFC 6666).
const PREFIX: [u16; 4] = [0x0100, 0, 0, 0];
/// The discard service's. Not 0, which would mean native IP.
const PORT: u16 = 9;

/// What a machine above takes for the address of `leg`, in `100::/64`.
pub const fn address_of(leg: Leg) -> SocketAddr {
    let [a, b, c, d] = PREFIX;
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, leg.0)), PORT)
}

/// The leg that `addr` stands for; `None` of a real address.
pub const fn leg_of(addr: SocketAddr) -> Option<Leg> {
    let SocketAddr::V6(v6) = addr else { return None };
    match v6.ip().segments() {
        [0x0100, 0, 0, 0, 0, 0, 0, leg] if v6.port() == PORT => Some(Leg(leg)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leg_has_an_address_and_nothing_else_is_one() {
        for leg in [Leg(0), Leg(1), Leg(u16::MAX)] {
            assert_eq!(leg_of(address_of(leg)), Some(leg));
        }
        for other in ["192.0.2.1:9", "[100::1]:10", "[100::1:1]:9", "[2001:db8::1]:9"] {
            assert_eq!(leg_of(other.parse().unwrap()), None, "{other}");
        }
    }
}
