//! Links that an operator polices with a token bucket: what comes too fast is dropped at once, and nothing is late.

use crate::common::*;
use braidcast_core::Rng;
use braidcast_media::Kind;
use braidcast_session::{KindReport, ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::{Loss, Policer};
use braidcast_sim::testing::seed_from_env;
use core::time::Duration;

/// A policed link by kbit/s and bytes, and ms.
fn policed(kbit: u64, depth: usize, delay: u64) -> LinkModel {
    let policer = Some(Policer { bits_per_second: kbit * 1000, depth });
    LinkModel { policer, overhead: 14, ..wide(delay, Loss::None) }
}

/// A link that carries anything.
fn wide(delay: u64, loss: Loss) -> LinkModel {
    LinkModel { loss, ..LinkModel::wire(100_000_000, ms(delay)) }
}

/// Of 40 s of film of 1.7 Mbit/s: the frames on time, and the packets that were dropped, %.
fn run(seed: u64, links: &[LinkModel]) -> (f64, f64) {
    run_in_slices(ReceiverOptions::default().slice, seed, links)
}

/// The same where the receiver hands out in slices.
fn run_in_slices(slice: Duration, seed: u64, links: &[LinkModel]) -> (f64, f64) {
    let send = SenderOptions::default();
    let receive = ReceiverOptions::default().with(|it| it.slice = slice);
    let mut scene = Scene::seeded(seed, send.transport(), send, receive, film(40), links);
    scene.run_to_end(ms(80_000));
    let kinds = [Kind::I, Kind::P, Kind::B].map(|kind| scene.sink().kind(kind));
    let sum = |of: fn(&KindReport) -> u64| kinds.iter().map(of).sum::<u64>() as f64;
    let stats: Vec<_> = scene.links.iter().map(|&(there, _)| scene.net.link(there).stats()).collect();
    let offered: u64 = stats.iter().map(|it| it.offered).sum();
    let dropped: u64 = stats.iter().map(|it| it.dropped()).sum();
    (100.0 * sum(|kind| kind.on_time) / sum(|kind| kind.captured), 100.0 * dropped as f64 / offered as f64)
}

#[test]
fn what_a_policer_lets_through_is_sent_and_little_more() {
    // Without anything that looks for policers 72.6 and 96.7 % were on time, 43 and 22 % dropped.
    let (on_time, dropped) = run(1, &[policed(1950, 6000, 25)]);
    println!("1 link: {on_time:.1} % on time, {dropped:.1} % dropped");
    assert!(on_time > 96.0 && dropped < 10.0, "{on_time:.1} % on time, {dropped:.1} % dropped");
    let (on_time, dropped) = run(1, &[policed(1100, 15_000, 25), policed(1100, 15_000, 45)]);
    println!("2 links: {on_time:.1} % on time, {dropped:.1} % dropped");
    assert!(on_time > 98.0 && dropped < 10.0, "{on_time:.1} % on time, {dropped:.1} % dropped");
}

#[test]
fn two_policed_links_at_random_carry_a_stream() {
    let mut rng = Rng::from_seed(seed_from_env(43).get());
    let mut link = || policed(900 + rng.below(700), 4000 + rng.below(30_000) as usize, 5 + rng.below(95));
    let runs: Vec<_> = (0..16).map(|_| run(1, &[link(), link()])).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let (on_time, dropped) = (mean(|it| it.0), mean(|it| it.1));
    println!("{on_time:.2} % on time, {dropped:.1} % dropped: {runs:.1?}");
    // With acknowledgements that come back over each path in turn 91.34 and 12.9 %.
    assert!(on_time > 97.0 && dropped < 14.0, "{on_time:.2} % on time, {dropped:.1} % dropped: {runs:.1?}");
}

/// On a short path that loses most of what is sent many an acknowledgement waits for a second packet. Taken for a
/// queue, that hid the policer: 96.63 % on time, 77.5 at least.
#[test]
fn a_short_policed_link_is_found_beside_another_one() {
    let mut rng = Rng::from_seed(seed_from_env(44).get());
    let mut link = |delay: u64| policed(900 + rng.below(700), 4000 + rng.below(30_000) as usize, delay);
    let runs: Vec<_> = (0..16).map(|n| run(1, &[link(5 + n % 8), link(20 + 5 * n)])).collect();
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let (on_time, dropped) = (mean(|it| it.0), mean(|it| it.1));
    println!("{on_time:.2} % on time, {dropped:.1} % dropped: {runs:.1?}");
    assert!(on_time > 97.0 && dropped < 18.0, "{on_time:.2} % on time, {dropped:.1} % dropped: {runs:.1?}");
}

#[test]
fn policers_at_random_drop_less_than_half_of_what_they_would() {
    let mut rng = Rng::from_seed(seed_from_env(42).get());
    let runs: Vec<_> = (0..24)
        .map(|_| {
            let (kbit, depth) = (1900 + rng.below(1200), 4000 + rng.below(30_000) as usize);
            let delay = 5 + rng.below(95);
            let (on_time, dropped) = run(1, &[policed(kbit, depth, delay)]);
            println!("{kbit} kbit/s, {depth} bytes, {delay} ms: {on_time:.1} % on time, {dropped:.1} % dropped");
            (on_time, dropped)
        })
        .collect();
    let mean = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let (on_time, dropped) = (mean(|it| it.0), mean(|it| it.1));
    println!("{on_time:.2} % on time, {dropped:.1} % dropped");
    // Without anything that looks for policers 92.42 and 29.7 %.
    assert!(on_time > 96.0 && dropped < 16.0, "{on_time:.2} % on time, {dropped:.1} % dropped");
}

#[test]
fn a_link_that_loses_whatever_is_sent_is_not_taken_for_a_policed_one() {
    for loss in [0.01, 0.05, 0.1, 0.2] {
        let random = (3..=6).map(|seed| run(seed, &[wide(30, Loss::Uniform(loss))]).0);
        let bursts = run(1, &[wide(30, Loss::bursts(loss, 10.0).unwrap())]).0;
        let on_time: Vec<f64> = random.chain([bursts]).collect();
        println!("{loss} lost: {on_time:.1?} % on time");
        assert!(on_time.iter().all(|it| *it > 95.0), "{loss} lost: {on_time:.1?} % on time");
    }
}

/// Ten packets in a row get lost, in the mean. How a receiver hands out must not matter, but makes each run another
/// draw. Taken for a policer by the losses of two intervals, such a path had 58 to 68 % on time; now the worst has 74.
#[test]
fn losses_in_bursts_are_not_taken_for_those_of_a_policer_whatever_the_draw() {
    for loss in [0.1, 0.2] {
        let link = wide(30, Loss::bursts(loss, 10.0).unwrap());
        let slices = [5, 6, 8, 10, 12].map(|slice| run_in_slices(ms(slice), 1, core::slice::from_ref(&link)).0);
        let seeds: Vec<f64> = (3..=9).map(|seed| run(seed, core::slice::from_ref(&link)).0).collect();
        println!("{loss} lost: by slices {slices:.1?}, by seeds {seeds:.1?} % on time");
        let least = if loss < 0.2 { [95.0, 95.0] } else { [70.0, 85.0] };
        assert!(slices.iter().all(|it| *it > least[0]), "{loss} lost: {slices:.1?} % on time");
        assert!(seeds.iter().all(|it| *it > least[1]), "{loss} lost: {seeds:.1?} % on time");
    }
}
