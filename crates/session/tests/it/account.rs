//! What both ends say became of a stream's frames adds up at every moment, whoever is killed.

use crate::common::*;
use braidcast_core::Rng;
use braidcast_media::ts::PACKET;
use braidcast_media::{Kind, Run, Unit};
use braidcast_session::{Receiver, ReceiverOptions, Report, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;
use braidcast_sim::testing::cases;
use proptest::prelude::*;

/// What happens to a stream.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The receiver's process is killed; the next one starts after this many ms.
    KillReceiver(u64),
    /// All networks are out for this many ms.
    Dark(u64),
    /// The sender's process is killed for good.
    KillSender,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        4 => (0_u64..6_000).prop_map(Fault::KillReceiver),
        4 => (0_u64..14_000).prop_map(Fault::Dark),
        1 => Just(Fault::KillSender),
    ]
}

fn adds_up(report: &Report, end: &str) {
    for kind in &report.kinds {
        let sum = kind.on_time + kind.late + kind.given_up + kind.missing + kind.not_known_yet;
        assert_eq!(kind.captured, sum, "{end}: {kind:?}");
        let known = kind.captured - kind.not_known_yet;
        assert_eq!(kind.on_time_share, (known > 0).then(|| kind.on_time as f64 / known as f64), "{end}: {kind:?}");
    }
    for kind in &report.recent {
        let sum = kind.on_time + kind.late + kind.given_up + kind.missing;
        assert_eq!(kind.captured, sum, "{end}, lately: {kind:?}");
    }
    assert!(report.recent_seconds <= 11.5, "{end}: {}", report.recent_seconds);
}

/// Runs for `millis`, and looks at both ends each quarter of a second. The sender is gone if `dead`.
fn watch(scene: &mut Scene, millis: u64, dead: bool) {
    for _ in 0..millis.div_ceil(250) {
        scene.net.run_for(ms(250));
        let now = scene.net.now();
        adds_up(&scene.sink().receiver.report(now, CHANNEL), "receiver");
        if !dead {
            adds_up(&scene.source().sender.report(now), "sender");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), max_shrink_iters: 64, ..ProptestConfig::default() })]

    #[test]
    fn at_every_moment_and_whoever_is_killed_the_columns_add_up(
        faults in prop::collection::vec((0_u64..4_000, fault()), 0..4),
        rate in 900_000_u64..4_000_000,
        loss in 0.0..0.1,
    ) {
        let lossy = LinkModel { loss: Loss::Uniform(loss), ..LinkModel::wire(rate, ms(20)) };
        let links = [lossy, LinkModel::wire(700_000, ms(60))];
        let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(60), &links);
        watch(&mut scene, START + 2_000, false);
        let mut dead = false;
        for (after, fault) in faults {
            watch(&mut scene, after, dead);
            match fault {
                Fault::KillReceiver(away) => {
                    scene.set_down(true);
                    watch(&mut scene, away, dead);
                    let id = scene.sink;
                    let Node::Sink(sink) = scene.net.node_mut(id) else { unreachable!("this node is the sink") };
                    **sink = Sink::of(Receiver::new(ReceiverOptions::default(), Rng::from_seed(after)).unwrap());
                    scene.net.touch(id);
                    scene.set_down(false);
                }
                Fault::Dark(time) => {
                    scene.set_down(true);
                    watch(&mut scene, time, dead);
                    let report = (!dead).then(|| scene.source().sender.report(scene.net.now()));
                    if let Some(report) = report.filter(|_| time > 13_000) {
                        let on_time: u64 = report.recent.iter().map(|it| it.on_time).sum();
                        prop_assert_eq!(on_time, 0, "of the last ten seconds nothing came: {:?}", report.recent);
                        prop_assert!(report.unheard_seconds.is_some_and(|it| it > 12.0));
                    }
                    scene.set_down(false);
                }
                Fault::KillSender => {
                    dead = true;
                    scene.set_down(true);
                }
            }
        }
        watch(&mut scene, 12_000, dead);
    }
}

#[test]
fn a_receiver_that_is_back_counts_on_where_the_old_one_stopped() {
    let links = [LinkModel::wire(4_000_000, ms(20)), LinkModel::wire(4_000_000, ms(60))];
    let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), camera(60), &links);
    scene.net.run_for(ms(START + 10_000));
    let id = scene.sink;
    let Node::Sink(sink) = scene.net.node_mut(id) else { unreachable!("this node is the sink") };
    **sink = Sink::of(Receiver::new(ReceiverOptions::default(), Rng::from_seed(5)).unwrap());
    scene.net.touch(id);
    scene.net.run_for(ms(20_000));
    let report = scene.source().sender.report(scene.net.now());
    let sum = |count: fn(&braidcast_session::KindReport) -> u64| report.kinds.iter().map(count).sum::<u64>();
    let (captured, on_time) = (sum(|it| it.captured), sum(|it| it.on_time));
    // Two seconds or so are lost with the old receiver, and two are not known yet.
    assert!(on_time * 100 > captured * 85, "{on_time} of {captured}: {:?}", report.kinds);
    let lately: Vec<_> = report.recent.iter().map(|it| (it.captured, it.on_time)).collect();
    assert!(lately.iter().all(|(captured, on_time)| captured == on_time), "{:?}", report.recent);
}

/// The same stream from an encoder whose frames take long to come: each goes in units of at most 20 packets.
fn in_parts(units: Units) -> Units {
    let mut parts = Vec::new();
    for (ready, unit) in units {
        let (packets, span) = (unit.runs[0].count, unit.last_captured.since(unit.first_captured));
        let most = if unit.kind.is_video() { 20 } else { packets };
        for first in (0..packets).step_by(most as usize) {
            let count = most.min(packets - first);
            let at = |packet: u32| unit.first_captured + span * packet / packets;
            let part = Unit {
                // Later slices may be of another kind.
                kind: if first > 0 && unit.kind == Kind::I { Kind::P } else { unit.kind },
                continues: first > 0,
                more: first + count < packets,
                runs: vec![Run { first: unit.first_index() + u64::from(first), count, null: false }],
                bytes: unit.bytes[first as usize * PACKET..(first + count) as usize * PACKET].to_vec(),
                first_captured: at(first),
                last_captured: at(first + count),
                ..unit.clone()
            };
            parts.push((ready.max(at(first + count)), part));
        }
    }
    parts
}

#[test]
fn a_frame_that_goes_in_parts_counts_once_whole_or_not_at_all() {
    let seconds = 10;
    for rate in [4_000_000, 900_000] {
        let links = [LinkModel::wire(rate, ms(20))];
        let units = in_parts(camera(seconds));
        assert!(units.iter().filter(|(_, unit)| unit.continues).count() > 200);
        let mut scene = Scene::new(SenderOptions::default(), ReceiverOptions::default(), units.clone(), &links);
        scene.run_to_end(ms(30_000));
        let (sink, now) = (scene.sink(), scene.net.now());
        let came: std::collections::BTreeSet<u64> = indexes(&sink.bytes).into_iter().collect();
        for (kind, frames) in [(Kind::I, 10), (Kind::P, 80), (Kind::B, 160)] {
            // By what the frame's first part is.
            let mut whole: Vec<(Kind, bool)> = Vec::new();
            for (_, unit) in units.iter().filter(|(_, unit)| unit.kind.is_video()) {
                let here = unit.packets().all(|(index, _)| came.contains(&index));
                match whole.last_mut().filter(|_| unit.continues) {
                    Some((_, all)) => *all &= here,
                    None => whole.push((unit.kind, here)),
                }
            }
            let whole = whole.into_iter().filter(|it| *it == (kind, true)).count() as u64;
            let line = sink.kind(kind);
            assert_eq!((line.captured, line.on_time + line.late_of_use), (frames, whole), "{rate}: {line:?}");
            let report = scene.source().sender.report(now);
            let line = report.kinds.iter().find(|line| line.kind == kind.name()).unwrap();
            // It hears once a second what came.
            let heard = sink.kind(kind).on_time.saturating_sub(line.on_time);
            assert!(line.captured == frames && heard <= 30, "{rate}: {line:?}");
            let lost = line.late + line.given_up + line.missing;
            assert!(lost == 0 || rate < 1_000_000, "{rate}: {line:?}");
            adds_up(&report, "sender");
        }
    }
}
