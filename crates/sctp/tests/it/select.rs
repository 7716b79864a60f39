//! One path at a time, chosen by what is measured (PATHS §5.2, §5.3).

use crate::common::{CLIENT, Pair, SERVER, link, ms, pattern};
use braidcast_core::{Rng, Route, SocketId};
use braidcast_sctp::{Association, Endpoint, Options, PathSelection, PathState, SchedulerKind, SendOptions};
use braidcast_sim::link::LinkModel;
use braidcast_sim::testing::seed_from_env;
use braidcast_sim::{Duplex, Network, NodeId};
use std::collections::VecDeque;

fn options(by: PathSelection) -> Options {
    Options::live().with(|it| {
        it.paths.concurrent = false;
        it.paths.selection = Some(by);
        it.paths.forward_delay = true;
        it.paths.hysteresis = ms(10);
    })
}

/// Holds a call of 50 packets a second over two links for `seconds`. Returns how many packets each
/// path carried, and the handovers.
fn call(options: &Options, links: [Duplex; 2], seconds: u64) -> ([u64; 2], u64) {
    let mut pair = Pair::connected(options, links.to_vec());
    talk(&mut pair, seconds)
}

fn talk(pair: &mut Pair, seconds: u64) -> ([u64; 2], u64) {
    let sent = |pair: &mut Pair| [0, 1].map(|i| pair.client_path(i).unwrap().sent_chunks);
    let before = sent(pair);
    for n in 0..seconds * 50 {
        pair.client_send(&pattern(160, n), SendOptions::default());
        pair.run(ms(20));
        pair.server_recv();
    }
    let after = sent(pair);
    ([0, 1].map(|i| after[i] - before[i]), pair.on_client(|it, _| it.stats().handovers))
}

fn both(mbit: u64, delay: u64) -> Duplex {
    Duplex::both(link(mbit, delay))
}

#[test]
fn the_path_with_the_shorter_round_trip_carries_the_call() {
    let by = options(PathSelection::BestDelay);
    let (sent, handovers) = call(&by, [both(10, 60), both(10, 20)], 10);
    assert!(sent[0] < 50 && sent[1] > 450 && handovers == 1, "{sent:?} {handovers}");
    // Ten milliseconds there and back, and the 20 ms that the peer may wait with a SACK for what
    // comes over the path in use, are no more than this hysteresis.
    let more = by.clone().with(|it| it.paths.hysteresis = ms(35));
    let (sent, handovers) = call(&more, [both(10, 25), both(10, 20)], 10);
    assert_eq!((sent[1], handovers), (0, 0));
    // The primary path alone, as ever.
    let none = by.with(|it| it.paths.selection = None);
    assert_eq!(call(&none, [both(10, 60), both(10, 20)], 5).0[1], 0);
}

#[test]
fn the_time_guard_puts_it_off() {
    let by = options(PathSelection::BestDelay).with(|it| it.paths.time_guard = ms(3000));
    let mut latest = Vec::new();
    for seed in 1..=8 {
        let mut pair = Pair::seeded(seed, &by, vec![both(10, 60), both(10, 20)]);
        pair.connect();
        let (sent, handovers) = talk(&mut pair, 5);
        assert_eq!(handovers, 1, "seed {seed}");
        latest.push(sent[0]);
    }
    // Packets of 20 ms over the first path: three seconds at most, and not all alike.
    let (least, most) = (latest.iter().min().unwrap(), latest.iter().max().unwrap());
    assert!(*most <= 155 && most - least > 50, "{latest:?}");
}

#[test]
fn a_path_that_fails_is_left_and_not_gone_back_to_while_it_is_worse() {
    let by = options(PathSelection::BestDelay);
    let mut pair = Pair::connected(&by, vec![both(10, 20), both(10, 60)]);
    assert_eq!(talk(&mut pair, 2).0[1], 0);
    pair.cut(0, true);
    talk(&mut pair, 3);
    assert!(talk(&mut pair, 2).0[1] > 90);
    pair.cut(0, false);
    pair.until(ms(5000), "return", |pair| pair.client_path(0).unwrap().state == PathState::Active);
    talk(&mut pair, 3);
    assert!(talk(&mut pair, 2).0[0] > 90);
}

#[test]
fn the_way_there_counts_and_not_the_way_back() {
    let links = || {
        let way = |there, back| Duplex::new(link(10, there), link(10, back));
        [way(80, 10), way(20, 150)]
    };
    assert_eq!(call(&options(PathSelection::BestDelay), links(), 10).0[1], 0, "its round trip is the longer one");
    let (sent, _) = call(&options(PathSelection::OneWay), links(), 10);
    assert!(sent[1] > 400, "{sent:?}");
}

#[test]
fn the_wider_bottleneck_is_found_by_pairs_and_trains() {
    for by in [PathSelection::PacketPair, PathSelection::PacketTrain] {
        let (sent, handovers) = call(&options(by), [both(1, 20), both(4, 60)], 10);
        assert!(sent[1] > 400 && handovers == 1, "{by}: {sent:?} {handovers}");
        let (sent, _) = call(&options(by), [both(4, 60), both(1, 20)], 10);
        assert_eq!(sent[1], 0, "{by}");
    }
}

/// Both ends send trains, so that answers stand behind the peer's own packets.
#[test]
fn a_path_that_becomes_narrow_is_left_for_good() {
    for by in [PathSelection::PacketPair, PathSelection::PacketTrain] {
        let narrows =
            LinkModel { rate: "0s:1mbit,10s:50kbit".parse().unwrap(), queue: "50p".parse().unwrap(), ..link(1, 10) };
        let steady = LinkModel { rate: "500kbit".parse().unwrap(), ..link(1, 40) };
        let options = options(by).with(|it| it.paths.heartbeat_interval = ms(1000));
        let (sent, handovers) = call(&options, [Duplex::both(narrows), Duplex::both(steady)], 40);
        assert!(handovers <= 1 && sent[1] > 50 * 25, "{by}: {sent:?} {handovers}");
    }
}

#[test]
fn a_call_leaves_a_path_that_loses_for_one_that_is_slower() {
    let lossy = || Duplex::both(LinkModel { loss: "8%".parse().unwrap(), ..link(10, 20) });
    let (sent, _) = call(&options(PathSelection::Echo), [lossy(), both(10, 60)], 12);
    assert!(sent[1] > 450, "{sent:?}");
    let (sent, _) = call(&options(PathSelection::Echo), [both(10, 60), lossy()], 12);
    assert_eq!(sent[1], 0);
}

/// RFC 9260 §8.3: the interval, 50 % more or less, and the RTO, which is a second at least.
#[test]
fn heartbeats_are_spread_where_that_is_asked_for() {
    let spread = Options::default().with(|it| {
        it.paths.heartbeat_interval = ms(10_000);
        it.paths.heartbeat_jitter = true;
        it.paths.max_mtu = it.paths.base_mtu;
    });
    // The client's packets are heartbeats of its own then, and no answers.
    let silent = spread.clone().with(|it| it.paths.heartbeat_interval = ms(3_600_000));
    let mut pair = Pair::with(spread, silent, vec![both(10, 20)]);
    pair.connect();
    pair.run(ms(20_000));
    let count = |pair: &mut Pair| pair.client_path(0).unwrap().sent_packets;
    let (mut last, mut at, mut pauses) = (count(&mut pair), None, Vec::new());
    while pauses.len() < 60 {
        pair.run(ms(10));
        let now = pair.now();
        let packets = count(&mut pair);
        if packets > last {
            if let Some(before) = at.replace(now) {
                pauses.push((now - before).as_secs_f64());
            }
            last = packets;
        }
    }
    assert!(pauses.iter().all(|pause| (6.0..=16.1).contains(pause)), "{pauses:?}");
    let any = |within: core::ops::Range<f64>| pauses.iter().any(|pause| within.contains(pause));
    assert!(any(6.0..8.0) && any(10.0..12.0) && any(14.0..16.0), "{pauses:?}");
}

#[test]
fn a_choice_that_cannot_work_is_refused() {
    let all_at_once = options(PathSelection::Echo).with(|it| it.paths.concurrent = true);
    assert_eq!(
        all_at_once.check().unwrap_err().to_string(),
        "paths.selection is echo, and must be none while all paths are used at once: set paths.concurrent to false"
    );
    let unmeasured = options(PathSelection::OneWay).with(|it| it.paths.forward_delay = false);
    assert!(unmeasured.check().unwrap_err().to_string().ends_with("set paths.forward_delay to true"));
    // The scheduler has no say where one path is used at a time.
    for (_, scheduler) in SchedulerKind::ALL {
        let it = options(PathSelection::BestDelay).with(|it| it.paths.scheduler = scheduler);
        assert!(call(&it, [both(10, 60), both(10, 20)], 3).0[1] > 90, "{scheduler}");
    }
}

/// PATHS table 8.7: three addresses here and two there, six ways there of 800 to 10 ms and six back
/// of 50 to 1400 ms, the quicker there the slower back. The best of both is a round trip of 60 ms
/// that no pair of addresses has.
#[test]
fn each_direction_takes_the_quickest_of_all_pairs_of_addresses() {
    const WAYS: [(u64, u64); 6] = [(800, 50), (300, 100), (100, 400), (40, 800), (20, 1200), (10, 1400)];
    let seed = seed_from_env(1);
    let rng = Rng::from_seed(seed.get());
    let mut net = Network::new(seed.get());
    // Live timers abandon what takes 1.2 s there and back.
    let timers = Options::default().timers;
    let options = options(PathSelection::OneWay).with(|it| (it.paths.hysteresis, it.timers) = (ms(5), timers));
    let mut add = |name: &str, at: &[&str]| {
        net.add(Endpoint::new(options.clone(), rng.stream(name)).unwrap(), at.iter().copied())
    };
    let (client, server) = (add("client", &CLIENT[..3]), add("server", &SERVER[..2]));
    let pairs: Vec<(u16, u16)> = (0..3).flat_map(|here| [(here, 0), (here, 1)]).collect();
    let at = |all: [&str; 4], n: u16| all[usize::from(n)].parse().unwrap();
    for (&(here, there), (forth, back)) in pairs.iter().zip(WAYS) {
        let [forth, back] = [forth, back].map(|delay| net.add_link(link(10, delay)));
        net.route((client, here), at(SERVER, there), &[forth], (server, there), at(CLIENT, here));
        net.route((server, there), at(CLIENT, here), &[back], (client, here), at(SERVER, there));
    }
    net.with(server, |it, _| it.listen());
    let forth: Vec<Route> = pairs.iter().map(|&(here, there)| Route::new(SocketId(here), at(SERVER, there))).collect();
    let back: Vec<Route> = pairs.iter().map(|&(here, there)| Route::new(SocketId(there), at(CLIENT, here))).collect();
    net.with(client, |it, now| it.connect(now, 9899, &forth).unwrap());
    net.run_for(ms(20_000));
    let chunks = |net: &mut Network<Endpoint>, node: NodeId, routes: &[Route]| -> Vec<u64> {
        net.with(node, |it, _| {
            let id = it.associations().next().expect("it is up");
            let of = |it: &Association, route| it.paths().find(|path| path.route == route).map(|path| path.sent_chunks);
            let association = it.association_mut(id).expect("it is up");
            routes.iter().map(|&route| of(association, route).expect("each pair is a path")).collect()
        })
    };
    let both = |net: &mut Network<Endpoint>| [chunks(net, client, &forth), chunks(net, server, &back)];
    let mut before = both(&mut net);
    for n in 0..50 * 60 {
        for node in [client, server] {
            net.with(node, |it, now| {
                let id = it.associations().next().expect("it is up");
                let association = it.association_mut(id).expect("it is up");
                association.send(now, &pattern(160, n), SendOptions::default()).unwrap();
                let mut buf = Vec::new();
                while association.recv(now, &mut buf).is_some() {}
            });
        }
        net.run_for(ms(20));
        if n == 50 * 50 {
            before = both(&mut net);
        }
    }
    let after = both(&mut net);
    let sent =
        |way: usize| after[way].iter().zip(&before[way]).map(|(after, before)| after - before).collect::<Vec<_>>();
    assert!(sent(0)[5] > 480, "{:?} of 499 there", sent(0));
    assert!(sent(1)[0] > 480, "{:?} of 499 back", sent(1));
}

/// Heartbeats fit the second path, which is the quicker one, and data does not: who chooses by
/// delay tries it, and less and less often.
#[test]
fn a_path_that_answers_heartbeats_and_loses_data_holds_up_no_call() {
    for (name, by) in PathSelection::ALL {
        let narrow = Duplex::both(LinkModel { mtu: 150, ..link(10, 5) });
        let mut pair = Pair::connected(&options(by), vec![both(10, 60), narrow]);
        let (mut left, mut late) = (VecDeque::new(), 0);
        for n in 0..30 * 50 {
            pair.client_send(&pattern(160, n), SendOptions::default());
            left.push_back(pair.now());
            pair.run(ms(20));
            for _ in pair.server_recv() {
                late += usize::from(pair.now() - left.pop_front().unwrap() > ms(200));
            }
        }
        let handovers = pair.on_client(|it, _| it.stats().handovers);
        assert!(late < 30 && left.len() < 10, "{name}: {late} of 1500 late, {} not there", left.len());
        // At once, and after pauses of a second, two, four and eight.
        let expected = if matches!(by, PathSelection::BestDelay | PathSelection::OneWay) { 4..=5 } else { 0..=0 };
        assert!(expected.contains(&handovers), "{name}: {handovers}");
    }
}
