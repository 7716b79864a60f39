//! Schedulers over unlike paths: whatever carries what, all of it arrives once and in order; and what each one is for.

use crate::common::{CLIENT, Flow, Pair, SERVER, bulk, link, ms, pattern, route};
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::{Options, Reliability, SchedulerKind, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss};

fn with(scheduler: SchedulerKind) -> Options {
    Options::prompt().with(|it| it.paths.scheduler = scheduler)
}

fn thin(kbit: u64, delay_ms: u64) -> LinkModel {
    LinkModel { rate: format!("{kbit}kbit").parse().unwrap(), ..link(1, delay_ms) }
}

/// Wi-Fi and 3G of THESIS §7.1.
fn wifi_and_3g() -> Vec<Duplex> {
    vec![Duplex::both(thin(1600, 10)), Duplex::both(thin(400, 100))]
}

#[test]
fn whatever_the_scheduler_all_arrives_once_and_in_order() {
    for (name, scheduler) in SchedulerKind::ALL {
        for interleaving in [true, false] {
            let lossy = |delay| Duplex::both(LinkModel { loss: Loss::Uniform(0.02), ..thin(1500, delay) });
            let options = with(scheduler).with(|it| it.interleaving = interleaving);
            let mut pair = Pair::connected(&options, vec![lossy(10), lossy(80), lossy(200)]);
            let mut flow = Flow::default();
            flow.run(&mut pair, ms(2500));
            flow.finish(&mut pair);
            assert!(flow.received > 300, "{name}: {}", flow.received);
        }
    }
}

#[test]
fn the_scheduler_changes_while_data_flows() {
    let mut pair = Pair::connected(&with(SchedulerKind::LowestDelay), wifi_and_3g());
    let mut flow = Flow::default();
    for (name, scheduler) in SchedulerKind::ALL {
        assert!(pair.on_client(|it, _| it.set_scheduler(scheduler)), "{name}");
        flow.run(&mut pair, ms(700));
    }
    flow.finish(&mut pair);
}

/// The share of both links that 20 s of bulk data get in a receive window of 64 KiB.
#[test]
fn daps_fills_two_unlike_paths_in_a_small_window() {
    let goodput = |scheduler, forward_delay| {
        let options = with(scheduler).with(|it| {
            (it.limits.receive_buffer, it.limits.max_message) = (65_536, 32_768);
            it.paths.forward_delay = forward_delay;
        });
        let mut pair = Pair::connected(&options, wifi_and_3g());
        bulk(&mut pair, 1000, ms(3000));
        bulk(&mut pair, 1000, ms(20_000)) as f64 * 8000.0 / 20.0
    };
    let (daps, measured) = (goodput(SchedulerKind::Daps, false), goodput(SchedulerKind::Daps, true));
    let round_robin = goodput(SchedulerKind::RoundRobin, false);
    println!("daps {daps}, measured {measured}, round robin {round_robin}");
    assert!(daps > 1_750_000.0 && measured > 1_750_000.0, "{daps} {measured}");
}

/// One in five packets is lost on each path: of calls' packets one in 25 comes late instead of one in five.
#[test]
fn redundant_loses_what_all_paths_lose() {
    let late = |scheduler| {
        let lossy = || Duplex::new(LinkModel { loss: Loss::Uniform(0.2), ..link(2, 20) }, link(2, 20));
        let mut pair = Pair::connected(&with(scheduler), vec![lossy(), lossy()]);
        let how =
            SendOptions { unordered: true, reliability: Reliability::Lifetime(ms(300)), ..SendOptions::default() };
        let mut on_time = 0;
        for n in 0..1000_u32 {
            let message = pattern(160, n.into());
            pair.on_client(|it, now| it.send(now, &message, how)).unwrap();
            pair.run(ms(30));
            on_time += usize::from(pair.server_recv().iter().any(|(_, it)| *it == message));
        }
        1000 - on_time
    };
    let (redundant, alone) = (late(SchedulerKind::Redundant), late(SchedulerKind::LowestDelay));
    assert!(redundant < 80 && alone > 150, "{redundant} late of 1000, {alone} over one path");
}

#[test]
fn redundant_sends_each_chunk_over_each_path_and_measures_them() {
    let mut pair = Pair::connected(
        &with(SchedulerKind::Redundant),
        vec![Duplex::both(link(5, 10)), Duplex::both(link(5, 40)), Duplex::both(link(5, 90))],
    );
    for n in 0..200_u32 {
        pair.client_send(&pattern(500, n.into()), SendOptions::default());
        pair.run(ms(20));
    }
    pair.run(ms(500));
    let carried = [0, 1, 2].map(|i| {
        let path = pair.client_path(i).unwrap();
        path.sent_chunks + path.copied_chunks
    });
    // What is acknowledged before its turn over a slow path comes is not sent there.
    assert!(carried.iter().all(|&chunks| chunks > 190), "{carried:?}");
    assert_eq!(pair.server_recv().len(), 200);
    let srtt = pair.client_path(0).unwrap().srtt.unwrap();
    assert!(srtt > ms(18) && srtt < ms(45), "{srtt:?}");
}

/// Round trips of 70 and 100 ms, but 60 and 20 ms there.
#[test]
fn the_way_there_counts_where_it_is_measured() {
    let share = |forward_delay| {
        let options = with(SchedulerKind::Daps).with(|it| it.paths.forward_delay = forward_delay);
        let links = vec![Duplex::new(link(5, 60), link(5, 10)), Duplex::new(link(5, 20), link(5, 80))];
        let mut pair = Pair::connected(&options, links);
        let recording = pair.record();
        let send = |pair: &mut Pair| {
            for n in 0..150_u32 {
                pair.client_send(&pattern(300, n.into()), SendOptions::default());
                pair.run(ms(20));
            }
        };
        send(&mut pair);
        let before = pair.client_path(1).unwrap().sent_chunks;
        send(&mut pair);
        let stamped = recording.count(&CLIENT, kind::TIMESTAMP);
        let echoed = recording.count(&SERVER, kind::TIMESTAMP_ECHO);
        assert_eq!((stamped > 20, echoed > 10), (forward_delay, forward_delay), "{stamped} {echoed}");
        pair.client_path(1).unwrap().sent_chunks - before
    };
    let (measured, half) = (share(true), share(false));
    assert!(measured > 140 && half < 10, "{measured} of 150 over the way that is quicker there, {half} by round trips");
}

#[test]
fn a_peer_without_timestamps_gets_none() {
    let ours = with(SchedulerKind::Daps).with(|it| it.paths.forward_delay = true);
    let mut pair = Pair::with(ours, Options::prompt(), wifi_and_3g());
    pair.connect();
    let recording = pair.record();
    bulk(&mut pair, 1000, ms(1000));
    assert_eq!(recording.count(&CLIENT, kind::TIMESTAMP) + recording.count(&SERVER, kind::TIMESTAMP_ECHO), 0);
}

/// RFC 5061 §4.2.2: what was out over it goes over the others.
#[test]
fn an_address_is_removed_with_data_in_flight_whatever_the_scheduler() {
    for (name, scheduler) in SchedulerKind::ALL {
        for leaving in 0..2 {
            let mut pair = Pair::connected(&with(scheduler), wifi_and_3g());
            let mut flow = Flow::default();
            flow.run(&mut pair, ms(1500));
            let in_flight = pair.client_path(leaving).unwrap().in_flight;
            pair.cut(leaving, true);
            pair.on_client(|it, now| it.leave(now, route(leaving)));
            flow.run(&mut pair, ms(500));
            flow.finish(&mut pair);
            assert!(in_flight > 0 || scheduler != SchedulerKind::RoundRobin, "{name} {leaving}");
            assert_eq!(pair.on_server(|it, _| it.paths().count()), 1, "{name} {leaving}");
        }
    }
}
