use super::config::Config;
use super::receiver::Receiver;
use super::segment::{Flags, Segment};
use super::sender::Sender;
use crate::traffic::Traffic;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, Transmit};
use core::convert::Infallible;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The port that hosts listen on.
const LISTEN_PORT: u16 = 5001;

/// The first port that hosts send from.
const FIRST_PORT: u16 = 49_152;

/// Most connections of a host that are open for sending, as for receiving.
const MAX_FLOWS: usize = 16_383;

/// A connection that a host opened, in the order of opening.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowId(usize);

#[derive(Debug)]
enum Role {
    Sender(Box<Sender>),
    Receiver(Box<Receiver>),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    route: Route,
    local: u16,
    remote: u16,
}

#[derive(Debug)]
struct Flow {
    key: Key,
    role: Role,
    /// The entry of this flow among the timers.
    armed: Option<Instant>,
    /// `true` if it stands among those that may have something to send.
    ready: bool,
}

/// A node that speaks TCP: sends over the connections that it opens, and accepts those that others open to it. Its
/// interfaces should have port 0, so that headers have their real lengths.
#[derive(Debug)]
pub struct Host {
    config: Config,
    flows: Vec<Flow>,
    /// Places in `flows` of the connections that this host opened.
    opened: Vec<usize>,
    /// Looked up and never iterated over.
    index: HashMap<Key, usize>,
    timers: BTreeSet<(Instant, usize)>,
    ready: VecDeque<usize>,
    malformed: u64,
}

impl Host {
    /// A host without connections.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            flows: Vec::new(),
            opened: Vec::new(),
            index: HashMap::new(),
            timers: BTreeSet::new(),
            ready: VecDeque::new(),
            malformed: 0,
        }
    }

    /// Opens a connection at `start` and sends over it what `traffic` emits from then on; `None` if there are
    /// 16383 already.
    pub fn connect(&mut self, route: Route, traffic: &Traffic, rng: Rng, start: Instant) -> Option<FlowId> {
        let id = FlowId(self.opened.len());
        let local = u16::try_from(id.0).ok().filter(|_| id.0 < MAX_FLOWS)? + FIRST_PORT;
        let sender = Sender::new(self.config, traffic.source(rng), start);
        self.opened.push(self.flows.len());
        self.add(Key { route, local, remote: LISTEN_PORT }, Role::Sender(Box::new(sender)));
        Some(id)
    }

    /// The sending end of a connection that this host opened.
    ///
    /// # Panics
    /// If another host gave the `id`.
    pub fn sender(&self, id: FlowId) -> &Sender {
        match &self.flows[self.opened[id.0]].role {
            Role::Sender(sender) => sender,
            Role::Receiver(_) => unreachable!("only senders are opened"),
        }
    }

    /// The receiving ends at this host, in the order in which they were opened, with the route back to the sender.
    pub fn receivers(&self) -> impl Iterator<Item = (Route, &Receiver)> {
        self.flows.iter().filter_map(|flow| match &flow.role {
            Role::Receiver(receiver) => Some((flow.key.route, &**receiver)),
            Role::Sender(_) => None,
        })
    }

    /// Datagrams that were no segments, or damaged.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    fn add(&mut self, key: Key, role: Role) -> usize {
        let place = self.flows.len();
        self.flows.push(Flow { key, role, armed: None, ready: false });
        self.index.insert(key, place);
        self.touched(place);
        place
    }

    /// Sets the timer of a flow that may have changed, and lets it send.
    fn touched(&mut self, place: usize) {
        let flow = &mut self.flows[place];
        if !flow.ready {
            flow.ready = true;
            self.ready.push_back(place);
        }
        self.arm(place);
    }

    fn arm(&mut self, place: usize) {
        let flow = &mut self.flows[place];
        let due = match &flow.role {
            Role::Sender(sender) => sender.timeout(),
            Role::Receiver(receiver) => receiver.timeout(),
        };
        if flow.armed != due {
            if let Some(at) = flow.armed {
                self.timers.remove(&(at, place));
            }
            flow.armed = due;
            self.timers.extend(due.map(|at| (at, place)));
        }
    }

    /// The flow that a segment belongs to; a SYN opens one.
    fn flow_of(&mut self, key: Key, segment: &Segment<'_>) -> Option<usize> {
        if let Some(place) = self.index.get(&key) {
            return Some(*place);
        }
        let is_syn = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
        let room = self.flows.len() - self.opened.len() < MAX_FLOWS;
        let accept = is_syn && key.local == LISTEN_PORT && room;
        accept.then(|| self.add(key, Role::Receiver(Box::new(Receiver::accept(self.config, segment)))))
    }
}

impl Machine for Host {
    type Event = Infallible;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Ok(segment) = Segment::read(datagram.payload) else {
            self.malformed += 1;
            return;
        };
        let key = Key { route: datagram.route, local: segment.destination, remote: segment.source };
        let Some(place) = self.flow_of(key, &segment) else { return };
        match &mut self.flows[place].role {
            Role::Sender(sender) => sender.handle(now, &segment),
            Role::Receiver(receiver) => receiver.handle(now, &segment, datagram.ecn),
        }
        self.touched(place);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(_, place)) = self.timers.first().filter(|(at, _)| *at <= now) {
            match &mut self.flows[place].role {
                Role::Sender(sender) => sender.handle_timeout(now),
                Role::Receiver(receiver) => receiver.handle_timeout(now),
            }
            self.touched(place);
            if self.flows[place].armed.is_some_and(|at| at <= now) {
                break; // It has to send first.
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        // Flows take turns, a segment each.
        while let Some(place) = self.ready.pop_front() {
            let flow = &mut self.flows[place];
            let sent = match &mut flow.role {
                Role::Sender(sender) => sender.poll(now),
                Role::Receiver(receiver) => receiver.poll().map(|segment| (segment, Ecn::NotEct)),
            };
            self.arm(place);
            let flow = &mut self.flows[place];
            let Some((segment, ecn)) = sent else {
                flow.ready = false;
                continue;
            };
            self.ready.push_back(place);
            let Key { route, local, remote } = flow.key;
            Segment { source: local, destination: remote, ..segment }.write(buf);
            return Some(Transmit { route, ecn, segment_size: None });
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn poll_event(&mut self) -> Option<Infallible> {
        None
    }
}
