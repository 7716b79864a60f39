//! A live stream that is more than the network carries: does a send queue choose better than the priorities of streams?

use crate::common::*;
use braidcast_media::Kind;
use braidcast_sctp::{Method, QueueScope};
use braidcast_session::{ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;
use std::collections::BTreeSet;
use std::sync::LazyLock;

const KINDS: [Kind; 5] = [Kind::Tables, Kind::Audio, Kind::I, Kind::P, Kind::B];

/// Links by kbit/s, ms and share of loss, which queue 30 packets. The camera makes 1.4 Mbit/s.
fn links(links: [(u64, u64, f64); 2]) -> [LinkModel; 2] {
    links.map(|(kbit, delay, loss)| LinkModel {
        queue: "30p".parse().unwrap(),
        loss: Loss::Uniform(loss),
        ..LinkModel::wire(kbit * 1000, ms(delay))
    })
}

/// Runs of a scene: one frame at a bad moment takes a second of others with it.
const RUNS: u64 = 12;

/// The share of units on time, kind by kind, and of frames that can be shown, as all that they
/// need came too: on the average.
fn shares(queue: Option<(Method, QueueScope)>, links: &[LinkModel]) -> [f64; 6] {
    let mut mean = [0.0; 6];
    for seed in 1..=RUNS {
        let one = run(seed, queue, links);
        mean.iter_mut().zip(one).for_each(|(mean, one)| *mean += one / RUNS as f64);
    }
    mean
}

fn run(seed: u64, queue: Option<(Method, QueueScope)>, links: &[LinkModel]) -> [f64; 6] {
    let send = SenderOptions::default().with(|it| it.queue = queue.map(|(method, _)| method));
    let scope = queue.map_or_else(QueueScope::default, |(_, scope)| scope);
    let sctp = send.transport().with(|it| it.queue.scope = scope);
    let units = camera(20);
    let mut scene = Scene::seeded(seed, sctp, send, ReceiverOptions::default(), units.clone(), links);
    scene.run_to_end(ms(60_000));
    let came: BTreeSet<u64> = indexes(&scene.sink().bytes).into_iter().collect();
    let mut pictures: Vec<_> =
        units.iter().map(|(_, unit)| unit).filter(|unit| matches!(unit.kind, Kind::I | Kind::P | Kind::B)).collect();
    pictures.sort_by_key(|unit| unit.first_captured);
    let (mut shown, mut lean_on) = (0, false);
    for unit in &pictures {
        let whole = unit.packets().all(|(index, _)| came.contains(&index));
        let good = whole && (lean_on || unit.kind == Kind::I);
        if unit.kind != Kind::B {
            lean_on = good;
        }
        shown += usize::from(good);
    }
    let [a, b, c, d, e] = KINDS.map(|kind| scene.sink().kind(kind).on_time_share.unwrap_or_default());
    [a, b, c, d, e, shown as f64 / pictures.len() as f64]
}

/// What came of a scene: with the priorities of streams alone, and with the queue.
struct Outcome {
    name: &'static str,
    without: [f64; 6],
    with: [f64; 6],
}

/// All scenes, run once for all tests.
fn outcomes() -> &'static [Outcome] {
    static OUTCOMES: LazyLock<Vec<Outcome>> = LazyLock::new(|| {
        let scenes = [
            ("unlike", links([(800, 15, 0.0), (500, 150, 0.0)])),
            ("lossy", links([(800, 15, 0.02), (500, 40, 0.01)])),
            ("nearly enough", links([(900, 15, 0.01), (600, 60, 0.01)])),
            ("one bad", links([(1100, 15, 0.0), (200, 80, 0.01)])),
            ("enough", links([(1100, 15, 0.01), (700, 80, 0.01)])),
        ];
        let outcome = |(name, links): (&'static str, [LinkModel; 2])| {
            let tell = |what: &str, shares: [f64; 6]| {
                println!("{name:13} {what:10} tables, audio, I, P, B on time, frames shown: {shares:.4?}");
                shares
            };
            let without = tell("streams", shares(None, &links));
            let with = tell("by-worth", shares(Some((Method::ByWorth, QueueScope::Alone)), &links));
            Outcome { name, without, with }
        };
        scenes.into_iter().map(outcome).collect()
    });
    &OUTCOMES
}

#[test]
fn more_pictures_come_in_time_where_the_queue_decides_and_no_sound_is_lost() {
    let mut sums = [[0.0; 2]; 2];
    for Outcome { name, without, with } in outcomes() {
        for (what, shares) in [("streams", without), ("by-worth", with)] {
            // Of what goes over both paths one in 5000 is lost on both, where they lose 2 and 1 %,
            // and has to be repeated in time.
            assert!(shares[..2].iter().all(|it| *it > 0.999), "{name}, {what}: tables and audio");
        }
        assert!(with[5] >= without[5] - 0.02, "{name}: frames shown");
        for (sum, shares) in sums.iter_mut().zip([without, with]) {
            *sum = [sum[0] + shares[2], sum[1] + shares[5]];
        }
    }
    let [without, with] = sums;
    assert!(
        with[0] > without[0] && with[1] > without[1],
        "I frames and frames shown, over all scenes: {without:?}, {with:?}"
    );
}

/// As it was until commit 470c1ce9.
#[test]
fn no_scene_has_fewer_i_frames_on_time_with_the_queue() {
    for Outcome { name, without, with } in outcomes() {
        assert!(with[2] >= without[2] - 0.05, "{name}: I frames");
    }
}

/// As it was until commit 79730a07.
#[test]
fn no_scene_has_fewer_p_frames_on_time_with_the_queue() {
    for Outcome { name, without, with } in outcomes() {
        assert!(with[3] >= without[3] - 0.02, "{name}: P frames");
    }
}

/// As it was until commit 016f3848.
#[test]
fn no_scene_shows_fewer_frames_with_the_queue() {
    for Outcome { name, without, with } in outcomes() {
        assert!(with[5] >= without[5] - 0.02, "{name}: frames shown");
    }
}
