//! Topologies by name.

use super::ms;
use braidcast_sim::testing::Pinger;
use braidcast_sim::{Duplex, LinkModel, Network, Topology};
use core::time::Duration;

fn wire(mbit: u64) -> Duplex {
    Duplex::both(LinkModel::wire(mbit * 1_000_000, Duration::from_millis(5)))
}

/// Names of hosts, their interfaces, routers and links in each direction.
fn graph(hosts: &[(&str, u16)], routers: &[&str], links: &[(&str, &str)]) -> Topology {
    let mut topology = Topology::default();
    hosts.iter().for_each(|(name, interfaces)| topology.host(name, *interfaces).unwrap());
    routers.iter().for_each(|name| topology.router(name).unwrap());
    links.iter().for_each(|(a, b)| topology.connect(a, b, wire(10)).unwrap());
    topology
}

#[test]
fn disjoint_paths_join_interfaces_of_one_number_alone() {
    let topology = Topology::disjoint([wire(10), wire(2)]).unwrap();
    assert_eq!(topology.route("a/1", "b/1").unwrap(), ["a/1>b/1"]);
    assert_eq!(topology.route("a/0", "b/1").unwrap_err().to_string(), "no route leads from a/0 to b/1");
    let mut net = Network::new(1);
    let every = Duration::from_millis(10);
    let a = net.add(Pinger::to(["10.0.1.1:1", "10.0.2.1:1"], every), ["10.1.0.1:1", "10.2.0.1:1"]);
    let b = net.add(Pinger::answering(), ["10.0.1.1:1", "10.0.2.1:1"]);
    let links = topology.wire(&mut net, &[("a", a), ("b", b)]).unwrap();
    net.run_until(ms(995));
    for name in ["a/0>b/0", "b/0>a/0", "a/1>b/1", "b/1>a/1"] {
        assert_eq!(net.link(links[name]).stats().delivered.div_ceil(2), 25, "{name}");
    }
}

#[test]
fn pairs_of_a_dumbbell_share_its_bottleneck() {
    let topology = Topology::dumbbell(&[wire(100), wire(100), wire(100)], wire(3)).unwrap();
    assert_eq!(topology.route("a1", "b1").unwrap(), ["a1>left", "left>right", "right>b1"]);
    assert_eq!(topology.route("b2", "a2").unwrap(), ["b2>right", "right>left", "left>a2"]);
    let mut net = Network::new(1);
    let address = |side: &str, i| format!("10.{side}.{i}.1:1");
    let mut hosts = Vec::new();
    for i in 0..3 {
        let pinger = Pinger::to([address("1", i).as_str()], Duration::from_millis(4)).sized(972);
        hosts.push((format!("a{i}"), net.add(pinger, [address("0", i).as_str()])));
        hosts.push((format!("b{i}"), net.add(Pinger::answering().silent(), [address("1", i).as_str()])));
    }
    let hosts: Vec<_> = hosts.iter().map(|(name, node)| (name.as_str(), *node)).collect();
    let links = topology.wire(&mut net, &hosts).unwrap();
    net.run_until(ms(10_000));
    // Three times 2 Mbit/s into 3 Mbit/s, for which 1000 packets may wait.
    let bottleneck = net.link(links["left>right"]).stats();
    assert!((bottleneck.delivered_bytes as f64 * 8.0 / 30e6 - 1.0).abs() < 0.01, "{bottleneck:?}");
    let received: Vec<_> = hosts.iter().skip(1).step_by(2).map(|(_, node)| net.node(*node).received()).collect();
    assert!(received.iter().all(|n| *n > 500), "{received:?}");
}

#[test]
fn two_paths_can_share_a_bottleneck() {
    let topology = Topology::shared_bottleneck(&[wire(10), wire(20)], wire(5)).unwrap();
    for i in 0..2 {
        let (from, to) = (format!("a/{i}"), format!("b/{i}"));
        let there = [format!("a/{i}>left"), "left>right".to_owned(), format!("right>b/{i}")];
        assert_eq!(topology.route(&from, &to).unwrap(), there);
        assert_eq!(topology.route(&to, &from).unwrap()[1], "right>left");
    }
}

#[test]
fn the_shortest_route_is_taken_unless_another_is_pinned() {
    let links = [("a", "r1"), ("r1", "r2"), ("r2", "r3"), ("r1", "r3"), ("r3", "b"), ("c", "r2")];
    let mut topology = graph(&[("a", 1), ("b", 1), ("c", 1)], &["r1", "r2", "r3"], &links);
    assert_eq!(topology.route("a", "b").unwrap(), ["a>r1", "r1>r3", "r3>b"]);
    topology.pin(&["a", "r1", "r2", "r3", "b"]).unwrap();
    assert_eq!(topology.route("a", "b/0").unwrap(), ["a>r1", "r1>r2", "r2>r3", "r3>b"]);
    assert_eq!(topology.route("b", "a").unwrap(), ["b>r3", "r3>r1", "r1>a"]);
    let mut net = Network::new(1);
    let a = net.add(Pinger::to(["10.0.1.1:1"], Duration::from_millis(100)), ["10.0.0.1:1"]);
    let b = net.add(Pinger::answering(), ["10.0.1.1:1"]);
    let c = net.add(Pinger::answering(), ["10.0.2.1:1"]);
    let links = topology.wire(&mut net, &[("a", a), ("b", b), ("c", c)]).unwrap();
    net.run_until(ms(150));
    let offered = |name| net.link(links[name]).stats().offered;
    assert_eq!([offered("r1>r2"), offered("r1>r3"), offered("r3>r1")], [2, 0, 2]);
    // 4 links of 5 ms and 128 bytes at 10 Mbit/s there, 3 back: the first answer is in, the second too.
    assert_eq!(net.node(a).received(), 2);
}

#[test]
fn hosts_forward_nothing() {
    let topology = graph(&[("a", 1), ("b", 1), ("c", 1)], &[], &[("a", "c"), ("c", "b")]);
    assert_eq!(topology.route("a", "b").unwrap_err().to_string(), "no route leads from a to b");
}

#[test]
fn what_is_wrong_is_said_by_name() {
    let links = [("a", "r"), ("r", "s"), ("s", "b"), ("a", "c"), ("c", "b")];
    let mut topology = graph(&[("a", 1), ("b", 1), ("c", 1)], &["r", "s"], &links);
    let mut pin = |names: &[&str]| topology.pin(names).unwrap_err().to_string();
    assert_eq!(pin(&["a", "r", "s", "r", "b"]), "the route a, r, s, r, b comes to r twice");
    assert_eq!(pin(&["a", "r", "b"]), "no link leads from r to b");
    assert_eq!(pin(&["a", "x", "b"]), "there is no x; there is a/0, b/0, c/0, r, s");
    assert_eq!(pin(&["a", "r"]), "r is not a host");
    assert_eq!(pin(&["a", "c", "b"]), "c belongs to a host, and hosts do not forward; put a router there");
    assert_eq!(topology.route("r", "b").unwrap_err().to_string(), "r is not a host");
    assert_eq!(topology.router("c").unwrap_err().to_string(), "there are two of the name c; names are unique");
    let again = topology.link("a>r", "a", "s", LinkModel::default()).unwrap_err().to_string();
    assert_eq!(again, "there are two of the name a>r; names are unique");

    let mut net = Network::new(1);
    let node = net.add(Pinger::answering(), ["10.0.0.1:1", "10.0.0.2:1"]);
    let mut wire = |hosts: &[(&str, _)]| topology.wire(&mut net, hosts).unwrap_err().to_string();
    assert_eq!(wire(&[("a", node), ("q", node)]), "q is not a host");
    assert_eq!(wire(&[("a", node)]), "the host a has 1 interfaces, but its node has 2 addresses");
    assert_eq!(wire(&[]), "no node was given for the host a");
}
