//! What an encoder is told, and what becomes of it: frames that come on time, at nearly the rate that the paths carry.

use crate::common::*;
use braidcast_core::Instant;
use braidcast_media::Kind;
use braidcast_session::{RateLimits, ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::{Outage, Rate, parse};

/// A link of this rate, which may change, so many ms away.
fn link(rate: &str, delay: u64) -> LinkModel {
    let rate = parse::rate_schedule(rate).unwrap();
    LinkModel { rate: Rate::Schedule(rate), queue: "1s".parse().unwrap(), delay: ms(delay), ..LinkModel::default() }
}

/// Encodes for `seconds`, and sends.
fn run(seconds: u64, fixed: Option<u64>, limits: RateLimits, links: &[LinkModel]) -> Scene {
    let send = SenderOptions::default().with(|it| it.encoder = limits);
    let mut scene = Scene::new(send, ReceiverOptions::default(), Vec::new(), links);
    scene.source_mut().encoder = Some(Encoder::of(seconds, fixed));
    scene.run_to_end(ms(seconds * 1000 + 20_000));
    let it = encoder(&scene);
    let rate = it.bits as f64 / seconds as f64 / 1e6;
    println!("{:.2} % on time, {} left out, {rate:.2} Mbit/s on average", on_time(&scene), it.skipped);
    scene
}

/// Frames on time of all that were to be, %: those that were not encoded count as missed.
fn on_time(scene: &Scene) -> f64 {
    let encoder = encoder(scene);
    100.0 * scene.sink().kind(Kind::P).on_time as f64 / (encoder.made + encoder.skipped) as f64
}

fn encoder(scene: &Scene) -> &Encoder {
    scene.source().encoder.as_ref().unwrap()
}

/// Insists on the mean rate told between two times, s after the start, Mbit/s.
fn told(scene: &Scene, (from, to): (u64, u64), (least, most): (f64, f64)) {
    let rate = encoder(scene).mean_rate(from * 1000, to * 1000);
    println!("{from} to {to} s: {rate:.2} Mbit/s");
    assert!((least..most).contains(&rate), "from {from} to {to} s: {rate:.2} Mbit/s is not within {least} and {most}");
}

#[test]
fn the_rate_follows_a_path_down_and_up_again() {
    // The camera begins after 3 s.
    let links = || [link("0s:4mbit,23s:1mbit,43s:4mbit", 30)];
    let scene = run(60, None, RateLimits::default(), &links());
    told(&scene, (8, 20), (3.0, 4.4));
    told(&scene, (21, 40), (0.65, 1.1));
    told(&scene, (50, 60), (3.0, 4.4));
    let just_after = Instant::from_millis(23_250);
    let next = encoder(&scene).told.iter().find(|(at, _)| *at >= just_after).unwrap().1;
    assert!(next.next_frame_bits < 48_000, "a quarter of a second after the fall: {next:?}");
    let (follows, fixed) = (on_time(&scene), on_time(&run(60, Some(2_400_000), RateLimits::default(), &links())));
    assert!(follows > 98.0 && fixed < 85.0, "{follows:.2} %, at a fixed rate {fixed:.2} %");
}

#[test]
fn of_two_paths_one_dies_and_comes_back() {
    let outage = Outage::window(Instant::from_millis(23_000), Instant::from_millis(43_000));
    let dies = LinkModel { outages: vec![outage], ..link("3mbit", 20) };
    let scene = run(60, None, RateLimits::default(), &[link("2mbit", 40), dies]);
    told(&scene, (8, 20), (3.7, 5.5));
    told(&scene, (22, 40), (1.2, 2.2));
    told(&scene, (50, 60), (3.0, 5.5));
    assert!(on_time(&scene) > 97.5, "{:.2} %", on_time(&scene));
}

#[test]
fn nothing_is_asked_that_the_encoder_cannot_do() {
    let limits = RateLimits::new(500_000, 2_000_000);
    let wide = run(20, None, limits, &[link("8mbit", 30)]);
    let all = |scene: &Scene| encoder(scene).told.iter().map(|(_, told)| *told).collect::<Vec<_>>();
    for told in all(&wide) {
        assert!(told.rate <= 2e6 && told.next_frame_bits <= 100_000 && !told.below_least, "{told:?}");
    }
    assert!(all(&wide).last().unwrap().is_floor, "nothing has limited it");
    told(&wide, (8, 20), (1.99, 2.01));
    let narrow = run(20, None, limits, &[link("300kbit", 30)]);
    assert!(all(&narrow).iter().all(|told| told.rate >= 5e5));
    assert!(all(&narrow).iter().any(|told| told.below_least), "it is said that the path carries too little");
    let left_out = all(&narrow).iter().filter(|told| told.next_frame_bits == 0).count();
    assert!(left_out > 0 && on_time(&narrow) > 90.0, "{left_out} left out, {:.2} %", on_time(&narrow));
}
