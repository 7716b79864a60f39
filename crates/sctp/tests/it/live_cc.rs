//! `cc::Algorithm::Live` over simulated links: what losses, queues and steps of the rate do to it.

use crate::common::{Pair, bulk, link, ms};
use braidcast_sctp::{Algorithm, Options};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss, parse};

fn options() -> Options {
    Options::prompt().with(|it| it.congestion.algorithm = Algorithm::Live)
}

/// A path with a queue of 300 ms there.
fn path(rate: &str, delay: u64, loss: f64) -> Vec<Duplex> {
    let back = LinkModel { delay: ms(delay), ..LinkModel::default() };
    vec![Duplex::new(LinkModel { loss: Loss::Uniform(loss), ..there(rate, delay) }, back)]
}

fn there(rate: &str, delay: u64) -> LinkModel {
    LinkModel { rate: rate.parse().unwrap(), queue: "300ms".parse().unwrap(), ..link(1, delay) }
}

/// Mbit/s of messages of 1000 bytes.
fn mbit(pair: &mut Pair, millis: u64) -> f64 {
    let messages = bulk(pair, 1000, ms(millis));
    messages as f64 * 8000.0 / millis as f64 / 1000.0
}

#[test]
fn five_per_cent_of_random_loss_cost_five_per_cent_of_the_rate() {
    let mut clean = Pair::connected(&options(), path("4mbit", 25, 0.0));
    let mut lossy = Pair::connected(&options(), path("4mbit", 25, 0.05));
    let [clean, lossy] = [&mut clean, &mut lossy].map(|pair| {
        mbit(pair, 2000);
        mbit(pair, 20_000)
    });
    println!("{clean:.2} Mbit/s, {lossy:.2} with loss");
    assert!(clean > 3.5, "{clean:.2} of 4 Mbit/s, headers included");
    // What is lost has gone over the link too.
    assert!(lossy > 0.95 * 0.95 * clean, "{lossy:.2} of {clean:.2} Mbit/s");
}

#[test]
fn a_far_path_that_loses_a_seventh_of_whatever_is_sent_keeps_its_rate() {
    let rates = [0.0, 0.15].map(|loss| {
        let mut pair = Pair::connected(&options(), path("1mbit", 100, loss));
        mbit(&mut pair, 8000);
        mbit(&mut pair, 40_000)
    });
    let [clean, lossy] = rates;
    println!("{clean:.2} Mbit/s, {lossy:.2} with loss");
    assert!(lossy > 0.8 * 0.85 * clean, "{lossy:.2} of {clean:.2} Mbit/s");
}

#[test]
fn a_queue_of_three_packets_is_not_overrun_for_long() {
    for (rate, delay) in [("1mbit", 100), ("3mbit", 25), ("20mbit", 10)] {
        let there = LinkModel { queue: "3p".parse().unwrap(), ..there(rate, delay) };
        let back = LinkModel { delay: ms(delay), ..LinkModel::default() };
        let mut pair = Pair::connected(&options(), vec![Duplex::new(there, back)]);
        mbit(&mut pair, 8000);
        let before = pair.client_path(0).unwrap();
        mbit(&mut pair, 30_000);
        let after = pair.client_path(0).unwrap();
        let lost = (after.lost_chunks - before.lost_chunks) as f64 / (after.sent_chunks - before.sent_chunks) as f64;
        println!("{rate}, {delay} ms: {:.1} % lost", 100.0 * lost);
        assert!(lost < 0.15, "{rate}, {delay} ms: {:.1} % lost", 100.0 * lost);
    }
}

#[test]
fn packets_do_not_stand_in_queues_much_longer_than_they_may() {
    for delay in [10, 50] {
        let mut pair = Pair::connected(&options(), path("3mbit", delay, 0.0));
        mbit(&mut pair, 3000);
        let mut times = Vec::new();
        for _ in 0..150 {
            mbit(&mut pair, 200);
            times.push(pair.client_path(0).unwrap().srtt.unwrap());
        }
        times.sort_unstable();
        let (median, most) = (times[75], times[149]);
        println!("{delay} ms: round trips {median:?}, at most {most:?}");
        // 60 ms are meant, the peer may wait 20 before it acknowledges.
        assert!(median < ms(2 * delay + 100) && most < ms(2 * delay + 180), "{delay}: {median:?}, {most:?}");
    }
}

#[test]
fn a_rate_that_comes_back_is_filled_again_within_a_second() {
    let mut pair = Pair::connected(&options(), path("0s:5mbit,10s:1mbit,20s:5mbit", 25, 0.0));
    let before = mbit(&mut pair, 10_000);
    mbit(&mut pair, 1000);
    let low = mbit(&mut pair, 9500);
    let now = pair.now();
    pair.run(ms(20_000).saturating_sub(now.since(braidcast_core::Instant::ZERO)));
    mbit(&mut pair, 1000);
    let after = mbit(&mut pair, 3000);
    println!("{before:.2}, {low:.2}, {after:.2} Mbit/s");
    assert!(low > 0.85 && after > 0.9 * 4.6, "{before:.2}, {low:.2}, {after:.2} Mbit/s");
}

#[test]
fn a_route_that_becomes_longer_is_taken_for_a_queue_of_others_for_half_a_minute_at_most() {
    for extra in [150, 400] {
        let longer = parse::delay_schedule(&format!("0s:25ms,10s:{}ms", 25 + extra)).unwrap();
        let there = LinkModel { delay_schedule: Some(longer), ..there("4mbit", 25) };
        let back = LinkModel { delay: ms(25), ..LinkModel::default() };
        let mut pair = Pair::connected(&options(), vec![Duplex::new(there, back)]);
        mbit(&mut pair, 10_000);
        mbit(&mut pair, 40_000);
        // Over a minute: ten seconds of it have 2.8 to 3.9 Mbit/s, as the path is emptied now and
        // then to see how long it is.
        let rate = mbit(&mut pair, 60_000);
        let round_trip = pair.client_path(0).unwrap().srtt.unwrap();
        println!("{extra} ms: {rate:.2} Mbit/s, {round_trip:?}");
        assert!(rate > 3.1, "{extra} ms more: {rate:.2} of 4 Mbit/s");
        assert!(round_trip < ms(50 + extra + 130), "{extra} ms more: round trip {round_trip:?}");
    }
}

#[test]
fn a_slow_path_is_not_overrun_while_it_is_new() {
    // A round trip is three packets long: what the first ones say of the queue comes when many more are under way.
    for delay in [10, 40, 150] {
        let mut pair = Pair::connected(&options(), path("320kbit", delay, 0.0));
        mbit(&mut pair, 5000);
        let path = pair.client_path(0).unwrap();
        let lost = path.lost_chunks;
        println!("{delay} ms: {lost} of {} lost", path.sent_chunks);
        assert!(lost < 15, "{delay} ms: {lost} lost");
        // What a long queue dropped is not what redundancy is for.
        let id = path.id;
        let (share, _) = pair.on_client(|association, _| association.recent_losses(id)).unwrap();
        let told = share * path.sent_chunks as f64;
        assert!(told <= 0.6 * lost as f64, "{delay} ms: {told:.1} of {lost} told");
    }
}
