//! A message has a deadline: what would arrive later is neither begun nor repeated, though its time is not yet over.

use crate::common::{CLIENT, Pair, link, ms};
use braidcast_sctp::{Event, MessagePriority, Method, Options, Reliability, SendOptions};
use braidcast_sim::Duplex;

/// Options of a message that must arrive within `millis`.
fn within(pair: &Pair, millis: u64) -> SendOptions {
    SendOptions { unordered: true, deadline: Some(pair.now() + ms(millis)), ..SendOptions::default() }
}

/// Options of a message that must leave within `millis`.
fn life(millis: u64) -> SendOptions {
    SendOptions { unordered: true, reliability: Reliability::Lifetime(ms(millis)), ..SendOptions::default() }
}

/// Messages abandoned: those of which a part was sent, and the others.
fn given_up(pair: &Pair) -> [usize; 2] {
    let told = |wanted| {
        let is = |event: &&Event| matches!(event, Event::Abandoned { sent, .. } if *sent == wanted);
        pair.client_events.iter().filter(is).count()
    };
    [true, false].map(told)
}

/// Without a queue, and with one that lets go what is late if nothing else waits.
fn all() -> [Options; 2] {
    [None, Some(Method::RingSbpn2)].map(|method| Options::prompt().with(|it| it.queue.method = method))
}

#[test]
fn what_would_arrive_too_late_is_not_begun() {
    for options in all() {
        let mut pair = Pair::connected(&options, vec![Duplex::both(link(8, 100))]);
        let recording = pair.record();
        let how = within(&pair, 90);
        pair.client_send(&[1; 100], how);
        pair.run(ms(500));
        assert_eq!((given_up(&pair), pair.server_recv().len()), ([0, 1], 0), "{:?}", options.queue.method);
        let data = |bytes: &[u8]| bytes.windows(50).any(|window| window == [1; 50]);
        assert!(recording.sent(&CLIENT).iter().all(|seen| !data(&seen.bytes)));
        let how = within(&pair, 150);
        pair.client_send(&[1; 100], how);
        pair.client_send(&[2; 100], life(90));
        pair.run(ms(500));
        let expected = if options.queue.method.is_some() { 1 } else { 2 };
        assert!(pair.server_recv().len() >= expected, "the end of a lifetime is no deadline without a queue");
    }
}

#[test]
fn the_quickest_path_decides() {
    for options in all() {
        let mut pair = Pair::connected(&options, vec![Duplex::both(link(8, 150)), Duplex::both(link(8, 20))]);
        pair.run(ms(1000));
        let how = within(&pair, 90);
        pair.client_send(&[1; 100], how);
        pair.run(ms(500));
        assert_eq!((given_up(&pair), pair.server_recv().len()), ([0, 0], 1), "{:?}", options.queue.method);
    }
}

#[test]
fn what_would_arrive_too_late_is_not_repeated() {
    // The loss is noticed after two round trips or more, half a second here; a repetition is in flight for a tenth.
    for options in all() {
        let repeated = |deadline: u64, life: Option<u64>| {
            let mut pair = Pair::connected(&options, vec![Duplex::both(link(8, 100))]);
            pair.run(ms(1000));
            pair.net.set_down(pair.links[0].0, true);
            let reliability = life.map_or(Reliability::Reliable, |millis| Reliability::Lifetime(ms(millis)));
            let how = SendOptions { reliability, ..within(&pair, deadline) };
            pair.client_send(&[1; 100], how);
            pair.run(ms(20));
            pair.net.set_down(pair.links[0].0, false);
            pair.run(ms(3000));
            let came = pair.server_recv().len();
            assert_eq!(given_up(&pair), [1 - came, 0]);
            assert_eq!(pair.on_client(|it, _| it.buffered()), 0);
            came == 1
        };
        let noticed = (400..3000).step_by(10).find(|&deadline| repeated(deadline, None)).unwrap();
        // As late as that it may still be sent, but not so that it arrives.
        assert!(!repeated(noticed - 10, None));
        assert!(!repeated(5000, Some(noticed - 120)) && repeated(5000, Some(noticed - 80)), "{noticed}");
    }
}

#[test]
fn what_waits_is_given_up_at_its_deadline_whatever_it_is_worth() {
    let mut pair = Pair::connected(&Options::prompt(), vec![Duplex::both(link(1, 10))]);
    pair.client_send(&[0; 100_000], SendOptions::default());
    let how = SendOptions { priority: MessagePriority::FIRST, stream: 1, ..within(&pair, 100) };
    pair.client_send(&[1; 100_000], how);
    pair.run(ms(3000));
    assert_eq!((given_up(&pair)[0] + given_up(&pair)[1], pair.server_recv().len()), (1, 1));
}
