//! A bad link beside a good one, under `earliest-delivery`: both together are no worse than the good one alone.

use crate::common::*;
use braidcast_media::Kind;
use braidcast_session::{ReceiverOptions, Redundancy, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::{Loss, Rate, parse};
use braidcast_sim::testing::cases;
use proptest::prelude::*;

/// A link by kbit/s and ms, which loses this share.
fn link((kbit, delay, loss): (u64, u64, f64)) -> LinkModel {
    LinkModel { queue: "300ms".parse().unwrap(), loss: Loss::Uniform(loss), ..LinkModel::wire(kbit * 1000, ms(delay)) }
}

/// The share of frames on time, of 30 s of film, %.
fn on_time(seed: u64, links: &[LinkModel]) -> f64 {
    on_time_with(SenderOptions::default(), seed, links)
}

fn on_time_with(send: SenderOptions, seed: u64, links: &[LinkModel]) -> f64 {
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

#[test]
fn a_far_link_that_loses_packets_drags_no_clean_one_down() {
    // What it loses can be sent again in time, but for the end of a large frame: that is for redundancy to make up for.
    for (clean, lossy) in [((2000, 134, 0.0), (6600, 129, 0.037)), ((3800, 126, 0.0), (5600, 132, 0.045))] {
        let mean = |links: &[LinkModel]| (1..=3).map(|seed| on_time(seed, links)).sum::<f64>() / 3.0;
        let (alone, both) = (mean(&[link(clean)]), mean(&[link(clean), link(lossy)]));
        println!("{clean:?} alone {alone:.2} %, with {lossy:?} {both:.2} %");
        assert!(both >= alone - 0.5 && both > 97.0, "{clean:?} alone {alone:.2} %, with {lossy:?} {both:.2} %");
    }
}

/// Reference frames on time, of 40 s of film over `links`, and how many there were.
fn references_on_time(seed: u64, links: &[LinkModel], reinject: bool) -> (u64, u64) {
    let send = SenderOptions::default().with(|it| {
        it.reinject = reinject;
        it.redundancy = Redundancy::None;
    });
    let mut scene = Scene::seeded(seed, send.transport(), send, ReceiverOptions::default(), film(40), links);
    scene.run_to_end(ms(80_000));
    let kinds = [Kind::I, Kind::P].map(|kind| scene.sink().kind(kind));
    (kinds.iter().map(|kind| kind.on_time).sum(), kinds.iter().map(|kind| kind.captured).sum())
}

fn sum_of_runs(runs: u64, links: &[LinkModel], reinject: bool) -> (u64, u64) {
    let runs = (1..=runs).map(|seed| references_on_time(seed, links, reinject));
    runs.fold((0, 0), |(on_time, all), (more, of)| (on_time + more, all + of))
}

#[test]
fn what_two_links_should_have_answered_for_is_copied_before_its_loss_is_known() {
    // The quick one stops now and then. By when the far one's losses are known it is too late; and
    // what is merely late there would, were it all that is copied, cost more than it saves.
    let outage = "every:2s,275ms,hold".parse().unwrap();
    let links = [LinkModel { outages: vec![outage], ..link((1300, 10, 0.0)) }, link((1500, 100, 0.05))];
    let [(with, all), (without, _)] = [true, false].map(|reinject| sum_of_runs(16, &links, reinject));
    println!("{with} of {all} on time, {without} without");
    assert!(with > without, "{with} of {all} on time, {without} without");
}

#[test]
fn what_a_fading_link_holds_of_a_reference_frame_goes_over_the_good_one_too() {
    // To a tenth, each second second.
    let rate = Rate::Schedule(parse::rate_schedule("0s:3mbit,1s:300kbit,repeat:2s").unwrap());
    let links = [link((3500, 20, 0.0)), LinkModel { rate, ..link((3000, 40, 0.0)) }];
    let [(with, all), (without, _)] = [true, false].map(|reinject| sum_of_runs(4, &links, reinject));
    println!("{with} of {all} on time, {without} without");
    assert!(all - with < (all - without) * 3 / 4, "{with} of {all} on time, {without} without");
}

/// Of 900 such sets, 400 of them of links of 90 ms and more, 29 were more than half a point below
/// their best link, three of those more than 1.5, and one 4.5. The faults that this is to find cost
/// 40 to 70.
const MOST_LOST: f64 = 8.0;

fn links() -> impl Strategy<Value = Vec<(u64, u64, f64)>> {
    let loss = prop_oneof![Just(0.0), 0.01..0.05];
    prop::collection::vec((500_u64..10_000, 5_u64..155, loss), 2..=3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn all_links_together_are_hardly_worse_than_the_best_alone(seed in 1_u64..1_000_000, links in links()) {
        let alone = links.iter().map(|&it| on_time(seed, &[link(it)])).fold(0.0, f64::max);
        let all: Vec<_> = links.iter().map(|&it| link(it)).collect();
        let together = on_time(seed, &all);
        prop_assert!(together >= alone - MOST_LOST, "{links:?} together {together:.2} %, best alone {alone:.2} %");
    }
}

/// Acknowledgements of what goes over the far link come back over the near one, sooner than a round
/// trip over the far one takes.
#[test]
fn a_near_narrow_link_beside_a_far_wide_one_does_no_harm() {
    let (near, far) = ((1000, 33, 0.0), (9700, 143, 0.0));
    for (redundancy, least) in [(Redundancy::Auto, 98.0), (Redundancy::Code("tetrys:10,9,200".parse().unwrap()), 95.0)]
    {
        let send = SenderOptions::default().with(|it| it.redundancy = redundancy);
        let both = on_time_with(send, 1, &[link(near), link(far)]);
        println!("{redundancy:?}: {both:.2} %");
        assert!(both >= least, "{redundancy:?}: {both:.2} %");
    }
}
