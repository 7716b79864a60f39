//! Two ends and a link between them.

pub(crate) mod phone;

use braidcast_core::{Instant, Rng};
use braidcast_gateway::srt::{Direction, Endpoint, Event, Options, Passphrase, Report};
use braidcast_sim::link::LinkModel;
use braidcast_sim::testing::{Seed, seed_from_env};
use braidcast_sim::{Duplex, LinkId, Network, NodeId};
use core::time::Duration;

const CALLER: &str = "10.0.0.1:1000";
pub(crate) const LISTENER: &str = "10.0.0.2:2000";

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn secret(text: &str) -> Option<Passphrase> {
    Some(Passphrase::new(text.into()).unwrap())
}

/// A caller and a listener, of which one sends numbered payloads.
pub(crate) struct Pair {
    pub(crate) net: Network<Endpoint>,
    pub(crate) caller: NodeId,
    pub(crate) listener: NodeId,
    pub(crate) links: (LinkId, LinkId),
    pub(crate) caller_events: Vec<Event>,
    pub(crate) listener_events: Vec<Event>,
    sender: NodeId,
    receiver: NodeId,
    sent: Vec<Instant>,
    /// Number of each payload, when it was delivered and when it was due.
    pub(crate) got: Vec<(u64, Instant, Instant)>,
    _seed: Seed,
}

impl Pair {
    /// `direction` is the listener's.
    pub(crate) fn new(direction: Direction, caller: Options, listener: Options, link: LinkModel) -> Self {
        let seed = seed_from_env(1);
        let rng = Rng::from_seed(seed.get());
        let mut net = Network::new(seed.get());
        let start = Instant::ZERO;
        let call = Endpoint::caller(start, LISTENER.parse().unwrap(), caller, rng.stream("caller"));
        let caller = net.add(call, [CALLER]);
        let listener = net.add(Endpoint::listener(start, direction, listener, rng.stream("listener")), [LISTENER]);
        let links = net.connect((caller, 0), (listener, 0), Duplex::both(link));
        let (sender, receiver) = match direction {
            Direction::Receive => (caller, listener),
            Direction::Send => (listener, caller),
        };
        let (caller_events, listener_events) = (vec![], vec![]);
        let (sent, got) = (vec![], vec![]);
        Self { net, caller, listener, links, caller_events, listener_events, sender, receiver, sent, got, _seed: seed }
    }

    /// Runs in steps of a millisecond; sends `per_ms` payloads in each.
    pub(crate) fn run(&mut self, duration: Duration, per_ms: usize) {
        let end = self.net.now() + duration;
        let mut buf = Vec::new();
        while self.net.now() < end {
            self.net.run_for(ms(1));
            let now = self.net.now();
            for _ in 0..per_ms {
                let mut payload = [0x47; 1316];
                payload[1..9].copy_from_slice(&(self.sent.len() as u64).to_be_bytes());
                self.sent.push(now);
                self.net.with(self.sender, |endpoint, now| endpoint.push(now, &payload));
            }
            while let Some(delivered) = self.net.with(self.receiver, |endpoint, now| endpoint.deliver(now, &mut buf)) {
                assert_eq!((buf.len(), buf[0], buf[1315]), (1316, 0x47, 0x47));
                let number = u64::from_be_bytes(buf[1..9].try_into().unwrap());
                self.got.push((number, now, delivered.due));
            }
            while let Some(event) = self.net.poll_event(self.caller) {
                self.caller_events.push(event);
            }
            while let Some(event) = self.net.poll_event(self.listener) {
                self.listener_events.push(event);
            }
        }
    }

    /// Numbers of payloads that were delivered.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.got.iter().map(|(number, ..)| *number).collect()
    }

    /// Shortest and longest time from push to delivery.
    pub(crate) fn delays(&self) -> (Duration, Duration) {
        let delays = self.got.iter().map(|(number, at, _)| *at - self.sent[*number as usize]);
        (delays.clone().min().unwrap(), delays.max().unwrap())
    }

    pub(crate) fn report(&self, node: NodeId) -> Report {
        self.net.node(node).reports().next().expect("a connection").1
    }

    pub(crate) fn sending(&self) -> Report {
        self.report(self.sender)
    }

    pub(crate) fn receiving(&self) -> Report {
        self.report(self.receiver)
    }
}
