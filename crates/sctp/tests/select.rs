//! One path at a time, chosen by what is measured (PATHS §5.2, §5.3).

mod common;

use braidcast_sctp::{Options, PathSelection, PathState, SchedulerKind, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;
use common::{Pair, link, ms, pattern};

fn options(by: PathSelection) -> Options {
    Options::live().with(|it| {
        it.paths.concurrent = false;
        it.paths.selection = Some(by);
        it.paths.forward_delay = true;
        it.paths.hysteresis = ms(10);
    })
}

/// A call of 50 packets a second over two links for `seconds`; how many packets each path carried, and the handovers.
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
    // Ten milliseconds there and back, and the 20 ms that the peer may wait with a SACK for what comes over the path in use, are no more
    // than this hysteresis.
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

#[test]
fn a_call_leaves_a_path_that_loses_for_one_that_is_slower() {
    let lossy = || Duplex::both(LinkModel { loss: "8%".parse().unwrap(), ..link(10, 20) });
    let (sent, _) = call(&options(PathSelection::Echo), [lossy(), both(10, 60)], 12);
    assert!(sent[1] > 450, "{sent:?}");
    let (sent, _) = call(&options(PathSelection::Echo), [both(10, 60), lossy()], 12);
    assert_eq!(sent[1], 0);
}

/// RFC 9260 §8.3.
#[test]
fn heartbeats_are_spread_where_that_is_asked_for() {
    let spread = Options::default().with(|it| {
        it.paths.heartbeat_interval = ms(10_000);
        it.paths.heartbeat_jitter = true;
        it.paths.max_mtu = it.paths.base_mtu;
    });
    let mut pair = Pair::connected(&spread, vec![both(10, 20)]);
    pair.run(ms(20_000));
    let count = |pair: &mut Pair| pair.client_path(0).unwrap().sent_packets;
    let (mut last, mut at, mut pauses) = (count(&mut pair), None, Vec::new());
    while pauses.len() < 40 {
        pair.run(ms(10));
        let now = pair.now();
        // Its own heartbeats, one at a time; answers to the server's ones are packets as well.
        let packets = count(&mut pair);
        if packets > last {
            if let Some(before) = at.replace(now) {
                pauses.push((now - before).as_secs_f64());
            }
            last = packets;
        }
    }
    let distinct = pauses.iter().filter(|pause| (**pause - 10.0).abs() > 0.5).count();
    assert!(distinct > 20, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= 16.1), "{pauses:?}");
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
