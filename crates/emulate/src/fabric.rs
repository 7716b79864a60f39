use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, Transmit};
use braidcast_sim::link::{Link, LinkModel, LinkStats, Offer, Outcome};
use core::convert::Infallible;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Payload inside all links together, at most.
const MAX_HELD: usize = 128 << 20;
/// Buffers kept for reuse, at most.
const MAX_POOL: usize = 4096;

/// A packet in flight.
#[derive(Clone, Debug)]
struct Packet {
    /// Its path, by index.
    path: usize,
    /// Which link of the path it is on.
    hop: usize,
    /// Shared because links may duplicate packets.
    payload: Arc<Vec<u8>>,
}

/// How packets go from one socket to another.
#[derive(Debug)]
pub(crate) struct MeshPath {
    /// Where they come from: anything else at this socket is a stray.
    pub(crate) entrance: Route,
    /// Where they leave.
    pub(crate) exit: Route,
    /// The links between, by index; at least one.
    pub(crate) links: Vec<usize>,
    /// Bytes of headers that links count on top of what a socket carries.
    pub(crate) headers: usize,
}

/// Links and paths over them, as a machine without I/O.
#[derive(Debug, Default)]
pub(crate) struct Fabric {
    links: Vec<Link<Packet>>,
    paths: Vec<MeshPath>,
    /// Paths by their entrances.
    entrances: BTreeMap<Route, usize>,
    /// What has arrived and waits to be sent.
    arrived: VecDeque<(Packet, Ecn)>,
    /// Payload inside, in bytes.
    held: usize,
    /// Dropped because too much was inside.
    dropped_memory: u64,
    /// Datagrams of nobody who was expected.
    strays: u64,
    /// Buffers for packets to come; nobody else holds them.
    pool: Vec<Arc<Vec<u8>>>,
}

impl Fabric {
    /// Adds a link, and returns its number.
    pub(crate) fn add_link(&mut self, model: LinkModel, rng: Rng) -> usize {
        self.links.push(Link::new(model, rng));
        self.links.len() - 1
    }

    pub(crate) fn add_path(&mut self, path: MeshPath) {
        self.entrances.insert(path.entrance, self.paths.len());
        self.paths.push(path);
    }

    /// What the link of this number did, as of `now`.
    pub(crate) fn stats(&self, link: usize) -> Option<LinkStats> {
        self.links.get(link).map(Link::stats)
    }

    pub(crate) const fn dropped_memory(&self) -> u64 {
        self.dropped_memory
    }

    pub(crate) const fn strays(&self) -> u64 {
        self.strays
    }

    /// Puts a packet on the link that it has come to, or where it leaves.
    fn forward(&mut self, now: Instant, ecn: Ecn, packet: Packet) {
        let path = &self.paths[packet.path];
        let Some(&link) = path.links.get(packet.hop) else {
            self.arrived.push_back((packet, ecn));
            return;
        };
        if let Offer::Dropped(_, packet) = self.links[link].offer(now, packet.payload.len() + path.headers, ecn, packet)
        {
            self.release(packet);
        }
    }

    /// A packet is gone for good. Of one that a link duplicated the last copy makes room.
    fn release(&mut self, packet: Packet) {
        let mut payload = packet.payload;
        if Arc::get_mut(&mut payload).is_some() {
            self.held = self.held.saturating_sub(payload.len());
            if self.pool.len() < MAX_POOL {
                self.pool.push(payload);
            }
        }
    }

    /// Moves on what has come to the end of a link by `now`.
    fn advance(&mut self, now: Instant) {
        // A packet may pass several links without time passing; no path leads over a link twice without an end.
        let mut moved = true;
        while moved {
            moved = false;
            for link in 0..self.links.len() {
                if self.links[link].poll_timeout().is_none_or(|at| at > now) {
                    continue;
                }
                while let Some(exit) = self.links[link].poll_outcome(now) {
                    moved = true;
                    let mut packet = match exit.outcome {
                        Outcome::Arrived(packet) => packet,
                        Outcome::Corrupted(mut packet, bit) => {
                            if Arc::strong_count(&packet.payload) > 1 {
                                // The link duplicated it; only this copy is damaged, so from here
                                // on it counts by itself.
                                self.held += packet.payload.len();
                            }
                            flip(Arc::make_mut(&mut packet.payload).as_mut_slice(), bit);
                            packet
                        }
                        Outcome::Dropped(_, packet) => {
                            self.release(packet);
                            continue;
                        }
                    };
                    packet.hop += 1;
                    self.forward(now, exit.ecn, packet);
                }
            }
        }
    }
}

/// Turns over bit `bit % bits` of `payload`.
fn flip(payload: &mut [u8], bit: u64) {
    if let Some(bit) = bit.checked_rem(payload.len() as u64 * 8) {
        payload[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

impl Machine for Fabric {
    type Event = Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some(&path) = self.entrances.get(&datagram.route) else {
            self.strays += 1;
            return;
        };
        if self.held + datagram.payload.len() > MAX_HELD {
            self.dropped_memory += 1;
            return;
        }
        let mut payload = self.pool.pop().unwrap_or_default();
        let buf = Arc::make_mut(&mut payload);
        buf.clear();
        buf.extend_from_slice(datagram.payload);
        self.held += datagram.payload.len();
        self.forward(now, datagram.ecn, Packet { path, hop: 0, payload });
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        if self.arrived.is_empty() {
            self.advance(now);
        }
        let (packet, ecn) = self.arrived.pop_front()?;
        buf.extend_from_slice(&packet.payload);
        let route = self.paths[packet.path].exit;
        self.release(packet);
        Some(Transmit { route, ecn, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.links.iter().filter_map(Link::poll_timeout).min()
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::SocketId;
    use core::net::SocketAddr;
    use core::time::Duration;

    fn route(socket: u16) -> Route {
        Route::new(SocketId(socket), SocketAddr::from(([192, 0, 2, 1], 1000 + socket)))
    }

    /// Paths from sockets 0 and 2 to 1 and 3, over a link of their own each and one that both share.
    fn two_paths() -> Fabric {
        let mut fabric = Fabric::default();
        for i in 0..3 {
            fabric.add_link(LinkModel::wire(8_000, Duration::from_millis(10)), Rng::from_seed(i));
        }
        for (own, entrance) in [(0, 0), (1, 2)] {
            let path =
                MeshPath { entrance: route(entrance), exit: route(entrance + 1), links: vec![own, 2], headers: 28 };
            fabric.add_path(path);
        }
        fabric
    }

    #[test]
    fn packets_that_share_a_link_wait_for_each_other() {
        let mut fabric = two_paths();
        let mut buf = Vec::new();
        for socket in [0, 2] {
            let payload = &[socket as u8; 72];
            fabric.handle_datagram(Instant::ZERO, Datagram { route: route(socket), ecn: Ecn::Ect0, payload });
        }
        let mut left = Vec::new();
        while let Some(at) = fabric.poll_timeout() {
            fabric.handle_timeout(at);
            while let Some(transmit) = fabric.poll_transmit(at, &mut buf) {
                left.push((at.as_nanos() / 1_000_000, transmit.route, buf.clone()));
            }
        }
        // 100 bytes take 100 ms on each link: side by side on the first, one behind the other on the second.
        assert_eq!(left, [(220, route(1), vec![0; 72]), (320, route(3), vec![2; 72])]);
        assert_eq!((fabric.held, fabric.stats(2).unwrap().delivered), (0, 2));
    }

    #[test]
    fn who_was_not_expected_is_a_stray() {
        let mut fabric = two_paths();
        let stranger = Route::new(SocketId(0), SocketAddr::from(([192, 0, 2, 9], 9)));
        fabric.handle_datagram(Instant::ZERO, Datagram { route: stranger, ecn: Ecn::NotEct, payload: b"x" });
        assert_eq!((fabric.strays(), fabric.poll_timeout()), (1, None));
    }
}
