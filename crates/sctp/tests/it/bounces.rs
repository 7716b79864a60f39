//! Interfaces that go and come: the last path leaves, and the association waits for the next one.

use crate::common::{CLIENT, Flow, Pair, link, ms, route};
use braidcast_core::Rng;
use braidcast_sctp::{Event, Options, PathState};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss};
use core::time::Duration;

fn leave(pair: &mut Pair, i: usize) {
    pair.on_client(|it, now| it.leave(now, route(i)));
}

fn join(pair: &mut Pair, i: usize) {
    pair.on_client(|it, now| it.join(now, route(i)).map(|_| ())).expect("the association waits for paths");
}

/// Three networks, of which the client uses the first.
fn one_of_three(loss: f64) -> Pair {
    let loss = if loss > 0.0 { Loss::Uniform(loss) } else { Loss::None };
    let network = || Duplex::both(LinkModel { loss: loss.clone(), ..link(10, 15) });
    let mut pair = Pair::over(1, Options::prompt(), Options::prompt(), vec![network(), network(), network()]);
    pair.until(ms(5000), "connect", |pair| pair.client_events.contains(&Event::Connected));
    pair
}

#[test]
fn the_only_interface_goes_down_and_comes_back_with_another_address() {
    for (announced_late, away) in [(0, 1000), (300, 1000), (0, 4000), (2000, 10_000), (0, 0)] {
        let mut pair = one_of_three(0.0);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(500));
        pair.cut(0, true);
        flow.run(&mut pair, ms(announced_late));
        leave(&mut pair, 0);
        flow.run(&mut pair, ms(away));
        join(&mut pair, 1);
        let took = flow.resumes(&mut pair);
        assert!(took < ms(200), "{announced_late} {away}: two round trips, not {took:?}");
        flow.run(&mut pair, ms(2000));
        flow.finish_within(&mut pair, ms(60_000));
        let paths: Vec<_> =
            pair.on_server(|it, _| it.paths().map(|it| (it.route.remote.to_string(), it.state)).collect());
        assert_eq!(paths, [(CLIENT[1].to_string(), PathState::Active)], "the old address is forgotten");
    }
}

#[test]
fn what_asks_the_peer_for_a_path_that_is_gone_holds_up_no_other() {
    let mut pair = one_of_three(0.0);
    let mut flow = Flow::default();
    flow.run(&mut pair, ms(200));
    // The second network lets nothing through; the first one goes while its join is under way.
    pair.cut(1, true);
    join(&mut pair, 1);
    flow.run(&mut pair, ms(100));
    leave(&mut pair, 0);
    flow.run(&mut pair, ms(100));
    leave(&mut pair, 1);
    flow.run(&mut pair, ms(1000));
    join(&mut pair, 2);
    let took = flow.resumes(&mut pair);
    assert!(took < ms(200), "{took:?}");
    flow.finish_within(&mut pair, ms(60_000));
}

#[test]
fn of_two_networks_that_come_back_at_once_the_one_that_leads_nowhere_does_not_hold_up_the_other() {
    for dead in [1, 2] {
        let mut pair = one_of_three(0.0);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(500));
        pair.cut(0, true);
        leave(&mut pair, 0);
        flow.run(&mut pair, ms(500));
        pair.cut(dead, true);
        join(&mut pair, 1);
        join(&mut pair, 2);
        let took = flow.resumes(&mut pair);
        assert!(took < ms(1500), "{dead}: {took:?}");
        pair.cut(dead, false);
        flow.run(&mut pair, ms(12_000));
        let active = pair.on_client(|it, _| it.paths().filter(|it| it.state == PathState::Active).count());
        assert_eq!(active, 2, "{dead}: both are used in the end");
        flow.finish_within(&mut pair, ms(60_000));
    }
}

#[test]
fn a_network_that_answers_cannot_come_back_over_does_not_hold_up_another() {
    for away in [100, 1000, 3000] {
        let mut pair = one_of_three(0.0);
        let mut flow = Flow::default();
        join(&mut pair, 1);
        flow.run(&mut pair, ms(1000));
        // What is sent over the second network arrives, and no answer comes back.
        let (_, back) = pair.links[1];
        pair.net.set_down(back, true);
        flow.run(&mut pair, ms(2500));
        pair.cut(0, true);
        leave(&mut pair, 0);
        flow.run(&mut pair, ms(away));
        join(&mut pair, 2);
        let took = flow.resumes(&mut pair);
        assert!(took < ms(1500), "away for {away} ms: {took:?}");
        flow.finish_within(&mut pair, ms(60_000));
    }
}

#[test]
fn an_outage_of_all_paths_ends_nothing_however_many_there_are_and_however_long_it_lasts() {
    for count in 1..=3 {
        for seconds in [3, 60, 3600] {
            let mut pair = Pair::connected(&Options::prompt(), vec![Duplex::both(link(10, 15)); count]);
            let mut flow = Flow::default();
            flow.run(&mut pair, ms(500));
            (0..count).for_each(|i| pair.cut(i, true));
            flow.run(&mut pair, ms(500));
            pair.run(Duration::from_secs(seconds));
            pair.cut(count - 1, false);
            let took = flow.resumes(&mut pair);
            assert!(took < ms(1200), "{count} paths, {seconds} s: {took:?}");
            flow.finish_within(&mut pair, ms(60_000));
        }
    }
}

#[test]
fn networks_come_and_go_at_random_moments_and_nothing_is_lost() {
    for seed in 0..30 {
        let mut rng = Rng::from_seed(seed);
        let loss = [0.0, 0.02, 0.1][seed as usize % 3];
        let mut pair = one_of_three(loss);
        let mut flow = Flow::default();
        let mut open = vec![0];
        for _ in 0..12 {
            let i = (rng.u64() % 3) as usize;
            if open.contains(&i) {
                let announced_late = ms(rng.u64() % 300);
                pair.cut(i, true);
                flow.run(&mut pair, announced_late);
                leave(&mut pair, i);
                open.retain(|&it| it != i);
            } else {
                pair.cut(i, false);
                join(&mut pair, i);
                open.push(i);
            }
            flow.run(&mut pair, ms(rng.u64() % 800));
        }
        for i in 0..3 {
            pair.cut(i, false);
        }
        if open.is_empty() {
            join(&mut pair, 0);
        }
        let took = flow.resumes(&mut pair);
        // At 10 % in each direction one question in five gets no answer.
        assert!(took < ms(if loss < 0.1 { 2000 } else { 4000 }), "seed {seed}: {took:?}");
        flow.finish_within(&mut pair, ms(60_000));
    }
}
