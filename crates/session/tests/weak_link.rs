//! A bad link beside a good one, under `earliest-delivery`: both together are no worse than the good one alone.

mod common;

use braidcast_media::Kind;
use braidcast_sctp::SchedulerKind;
use braidcast_session::{ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Loss;
use common::*;

/// A link of so many kbit/s and ms, which loses this share.
fn link((kbit, delay, loss): (u64, u64, f64)) -> LinkModel {
    LinkModel { queue: "300ms".parse().unwrap(), loss: Loss::Uniform(loss), ..LinkModel::wire(kbit * 1000, ms(delay)) }
}

/// The share of frames on time, of 30 s of film, %.
fn on_time(seed: u64, links: &[LinkModel]) -> f64 {
    let send = SenderOptions { scheduler: SchedulerKind::EarliestDelivery, ..SenderOptions::default() };
    let mut scene = Scene::seeded(seed, send.transport(), send, ReceiverOptions::default(), film(30), links);
    scene.run_to_end(ms(60_000));
    let kinds = [Kind::I, Kind::P, Kind::B].map(|kind| scene.sink().kind(kind));
    let sum = |of: fn(&braidcast_session::KindReport) -> u64| kinds.iter().map(of).sum::<u64>() as f64;
    100.0 * sum(|kind| kind.on_time) / sum(|kind| kind.captured)
}

#[test]
fn a_weak_link_drags_no_good_one_down() {
    let good = [(8000, 20, 0.0), (4000, 40, 0.0), (6000, 10, 0.0)];
    let weak = [(1000, 150, 0.05), (500, 100, 0.02), (2000, 200, 0.1)];
    for (n, (good, weak)) in good.into_iter().zip(weak).enumerate() {
        let alone = on_time(n as u64 + 1, &[link(good)]);
        let both = on_time(n as u64 + 1, &[link(good), link(weak)]);
        println!("{good:?} alone {alone:.2} %, with {weak:?} {both:.2} %");
        assert!(both >= alone - 0.5, "{good:?} alone {alone:.2} %, with {weak:?} {both:.2} %");
    }
}
