//! How much real time a simulated packet takes: `cargo run --release -p braidcast-sim --example sim_speed`.
#![allow(clippy::disallowed_methods, reason = "it measures the simulator from outside")]

use braidcast_core::{Ecn, Instant, Rng};
use braidcast_sim::link::{Link, LinkModel, QueueLimit};
use braidcast_sim::testing::Pinger;
use braidcast_sim::{Duplex, Network};
use core::time::Duration;

const PACKETS: u32 = 5_000_000;

fn model(queue: &str) -> LinkModel {
    let queue = queue.parse().unwrap_or_else(|_| QueueLimit::default().into());
    LinkModel { queue, ..LinkModel::wire(10_000_000, Duration::from_millis(20)) }
}

/// Packets of 1250 bytes through one link at 95 % of its rate.
fn link(model: LinkModel) {
    let mut link = Link::new(model, Rng::from_seed(1));
    for number in 0..PACKETS {
        let at = Instant::from_nanos(u64::from(number) * 1_052_632);
        link.offer(at, 1_250, Ecn::Ect0, number);
        while link.poll_outcome(at).is_some() {}
    }
}

/// Packets of 1000 bytes between two hosts.
fn network(model: LinkModel, tapped: bool) {
    let (a, b) = ("10.0.0.1:9", "10.0.1.1:9");
    let mut net = Network::new(1);
    let sender = net.add(Pinger::to([b], Duration::from_millis(1)).sized(1_000), [a]);
    let receiver = net.add(Pinger::answering().silent(), [b]);
    net.connect((sender, 0), (receiver, 0), Duplex::both(model));
    if tapped {
        net.set_link_tap(|event| assert!(event.queue_packets < 1_000));
    }
    for second in 1..=u64::from(PACKETS / 1_000) {
        net.run_until(Instant::from_millis(second * 1_000));
        while net.poll_event(receiver).is_some() {}
    }
}

fn measure(what: &str, run: impl FnOnce()) {
    let start = std::time::Instant::now();
    run();
    println!("{what:32} {:6.0} ns per packet", start.elapsed().as_nanos() as f64 / f64::from(PACKETS));
}

fn main() {
    for queue in ["1000p", "red:5p,15p,10%,ecn", "codel:5ms,100ms,ecn"] {
        measure(&format!("link, {queue}"), || link(model(queue)));
    }
    let rate = "ramp:0s:20mbit,10s:10mbit,20s:20mbit,repeat:20s".parse().unwrap_or_default();
    measure("link, rate by ramps", || link(LinkModel { rate, ..model("1000p") }));
    measure("network", || network(model("1000p"), false));
    measure("network with a link tap", || network(model("1000p"), true));
}
