//! How paths ask to join while others lead nowhere: nobody waits for what goes unanswered elsewhere.

use crate::common::{CLIENT, Flow, Pair, Recording, Seen, link, ms, rebind, route};
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::{Event, Options, PathState};
use braidcast_sim::Duplex;
use core::time::Duration;

fn network(delay_ms: u64) -> Duplex {
    Duplex::both(link(10, delay_ms))
}

fn join(pair: &mut Pair, i: usize) {
    pair.on_client(|it, now| it.join(now, route(i)).map(drop)).expect("there is room for a path");
}

/// How long it takes until path `i` can carry data.
fn up(pair: &mut Pair, i: usize) -> Duration {
    let begun = pair.now();
    pair.until(ms(20_000), "the path joins", |pair| {
        pair.client_path(i).is_some_and(|path| path.state == PathState::Active)
    });
    pair.now() - begun
}

/// Three networks, of which the client uses the first `used`.
fn three(used: usize) -> Pair {
    let options = Options::live();
    let mut pair = Pair::over(used, options.clone(), options, vec![network(15), network(15), network(15)]);
    pair.until(ms(5000), "connect", |pair| pair.client_events.contains(&Event::Connected));
    for i in 0..used {
        up(&mut pair, i);
    }
    pair
}

fn asked_over(recording: &Recording, i: usize) -> usize {
    recording.sent(&CLIENT[i..=i]).iter().flat_map(Seen::kinds).filter(|&it| it == kind::ASCONF).count()
}

#[test]
fn a_join_does_not_wait_for_a_request_that_was_not_answered_in_time() {
    for waited in [600, 900, 2000, 5000] {
        let mut pair = three(1);
        pair.cut(1, true);
        join(&mut pair, 1);
        pair.run(ms(waited));
        join(&mut pair, 2);
        let took = up(&mut pair, 2);
        assert!(took < ms(100), "two round trips, not {took:?}, {waited} ms after the other");
    }
}

/// The request is new, but it went over a path that has failed.
#[test]
fn a_join_does_not_wait_for_a_request_over_a_dead_path() {
    let mut pair = three(2);
    let recording = pair.record();
    pair.cut(1, true);
    pair.until(ms(10_000), "the dead path asks", |_| asked_over(&recording, 1) > 0);
    join(&mut pair, 2);
    let took = up(&mut pair, 2);
    assert!(took < ms(100), "two round trips, not {took:?}");
}

/// Two paths want to join, and the newer one leads nowhere.
#[test]
fn requests_go_over_each_path_in_turn() {
    let mut pair = three(1);
    (1..3).for_each(|i| pair.cut(i, true));
    join(&mut pair, 1);
    pair.run(ms(900));
    join(&mut pair, 2);
    pair.cut(1, false);
    let took = up(&mut pair, 1);
    assert!(took < ms(700), "the second packet goes over the older one, so not {took:?}");
}

/// The only path that works is back when all have asked in vain, and then a NAT gives it another port.
#[test]
fn a_request_that_was_put_off_goes_at_once_when_the_last_path_falls_silent() {
    let nat = |n: usize| format!("203.0.113.7:{}", 40_000 + n);
    for later in [100, 600, 1000, 1400, 1600, 1800, 2000] {
        let mut pair =
            Pair::connected(&Options::live(), vec![network(15).behind_nat(&nat(0)), network(40), network(40)]);
        let recording = pair.record();
        let mut flow = Flow::default();
        (1..3).for_each(|i| pair.cut(i, true));
        flow.run(&mut pair, ms(3000));
        pair.cut(0, true);
        let before = asked_over(&recording, 0);
        let begun = pair.now();
        while asked_over(&recording, 0) == before {
            assert!(pair.now() - begun < ms(5000), "it asks");
            flow.run(&mut pair, ms(2));
        }
        pair.cut(0, false);
        flow.resumes(&mut pair);
        flow.run(&mut pair, ms(later));
        rebind(&mut pair, 0, &nat(0), &nat(1));
        flow.run(&mut pair, ms(20));
        let took = flow.resumes(&mut pair);
        assert!(took < ms(1180), "six round trips and a second, not {took:?}, {later} ms after its return");
    }
}
