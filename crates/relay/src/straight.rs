//! Past the relay: both ends try each other's addresses at once, which opens the NATs before them
//! (after RFC 8445, with one check for each address).

use crate::wire::{Circuit, Control};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// An address is tried so often,
const TRIES: u8 = 20;
/// this far apart.
const APART: Duration = Duration::from_millis(100);
/// Addresses that are tried at a time, and those that packets are taken from.
const MOST: usize = 16;

/// What came from elsewhere than the relay.
pub(crate) enum Came {
    /// A packet of the other end.
    Packet,
    /// The first sign of the other end from there.
    Proof,
    Nothing,
}

/// What is tried, and what works.
#[derive(Debug)]
pub(crate) struct Straight {
    token: u64,
    /// Addresses and how often they are tried yet.
    tried: Vec<(SocketAddr, u8)>,
    next: Option<Instant>,
    /// Addresses that the other end was heard from; the newest last.
    heard: VecDeque<SocketAddr>,
    out: VecDeque<SocketAddr>,
}

impl Straight {
    pub(crate) fn new(circuit: Circuit) -> Self {
        let (heard, out) = (VecDeque::new(), VecDeque::new());
        Self { token: circuit.punch(), tried: Vec::new(), next: None, heard, out }
    }

    /// The relay sees the other end at `addr`.
    pub(crate) fn try_at(&mut self, now: Instant, addr: SocketAddr) {
        self.tried.retain(|(other, _)| *other != addr);
        if self.tried.len() >= MOST {
            self.tried.remove(0);
        }
        self.tried.push((addr, TRIES));
        self.next.get_or_insert(now);
    }

    pub(crate) fn handle(&mut self, from: SocketAddr, datagram: &[u8]) -> Came {
        let is_known = self.heard.contains(&from);
        match Control::read(datagram) {
            Ok(Control::Punch { token }) if token == self.token && !is_known => {
                if self.heard.len() >= MOST {
                    self.heard.pop_front();
                }
                self.heard.push_back(from);
                // It may be another port than the relay saw.
                self.out.push_back(from);
                Came::Proof
            }
            Err(_) if is_known => Came::Packet,
            _ => Came::Nothing,
        }
    }

    pub(crate) fn forget(&mut self, addr: SocketAddr) {
        self.heard.retain(|it| *it != addr);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.next.is_some_and(|at| at <= now) {
            for (addr, left) in &mut self.tried {
                self.out.push_back(*addr);
                *left -= 1;
            }
            self.tried.retain(|(_, left)| *left > 0);
            self.next = (!self.tried.is_empty()).then_some(now + APART);
        }
    }

    pub(crate) const fn next(&self) -> Option<Instant> {
        self.next
    }

    pub(crate) fn poll(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        let to = self.out.pop_front()?;
        let mut bytes = Vec::new();
        Control::Punch { token: self.token }.write(&mut bytes);
        Some((to, bytes))
    }
}

/// Returns `true` if an address that `relay` names may be tried: one of a private network only if the
/// relay is in such a network itself. Else a relay could have an end send into its own network.
pub(crate) fn may_be_tried(addr: SocketAddr, relay: SocketAddr) -> bool {
    let is_private = |ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(v4) => {
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_multicast()
                || v4.is_broadcast()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unicast_link_local()
                || v6.is_unique_local()
                || v6.is_unspecified()
                || v6.is_multicast()
        }
    };
    addr.port() != 0 && (!is_private(addr.ip()) || is_private(relay.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relay_elsewhere_makes_nobody_send_into_a_private_network() {
        let may = |addr: &str, relay: &str| may_be_tried(addr.parse().unwrap(), relay.parse().unwrap());
        assert!(may("203.0.113.9:1", "203.0.113.1:9000") && may("192.168.1.2:1", "192.168.1.1:9000"));
        for addr in ["192.168.1.2:1", "127.0.0.1:1", "[fe80::1]:1", "[fd00::1]:1", "224.0.0.1:1", "203.0.113.9:0"] {
            assert!(!may(addr, "203.0.113.1:9000"), "{addr}");
        }
    }

    #[test]
    fn an_address_is_tried_for_two_seconds_and_taken_once_it_shows_the_token() {
        let circuit = Circuit([1; 16]);
        let (mut here, [a, b]) = (Straight::new(circuit), ["192.0.2.1:1", "192.0.2.1:2"].map(|it| it.parse().unwrap()));
        here.try_at(Instant::ZERO, a);
        let mut sent = 0;
        while let Some(at) = here.next() {
            here.handle_timeout(at);
            sent += std::iter::from_fn(|| here.poll()).filter(|(to, _)| *to == a).count();
        }
        assert_eq!(sent, usize::from(TRIES));
        let punch = |token| {
            let mut bytes = Vec::new();
            Control::Punch { token }.write(&mut bytes);
            bytes
        };
        assert!(matches!(here.handle(b, b"a packet"), Came::Nothing), "nobody knows that address");
        assert!(matches!(here.handle(b, &punch(circuit.punch() ^ 1)), Came::Nothing));
        assert!(matches!(here.handle(b, &punch(circuit.punch())), Came::Proof));
        assert_eq!(here.poll().map(|(to, _)| to), Some(b), "it is answered");
        assert!(matches!(here.handle(b, &punch(circuit.punch())), Came::Nothing) && here.poll().is_none(), "once");
        assert!(matches!(here.handle(b, b"a packet"), Came::Packet));
        here.forget(b);
        assert!(matches!(here.handle(b, b"a packet"), Came::Nothing));
    }
}
