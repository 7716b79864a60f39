//! Redundancy in live streams: what is repeated comes too late, or nothing is lost at all.

mod common;

use braidcast_media::Kind;
use braidcast_session::{ReceiverOptions, Redundancy, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;
use common::*;

/// So many seconds of the camera over two such links, with 300 ms for a frame to be there.
fn stream(seconds: u64, redundancy: Redundancy, link: &LinkModel) -> Scene {
    let send = SenderOptions { latency: ms(300), redundancy, ..SenderOptions::default() };
    let links = [link.clone(), link.clone()];
    let mut scene = Scene::new(send, ReceiverOptions::default(), camera(seconds), &links);
    scene.run_to_end(ms(1000 * seconds + 20_000));
    scene
}

/// The share of the pictures that were whole when they were due.
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
    assert!(without < 0.9, "{without}");
    assert!(with >= 0.99, "{with}");
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
    assert!(on_time(&with) >= 0.99 && sent_bytes(&with) as f64 > 1.2 * sent_bytes(&without) as f64);
}
