//! Cookies: who shows one has got what was sent to its address. The relay remembers none.

use braidcast_core::{Instant, Rng};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::net::{IpAddr, SocketAddr};
use subtle::ConstantTimeEq;

/// A cookie is good for this long, and up to twice as long, in seconds.
const SLOT: u64 = 10;

/// Makes and checks them.
#[derive(Debug)]
pub(crate) struct Cookies(Hmac<Sha256>);

impl Cookies {
    /// With a key that nobody knows.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let mut key = [0; 64];
        rng.fill(&mut key);
        Self(Hmac::new(&key.into()))
    }

    /// For who is at `addr` now.
    pub(crate) fn make(&self, now: Instant, addr: SocketAddr) -> [u8; 16] {
        self.of_slot(slot(now), addr)
    }

    /// Returns `true` if `cookie` was made for `addr`, and not long ago.
    pub(crate) fn is_good(&self, now: Instant, addr: SocketAddr, cookie: &[u8; 16]) -> bool {
        let given = u32::from_be_bytes([cookie[0], cookie[1], cookie[2], cookie[3]]);
        let age = slot(now).wrapping_sub(given);
        age <= 1 && bool::from(self.of_slot(given, addr).ct_eq(cookie))
    }

    fn of_slot(&self, slot: u32, addr: SocketAddr) -> [u8; 16] {
        let mut mac = self.0.clone();
        mac.update(&slot.to_be_bytes());
        match addr.ip() {
            IpAddr::V4(ip) => mac.update(&ip.octets()),
            IpAddr::V6(ip) => mac.update(&ip.octets()),
        }
        mac.update(&addr.port().to_be_bytes());
        let mut cookie = [0; 16];
        cookie[..4].copy_from_slice(&slot.to_be_bytes());
        cookie[4..].copy_from_slice(&mac.finalize().into_bytes()[..12]);
        cookie
    }
}

/// Slots go round after 1,300 years.
fn slot(now: Instant) -> u32 {
    (now.since(Instant::ZERO).as_secs() / SLOT) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_its_address_and_not_for_long() {
        let cookies = Cookies::new(&mut Rng::from_seed(1));
        let [here, there] = ["192.0.2.1:9", "192.0.2.1:10"].map(|text| text.parse().unwrap());
        let at = Instant::from_millis;
        let cookie = cookies.make(at(15_000), here);
        assert!(cookies.is_good(at(15_000), here, &cookie) && cookies.is_good(at(29_999), here, &cookie));
        assert!(!cookies.is_good(at(30_000), here, &cookie), "it is old");
        assert!(!cookies.is_good(at(15_000), there, &cookie), "it is another's");
        assert!(!cookies.is_good(at(5_000), here, &cookie), "it comes from the future");
        for byte in 0..16 {
            let mut wrong = cookie;
            wrong[byte] ^= 1;
            assert!(!cookies.is_good(at(15_000), here, &wrong), "byte {byte}");
        }
        let other = Cookies::new(&mut Rng::from_seed(2));
        assert!(!other.is_good(at(15_000), here, &cookie), "it is another relay's");
    }
}
