//! Data gets there: over one path and several, with loss, in order, intact.

use crate::common::hand::Hand;
use crate::common::{Pair, link, ms, pattern, transfer};
use braidcast_core::Machine;
use braidcast_sctp::{CloseReason, Event, LossDetection, Options, SchedulerKind, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;
use core::time::Duration;

fn lossy(percent: u32) -> LinkModel {
    LinkModel { loss: format!("{percent}%").parse().unwrap(), ..link(10, 15) }
}

#[test]
fn one_clean_path() {
    let mut pair = Pair::new(&Options::default(), vec![Duplex::both(link(10, 15))]);
    transfer(&mut pair, 1_000_000, 1000);
    assert!(pair.client_events.contains(&Event::Connected) && pair.server_events.contains(&Event::Connected));
    let stats = pair.on_client(|association, _| association.paths().next().unwrap());
    assert_eq!(stats.mtu, 1472);
    assert!(stats.srtt.unwrap() >= ms(30));
}

#[test]
fn long_messages_over_two_lossy_paths() {
    for scheduler in [SchedulerKind::RoundRobin, SchedulerKind::LowestDelay] {
        for interleaving in [true, false] {
            for loss_detection in [LossDetection::Time, LossDetection::Count] {
                let options = Options::prompt().with(|it| {
                    it.paths.scheduler = scheduler;
                    it.interleaving = interleaving;
                    it.papers.loss_detection = loss_detection;
                });
                let mut pair = Pair::new(&options, vec![Duplex::both(lossy(5)), Duplex::both(lossy(5))]);
                transfer(&mut pair, 2_000_000, 50_000);
                assert_eq!(pair.on_client(|association, _| association.paths().count()), 2);
            }
        }
    }
}

#[test]
fn both_paths_together_are_faster_than_one() {
    let time = |links: usize| {
        let options = Options::prompt();
        let mut pair = Pair::new(&options, vec![Duplex::both(link(10, 15)); links]);
        pair.until(ms(5000), "connect", |pair| pair.client_events.contains(&Event::Connected));
        pair.run(ms(500));
        let start = pair.now();
        transfer(&mut pair, 5_000_000, 1400);
        (pair.now() - start).as_secs_f64()
    };
    let (one, two) = (time(1), time(2));
    assert!(two < 0.6 * one, "{one} s over one path, {two} s over two");
}

#[test]
fn a_shutdown_delivers_everything_first() {
    let mut pair = Pair::new(&Options::prompt(), vec![Duplex::both(lossy(5))]);
    let data = pattern(300_000, 3);
    for chunk in data.chunks(1000) {
        pair.client_send(chunk, SendOptions::default());
    }
    pair.until(ms(3000), "connect", |pair| pair.client_events.contains(&Event::Connected));
    pair.on_client(|association, now| association.shutdown(now));
    let mut received = Vec::new();
    pair.until(ms(60_000), "shutdown", |pair| {
        for (_, message) in pair.server_recv() {
            received.extend_from_slice(&message);
        }
        pair.net.node(pair.client).association(pair.client_id).is_none()
    });
    assert!(received == data);
    assert!(matches!(pair.client_events.last(), Some(Event::Closed(CloseReason::Shutdown))));
    pair.run(ms(1000));
    assert!(matches!(pair.server_events.last(), Some(Event::Closed(CloseReason::Shutdown))));
    assert_eq!(pair.net.node(pair.server).associations().count(), 0);
}

#[test]
fn both_ends_may_shut_down_at_once_and_lose_nothing() {
    for (seed, loss) in (1..=20).map(|seed| (seed, 5)).chain([(21, 0), (22, 0)]) {
        let mut pair =
            Pair::seeded(seed, &Options::prompt(), vec![Duplex::both(lossy(loss)), Duplex::both(lossy(loss))]);
        pair.connect();
        let (there, back) = (pattern(100_000, 3), pattern(150_000, 4));
        there.chunks(1000).for_each(|chunk| pair.client_send(chunk, SendOptions::default()));
        for chunk in back.chunks(1000) {
            pair.on_server(|it, now| it.send(now, chunk, SendOptions::default())).unwrap();
        }
        pair.on_client(|it, now| it.shutdown(now));
        pair.on_server(|it, now| it.shutdown(now));
        let (mut at_server, mut at_client) = (Vec::new(), Vec::new());
        let gone = |pair: &Pair| pair.net.node(pair.client).association(pair.client_id).is_none();
        pair.until(ms(60_000), "both shut down", |pair| {
            pair.server_recv().iter().for_each(|(_, message)| at_server.extend_from_slice(message));
            if !gone(pair) {
                pair.client_recv().iter().for_each(|(_, message)| at_client.extend_from_slice(message));
            }
            gone(pair) && !pair.server_exists()
        });
        assert!(at_server == there && at_client == back, "seed {seed}");
        for events in [&pair.client_events, &pair.server_events] {
            assert!(matches!(events.last(), Some(Event::Closed(CloseReason::Shutdown))), "seed {seed}: {events:?}");
        }
    }
}

/// The last packet of a shutdown is lost, and who sent it is gone: what it would say is known.
#[test]
fn a_lost_last_word_holds_nobody_up() {
    let mut hand = Hand::new(&Options::prompt());
    let id = hand.connect();
    hand.settle();
    let now = hand.now;
    hand.client.association_mut(id).unwrap().shutdown(now);
    hand.client_sends().iter().for_each(|packet| hand.server_gets(0, packet));
    let began = hand.now;
    while let Some(due) = hand.server.poll_timeout() {
        assert!(due < began + Duration::from_secs(60), "it still waits");
        hand.now = due;
        hand.server_sends();
    }
    assert!(matches!(hand.server_events().last(), Some(Event::Closed(CloseReason::Shutdown))));
    assert!(hand.now > began + ms(1000), "it asks again before it ends");
}
