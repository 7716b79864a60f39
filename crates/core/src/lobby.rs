use crate::{Instant, Route};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::IpAddr;

/// Where strangers wait: packets that ask for a new connection. They are answered within a rate,
/// and after the work for those who are connected already.
///
/// At most [`PER_SECOND`](Self::PER_SECOND) are let in; what is beyond that is turned away before
/// anything of it is read. The last half of what is free at a time is for hosts that asked little
/// in this second, so that a few that ask without end do not keep others out. Memory:
/// [`WAITING`](Self::WAITING) packets.
#[derive(Debug)]
pub struct Lobby {
    /// What may be let in now, in billionths.
    free: u64,
    since: Instant,
    /// How often hosts were let in since `counted`, by a hash of their network.
    asked: Box<[u8; Self::HOSTS]>,
    counted: Instant,
    waiting: VecDeque<(Route, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    /// Packets sent since the last one was taken.
    others: usize,
}

impl Default for Lobby {
    fn default() -> Self {
        Self {
            free: Self::BURST * Self::UNIT,
            since: Instant::ZERO,
            asked: Box::new([0; Self::HOSTS]),
            counted: Instant::ZERO,
            waiting: VecDeque::new(),
            spare: Vec::new(),
            others: 0,
        }
    }
}

impl Lobby {
    /// Packets let in each second, in the long run: their answers take a few hundredths of a processor.
    pub const PER_SECOND: u64 = 2000;
    /// Packets let in at once.
    pub const BURST: u64 = 256;
    /// Packets that wait at most.
    pub const WAITING: usize = 256;
    /// Longer packets are turned away: none that opens a connection is.
    const MAX_LEN: usize = 2048;
    /// Even where those who are connected always have something to send, one is answered after so
    /// many of their packets.
    const PATIENCE: usize = 64;
    /// What a host may ask for in a second before others go first.
    const FAIR: u8 = 16;
    const HOSTS: usize = 1024;
    const UNIT: u64 = 1_000_000_000;

    /// A stranger's packet came at `now`: it waits, or is turned away.
    pub fn enter(&mut self, now: Instant, route: Route, packet: &[u8]) {
        if packet.len() > Self::MAX_LEN || self.waiting.len() >= Self::WAITING || !self.admit(now, route.remote.ip()) {
            return;
        }
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.extend_from_slice(packet);
        self.waiting.push_back((route, kept));
    }

    /// Returns `true` if one more may be let in; counts it if so.
    fn admit(&mut self, now: Instant, host: IpAddr) -> bool {
        let passed = u64::try_from(now.since(self.since).as_nanos()).unwrap_or(u64::MAX);
        self.since = self.since.max(now);
        self.free = passed.saturating_mul(Self::PER_SECOND).saturating_add(self.free).min(Self::BURST * Self::UNIT);
        if self.free < Self::UNIT {
            return false;
        }
        if now.since(self.counted) >= Duration::from_secs(1) {
            self.counted = now;
            self.asked.fill(0);
        }
        let asked = &mut self.asked[place(host)];
        if *asked >= Self::FAIR && self.free < Self::BURST / 2 * Self::UNIT {
            return false;
        }
        *asked = asked.saturating_add(1);
        self.free -= Self::UNIT;
        true
    }

    /// One who is connected sent a packet. Whether one that waits has its turn all the same.
    pub fn wait(&mut self) -> bool {
        self.others += 1;
        self.others >= Self::PATIENCE && !self.waiting.is_empty()
    }

    /// The packet that has waited longest; give its memory back by [`recycle`](Self::recycle).
    pub fn take(&mut self) -> Option<(Route, Vec<u8>)> {
        self.others = 0;
        self.waiting.pop_front()
    }

    /// Memory of a packet that is dealt with.
    pub fn recycle(&mut self, mut packet: Vec<u8>) {
        packet.clear();
        if self.spare.len() < 16 {
            self.spare.push(packet);
        }
    }
}

/// Returns the slot in which a host is counted. In IPv6 that is its network of 64 bits, since a host
/// has as many addresses there as it likes.
fn place(host: IpAddr) -> usize {
    let number = match host.to_canonical() {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
    };
    // Fibonacci hashing (Knuth, TAOCP 3, section 6.4).
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % Lobby::HOSTS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SocketId;
    use std::net::Ipv4Addr;

    fn route(host: u32) -> Route {
        Route::new(SocketId(0), (Ipv4Addr::from_bits(host), 9).into())
    }

    /// How many of the packets that come from `hosts` at `now` are let in.
    fn let_in(lobby: &mut Lobby, now: Instant, hosts: impl IntoIterator<Item = u32>) -> usize {
        hosts.into_iter().for_each(|host| lobby.enter(now, route(host), b"hello"));
        core::iter::from_fn(|| lobby.take().map(|(_, packet)| lobby.recycle(packet))).count()
    }

    #[test]
    fn strangers_are_let_in_at_a_rate() {
        let mut lobby = Lobby::default();
        let at = Instant::from_millis;
        assert_eq!(let_in(&mut lobby, at(5000), 0..1000), Lobby::BURST as usize);
        assert_eq!(let_in(&mut lobby, at(5000), 0..1000), 0);
        assert_eq!(let_in(&mut lobby, at(5010), 0..1000), 20);
        let second: usize = (1..=1000).map(|ms| let_in(&mut lobby, at(5010 + ms), 0..50)).sum();
        assert_eq!(second, Lobby::PER_SECOND as usize);
    }

    #[test]
    fn one_that_asks_without_end_leaves_room_for_others() {
        let mut lobby = Lobby::default();
        let at = Instant::from_millis(9000);
        assert_eq!(let_in(&mut lobby, at, [7; 1000]), Lobby::BURST as usize / 2 + 1);
        assert_eq!(let_in(&mut lobby, at, 100..110), 10);
    }

    #[test]
    fn who_waits_has_a_turn_though_others_always_have_something() {
        let mut lobby = Lobby::default();
        assert!((0..1000).all(|_| !lobby.wait()), "nobody waits");
        lobby.enter(Instant::ZERO, route(1), b"hello");
        assert!(lobby.wait());
        assert!(lobby.take().is_some() && (0..Lobby::PATIENCE - 1).all(|_| !lobby.wait()));
        lobby.enter(Instant::ZERO, route(1), &[0; 4000]);
        assert!(lobby.take().is_none(), "too long");
    }
}
