//! Streams of several elementary streams, and of high frame rates, that are more than the network
//! carries: what is lost of one must cost only what needs it.

use crate::common::*;
use braidcast_core::Instant;
use braidcast_media::{Kind, Run, Unit};
use braidcast_session::{ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;
use std::collections::BTreeSet;

const SECONDS: u64 = 20;
const RUNS: u64 = 4;
const VIDEO: u16 = 256;

/// A frame: when it is captured in ms, what it is, whether others need it, packets.
type Shot = (u64, Kind, bool, u32);

/// Video with `rate` frames a second in groups of a second, the first of which begins after `phase`
/// frames: I, then P, a B frame that others need, two that none does. `packets` of an I frame;
/// others have a fraction.
fn video(rate: u64, phase: u64, packets: u32) -> Vec<Shot> {
    let shot = |n: u64| {
        let at = n * 1000 / rate;
        match (n + phase) % rate {
            k if k == 0 || n == 0 => (at, Kind::I, true, packets),
            k if k % 4 == 1 => (at, Kind::P, true, packets / 4),
            k if k % 4 == 2 => (at, Kind::B, true, packets / 8),
            _ => (at, Kind::B, false, packets / 12),
        }
    };
    (0..SECONDS * rate).map(shot).collect()
}

/// What is no video: so many packets each so many ms.
fn other(every: u64, packets: u32) -> Vec<Shot> {
    (0..SECONDS * 1000 / every).map(|n| (n * every, Kind::Other, true, packets)).collect()
}

fn multiplexed(streams: &[(u16, Vec<Shot>)]) -> Units {
    let all = streams.iter().flat_map(|(pid, shots)| shots.iter().map(|shot| (*pid, *shot)));
    let mut all: Vec<(u16, Shot)> = all.collect();
    all.sort_by_key(|(pid, (at, ..))| (*at, *pid));
    let mut first = 0;
    let unit = |(pid, (at, kind, reference, packets)): (u16, Shot)| {
        let captured = Instant::from_millis(START + at);
        let unit = Unit {
            kind,
            reference,
            continues: false,
            more: false,
            pid,
            runs: vec![Run { first, count: packets, null: false }],
            bytes: (first..first + u64::from(packets)).flat_map(packet).collect(),
            first_captured: captured,
            last_captured: captured + ms(5),
            pts: None,
            dts: None,
        };
        first += u64::from(packets);
        (captured + ms(5), unit)
    };
    all.into_iter().map(unit).collect()
}

/// The share of frames of each elementary stream that can be shown, as all that they need came too,
/// over some runs.
fn shown(streams: &[(u16, Vec<Shot>)], links: &[LinkModel]) -> Vec<f64> {
    let mut sums = vec![0.0; streams.len()];
    for seed in 1..=RUNS {
        let (units, send) = (multiplexed(streams), SenderOptions::default());
        // What the queue does is asked, which slices of the output change by chance, as any other event does.
        let receive = ReceiverOptions::default().with(|it| it.slice = ms(0));
        let mut scene = Scene::seeded(seed, send.transport(), send, receive, units.clone(), links);
        scene.run_to_end(ms(60_000));
        let came: BTreeSet<u64> = indexes(&scene.sink().bytes).into_iter().collect();
        for ((pid, _), sum) in streams.iter().zip(&mut sums) {
            let of = units.iter().map(|(_, unit)| unit).filter(|unit| unit.pid == *pid);
            *sum += share_shown(&of.collect::<Vec<_>>(), &came) / RUNS as f64;
        }
    }
    sums
}

fn share_shown(units: &[&Unit], came: &BTreeSet<u64>) -> f64 {
    let (mut chain, mut reference, mut shown) = (false, false, 0);
    for unit in units {
        let whole = unit.packets().all(|(index, _)| came.contains(&index));
        let good = whole
            && match unit.kind {
                Kind::P => chain,
                Kind::B if unit.reference => chain,
                Kind::B => reference,
                _ => true,
            };
        if matches!(unit.kind, Kind::I | Kind::P) {
            (chain, reference) = (good, good);
        } else if unit.reference {
            reference = good;
        }
        shown += usize::from(good);
    }
    shown as f64 / units.len() as f64
}

fn links(links: [(u64, u64, f64); 2]) -> Vec<LinkModel> {
    let link = |(kbit, delay, loss): (u64, u64, f64)| LinkModel {
        queue: "30p".parse().unwrap(),
        loss: Loss::Uniform(loss),
        ..LinkModel::wire(kbit * 1000, ms(delay))
    };
    links.map(link).to_vec()
}

/// Returns two links, of `kbit` kbit/s each, which carry less than the camera makes.
fn narrow(kbit: [u64; 2]) -> Vec<LinkModel> {
    links([(kbit[0], 15, 0.0), (kbit[1], 60, 0.0)])
}

#[test]
fn a_lost_frame_of_50_a_second_takes_those_with_it_that_need_it_and_no_others() {
    let shown = shown(&[(VIDEO, video(50, 0, 130))], &narrow([600, 400]));
    // 38 % where what needs a lost frame was looked for by its expiry.
    assert!(shown[0] > 0.44, "{shown:?}");
}

#[test]
fn subtitles_data_and_clocks_are_no_frames_of_the_video() {
    // A clock reference on its own PID, KLV, subtitles, and what nobody knows.
    let others = [(300, other(20, 1)), (301, other(40, 2)), (302, other(500, 8)), (303, other(100, 4))];
    let streams: Vec<_> = [(VIDEO, video(25, 0, 220))].into_iter().chain(others).collect();
    let shown = shown(&streams, &narrow([800, 500]));
    // 49 % of the video in both cases, but 62 to 75 % of the others where each frame that was
    // dropped made them hopeless.
    assert!(shown[0] > 0.44 && shown[1..].iter().all(|it| *it > 0.8), "{shown:?}");
}

#[test]
fn two_videos_lose_each_its_own_frames() {
    let streams = [(VIDEO, video(25, 0, 132)), (VIDEO + 1, video(25, 12, 132))];
    let shown = shown(&streams, &narrow([800, 500]));
    // 38 and 31 % where a loss of one was a loss of both.
    assert!(shown[0] > 0.5 && shown[1] > 0.45, "{shown:?}");
}
