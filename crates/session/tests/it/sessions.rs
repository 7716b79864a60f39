//! A session is more than an association: either end may go and come back.

use crate::common::*;
use braidcast_core::{Instant, Rng, Route, SocketId};
use braidcast_session::{Event, Farewell, Identity, Receiver, ReceiverOptions, Sender, SenderOptions};
use braidcast_sim::link::Loss;
use braidcast_sim::{Duplex, LinkModel};
use core::time::Duration;

const FILE: Identity = Identity([9; 16]);

fn link() -> LinkModel {
    LinkModel::wire(20_000_000, ms(15))
}

fn reliable() -> SenderOptions {
    SenderOptions { reliable: true, identity: Some(FILE), ..SenderOptions::default() }
}

/// A receiver as if its process had just been started; what is on its disk stays.
fn restart_sink(scene: &mut Scene, options: &ReceiverOptions) {
    scene.restart_sink(Receiver::new(options.clone(), Rng::from_seed(77)).unwrap());
}

/// The longest time between two outputs from `from` on.
fn longest_gap(sink: &Sink, from: Instant) -> Duration {
    let times: Vec<_> = sink.outputs.iter().map(|(at, _)| *at).filter(|at| *at >= from).collect();
    times.windows(2).map(|pair| pair[1].since(pair[0])).max().unwrap_or(Duration::MAX)
}

#[test]
fn a_live_stream_flows_again_when_its_receiver_is_back() {
    for away in [0, 700, 6_000, 40_000] {
        let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(50), &[link(), link()]);
        scene.net.run_for(ms(START + 2_000));
        for (there, back) in scene.links.clone() {
            scene.net.set_down(there, true);
            scene.net.set_down(back, true);
        }
        scene.net.run_for(ms(away));
        restart_sink(&mut scene, &ReceiverOptions::default());
        let start = scene.net.now();
        for (there, back) in scene.links.clone() {
            scene.net.set_down(there, false);
            scene.net.set_down(back, false);
        }
        scene.net.run_for(ms(8_000));
        let first = scene.sink().outputs.iter().map(|(at, _)| *at).find(|at| *at >= start).expect("it flows");
        assert!(first.since(start) < ms(2_500), "away {away} ms: output after {:?}", first.since(start));
        let report = scene.sink().report();
        let missing: u64 = report.kinds.iter().map(|kind| kind.missing).sum();
        assert!(missing < 200, "what the receiver before had is not missing: {:?}", report.kinds);
    }
}

/// All networks of the scene, or one of them, up or down.
fn set_down(scene: &mut Scene, n: usize, down: bool) {
    let (there, back) = scene.links[n];
    scene.net.set_down(there, down);
    scene.net.set_down(back, down);
}

#[test]
fn the_one_network_of_many_that_works_is_found_within_two_seconds() {
    let count = SOURCE_ADDRESSES.len();
    for (working, away) in (0..count).flat_map(|n| [(n, 0), (n, 300), (n, 900), (n, 5_000), (n, 9_300)]) {
        let links = vec![link(); count];
        let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(30), &links);
        (0..count).for_each(|n| set_down(&mut scene, n, true));
        scene.net.run_for(ms(START + away));
        set_down(&mut scene, working, false);
        let start = scene.net.now();
        scene.net.run_for(ms(4_000));
        let first = scene.sink().outputs.first().expect("it flows").0;
        assert!(first.since(start) < ms(1_800), "network {working} after {away} ms: {:?}", first.since(start));
    }
}

#[test]
fn a_network_that_joins_during_the_handshake_takes_part_in_it() {
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(30), &[link(), link()]);
    let route = Route::new(SocketId(1), SINK_ADDRESSES[1].parse().unwrap());
    let source = scene.source;
    let on_sender = |scene: &mut Scene, action: &mut dyn FnMut(&mut Sender, Instant)| {
        scene.net.with(source, |node, now| match node {
            Node::Source(source) => action(&mut source.sender, now),
            Node::Sink(_) => unreachable!("this node is the source"),
        });
    };
    on_sender(&mut scene, &mut |sender, now| sender.leave(now, route));
    set_down(&mut scene, 0, true);
    scene.net.run_for(ms(1_600));
    let start = scene.net.now();
    on_sender(&mut scene, &mut |sender, now| sender.join(now, route).unwrap());
    scene.net.run_for(ms(200));
    let up = scene.source().events.contains(&Event::Connected);
    assert!(up, "{:?} after it joined: {:?}", scene.net.now().since(start), scene.source().events);
}

#[test]
fn nobody_there_for_a_minute_and_then_somebody() {
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(80), &[link()]);
    let (there, back) = scene.links[0];
    scene.net.set_down(there, true);
    scene.net.set_down(back, true);
    scene.net.run_for(ms(61_000));
    scene.net.set_down(there, false);
    scene.net.set_down(back, false);
    let start = scene.net.now();
    scene.net.run_for(ms(4_000));
    let first = scene.sink().outputs.first().expect("it flows").0;
    assert!(first.since(start) < ms(2_800), "{:?}", first.since(start));
    assert!(longest_gap(scene.sink(), first) < ms(200));
}

#[test]
fn a_sender_started_anew_at_the_same_place_is_played_within_two_seconds() {
    for (keep, pause) in [(false, 200), (true, 200), (false, 4_000), (true, 4_000), (false, 30_000)] {
        let receive = ReceiverOptions { keep, ..ReceiverOptions::default() };
        let mut scene = Scene::new(SenderOptions::default(), receive, camera(60), &[link()]);
        scene.net.run_for(ms(START + 3_000));
        let (there, back) = scene.links[0];
        scene.net.set_down(there, true);
        scene.net.set_down(back, true);
        scene.net.run_for(ms(pause));
        let now = scene.net.now();
        let mut units = camera(10);
        for (ready, unit) in &mut units {
            let shift = now.since(Instant::from_millis(START));
            *ready += shift;
            unit.first_captured += shift;
            unit.last_captured += shift;
        }
        // Another port of the same address.
        let node = source(now, &Rng::from_seed(1_000_003), &SenderOptions::default(), units, 1);
        let next = scene.net.add(node, ["10.0.0.1:9898"]);
        scene.net.connect((next, 0), (scene.sink, 0), Duplex::both(link()));
        scene.net.run_for(ms(6_000));
        let again = scene.sink().outputs.iter().map(|(at, _)| *at).find(|at| *at > now + ms(600));
        let took = again.map(|at| at.since(now));
        assert!(took.is_some_and(|took| took < ms(2_000)), "keep {keep}, pause {pause}: {took:?}");
        assert!(longest_gap(scene.sink(), again.unwrap()) < ms(200));
    }
}

#[test]
fn a_second_sender_at_the_same_place_leaves_the_first_alone_and_hears_why() {
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(20), &[link()]);
    scene.net.run_for(ms(START + 2_000));
    let now = scene.net.now();
    let node = source(now, &Rng::from_seed(1_000_003), &SenderOptions::default(), camera(3), 1);
    let second = scene.net.add(node, ["10.0.0.1:9898"]);
    scene.net.connect((second, 0), (scene.sink, 0), Duplex::both(link()));
    scene.net.run_for(ms(5_000));
    let Node::Source(second) = scene.net.node(second) else { unreachable!("this node is a source") };
    let why = second.events.iter().find_map(|event| match event {
        Event::Ended { reason, .. } => Some(Farewell::of(reason)),
        _ => None,
    });
    assert_eq!(why, Some(Some(Farewell::Busy)), "{:?}", second.events);
    assert!(longest_gap(scene.sink(), Instant::from_millis(START + 1_000)) < ms(200));
}

#[test]
fn a_file_goes_on_from_the_disk_when_its_receiver_is_back() {
    let (bytes, units) = file(600);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units, &[link()]);
    scene.net.run_for(ms(2_000));
    let had = scene.sink().disk.len();
    assert!(had > 1_000_000 && had < bytes.len());
    restart_sink(&mut scene, &ReceiverOptions::default());
    scene.run_to_end(ms(60_000));
    assert!(scene.sink().bytes == bytes, "{} of {} bytes", scene.sink().bytes.len(), bytes.len());
    let sent = scene.source().sender.report(scene.net.now()).paths[0].sent_bytes;
    assert!(sent < bytes.len() as u64 * 13 / 10, "{sent} bytes for a file of {}", bytes.len());
    scene.net.run_for(ms(2_000));
    assert!(scene.source().events.iter().any(|event| matches!(event, Event::Ended { complete: true, .. })));
}

#[test]
fn a_file_whose_receiver_goes_again_and_again_arrives_once() {
    let (bytes, units) = file(900);
    let lossy = LinkModel { loss: Loss::Uniform(0.02), ..link() };
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units, &[lossy.clone(), lossy]);
    for _ in 0..6 {
        scene.net.run_for(ms(900));
        restart_sink(&mut scene, &ReceiverOptions::default());
    }
    scene.run_to_end(ms(120_000));
    assert!(scene.sink().bytes == bytes, "{} of {} bytes", scene.sink().bytes.len(), bytes.len());
}

#[test]
fn a_file_begins_anew_where_other_bytes_are_there() {
    let (bytes, units) = file(50);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units, &[link()]);
    let id = scene.sink;
    let Node::Sink(sink) = scene.net.node_mut(id) else { unreachable!("this node is the sink") };
    sink.disk = b"something else".to_vec();
    sink.bytes = b"before, something else".to_vec();
    scene.run_to_end(ms(30_000));
    assert!(scene.sink().events.contains(&Event::Anew));
    assert!(scene.sink().bytes == [b"before, ", &bytes[..]].concat());
}

#[test]
fn a_sender_is_not_done_before_the_receiver_has_flushed() {
    let (_, units) = file(20);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units, &[link()]);
    let id = scene.sink;
    let Node::Sink(sink) = scene.net.node_mut(id) else { unreachable!("this node is the sink") };
    sink.stuck = true;
    scene.net.run_for(ms(10_000));
    assert!(!scene.source().events.iter().any(|event| matches!(event, Event::Ended { .. })));
    scene.net.with(id, |node, now| {
        let Node::Sink(sink) = node else { unreachable!("this node is the sink") };
        sink.stuck = false;
        sink.receiver.flushed(now, CHANNEL);
    });
    scene.net.run_for(ms(1_000));
    assert!(scene.source().events.iter().any(|event| matches!(event, Event::Ended { complete: true, .. })));
}

#[test]
fn a_user_who_stops_does_not_wait_for_a_receiver_that_is_gone() {
    for reliable in [false, true] {
        let options = SenderOptions { reliable, ..SenderOptions::default() };
        let units = if reliable { file(3000).1 } else { camera(60) };
        let mut scene = Scene::new(options, ReceiverOptions::default(), units, &[link()]);
        scene.net.run_for(ms(START + 2_000));
        let (there, back) = scene.links[0];
        scene.net.set_down(there, true);
        scene.net.set_down(back, true);
        scene.net.run_for(ms(3_000));
        let id = scene.source;
        scene.net.with(id, |node, now| {
            let Node::Source(source) = node else { unreachable!("this node is the source") };
            source.sender.stop(now);
        });
        scene.net.run_for(ms(2_500));
        let ended = scene.source().events.iter().any(|event| matches!(event, Event::Ended { complete: false, .. }));
        assert!(ended, "reliable {reliable}: {:?}", scene.source().events);
    }
}
