//! Traffic agents on the simulator: datagrams that are measured, and TCP against formulas, ns-2 and itself.

mod datagrams;
mod tcp;
mod tcp_compared;

use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_sim::link::{Loss, QueueLimit};
use braidcast_sim::tcp::{Config, FlowId, Host};
use braidcast_sim::traffic::{Agent, Traffic};
use braidcast_sim::{Duplex, LinkId, LinkModel, Network, NodeId};
use core::time::Duration;

const A: &str = "10.0.0.1:0";
const B: &str = "10.0.0.2:0";

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn secs(n: u64) -> Instant {
    Instant::from_millis(n * 1000)
}

/// The route of the first socket to `remote`.
fn to(remote: &str) -> Route {
    Route::new(SocketId(0), remote.parse().unwrap_or_else(|_| panic!("{remote}")))
}

/// A link of 10 Mbit/s and 50 ms with a long queue and loss behind it, and a clean one back.
fn lossy(loss: Loss) -> Duplex {
    let clean = LinkModel { queue: QueueLimit::Packets(1000).into(), ..LinkModel::wire(10_000_000, ms(50)) };
    Duplex::new(LinkModel { loss, ..clean.clone() }, clean)
}

/// Bulk transfers over TCP from one host to another, the first from time zero on, each next one 500 ms later.
struct Transfer {
    net: Network<Agent>,
    a: NodeId,
    b: NodeId,
    flows: Vec<FlowId>,
    link: (LinkId, LinkId),
}

impl Transfer {
    fn new(seed: u64, config: Config, duplex: Duplex, traffic: &[Traffic]) -> Self {
        let mut net = Network::new(seed);
        let mut host = Host::new(config);
        let open = |(n, traffic): (u64, &Traffic)| {
            host.connect(to(B), traffic, Rng::from_seed(seed), Instant::ZERO + ms(500 * n))
        };
        let flows = (0..).zip(traffic).filter_map(open).collect();
        let a = net.add(Agent::Tcp(host), [A]);
        let b = net.add(Agent::Tcp(Host::new(config)), [B]);
        let link = net.connect((a, 0), (b, 0), duplex);
        Self { net, a, b, flows, link }
    }

    fn sender(&self, flow: usize) -> &braidcast_sim::tcp::Sender {
        match self.net.node(self.a) {
            Agent::Tcp(host) => host.sender(self.flows[flow]),
            other => panic!("{other:?}"),
        }
    }

    fn receiver(&self, flow: usize) -> &braidcast_sim::tcp::Receiver {
        let receiver = self.net.node(self.b).as_tcp().and_then(|host| host.receivers().nth(flow));
        receiver.map_or_else(|| panic!("flow {flow} is not open"), |(_, receiver)| receiver)
    }

    /// Runs until `until` and gives the bit/s that flow number `flow` delivered from `from` on.
    fn goodput(&mut self, flow: usize, from: Instant, until: Instant) -> f64 {
        self.net.run_until(until);
        self.receiver(flow).delivered().rate(from, until)
    }
}
