use crate::event::{Due, EventQueue, LivelockGuard};
use crate::link::{Link, LinkEvent, LinkModel, Offer, Outcome};
use crate::tap::{LinkTapEvent, TapAction, TapEvent};
use crate::topology::{Duplex, Interface, LinkId, NodeId, header_bytes, parse_address};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use core::fmt;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// A datagram inside the network.
#[derive(Clone, Debug)]
pub struct Packet {
    path: usize,
    /// Which link of its path it is on.
    hop: usize,
    ecn: Ecn,
    payload: Vec<u8>,
}

/// How datagrams from one interface to one remote address travel.
#[derive(Debug)]
struct Path {
    from: SocketAddr,
    remote: SocketAddr,
    links: Vec<LinkId>,
    to: Interface,
    /// The source address that the receiver sees.
    seen_as: SocketAddr,
}

#[derive(Debug)]
struct Node<M: Machine> {
    machine: M,
    addresses: Vec<SocketAddr>,
    /// A handful; comparing is quicker than hashing.
    paths: BTreeMap<Route, usize>,
    events: VecDeque<M::Event>,
    /// The earliest event queued for this node; later ones are stale.
    wake: Option<Instant>,
}

#[derive(Debug)]
struct LinkSlot {
    link: Link<Packet>,
    /// The earliest event queued for this link; later ones are stale.
    wake: Option<Instant>,
}

/// A buffer that one datagram was written into travels itself if it has no more capacity than this;
/// larger ones, as those that hold many datagrams at times, would stay as large for each small
/// packet.
const SWAPPED: usize = 4096;

type Tap = Box<dyn FnMut(&TapEvent<'_>)>;
type LinkTap = Box<dyn FnMut(&LinkTapEvent<'_>)>;
type Script<M> = Box<dyn FnOnce(&mut Network<M>)>;

/// Machines, the links between them, and one clock.
///
/// Everything that happens is ordered by time and, within an instant, by the order in which it was asked
/// for; time never goes back. Each machine is driven as [`Machine`] demands: after every call it is drained of
/// datagrams and events, and its timer is set anew.
pub struct Network<M: Machine> {
    now: Instant,
    seed: u64,
    rng: Rng,
    due: EventQueue,
    nodes: Vec<Node<M>>,
    links: Vec<LinkSlot>,
    paths: Vec<Path>,
    scripts: Vec<Option<Script<M>>>,
    /// Places in `scripts` that are free again.
    done_scripts: Vec<usize>,
    tap: Option<Tap>,
    link_tap: Option<LinkTap>,
    /// Buffers of datagrams that have arrived or were lost; never more than were inside the network at once.
    pool: Vec<Vec<u8>>,
    /// What machines write into.
    scratch: Vec<u8>,
    guard: LivelockGuard,
    unroutable: u64,
}

impl<M: Machine> fmt::Debug for Network<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Network(seed {}, at {:?}, {} nodes, {} links)",
            self.seed,
            self.now,
            self.nodes.len(),
            self.links.len()
        )
    }
}

/// Building the topology.
impl<M: Machine> Network<M> {
    /// An empty network at time zero. All randomness of its links follows from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            seed,
            rng: Rng::from_seed(seed),
            due: EventQueue::default(),
            nodes: Vec::new(),
            links: Vec::new(),
            paths: Vec::new(),
            scripts: Vec::new(),
            done_scripts: Vec::new(),
            tap: None,
            link_tap: None,
            pool: Vec::new(),
            scratch: Vec::new(),
            guard: LivelockGuard::default(),
            unroutable: 0,
        }
    }

    /// Adds a machine with one interface per address; its first datagrams leave when the network next runs.
    ///
    /// # Panics
    /// If an address is not an IP address with a port. Port 0 stands for native IP.
    pub fn add<'a>(&mut self, machine: M, addresses: impl IntoIterator<Item = &'a str>) -> NodeId {
        let id = self.nodes.len();
        let addresses = addresses.into_iter().map(parse_address).collect();
        self.nodes.push(Node { machine, addresses, paths: BTreeMap::new(), events: VecDeque::new(), wake: None });
        self.schedule_node(id, self.now);
        NodeId(id)
    }

    /// Connects two interfaces by a link in each direction and routes their addresses over it.
    /// Returns the link from `a` to `b` and the reverse one.
    ///
    /// # Panics
    /// If a node has no such interface.
    pub fn connect(&mut self, a: Interface, b: Interface, duplex: Duplex) -> (LinkId, LinkId) {
        let (there, back) = (self.add_link(duplex.there), self.add_link(duplex.back));
        let (a_address, b_address) = (self.address(a), self.address(b));
        let a_seen_as = duplex.nat.unwrap_or(a_address);
        self.route(a, b_address, &[there], b, a_seen_as);
        self.route(b, a_seen_as, &[back], a, b_address);
        (there, back)
    }

    /// Adds a link that [`route`](Self::route) can use, alone or in a chain, for one route or many.
    pub fn add_link(&mut self, model: LinkModel) -> LinkId {
        let id = self.links.len();
        let rng = self.rng.stream(&format!("link {id}"));
        self.links.push(LinkSlot { link: Link::new(model, rng), wake: None });
        LinkId(id)
    }

    /// Sends what leaves `from` for `remote` over `links`, one after the other, to the interface `to`, which
    /// sees it coming from `seen_as`. Replaces what was said about `from` and `remote` before. No links mean
    /// one perfect link.
    ///
    /// # Panics
    /// If a node has no such interface.
    pub fn route(&mut self, from: Interface, remote: SocketAddr, links: &[LinkId], to: Interface, seen_as: SocketAddr) {
        self.address(to);
        let links = if links.is_empty() { vec![self.add_link(LinkModel::default())] } else { links.to_vec() };
        let path = Path { from: self.address(from), remote, links, to, seen_as };
        let route = Route::new(SocketId(from.1), remote);
        self.nodes[from.0.0].paths.insert(route, self.paths.len());
        self.paths.push(path);
    }

    /// The address of an interface.
    ///
    /// # Panics
    /// If the node has no such interface.
    pub fn address(&self, (node, interface): Interface) -> SocketAddr {
        let addresses = &self.nodes[node.0].addresses;
        match addresses.get(usize::from(interface)) {
            Some(address) => *address,
            None => panic!("node {} has {} interfaces, so none is {interface}", node.0, addresses.len()),
        }
    }

    /// How many interfaces a node has.
    pub fn interfaces(&self, node: NodeId) -> usize {
        self.nodes[node.0].addresses.len()
    }

    /// Shows `tap` every datagram that is sent, delivered or dropped from now on.
    pub fn set_tap(&mut self, tap: impl FnMut(&TapEvent<'_>) + 'static) {
        self.tap = Some(Box::new(tap));
    }

    /// Shows `tap` all that happens to datagrams at every link from now on, in the order of time.
    pub fn set_link_tap(&mut self, tap: impl FnMut(&LinkTapEvent<'_>) + 'static) {
        self.settle();
        self.link_tap = Some(Box::new(tap));
        (0..self.links.len()).for_each(|id| self.schedule_link(id));
    }

    /// Runs `action` at `time`, or now if that is past.
    pub fn at(&mut self, time: Instant, action: impl FnOnce(&mut Self) + 'static) {
        let id = self.done_scripts.pop().unwrap_or_else(|| {
            self.scripts.push(None);
            self.scripts.len() - 1
        });
        self.scripts[id] = Some(Box::new(action));
        self.due.push(time.max(self.now), Due::Script(id));
    }
}

/// Looking at it and touching it.
impl<M: Machine> Network<M> {
    /// The time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The machine at a node.
    pub fn node(&self, id: NodeId) -> &M {
        &self.nodes[id.0].machine
    }

    /// The machine at a node, to be changed from outside. What it then wants to send leaves at [`touch`](Self::touch)
    /// or, without it, when the network next runs.
    pub fn node_mut(&mut self, id: NodeId) -> &mut M {
        self.schedule_node(id.0, self.now);
        &mut self.nodes[id.0].machine
    }

    /// Drains a machine that was changed from outside and sets its timer anew.
    pub fn touch(&mut self, id: NodeId) {
        self.flush(id.0);
    }

    /// Calls `action` on the machine at a node with the present time, then [`touch`](Self::touch)es it.
    pub fn with<R>(&mut self, id: NodeId, action: impl FnOnce(&mut M, Instant) -> R) -> R {
        let result = action(&mut self.nodes[id.0].machine, self.now);
        self.flush(id.0);
        result
    }

    /// The next event of the machine at a node, oldest first. They pile up until somebody takes them.
    pub fn poll_event(&mut self, id: NodeId) -> Option<M::Event> {
        self.nodes[id.0].events.pop_front()
    }

    /// A link, for its counters. They are up to date after a run and within a script ([`at`](Self::at)).
    pub fn link(&self, id: LinkId) -> &Link<Packet> {
        &self.links[id.0].link
    }

    /// Cuts a link from now on, or fixes it ([`Link::set_down`]).
    pub fn set_down(&mut self, id: LinkId, down: bool) {
        let link = &mut self.links[id.0].link;
        link.settle_watched(self.now, &mut watcher(&mut self.link_tap, &self.paths, id));
        link.set_down(self.now, down);
        self.schedule_link(id.0);
    }

    /// Changes the largest packet of a link from now on ([`Link::set_mtu`]).
    pub fn set_mtu(&mut self, id: LinkId, mtu: usize) {
        let link = &mut self.links[id.0].link;
        link.settle_watched(self.now, &mut watcher(&mut self.link_tap, &self.paths, id));
        link.set_mtu(self.now, mtu);
        self.schedule_link(id.0);
    }

    /// Datagrams sent to addresses that no route leads to.
    pub const fn unroutable(&self) -> u64 {
        self.unroutable
    }
}

/// Running it.
impl<M: Machine> Network<M> {
    /// Runs everything up to and including `until`, which then is the time.
    ///
    /// # Panics
    /// If much happens and time stands still; the message has the seed.
    pub fn run_until(&mut self, until: Instant) {
        self.wait_for(until, |_| false);
    }

    /// Runs for `duration`.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    /// Runs until `done`, which is asked before each step, and says `true`; or up to and including `limit`, and says
    /// `false`.
    pub fn wait_for(&mut self, limit: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            if done(self) {
                self.settle();
                return true;
            }
            if self.due.next_at().is_none_or(|at| at > limit) {
                self.now = self.now.max(limit);
                self.settle();
                return false;
            }
            self.step();
        }
    }

    /// Does the next thing that is due; `false` if nothing is and nothing ever will be.
    pub fn step(&mut self) -> bool {
        let Some((at, due)) = self.due.pop() else { return false };
        assert!(at >= self.now, "time went back from {:?} to {at:?}", self.now);
        self.now = at;
        match due {
            Due::Node(id) => self.wake_node(id),
            Due::Link(id) => self.wake_link(id),
            Due::Script(id) => {
                if let Some(action) = self.scripts[id].take() {
                    self.done_scripts.push(id);
                    self.settle();
                    action(self);
                }
            }
        }
        true
    }

    /// Brings the counters of all links up to the present.
    fn settle(&mut self) {
        for (id, slot) in self.links.iter_mut().enumerate() {
            slot.link.settle_watched(self.now, &mut watcher(&mut self.link_tap, &self.paths, LinkId(id)));
        }
    }

    fn count_step(&mut self, node: usize, timeout: bool) {
        if let Err(what) = self.guard.step(self.now, timeout) {
            panic!(
                "{what} at {:?} without time moving (last at node {node}, {:?}); rerun with {}={}",
                self.now,
                self.nodes[node].addresses,
                crate::seed::SEED_VARIABLE,
                self.seed
            );
        }
    }

    fn wake_node(&mut self, id: usize) {
        let node = &mut self.nodes[id];
        if node.wake != Some(self.now) {
            return;
        }
        node.wake = None;
        if node.machine.poll_timeout().is_some_and(|at| at <= self.now) {
            node.machine.handle_timeout(self.now);
            self.count_step(id, true);
        }
        self.flush(id);
    }

    fn schedule_node(&mut self, id: usize, at: Instant) {
        let (node, at) = (&mut self.nodes[id], at.max(self.now));
        if node.wake.is_none_or(|wake| at < wake) {
            node.wake = Some(at);
            self.due.push(at, Due::Node(id));
        }
    }

    /// Takes datagrams and events from a machine until it has no more, then sets its timer.
    fn flush(&mut self, id: usize) {
        let mut buf = core::mem::take(&mut self.scratch);
        loop {
            let mut idle = true;
            while let Some(transmit) = self.nodes[id].machine.poll_transmit(self.now, &mut buf) {
                idle = false;
                self.count_step(id, false);
                if transmit.segment_size.is_none() && !buf.is_empty() && buf.capacity() <= SWAPPED {
                    let payload = core::mem::replace(&mut buf, self.pool.pop().unwrap_or_default());
                    self.send(id, transmit.route, transmit.ecn, payload);
                    continue;
                }
                for datagram in transmit.datagrams(&buf) {
                    let mut payload = self.pool.pop().unwrap_or_default();
                    payload.clear();
                    payload.extend_from_slice(datagram);
                    self.send(id, transmit.route, transmit.ecn, payload);
                }
            }
            let node = &mut self.nodes[id];
            while let Some(event) = node.machine.poll_event() {
                idle = false;
                node.events.push_back(event);
            }
            if idle {
                break;
            }
        }
        self.scratch = buf;
        if let Some(at) = self.nodes[id].machine.poll_timeout() {
            self.schedule_node(id, at);
        }
    }

    fn send(&mut self, id: usize, route: Route, ecn: Ecn, payload: Vec<u8>) {
        let node = &self.nodes[id];
        let Some(&path) = node.paths.get(&route) else {
            self.unroutable += 1;
            if let (Some(tap), Some(&from)) = (&mut self.tap, node.addresses.get(usize::from(route.socket.0))) {
                let (at, to, action) = (self.now, route.remote, TapAction::Unroutable);
                tap(&TapEvent { at, action, from, to, ecn, payload: &payload });
            }
            self.pool.push(payload);
            return;
        };
        let packet = Packet { path, hop: 0, ecn, payload };
        self.tap_at_sender(TapAction::Sent, &packet);
        self.offer(packet);
    }

    /// Puts a packet on the link that its hop says.
    fn offer(&mut self, packet: Packet) {
        let path = &self.paths[packet.path];
        let LinkId(id) = path.links[packet.hop];
        let (len, ecn) = (packet.payload.len() + header_bytes(path.remote), packet.ecn);
        let link = &mut self.links[id].link;
        let offer =
            link.offer_watched(self.now, len, ecn, packet, &mut watcher(&mut self.link_tap, &self.paths, LinkId(id)));
        if let Offer::Dropped(reason, packet) = offer {
            self.discard(TapAction::Dropped(LinkId(id), reason), packet);
        }
        self.schedule_link(id);
    }

    fn schedule_link(&mut self, id: usize) {
        let slot = &mut self.links[id];
        // Who taps links sees events when they happen; otherwise it is enough to wake when something arrives.
        let due = if self.link_tap.is_some() { slot.link.next_change() } else { slot.link.poll_timeout() };
        if let Some(at) = due {
            let at = at.max(self.now);
            if slot.wake.is_none_or(|wake| at < wake) {
                slot.wake = Some(at);
                self.due.push(at, Due::Link(id));
            }
        }
    }

    fn wake_link(&mut self, id: usize) {
        if self.links[id].wake != Some(self.now) {
            return;
        }
        self.links[id].wake = None;
        loop {
            let link = &mut self.links[id].link;
            let exit = link.poll_watched(self.now, &mut watcher(&mut self.link_tap, &self.paths, LinkId(id)));
            let Some(exit) = exit else { break };
            match exit.outcome {
                Outcome::Arrived(packet) => self.forward(Packet { ecn: exit.ecn, ..packet }),
                Outcome::Corrupted(mut packet, bit) => {
                    flip(&mut packet.payload, bit);
                    self.forward(Packet { ecn: exit.ecn, ..packet });
                }
                Outcome::Dropped(reason, packet) => self.discard(TapAction::Dropped(LinkId(id), reason), packet),
            }
        }
        self.schedule_link(id);
    }

    /// A packet came out of the link that its hop says.
    fn forward(&mut self, mut packet: Packet) {
        packet.hop += 1;
        if packet.hop < self.paths[packet.path].links.len() {
            self.offer(packet);
        } else {
            self.deliver(packet);
        }
    }

    fn deliver(&mut self, packet: Packet) {
        let path = &self.paths[packet.path];
        let (NodeId(id), interface) = path.to;
        let (from, ecn, payload) = (path.seen_as, packet.ecn, &packet.payload);
        let node = &mut self.nodes[id];
        if let Some(tap) = &mut self.tap {
            let to = node.addresses[usize::from(interface)];
            tap(&TapEvent { at: self.now, action: TapAction::Delivered, from, to, ecn, payload });
        }
        let route = Route::new(SocketId(interface), from);
        node.machine.handle_datagram(self.now, Datagram { route, ecn, payload });
        self.pool.push(packet.payload);
        self.count_step(id, false);
        self.flush(id);
    }

    fn discard(&mut self, action: TapAction, packet: Packet) {
        self.tap_at_sender(action, &packet);
        self.pool.push(packet.payload);
    }

    fn tap_at_sender(&mut self, action: TapAction, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            let Path { from, remote, .. } = self.paths[packet.path];
            let (at, ecn, payload) = (self.now, packet.ecn, &packet.payload);
            tap(&TapEvent { at, action, from, to: remote, ecn, payload });
        }
    }
}

/// What shows `tap` the events of a link.
fn watcher<'a>(
    tap: &'a mut Option<LinkTap>,
    paths: &'a [Path],
    link: LinkId,
) -> impl FnMut(LinkEvent<'_, Packet>) + use<'a> {
    move |event| {
        if let Some(tap) = tap {
            let LinkEvent { at, action, ecn, len, queue_packets, queue_bytes, packet } = event;
            let Path { from, remote: to, .. } = paths[packet.path];
            let payload = &packet.payload;
            tap(&LinkTapEvent { at, link, action, from, to, ecn, len, queue_packets, queue_bytes, payload });
        }
    }
}

/// Flips bit `n` of `bytes`, counted round and round.
fn flip(bytes: &mut [u8], n: u64) {
    let bits = bytes.len() as u64 * 8;
    if let Some(bit) = n.checked_rem(bits) {
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Pinger;

    #[test]
    fn memory_stays_flat_over_an_hour_of_1000_packets_a_second() {
        let (a, b) = ("10.0.0.1:9", "10.0.1.1:9");
        let mut net = Network::new(1);
        let sender = net.add(Pinger::to([b], Duration::from_millis(1)), [a]);
        let receiver = net.add(Pinger::answering().silent(), [b]);
        let queue = "codel".parse().unwrap();
        let jitter = crate::link::Jitter::Uniform(Duration::from_millis(5));
        let loss = crate::link::Loss::Uniform(0.01);
        let model = LinkModel { queue, jitter, loss, ..LinkModel::wire(2_000_000, Duration::from_millis(20)) };
        let (there, _) = net.connect((sender, 0), (receiver, 0), Duplex::both(model));
        let mut sizes = Vec::new();
        for second in 1..=3_600 {
            net.at(net.now, |_| {});
            net.run_until(Instant::from_millis(second * 1_000));
            net.nodes[receiver.0].events.clear();
            let link = net.links[there.0].link.capacity();
            sizes.push([net.pool.capacity(), net.due.len(), net.scripts.len(), link]);
        }
        assert_eq!(net.link(there).stats().offered, 3_600_001);
        // About 25 packets are inside at once: 64 in each of the link's three queues at most, and one timer each.
        let most = |i: usize| sizes.iter().map(|size| size[i]).max();
        assert!(
            most(0) <= Some(64) && most(1) <= Some(6) && most(2) == Some(1) && most(3) <= Some(192),
            "{most:?}",
            most = sizes.last()
        );
        assert_eq!(sizes[60], sizes[3_599]);
    }
}
