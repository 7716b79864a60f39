//! A process that is not scheduled for a while, or a machine that sleeps: its paths are not to blame.

use crate::common::hand::Hand;
use crate::common::{ms, pattern};
use braidcast_core::Machine;
use braidcast_sctp::{Event, Options, SendOptions};

/// A connected pair, with data in flight from the client and the answer to it in the client's socket buffer.
fn with_an_answer_unread() -> (Hand, braidcast_sctp::AssociationId, Vec<Vec<u8>>) {
    let mut hand = Hand::new(&Options::prompt());
    let id = hand.connect();
    for _ in 0..50 {
        hand.settle();
        hand.now += ms(10);
    }
    assert!(hand.client_events().contains(&Event::Connected));
    let now = hand.now;
    hand.client.association_mut(id).unwrap().send(now, &pattern(5000, 1), SendOptions::default()).unwrap();
    let packets = hand.client_sends();
    hand.now += ms(20);
    packets.iter().for_each(|packet| hand.server_gets(0, packet));
    hand.now += ms(20);
    let answers = hand.server_sends();
    assert!(!packets.is_empty() && !answers.is_empty());
    (hand, id, answers)
}

#[test]
fn whoever_sleeps_finds_the_answers_that_came_meanwhile_and_blames_nobody() {
    for (slept, timers_first) in [(300, true), (300, false), (10_000, true), (10_000, false), (3_600_000, true)] {
        let (mut hand, id, answers) = with_an_answer_unread();
        let before = hand.client.association(id).unwrap().paths().next().unwrap();
        hand.now += ms(slept);
        let now = hand.now;
        if timers_first {
            hand.client.handle_timeout(now);
            assert!(hand.client_sends().len() <= 2, "{slept} ms: a heartbeat perhaps, no repetition");
        }
        answers.iter().for_each(|packet| hand.client_gets(0, packet));
        hand.settle();
        assert_eq!(hand.client_events(), [], "{slept} ms");
        let after = hand.client.association(id).unwrap().paths().next().unwrap();
        assert_eq!((after.t3_expiries, after.timeouts, after.lost_chunks), (0, 0, 0), "{slept} ms");
        assert!(after.srtt <= before.srtt.map(|srtt| srtt + ms(50)), "{slept} ms: {:?}", after.srtt);
        assert_eq!(after.in_flight, 0, "{slept} ms");
    }
}

#[test]
fn a_network_that_is_dead_when_one_wakes_is_noticed_as_ever() {
    let (mut hand, id, _) = with_an_answer_unread();
    hand.now += ms(10_000);
    let woke = hand.now;
    while !hand.client_events().iter().any(|event| matches!(event, Event::PathDown(..))) {
        assert!(hand.now - woke < ms(2000));
        hand.now += ms(10);
        hand.client_sends();
    }
    assert!(hand.client.association(id).is_some());
}
