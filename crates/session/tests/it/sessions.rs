//! A session is more than an association: either end may go and come back.

use crate::common::*;
use braidcast_core::{Instant, Machine, Rng, Route, SocketId};
use braidcast_media::Kind;
use braidcast_session::{Admission, Event, Farewell, Identity, Receiver, ReceiverOptions, Sender, SenderOptions};
use braidcast_sim::link::Loss;
use braidcast_sim::{Duplex, LinkModel};
use core::time::Duration;

const FILE: Identity = Identity([9; 16]);

fn link() -> LinkModel {
    LinkModel::wire(20_000_000, ms(15))
}

fn reliable() -> SenderOptions {
    SenderOptions::default().with(|it| {
        it.reliable = true;
        it.identity = Some(FILE);
    })
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

/// One hello in ten gets lost here, and takes a second to be sent again. One that got lost more than once
/// came after three seconds, and its stream was refused for good.
#[test]
fn a_stream_whose_hello_gets_lost_is_let_in() {
    let far = LinkModel { loss: Loss::Uniform(0.1), ..LinkModel::wire(20_000_000, ms(300)) };
    for seed in 1..=40 {
        let send = SenderOptions::default().with(|it| it.latency = ms(4_000));
        let mut scene = Scene::seeded(
            seed,
            send.transport(),
            send,
            ReceiverOptions::default(),
            film(8),
            core::slice::from_ref(&far),
        );
        scene.run_to_end(ms(20_000));
        let [intra, predicted] = [Kind::I, Kind::P].map(|kind| scene.sink().kind(kind));
        assert!(intra.on_time + predicted.on_time > 0, "seed {seed}: {intra:?}, {predicted:?}");
    }
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
fn what_nobody_takes_fills_no_more_than_the_senders_buffer() {
    // 9 MB within the latency.
    let send = SenderOptions::default().with(|it| it.latency = Duration::from_secs(60));
    let most = send.buffer as u64;
    let mut scene = Scene::new(send, ReceiverOptions::default(), camera(60), &[link()]);
    set_down(&mut scene, 0, true);
    scene.net.run_for(ms(START + 60_000));
    let waits = scene.source().sender.report(scene.net.now()).buffered_bytes;
    assert!((most - most / 16..=most).contains(&waits), "{waits} bytes wait, of {most}");
}

#[test]
fn a_sender_started_anew_at_the_same_place_is_played_within_two_seconds() {
    for (keep, pause) in [(false, 200), (true, 200), (false, 4_000), (true, 4_000), (false, 30_000)] {
        let receive = ReceiverOptions::default().with(|it| it.keep = keep);
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

/// Why an end's associations broke, as the other end said it.
fn told(events: &[Event]) -> Vec<Farewell> {
    let told = events.iter().filter_map(|event| match event {
        Event::Lost(reason) | Event::Ended { reason, .. } => Farewell::of(reason),
        _ => None,
    });
    told.collect()
}

fn has_ended(source: &Source) -> bool {
    source.events.iter().any(|event| matches!(event, Event::Ended { .. }))
}

#[test]
fn a_second_sender_leaves_the_first_alone_hears_why_and_waits_unless_it_is_to_end() {
    for end_with_receiver in [false, true] {
        let options = SenderOptions::default().with(|it| it.end_with_receiver = end_with_receiver);
        let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(6), &[link()]);
        scene.net.run_for(ms(START + 2_000));
        let now = scene.net.now();
        let node = source(now, &Rng::from_seed(1_000_003), &options, camera(30), 1);
        let second = scene.net.add(node, ["10.0.0.1:9898"]);
        scene.net.connect((second, 0), (scene.sink, 0), Duplex::both(link()));
        scene.net.run_for(ms(3_500));
        assert!(longest_gap(scene.sink(), Instant::from_millis(START + 1_000)) < ms(200));
        scene.net.run_for(ms(9_500));
        let Node::Source(second) = scene.net.node(second) else { unreachable!("this node is a source") };
        assert_eq!(told(&second.events).first(), Some(&Farewell::Busy), "{:?}", second.events);
        assert_eq!(has_ended(second), end_with_receiver);
        let on_time: u64 = second.sender.report(scene.net.now()).kinds.iter().map(|kind| kind.on_time).sum();
        assert_eq!(on_time > 0, !end_with_receiver, "it has its turn once the first one is over: {on_time}");
    }
}

#[test]
fn who_is_at_home_ends_only_what_is_at_home() {
    for why in [Farewell::ReceiverStopped, Farewell::OutputFailed, Farewell::NotPermitted, Farewell::Version] {
        for (end_with_receiver, reliable) in [(false, false), (true, false), (false, true)] {
            let (_, units) = if reliable { file(600) } else { (Vec::new(), camera(30)) };
            let options = if reliable { self::reliable() } else { SenderOptions::default() };
            let options = options.with(|it| it.end_with_receiver = end_with_receiver);
            let mut scene = Scene::new(options, ReceiverOptions::default(), units, &[link()]);
            scene.net.run_for(ms(if reliable { 2_000 } else { START + 1_000 }));
            scene.net.with(scene.sink, |node, now| match node {
                Node::Sink(sink) => sink.receiver.abort(now, why),
                Node::Source(_) => unreachable!("this node is the sink"),
            });
            scene.net.run_for(ms(2_000));
            assert_eq!(told(&scene.source().events).first(), Some(&why));
            assert_eq!(has_ended(scene.source()), end_with_receiver || reliable, "{why}");
            restart_sink(&mut scene, &ReceiverOptions::default());
            let start = scene.net.now();
            scene.net.run_for(ms(4_000));
            let flows = scene.sink().outputs.iter().any(|(at, _)| *at > start);
            assert_eq!(flows, !has_ended(scene.source()), "{why}");
        }
    }
}

#[test]
fn a_name_that_is_not_expected_ends_a_sender_that_no_receiver_took() {
    let options = SenderOptions::default().with(|it| it.name = "cam1".into());
    let others = ReceiverOptions::default().with(|it| it.admission = Admission::Named(vec!["cam2".into()]));
    let mut scene = Scene::new(options.clone(), others.clone(), camera(30), &[link()]);
    scene.net.run_for(ms(START + 3_000));
    assert_eq!((told(&scene.source().events), has_ended(scene.source())), (vec![Farewell::UnknownName], true));
    // And one that a receiver did take goes on: the address may be somebody else's by now.
    let mut scene = Scene::new(options, ReceiverOptions::default(), camera(60), &[link()]);
    scene.net.run_for(ms(START + 3_000));
    scene.set_down(true);
    restart_sink(&mut scene, &others);
    scene.set_down(false);
    scene.net.run_for(ms(10_000));
    assert!(told(&scene.source().events).contains(&Farewell::UnknownName) && !has_ended(scene.source()));
    scene.set_down(true);
    restart_sink(&mut scene, &ReceiverOptions::default());
    scene.set_down(false);
    let start = scene.net.now();
    scene.net.run_for(ms(5_000));
    assert!(scene.sink().outputs.iter().any(|(at, _)| *at > start), "{:?}", scene.source().events);
}

/// What the application does with the receiver.
fn on_receiver<T>(scene: &mut Scene, action: impl FnOnce(&mut Receiver, Instant) -> T) -> T {
    let sink = scene.sink;
    scene.net.with(sink, |node, now| match node {
        Node::Sink(sink) => action(&mut sink.receiver, now),
        Node::Source(_) => unreachable!("this node is the sink"),
    })
}

#[test]
fn a_name_comes_and_goes_while_a_receiver_runs() {
    let options = SenderOptions::default().with(|it| it.name = "cam1".into());
    let named = ReceiverOptions::default().with(|it| it.admission = Admission::Named(vec!["cam2".into()]));
    let mut scene = Scene::new(options, named, camera(30), &[link()]);
    let channel = on_receiver(&mut scene, |it, _| it.add_name("cam1"));
    assert_eq!(on_receiver(&mut scene, |it, _| (it.add_name("cam1"), it.add_name("cam2"))), (channel, CHANNEL));
    scene.net.run_for(ms(START + 3_000));
    let (taken, remotes) = on_receiver(&mut scene, |it, _| (it.is_taken(channel), it.remotes(channel)));
    assert!(taken && remotes == [SOURCE_ADDRESSES[0].parse().unwrap()], "{remotes:?}");
    on_receiver(&mut scene, |it, now| it.remove_name(now, channel, Farewell::NotPermitted));
    scene.net.run_for(ms(1_000));
    // One that a receiver took tries again: the address may be another's by now.
    let events = told(&scene.source().events);
    assert_eq!((events[0], events.last().unwrap()), (Farewell::NotPermitted, &Farewell::UnknownName));
    let left: Vec<_> = on_receiver(&mut scene, |it, _| it.channels().map(|(_, name)| name.to_owned()).collect());
    assert_eq!(left, ["cam2"]);
    assert!(on_receiver(&mut scene, |it, _| it.is_idle() && it.remotes(channel).is_empty()));
}

#[test]
fn a_stream_from_elsewhere_has_a_senders_place_until_it_is_over() {
    for keep in [false, true] {
        let receive = ReceiverOptions::default().with(|it| it.keep = keep);
        let send = SenderOptions::default().with(|it| it.end_with_receiver = true);
        let mut scene = Scene::new(send, receive, camera(8), &[link()]);
        let place = on_receiver(&mut scene, |receiver, now| receiver.occupy(now, ""));
        assert_eq!(place, Ok(CHANNEL));
        let again = on_receiver(&mut scene, |receiver, now| receiver.occupy(now, ""));
        assert_eq!(again, Err(Farewell::Busy));
        scene.net.run_for(ms(START + 3_000));
        assert!(scene.sink().outputs.is_empty() && !scene.sink().receiver.is_idle());
        assert_eq!(scene.source().events.contains(&Event::InLine), keep);
        let turned_away = Event::Refused { name: String::new(), why: Farewell::Busy };
        assert_eq!(scene.sink().events.contains(&turned_away), !keep, "{:?}", scene.sink().events);
        on_receiver(&mut scene, |receiver, now| receiver.free(now, CHANNEL));
        scene.net.run_for(ms(2_000));
        assert_eq!(scene.sink().outputs.is_empty(), !keep, "its turn");
        // Its own place is not for one from elsewhere, until its sender is gone.
        let taken = on_receiver(&mut scene, |receiver, now| receiver.occupy(now, ""));
        assert_eq!(taken.is_err(), keep);
    }
}

#[test]
fn a_stream_from_elsewhere_takes_the_place_of_a_sender_that_is_gone() {
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(60), &[link()]);
    scene.net.run_for(ms(START + 2_000));
    set_down(&mut scene, 0, true);
    let mut occupied = Err(Farewell::Busy);
    for _ in 0..60 {
        scene.net.run_for(ms(500));
        occupied = occupied.or_else(|_| on_receiver(&mut scene, |receiver, now| receiver.occupy(now, "")));
    }
    assert_eq!(occupied, Ok(CHANNEL), "{:?}", scene.sink().events);
    let ended = on_receiver(&mut scene, |receiver, _| {
        std::iter::from_fn(|| receiver.poll_event())
            .any(|(_, event)| matches!(event, Event::Ended { complete: false, .. }))
    });
    assert!(ended, "it is told");
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
        let options = SenderOptions::default().with(|it| it.reliable = reliable);
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
