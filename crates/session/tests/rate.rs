//! What an encoder is told, and what becomes of it: frames that come on time, at nearly the rate that the paths carry.

mod common;

use braidcast_media::Kind;
use braidcast_session::{RateLimits, ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::{Outage, Rate, parse};
use common::*;

/// A link of this rate, which may change, ms away.
fn link(rate: &str, delay: u64) -> LinkModel {
    let rate = parse::rate_schedule(rate).unwrap();
    LinkModel { rate: Rate::Schedule(rate), queue: "1s".parse().unwrap(), delay: ms(delay), ..LinkModel::default() }
}

/// What became of a stream: the encoder, and frames on time of all that were to be, %.
fn run(seconds: u64, fixed: Option<u64>, limits: RateLimits, links: &[LinkModel]) -> Scene {
    let send = SenderOptions { encoder: limits, ..SenderOptions::default() };
    let mut scene = Scene::new(send, ReceiverOptions::default(), Vec::new(), links);
    scene.source_mut().encoder = Some(Encoder::of(seconds, fixed));
    scene.run_to_end(ms(seconds * 1000 + 20_000));
    scene
}

fn on_time(scene: &Scene) -> f64 {
    let encoder = scene.source().encoder.as_ref().unwrap();
    let frames = scene.sink().kind(Kind::P);
    100.0 * frames.on_time as f64 / (encoder.made + encoder.skipped) as f64
}

fn encoder(scene: &Scene) -> &Encoder {
    scene.source().encoder.as_ref().unwrap()
}

fn show(name: &str, scene: &Scene, seconds: u64) {
    let it = encoder(scene);
    println!("{name}: {:.2} % on time, {} skipped, mean {:.2} Mbit/s", on_time(scene), it.skipped, it.bits as f64 / seconds as f64 / 1e6);
    if std::env::var_os("SHOW").is_some() {
        for (at, told) in &it.told {
            println!("{:.2} {:.2} {} {:.0} {}", at.as_micros() as f64 / 1e6 - 3.0, told.rate / 1e6, told.next_frame_bits, told.waiting_ms, told.is_floor);
        }
    }
}

#[test]
fn the_rate_follows_a_path_down_and_up_again() {
    let link = || [link("0s:4mbit,23s:1mbit,43s:4mbit", 30)];
    let scene = run(60, None, RateLimits::default(), &link());
    show("4, 1, 4", &scene, 60);
    let fixed = run(60, Some(2_000_000), RateLimits::default(), &link());
    show("fixed", &fixed, 60);
}

#[test]
fn of_two_paths_one_dies() {
    let dead = LinkModel { outages: vec![Outage::window(braidcast_core::Instant::from_millis(23_000), braidcast_core::Instant::from_millis(43_000))], ..link("0s:3mbit", 20) };
    let scene = run(60, None, RateLimits::default(), &[link("0s:2mbit", 40), dead]);
    show("two", &scene, 60);
}

#[test]
fn nothing_is_asked_that_the_encoder_cannot_do() {
    let scene = run(30, None, RateLimits { least: 500_000, greatest: 2_000_000 }, &[link("0s:8mbit", 30)]);
    show("great", &scene, 30);
    let scene = run(30, None, RateLimits { least: 500_000, greatest: 2_000_000 }, &[link("0s:300kbit", 30)]);
    show("little", &scene, 30);
}

#[test]
#[ignore]
fn explore() {
    let words = std::env::var("LINKS").unwrap();
    let links: Vec<LinkModel> = words.split(';').map(|it| {
        let (rate, delay) = it.split_once('@').unwrap();
        match rate.strip_prefix("trace:") {
            Some(path) => LinkModel { rate: Rate::Trace(std::sync::Arc::new(braidcast_sim::link::Trace::load(path.as_ref()).unwrap())), ..link("1mbit", delay.parse().unwrap()) },
            None => link(rate, delay.parse().unwrap()),
        }
    }).collect();
    let seconds = std::env::var("SECONDS_").map_or(60, |it| it.parse().unwrap());
    let fixed = std::env::var("FIXED").ok().map(|it| (it.parse::<f64>().unwrap() * 1e6) as u64);
    let scene = run(seconds, fixed, RateLimits::default(), &links);
    show(&words, &scene, seconds);
}
