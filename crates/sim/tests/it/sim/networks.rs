use super::ms;
use braidcast_core::{Ecn, Instant};
use braidcast_sim::link::{DropReason, Jitter, LinkAction, LinkModel, Loss, QueueLimit, Reorder, ReorderHow};
use braidcast_sim::testing::{Pinger, digest, seed_from_env};
use braidcast_sim::{Duplex, Network, TapAction};
use core::time::Duration;
use std::cell::RefCell;
use std::rc::Rc;

const A: &str = "10.0.0.1:9899";
const B: &str = "10.0.1.1:9899";

fn clean(delay_ms: u64) -> Duplex {
    Duplex::both(LinkModel { delay: Duration::from_millis(delay_ms), ..LinkModel::default() })
}

fn every(millis: u64) -> Pinger {
    Pinger::to([B], Duration::from_millis(millis))
}

#[test]
fn a_ping_takes_both_delays_and_the_headers_time_on_the_wire() {
    let mut net = Network::new(seed_from_env(1).get());
    let a = net.add(every(1_000), [A]);
    let b = net.add(Pinger::answering(), [B]);
    net.connect((a, 0), (b, 0), Duplex::both(LinkModel::wire(8_000_000, Duration::from_millis(15))));
    assert!(net.wait_for(ms(100), |net| net.node(a).received() == 1));
    // 100 bytes and 28 of UDP and IPv4 are 128 µs at 8 Mbit/s, twice.
    assert_eq!(net.now(), Instant::from_micros(2 * (15_000 + 128)));
    let (route, size, number) = net.poll_event(a).unwrap();
    assert_eq!((route.remote.to_string().as_str(), size, number), (B, 100, 0));
}

#[test]
fn native_ip_has_no_udp_header() {
    for (addresses, headers) in [([A, B], 28), (["10.0.0.1:0", "10.0.1.1:0"], 20), (["[fd00::1]:0", "[fd00::2]:0"], 40)]
    {
        let mut net = Network::new(1);
        let a = net.add(Pinger::to([addresses[1]], Duration::from_secs(1)), [addresses[0]]);
        let b = net.add(Pinger::answering(), [addresses[1]]);
        let (there, _) = net.connect((a, 0), (b, 0), clean(1));
        net.run_until(ms(10));
        assert_eq!(net.link(there).stats().offered_bytes, 100 + headers);
    }
}

#[test]
fn marks_reach_the_receiver() {
    let mut net = Network::new(1);
    let a = net.add(Pinger::to([B], Duration::from_millis(1)).sized(222), [A]);
    let b = net.add(Pinger::answering().silent(), [B]);
    // 250 bytes a millisecond into half of that.
    let queue = "codel:5ms,100ms,ecn".parse().unwrap();
    let model = LinkModel { queue, mtu: 250, ..LinkModel::wire(1_000_000, Duration::from_millis(5)) };
    let (there, _) = net.connect((a, 0), (b, 0), Duplex::both(model));
    let seen = Rc::new(RefCell::new((0, 0, 0)));
    let (delivered, at_link) = (seen.clone(), seen.clone());
    net.set_tap(move |event| {
        let marked = event.action == TapAction::Delivered && event.ecn == Ecn::Ce;
        delivered.borrow_mut().0 += u64::from(marked);
    });
    net.set_link_tap(move |event| {
        assert_eq!((event.link, event.payload.len(), event.len), (there, 222, 250));
        match event.action {
            LinkAction::Marked => at_link.borrow_mut().1 += 1,
            LinkAction::Arrived if event.ecn == Ecn::Ce => at_link.borrow_mut().2 += 1,
            _ => {}
        }
    });
    net.run_until(ms(900));
    net.with(a, |pinger, _| pinger.stop());
    net.run_until(ms(5_000));
    let marked = net.link(there).stats().marked;
    assert!(marked > 5, "{marked}");
    assert_eq!(*seen.borrow(), (marked, marked, marked));
}

#[test]
fn a_tap_on_the_links_sees_events_in_order_and_changes_nothing() {
    let run = |tapped: bool| {
        let mut net = Network::new(seed_from_env(1).get());
        let a = net.add(Pinger::to([B], Duration::from_micros(900)).sized(1_000), [A]);
        let b = net.add(Pinger::answering(), [B]);
        let loss = Loss::Uniform(0.1);
        let hops = [20, 10].map(|mbit| {
            let loss = loss.clone();
            net.add_link(LinkModel { loss, ..LinkModel::wire(mbit * 1_000_000, Duration::from_millis(mbit)) })
        });
        net.route((a, 0), net.address((b, 0)), &hops, (b, 0), net.address((a, 0)));
        net.route((b, 0), net.address((a, 0)), &[], (a, 0), net.address((b, 0)));
        let times = Rc::new(RefCell::new(Vec::new()));
        let shared = times.clone();
        if tapped {
            net.set_link_tap(move |event| shared.borrow_mut().push(event.at));
        }
        let mut arrivals = Vec::new();
        while net.wait_for(ms(2_000), |net| net.node(a).received() > arrivals.len() as u64) {
            arrivals.push(net.now());
        }
        (arrivals, times.take())
    };
    let ((arrivals, times), (untapped, _)) = (run(true), run(false));
    assert!(times.is_sorted() && times.len() > 4 * arrivals.len());
    assert_eq!(arrivals, untapped);
}

#[test]
fn throughput_over_three_hops_is_that_of_the_slowest() {
    let mut net = Network::new(1);
    let a = net.add(Pinger::to([B], Duration::from_micros(500)).sized(1_222), [A]);
    let b = net.add(Pinger::answering().silent(), [B]);
    let rates = [20_000_000, 10_000_000, 15_000_000];
    let hops = rates.map(|rate| {
        let queue = QueueLimit::Packets(50).into();
        net.add_link(LinkModel { queue, ..LinkModel::wire(rate, Duration::from_millis(5)) })
    });
    net.route((a, 0), net.address((b, 0)), &hops, (b, 0), net.address((a, 0)));
    net.run_until(ms(1_000));
    let before = net.node(b).received();
    net.run_until(ms(11_000));
    let bits = (net.node(b).received() - before) as f64 * 1_250.0 * 8.0;
    assert!((bits / 1e8 - 1.0).abs() < 0.001, "{bits}");
    assert_eq!(net.link(hops[0]).stats().dropped(), 0);
    assert_eq!(net.link(hops[2]).stats().dropped(), 0);
    assert!(net.link(hops[1]).stats().dropped_queue > 9_000);
}

#[test]
fn a_segmented_transmit_travels_as_single_datagrams() {
    let mut net = Network::new(1);
    let a = net.add(every(10).bursts(4), [A]);
    let b = net.add(Pinger::answering().silent(), [B]);
    let (there, _) = net.connect((a, 0), (b, 0), clean(1));
    net.run_until(ms(9));
    assert_eq!(net.link(there).stats().offered_bytes, 4 * 128);
    let numbers: Vec<_> = core::iter::from_fn(|| net.poll_event(b)).map(|(_, _, number)| number).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
}

#[test]
fn interfaces_have_routes_of_their_own() {
    let mut net = Network::new(1);
    let (wifi, lte) = ("10.0.1.1:9899", "10.0.2.1:9899");
    let a = net.add(Pinger::to([wifi, lte], Duration::from_millis(10)), ["192.168.0.2:5000", "100.64.0.2:5000"]);
    let b = net.add(Pinger::answering(), [wifi, lte]);
    let (first, _) = net.connect((a, 0), (b, 0), clean(5));
    let (second, _) = net.connect((a, 1), (b, 1), clean(50));
    net.run_until(ms(195));
    assert_eq!((net.link(first).stats().offered, net.link(second).stats().offered), (10, 10));
    let sockets: Vec<_> = core::iter::from_fn(|| net.poll_event(a)).map(|(route, ..)| route.socket.0).collect();
    assert_eq!(sockets.iter().filter(|socket| **socket == 0).count(), 10);
    assert_eq!(sockets[..4], [0, 0, 0, 0]);
}

#[test]
fn behind_a_nat_a_node_is_seen_and_reached_at_the_outer_address() {
    let mut net = Network::new(1);
    let a = net.add(every(100), ["192.168.1.2:5000"]);
    let b = net.add(Pinger::answering(), [B]);
    net.connect((a, 0), (b, 0), clean(5).behind_nat("203.0.113.7:40123"));
    net.run_until(ms(50));
    assert_eq!(net.poll_event(b).unwrap().0.remote.to_string(), "203.0.113.7:40123");
    assert_eq!(net.poll_event(a).unwrap().0.remote.to_string(), B);
    // The inner address leads nowhere from outside.
    let mut net = Network::new(1);
    let a = net.add(Pinger::answering(), ["192.168.1.2:5000"]);
    let b = net.add(Pinger::to(["192.168.1.2:5000"], Duration::from_secs(1)), [B]);
    net.connect((a, 0), (b, 0), clean(5).behind_nat("203.0.113.7:40123"));
    net.run_until(ms(50));
    assert_eq!((net.node(a).received(), net.unroutable()), (0, 1));
}

#[test]
fn a_script_cuts_a_link_and_mends_it() {
    let mut net = Network::new(1);
    let a = net.add(every(10), [A]);
    let b = net.add(Pinger::answering().silent(), [B]);
    let (there, _) = net.connect((a, 0), (b, 0), clean(1));
    net.at(ms(105), move |net| net.set_down(there, true));
    net.at(ms(205), move |net| net.set_down(there, false));
    net.run_until(ms(299));
    assert_eq!((net.node(a).sent(), net.node(b).received()), (30, 20));
    assert_eq!(net.link(there).stats().dropped_outage, 10);
}

#[test]
fn a_machine_changed_from_outside_acts_at_once_when_touched() {
    let mut net = Network::new(1);
    let a = net.add(Pinger::answering(), [A]);
    let b = net.add(Pinger::answering(), [B]);
    let (there, _) = net.connect((a, 0), (b, 0), clean(1));
    net.run_until(ms(50));
    *net.node_mut(a) = every(10);
    net.run_until(ms(50));
    assert_eq!(net.link(there).stats().offered, 6);
    net.with(a, |pinger, _| pinger.stop());
    net.run_until(ms(100));
    assert_eq!(net.link(there).stats().offered, 6);
    assert_eq!(net.now(), ms(100));
    assert!(!net.step());
}

#[test]
fn corrupted_datagrams_arrive_with_one_bit_wrong() {
    let mut net = Network::new(1);
    let a = net.add(every(10), [A]);
    let b = net.add(Pinger::answering().silent(), [B]);
    let model = LinkModel { corrupt: 1.0, ..LinkModel::default() };
    net.connect((a, 0), (b, 0), Duplex::new(model, LinkModel::default()));
    let seen = Rc::new(RefCell::new((Vec::new(), Vec::new())));
    let shared = seen.clone();
    net.set_tap(move |event| match event.action {
        TapAction::Sent => shared.borrow_mut().0.push(event.payload.to_vec()),
        TapAction::Delivered => shared.borrow_mut().1.push(event.payload.to_vec()),
        _ => panic!("{event:?}"),
    });
    net.run_until(ms(995));
    let (sent, delivered) = &*seen.borrow();
    assert_eq!(delivered.len(), 100);
    for (before, after) in sent.iter().zip(delivered) {
        assert_eq!(before.iter().zip(after).map(|(x, y)| (x ^ y).count_ones()).sum::<u32>(), 1);
    }
}

#[test]
fn the_tap_sees_drops_and_their_reason() {
    let mut net = Network::new(1);
    let a = net.add(every(10), [A]);
    let b = net.add(Pinger::answering().silent(), [B]);
    let model = LinkModel { loss: Loss::Packets([1].into()), mtu: 128, ..LinkModel::default() };
    let (there, _) = net.connect((a, 0), (b, 0), Duplex::both(model));
    let seen = Rc::new(RefCell::new(Vec::new()));
    let shared = seen.clone();
    net.set_tap(move |event| shared.borrow_mut().push((event.at, event.action)));
    net.run_until(ms(10));
    let lost = TapAction::Dropped(there, DropReason::Loss);
    let expected = [(ms(0), TapAction::Sent), (ms(0), TapAction::Delivered), (ms(10), TapAction::Sent), (ms(10), lost)];
    assert_eq!(*seen.borrow(), expected);
}

/// A run over everything random that a link can do.
fn digest_of_a_run(seed: u64) -> u64 {
    let mut net = Network::new(seed);
    let a = net.add(Pinger::to([B], Duration::from_micros(700)).sized(900).bursts(2), [A]);
    let b = net.add(Pinger::answering(), [B]);
    let model = LinkModel {
        jitter: Jitter::Normal(Duration::from_millis(3)),
        loss: Loss::bursts(0.05, 4.0).unwrap(),
        reorder: Reorder { share: 0.01, how: ReorderHow::Skip },
        duplicate: 0.01,
        corrupt: 0.01,
        outages: vec!["every:1s,100ms,hold".parse().unwrap()],
        ..LinkModel::wire(20_000_000, Duration::from_millis(15))
    };
    net.connect((a, 0), (b, 0), Duplex::both(model));
    let digest = digest(&mut net);
    net.run_until(ms(5_000));
    digest.get()
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let seed = seed_from_env(7);
    assert_eq!(digest_of_a_run(seed.get()), digest_of_a_run(seed.get()));
    assert_ne!(digest_of_a_run(seed.get()), digest_of_a_run(seed.get() + 1));
}

#[test]
#[should_panic(
    expected = "100000 timeouts at 0.000000000s without time moving (last at node 0, [10.0.0.1:9899]); rerun with BRAIDCAST_SEED=42"
)]
fn a_machine_that_never_lets_time_pass_is_stopped() {
    let mut net = Network::new(42);
    net.add(Pinger::to([], Duration::ZERO), [A]);
    net.run_until(ms(1));
}
