//! The receiver dials, and the sender listens: all that a session promises holds as it does the other way round.

use crate::common::*;
use braidcast_core::{Instant, Machine, Rng, Route, SocketId};
use braidcast_sctp::AssociationId;
use braidcast_session::{Event, Farewell, Identity, Receiver, ReceiverOptions, Sender, SenderOptions};
use braidcast_sim::link::Loss;
use braidcast_sim::{Duplex, LinkModel};
use std::collections::BTreeSet;

fn link() -> LinkModel {
    LinkModel::wire(20_000_000, ms(15))
}

fn lossy() -> LinkModel {
    LinkModel { loss: Loss::Uniform(0.02), ..link() }
}

fn file_options() -> SenderOptions {
    SenderOptions::default().with(|it| {
        it.reliable = true;
        it.identity = Some(Identity([9; 16]));
    })
}

/// The receiver as if its process had just been started; what is on its disk stays.
fn restart_sink(scene: &mut Scene, options: &ReceiverOptions, seed: u64) {
    let (now, paths) = (scene.net.now(), scene.links.len());
    scene.restart_sink(caller(now, options, Rng::from_seed(seed), paths));
}

/// The share of all units that came on time.
fn on_time(sink: &Sink) -> f64 {
    let (captured, on_time) =
        sink.report().kinds.iter().fold((0, 0), |(all, good), kind| (all + kind.captured, good + kind.on_time));
    on_time as f64 / captured as f64
}

#[test]
fn a_stream_over_two_lossy_paths_is_on_time() {
    let mut scene =
        Scene::dialed(SenderOptions::default(), &ReceiverOptions::default(), camera(20), &[lossy(), lossy()]);
    scene.run_to_end(ms(40_000));
    assert!(on_time(scene.sink()) > 0.999, "{:?}", scene.sink().report().kinds);
    let used = scene.source().sender.report(scene.net.now()).paths.iter().filter(|it| it.sent_bytes > 50_000).count();
    assert_eq!(used, 2, "both paths carry it");
    let up =
        scene.sink().events.iter().filter_map(|it| if let Event::PathUp(path, _) = it { Some(path) } else { None });
    assert_eq!(up.collect::<BTreeSet<_>>().len(), 2, "{:?}", scene.sink().events);
    scene.net.run_for(ms(2_000));
    assert!(scene.source().events.iter().any(|it| matches!(it, Event::Ended { complete: true, .. })));
    assert_eq!(scene.sink().receiver.poll_timeout(), None, "who has all of it does not call again");
}

#[test]
fn a_receiver_that_is_started_anew_calls_and_goes_on() {
    for away in [0, 700, 6_000, 40_000] {
        let mut scene =
            Scene::dialed(SenderOptions::default(), &ReceiverOptions::default(), camera(50), &[link(), link()]);
        scene.net.run_for(ms(START + 2_000));
        scene.set_down(true);
        scene.net.run_for(ms(away));
        restart_sink(&mut scene, &ReceiverOptions::default(), 77);
        let start = scene.net.now();
        scene.set_down(false);
        scene.net.run_for(ms(8_000));
        let first = scene.sink().outputs.iter().map(|(at, _)| *at).find(|at| *at >= start).expect("it flows");
        assert!(first.since(start) < ms(3_000), "away {away} ms: output after {:?}", first.since(start));
    }
}

#[test]
fn networks_that_were_away_carry_the_stream_again_within_two_seconds() {
    for away in [1_000, 9_300, 60_000] {
        let mut scene = Scene::dialed(SenderOptions::default(), &ReceiverOptions::default(), camera(90), &[link()]);
        scene.net.run_for(ms(START + 2_000));
        scene.set_down(true);
        scene.net.run_for(ms(away));
        let start = scene.net.now();
        scene.set_down(false);
        scene.net.run_for(ms(6_000));
        let first = scene.sink().outputs.iter().map(|(at, _)| *at).find(|at| *at >= start).expect("it flows");
        assert!(first.since(start) < ms(2_000), "away {away} ms: output after {:?}", first.since(start));
    }
}

#[test]
fn a_sender_that_is_started_anew_is_called_again() {
    let options = ReceiverOptions::default().with(|it| it.keep = true);
    let mut scene = Scene::dialed(SenderOptions::default(), &options, camera(30), &[link()]);
    scene.net.run_for(ms(START + 5_000));
    let now = scene.net.now();
    let later = camera(30).into_iter().filter(|(at, _)| *at > now).collect();
    let sender = Sender::listen(now, SenderOptions::default(), Rng::from_seed(5)).unwrap();
    *scene.source_mut() = Source::of(sender, later);
    let id = scene.source;
    scene.net.touch(id);
    scene.net.run_for(ms(10_000));
    let last = scene.sink().outputs.last().expect("it flows").0;
    assert!(scene.net.now().since(last) < ms(100), "{:?}", scene.sink().events);
    let gap = scene.sink().outputs.windows(2).map(|pair| pair[1].0.since(pair[0].0)).max();
    assert!(gap < Some(ms(3_500)), "{gap:?}");
}

#[test]
fn a_file_whose_receiver_goes_again_and_again_arrives_once() {
    let (bytes, units) = file(900);
    let mut scene = Scene::dialed(file_options(), &ReceiverOptions::default(), units, &[lossy(), lossy()]);
    for seed in 0..6 {
        scene.net.run_for(ms(1_200));
        restart_sink(&mut scene, &ReceiverOptions::default(), seed);
    }
    scene.run_to_end(ms(120_000));
    assert!(scene.sink().bytes == bytes, "{} of {} bytes", scene.sink().bytes.len(), bytes.len());
    scene.net.run_for(ms(2_000));
    assert!(scene.source().events.iter().any(|it| matches!(it, Event::Ended { complete: true, .. })));
}

/// The one that is there is served; the other one has its turn once that is gone.
#[test]
fn of_two_receivers_that_call_one_is_served() {
    let mut scene = Scene::dialed(SenderOptions::default(), &ReceiverOptions::default(), camera(30), &[link()]);
    scene.net.run_for(ms(START + 2_000));
    let options = ReceiverOptions::default().with(|it| it.local_port = 9900);
    let to = vec![Route::new(SocketId(0), "10.0.0.1:9899".parse().unwrap())];
    let other = Receiver::call(scene.net.now(), options, Rng::from_seed(9), PORT, &to).unwrap();
    let second = scene.net.add(Node::Sink(Box::new(Sink::of(other))), ["10.0.0.3:9899"]);
    scene.net.connect((scene.source, 0), (second, 0), Duplex::both(link()));
    let outputs = |scene: &Scene| match scene.net.node(second) {
        Node::Sink(sink) => sink.outputs.len(),
        Node::Source(_) => unreachable!("this node is a sink"),
    };
    scene.net.run_for(ms(6_000));
    assert_eq!(outputs(&scene), 0);
    assert!(on_time(scene.sink()) > 0.999);
    scene.set_down(true);
    scene.net.run_for(ms(4_500));
    assert!(outputs(&scene) > 0, "the second one has its turn");
}

#[test]
fn a_network_joins_and_another_one_leaves_at_the_receiver() {
    let mut scene = Scene::dialed(SenderOptions::default(), &ReceiverOptions::default(), camera(20), &[link(), link()]);
    scene.net.run_for(ms(START + 3_000));
    let first = Route::new(SocketId(0), SOURCE_ADDRESSES[0].parse().unwrap());
    let id = scene.sink;
    scene.net.with(id, |node, now| {
        let Node::Sink(sink) = node else { unreachable!("this node is the sink") };
        sink.receiver.leave(now, first);
    });
    scene.net.run_for(ms(4_000));
    let sent = scene.source().sender.report(scene.net.now()).paths.iter().map(|it| it.sent_bytes).collect::<Vec<_>>();
    scene.net.run_for(ms(1_000));
    let report = scene.source().sender.report(scene.net.now());
    assert_eq!(report.paths[0].sent_bytes, sent[0], "nothing goes over the path that left");
    scene.net.with(id, |node, now| {
        let Node::Sink(sink) = node else { unreachable!("this node is the sink") };
        sink.receiver.join(now, first).unwrap();
    });
    scene.run_to_end(ms(40_000));
    assert!(on_time(scene.sink()) > 0.999, "{:?}", scene.sink().report().kinds);
}

/// Both ends may be started before there is a network: at boot, or with a modem that is plugged in later.
#[test]
fn an_end_that_dials_waits_for_its_first_network() {
    let mut scene = Scene::dialed(SenderOptions::default(), &ReceiverOptions::default(), camera(12), &[link()]);
    let receiver = Receiver::call(Instant::ZERO, ReceiverOptions::default(), Rng::from_seed(1), PORT, &[]).unwrap();
    let (id, sink) = (scene.sink, scene.sink_mut());
    *sink = Sink::of(receiver);
    scene.net.touch(id);
    scene.net.run_for(ms(START + 3_000));
    assert!(scene.sink().outputs.is_empty(), "there is no network");
    let route = Route::new(SocketId(0), SOURCE_ADDRESSES[0].parse().unwrap());
    scene.net.with(id, |node, now| {
        let Node::Sink(sink) = node else { unreachable!("this node is the sink") };
        sink.receiver.join(now, route).unwrap();
    });
    let start = scene.net.now();
    scene.net.run_for(ms(3_000));
    let first = scene.sink().outputs.first().expect("it flows").0;
    assert!(first.since(start) < ms(1_500), "{:?}", first.since(start));
}

/// Calls that the source's application has not answered yet, each once.
fn calls(scene: &Scene) -> Vec<AssociationId> {
    let calling = |it: &Event| if let Event::Calling { id, .. } = it { Some(*id) } else { None };
    scene.source().events.iter().filter_map(calling).collect()
}

fn with_sender<T>(scene: &mut Scene, act: impl FnOnce(&mut Sender, Instant) -> T) -> T {
    let id = scene.source;
    scene.net.with(id, |node, now| {
        let Node::Source(source) = node else { unreachable!("this node is the source") };
        act(&mut source.sender, now)
    })
}

#[test]
fn a_receiver_gets_nothing_before_the_application_admits_it_and_nothing_once_it_is_dismissed() {
    let options = SenderOptions::default().with(|it| it.ask = true);
    let mut scene = Scene::dialed(options, &ReceiverOptions::default(), camera(30), &[link(), link()]);
    scene.net.run_for(ms(START + 1_500));
    let [id] = calls(&scene)[..] else { panic!("{:?}", scene.source().events) };
    let told = scene.sink().events.iter().any(|it| matches!(it, Event::Connected | Event::Offered(_)));
    assert!(!told && scene.sink().outputs.is_empty(), "{:?}", scene.sink().events);
    with_sender(&mut scene, |sender, now| sender.admit(now, id, None));
    scene.net.run_for(ms(3_000));
    assert!(!scene.sink().outputs.is_empty(), "{:?}", scene.sink().events);
    // An answer that was given already changes nothing.
    with_sender(&mut scene, |sender, now| sender.admit(now, id, Some(Farewell::NotForYou)));
    scene.net.run_for(ms(1_000));
    assert!(scene.net.now().since(scene.sink().outputs.last().unwrap().0) < ms(100));
    with_sender(&mut scene, |sender, now| sender.dismiss(now, Farewell::NotForYou));
    scene.net.run_for(ms(3_000));
    let is_told = |it: &Event| match it {
        Event::Ended { reason, .. } => Farewell::of(reason) == Some(Farewell::NotForYou),
        _ => false,
    };
    assert!(scene.sink().events.iter().any(is_told), "{:?}", scene.sink().events);
    assert!(scene.net.now().since(scene.sink().outputs.last().unwrap().0) > ms(1_000));
    assert!(scene.source().events.iter().any(|it| matches!(it, Event::Lost(_))), "{:?}", scene.source().events);
}

#[test]
fn a_receiver_that_goes_before_the_answer_leaves_the_place_for_the_next_one() {
    let options = SenderOptions::default().with(|it| it.ask = true);
    let mut scene = Scene::dialed(options, &ReceiverOptions::default(), camera(30), &[link()]);
    scene.net.run_for(ms(START + 1_500));
    let gone = calls(&scene)[0];
    let id = scene.sink;
    scene.net.with(id, |node, now| {
        let Node::Sink(sink) = node else { unreachable!("this node is the sink") };
        sink.receiver.abort(now, Farewell::ReceiverStopped);
    });
    restart_sink(&mut scene, &ReceiverOptions::default(), 77);
    scene.net.run_for(ms(4_000));
    with_sender(&mut scene, |sender, now| sender.admit(now, gone, None));
    scene.net.run_for(ms(1_000));
    assert!(scene.sink().outputs.is_empty());
    let last = *calls(&scene).last().unwrap();
    assert_ne!(last, gone);
    with_sender(&mut scene, |sender, now| sender.admit(now, last, None));
    scene.net.run_for(ms(3_000));
    assert!(!scene.sink().outputs.is_empty(), "{:?}", scene.source().events);
}

#[test]
fn of_receivers_that_wait_for_an_answer_there_are_32_at_most() {
    let options = SenderOptions::default().with(|it| it.ask = true);
    let mut scene = Scene::dialed(options, &ReceiverOptions::default(), camera(30), &[link()]);
    scene.net.run_for(ms(START + 1_500));
    for n in 0..40_u16 {
        let options = ReceiverOptions::default().with(|it| it.local_port = 10_000 + n);
        let to = vec![Route::new(SocketId(0), "10.0.0.1:9899".parse().unwrap())];
        let other = Receiver::call(scene.net.now(), options, Rng::from_seed(n.into()), PORT, &to).unwrap();
        let other = scene.net.add(Node::Sink(Box::new(Sink::of(other))), [&*format!("10.9.{n}.1:9899")]);
        scene.net.connect((scene.source, 0), (other, 0), Duplex::both(link()));
    }
    scene.net.run_for(ms(1_500));
    assert_eq!(calls(&scene).len(), 32);
    let away = |it: &&Event| matches!(it, Event::Refused { why: Farewell::Served, .. });
    assert!(scene.source().events.iter().filter(away).count() >= 9, "{:?}", scene.source().events);
}

#[test]
fn a_receiver_that_is_turned_away_is_told_why_and_so_is_who_hears_of_it() {
    let options = SenderOptions::default().with(|it| it.ask = true);
    let mut scene = Scene::dialed(options, &ReceiverOptions::default(), camera(30), &[link()]);
    scene.net.run_for(ms(START + 1_500));
    let id = calls(&scene)[0];
    with_sender(&mut scene, |sender, now| sender.admit(now, id, Some(Farewell::NotForYou)));
    scene.net.run_for(ms(2_000));
    assert!(scene.sink().outputs.is_empty());
    let lost = |it: &Event| match it {
        Event::Lost(reason) | Event::Ended { reason, .. } => Farewell::of(reason) == Some(Farewell::NotForYou),
        _ => false,
    };
    assert!(scene.sink().events.iter().any(lost), "{:?}", scene.sink().events);
}
