//! Redundancy in live streams: what is repeated comes too late, or nothing is lost at all.

use crate::common::*;
use braidcast_media::Kind;
use braidcast_session::{ReceiverOptions, Redundancy, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;

/// So many seconds of the camera over two such links, with 300 ms for a frame to be there.
fn stream(seconds: u64, redundancy: Redundancy, link: &LinkModel) -> Scene {
    play(seconds, camera(seconds), redundancy, [link.clone(), link.clone()])
}

fn play(seconds: u64, units: Units, redundancy: Redundancy, links: [LinkModel; 2]) -> Scene {
    seeded(1, seconds, units, redundancy, links)
}

fn seeded(seed: u64, seconds: u64, units: Units, redundancy: Redundancy, links: [LinkModel; 2]) -> Scene {
    let send = SenderOptions::default().with(|it| {
        it.latency = ms(300);
        it.redundancy = redundancy;
        it.queue = None;
    });
    let mut scene = Scene::seeded(seed, send.transport(), send, ReceiverOptions::default(), units, &links);
    scene.run_to_end(ms(1000 * seconds + 20_000));
    scene
}

/// The share of the frames that were whole when they were due.
fn on_time(scene: &Scene) -> f64 {
    let kinds = [Kind::I, Kind::P, Kind::B].map(|kind| scene.sink().kind(kind));
    let frames: u64 = kinds.iter().map(|it| it.captured).sum();
    kinds.iter().map(|it| it.on_time_share.unwrap() * it.captured as f64).sum::<f64>() / frames as f64
}

fn sent_bytes(scene: &Scene) -> u64 {
    scene.source().sender.report(scene.net.now()).paths.iter().map(|path| path.sent_bytes).sum()
}

/// 10 Mbit/s, 100 ms away.
fn far(loss: f64) -> LinkModel {
    LinkModel { loss: Loss::Uniform(loss), ..LinkModel::wire(10_000_000, ms(100)) }
}

#[test]
fn auto_brings_on_time_what_repeating_alone_brings_too_late() {
    let [without, with] = [Redundancy::None, Redundancy::Auto].map(|it| on_time(&stream(60, it, &far(0.02))));
    assert!(without < 0.95, "{without}");
    assert!(with >= 0.99, "{with}");
}

#[test]
fn large_pictures_come_on_time_too() {
    // As the demo's clip: frames that all others need are 58 kB, forty packets, and take 70 ms to be read.
    let [without, with] = [Redundancy::None, Redundancy::Auto].map(|redundancy| {
        let scene = play(240, film(240), redundancy, [far(0.02), far(0.02)]);
        let large = scene.sink().kind(Kind::I).on_time_share.unwrap();
        (on_time(&scene), large)
    });
    assert!(without.0 < 0.9 && without.1 < 0.3, "{without:?}");
    assert!(with.0 >= 0.99 && with.1 >= 0.9, "{with:?}");
}

#[test]
fn the_first_seconds_miss_little() {
    // Windows begin small, and the first loss that stays ends their quick growth. The first frame
    // is too large for them in any case.
    let missed = |seed| {
        let scene = seeded(seed, 8, film(8), Redundancy::Auto, [far(0.02), far(0.02)]);
        (1.0 - on_time(&scene)) * 200.0
    };
    let missed: Vec<f64> = (1..=40).map(missed).collect();
    let mean = missed.iter().sum::<f64>() / missed.len() as f64;
    println!("{mean:.1} of 200 frames missed: {missed:.0?}");
    assert!(mean < 8.0 && missed.iter().all(|&it| it < 40.0), "of 200 frames {missed:.0?}");
}

#[test]
fn a_clean_path_beside_a_lossy_one_calls_for_no_redundancy() {
    // One loss at a bad moment counts for much in a minute.
    let run = |losses: [f64; 2]| {
        let scenes = (1..=5).map(|seed| seeded(seed, 60, camera(60), Redundancy::Auto, losses.map(far)));
        let (came, bytes): (Vec<_>, Vec<_>) = scenes.map(|scene| (on_time(&scene), sent_bytes(&scene) as f64)).unzip();
        assert!(came.iter().sum::<f64>() / 5.0 >= 0.99, "{losses:?}: {came:?}");
        bytes.iter().sum::<f64>()
    };
    let [none, one, both] = [[0.0, 0.0], [0.0, 0.04], [0.04, 0.04]].map(run);
    let (one, both) = (one / none - 1.0, both / none - 1.0);
    assert!(one < 0.75 * both, "{one} {both}");
}

#[test]
fn auto_costs_next_to_nothing_where_nothing_is_lost_and_nothing_where_repeating_is_in_time() {
    for (link, most) in [(far(0.0), 1.01), (LinkModel::wire(10_000_000, ms(10)), 1.0)] {
        let [without, with] = [Redundancy::None, Redundancy::Auto].map(|it| sent_bytes(&stream(60, it, &link)));
        let ratio = with as f64 / without as f64;
        assert!(ratio <= most, "{with} bytes for {without}, {ratio}");
    }
}

#[test]
fn a_code_of_ones_own_choice_is_used_all_the_time() {
    let code = "tetrys:5,4,100".parse().unwrap();
    let [without, with] = [Redundancy::None, code].map(|it| stream(20, it, &far(0.03)));
    let (came, sent) = (on_time(&with), [&with, &without].map(sent_bytes));
    // The code adds a quarter; without it some hundredths are sent again or copied.
    assert!(came >= 0.98 && sent[0] as f64 > 1.15 * sent[1] as f64, "{came} {sent:?}");
}
