//! Files, and who may send.

use crate::common::*;
use braidcast_core::{Instant, Rng};
use braidcast_session::{Event, Farewell, ReceiverOptions, SenderOptions};
use braidcast_sim::link::Loss;
use braidcast_sim::{Duplex, LinkModel};

fn reliable() -> SenderOptions {
    SenderOptions::default().with(|it| it.reliable = true)
}

fn lossy() -> LinkModel {
    LinkModel { loss: Loss::Uniform(0.05), ..LinkModel::wire(20_000_000, ms(20)) }
}

#[test]
fn a_file_through_five_percent_loss_is_the_same_file() {
    let (bytes, units) = file(300);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units, &[lossy(), lossy()]);
    scene.run_to_end(ms(120_000));
    assert!(scene.sink().bytes == bytes, "{} of {} bytes", scene.sink().bytes.len(), bytes.len());
    assert!(scene.source().events.contains(&Event::Room), "the sender was never full, so back-pressure was not tested");
}

#[test]
fn a_live_stream_sent_reliably_is_put_back_into_the_order_of_its_packets() {
    let units = camera(3);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units.clone(), &[lossy()]);
    scene.run_to_end(ms(60_000));
    let packets: u64 = units.iter().map(|(_, unit)| u64::from(unit.runs[0].count)).sum();
    assert!(indexes(&scene.sink().bytes).into_iter().eq(0..packets));
}

#[test]
fn a_path_cut_and_back_in_the_middle_of_a_file_costs_nothing_of_it() {
    let (bytes, units) = file(1000);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units, &[lossy(), lossy()]);
    let (there, back) = scene.links[0];
    for (at, down) in [(1_500, true), (6_000, false)] {
        scene.net.at(Instant::from_millis(at), move |net| {
            net.set_down(there, down);
            net.set_down(back, down);
        });
    }
    scene.run_to_end(ms(300_000));
    assert!(scene.sink().bytes == bytes, "{} of {} bytes", scene.sink().bytes.len(), bytes.len());
}

/// A second sender begins after half a second.
fn with_a_rival(keep: bool) -> (Scene, Vec<u8>) {
    let (bytes, units) = file(400);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default().with(|it| it.keep = keep), units, &[lossy()]);
    scene.net.run_for(ms(200));
    let (_, units) = file(400);
    let rival = source(scene.net.now(), &Rng::from_seed(1_000_002), &reliable(), units, 1);
    let rival = scene.net.add(rival, ["10.2.0.9:9899"]);
    scene.net.connect((rival, 0), (scene.sink, 0), Duplex::both(lossy()));
    (scene, bytes)
}

#[test]
fn a_second_sender_is_turned_away() {
    let (mut scene, bytes) = with_a_rival(false);
    scene.run_to_end(ms(60_000));
    assert!(scene.sink().events.iter().any(|event| matches!(event, Event::Refused { why: Farewell::Busy, .. })));
    assert!(scene.sink().bytes == bytes);
}

#[test]
fn a_sender_that_fell_silent_makes_room_for_the_next() {
    let (_, units) = file(3000);
    let mut scene = Scene::new(reliable(), ReceiverOptions::default(), units, &[lossy()]);
    let (there, back) = scene.links[0];
    scene.net.run_for(ms(2_000));
    scene.net.set_down(there, true);
    scene.net.set_down(back, true);
    scene.net.run_for(ms(4_000));
    let (bytes, units) = file(100);
    let next = source(scene.net.now(), &Rng::from_seed(1_000_002), &reliable(), units, 1);
    let next = scene.net.add(next, ["10.2.0.9:9899"]);
    scene.net.connect((next, 0), (scene.sink, 0), Duplex::both(lossy()));
    scene.net.run_for(ms(20_000));
    let ends = scene.sink().events.iter().filter_map(|event| match event {
        Event::Ended { complete, .. } => Some(*complete),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [false, true], "{:?}", scene.sink().events);
    assert!(scene.sink().bytes.ends_with(&bytes));
}

#[test]
fn with_keep_a_second_sender_waits_for_its_turn() {
    let (mut scene, bytes) = with_a_rival(true);
    scene.run_to_end(ms(60_000));
    scene.net.run_for(ms(30_000));
    let ends = scene.sink().events.iter().filter(|event| matches!(event, Event::Ended { complete: true, .. })).count();
    assert_eq!(ends, 2, "{:?}", scene.sink().events);
    assert!(scene.sink().bytes == [&bytes[..], &bytes[..]].concat());
}
