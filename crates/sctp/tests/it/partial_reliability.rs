//! A message is worth sending for a while only: its lifetime is obeyed in the queue, at the first send, at every
//! retransmission and at the receiver (RFC 3758, RFC 7496, PRCMT §4.2, §4.3).

use crate::common::{CLIENT, Pair, Recording, SERVER, Seen, link, ms, on, pattern};
use braidcast_core::{Instant, Rng};
use braidcast_sctp::wire::chunk::{Sack, kind};
use braidcast_sctp::wire::{Chunk, Packet};
use braidcast_sctp::{Abandoned, AbandonmentPolicy, Event, Options, Priority, Reliability, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::LinkModel;
use core::time::Duration;
use std::collections::BTreeSet;

/// I-DATA or DATA, ordered or not.
#[derive(Clone, Copy, Debug)]
struct Case {
    interleaving: bool,
    unordered: bool,
}

const CASES: [Case; 4] = [
    Case { interleaving: true, unordered: false },
    Case { interleaving: true, unordered: true },
    Case { interleaving: false, unordered: false },
    Case { interleaving: false, unordered: true },
];

impl Case {
    fn options(self) -> Options {
        Options::live().with(|it| it.interleaving = self.interleaving)
    }

    fn how(self, stream: u16, reliability: Reliability) -> SendOptions {
        SendOptions { unordered: self.unordered, ..on(stream, reliability) }
    }

    const fn forward(self) -> u8 {
        if self.interleaving { kind::I_FORWARD_TSN } else { kind::FORWARD_TSN }
    }
}

fn life(millis: u64) -> Reliability {
    Reliability::Lifetime(ms(millis))
}

/// When the client sent a packet that holds the beginning of `payload`.
fn on_the_wire(recording: &Recording, payload: &[u8]) -> Vec<Instant> {
    let head = &payload[..payload.len().min(24)];
    let holds = |seen: &Seen| seen.bytes.windows(head.len()).any(|window| window == head);
    recording.sent(&CLIENT).into_iter().filter(holds).map(|seen| seen.at).collect()
}

fn abandoned(pair: &Pair) -> usize {
    pair.client_events.iter().filter(|event| matches!(event, Event::Abandoned { .. })).count()
}

/// Everything that the server gets within `duration`.
fn collect(pair: &mut Pair, duration: Duration) -> Vec<Vec<u8>> {
    pair.run(duration);
    pair.server_recv().into_iter().map(|(_, message)| message).collect()
}

/// Loses what the client sends now: cut off there, not back.
fn lose(pair: &mut Pair, what: impl FnOnce(&mut Pair)) {
    let links = pair.links.clone();
    links.iter().for_each(|&(there, _)| pair.net.set_down(there, true));
    what(pair);
    pair.run(ms(5));
    links.iter().for_each(|&(there, _)| pair.net.set_down(there, false));
}

#[test]
fn in_the_queue_an_expired_message_is_given_up_when_its_time_comes() {
    for case in CASES {
        let mut pair = Pair::connected(&case.options(), vec![Duplex::both(link(1, 10))]);
        let recording = pair.record();
        let late = pattern(500, 1);
        pair.on_client(|association, _| association.set_priority(0, Priority::new(0)));
        pair.client_send(&pattern(100_000, 2), on(0, Reliability::Reliable));
        let sent = pair.now();
        pair.client_send(&late, case.how(1, life(100)));
        pair.until(ms(200), "giving up", |pair| abandoned(pair) == 1);
        assert!(pair.now() - sent >= ms(100) && pair.now() - sent <= ms(102), "{case:?}: {:?}", pair.now() - sent);
        let got = collect(&mut pair, ms(3000));
        assert_eq!(got.len(), 1, "{case:?}");
        assert!(on_the_wire(&recording, &late).is_empty(), "{case:?}");
        assert_eq!(recording.count(&CLIENT, case.forward()), 0, "{case:?}: nothing was sent that could be skipped");
        assert_eq!(abandoned(&pair), 1);
        assert_eq!(pair.on_client(|association, _| association.stats().abandoned_unsent), 1);
    }
}

#[test]
fn at_the_first_send_an_expired_message_is_given_up() {
    for case in CASES {
        let mut pair = Pair::connected(&case.options(), vec![Duplex::both(link(1, 10))]);
        let recording = pair.record();
        let late = pattern(500, 1);
        // Behind another one of its stream, so that nobody looks at it before its turn.
        pair.client_send(&pattern(60_000, 2), case.how(0, Reliability::Reliable));
        pair.client_send(&late, case.how(0, life(100)));
        pair.client_send(b"after", case.how(0, Reliability::Reliable));
        let got = collect(&mut pair, ms(3000));
        assert_eq!(got.len(), 2, "{case:?}");
        assert_eq!(got[1], b"after");
        assert!(on_the_wire(&recording, &late).is_empty(), "{case:?}");
        assert_eq!(abandoned(&pair), 1, "{case:?}");
    }
}

#[test]
fn at_a_fast_retransmission_an_expired_message_is_given_up_and_a_fresh_one_repeated() {
    for case in CASES {
        for (lifetime, arrives) in [(20, false), (500, true)] {
            let mut pair = Pair::connected(&case.options(), vec![Duplex::both(link(10, 15))]);
            let recording = pair.record();
            let message = pattern(500, 1);
            lose(&mut pair, |pair| pair.client_send(&message, case.how(0, life(lifetime))));
            let expiry = pair.now() + ms(lifetime);
            for _ in 0..4 {
                pair.client_send(b"others", case.how(0, Reliability::Reliable));
                pair.run(ms(1));
            }
            let got = collect(&mut pair, ms(150));
            assert_eq!(got.iter().filter(|it| *it == b"others").count(), 4, "{case:?} {lifetime}");
            assert_eq!(got.contains(&message), arrives, "{case:?} {lifetime}");
            let sent = on_the_wire(&recording, &message);
            assert_eq!(sent.len(), 1 + usize::from(arrives), "{case:?} {lifetime}");
            assert!(sent.iter().all(|at| *at < expiry));
            assert_eq!(recording.count(&CLIENT, case.forward()) > 0, !arrives, "{case:?} {lifetime}");
            assert_eq!(abandoned(&pair), usize::from(!arrives));
            assert_eq!(pair.on_client(|association, _| association.buffered()), 0);
        }
    }
}

#[test]
fn at_a_t3_retransmission_an_expired_message_is_given_up_and_a_fresh_one_repeated() {
    for case in CASES {
        for (lifetime, arrives) in [(100, false), (3000, true)] {
            // No probe: the timer alone finds out, after 200 ms.
            let options = case.options().with(|it| it.paths.probe = false);
            let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 15))]);
            let recording = pair.record();
            let message = pattern(500, 1);
            lose(&mut pair, |pair| pair.client_send(&message, case.how(0, life(lifetime))));
            let got = collect(&mut pair, ms(1500));
            assert_eq!(got.contains(&message), arrives, "{case:?} {lifetime}");
            let sent = on_the_wire(&recording, &message);
            assert_eq!(sent.len(), 1 + usize::from(arrives), "{case:?} {lifetime}");
            assert_eq!(recording.count(&CLIENT, case.forward()) > 0, !arrives, "{case:?} {lifetime}");
            assert_eq!(abandoned(&pair), usize::from(!arrives));
            pair.client_send(b"after", case.how(0, Reliability::Reliable));
            assert_eq!(collect(&mut pair, ms(500)), [b"after"], "{case:?} {lifetime}: nothing blocks it");
        }
    }
}

#[test]
fn nothing_is_repeated_after_its_time_however_long_the_path_is_dead() {
    for case in CASES {
        for probe in [true, false] {
            let options = case.options().with(|it| it.paths.probe = probe);
            let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 15))]);
            let recording = pair.record();
            pair.cut(0, true);
            let message = pattern(500, 1);
            let expiry = pair.now() + ms(900);
            pair.client_send(&message, case.how(0, life(900)));
            pair.run(ms(4000));
            pair.cut(0, false);
            pair.client_send(b"after", case.how(0, Reliability::Reliable));
            assert_eq!(collect(&mut pair, ms(4000)), [b"after"], "{case:?}");
            let sent = on_the_wire(&recording, &message);
            assert!(sent.len() > 1 && sent.iter().all(|at| *at < expiry), "{case:?}: {sent:?}, expires {expiry:?}");
            assert_eq!(abandoned(&pair), 1);
        }
    }
}

#[test]
fn at_the_receiver_an_abandoned_message_never_appears_afterwards() {
    for case in CASES {
        for len in [500, 5000] {
            let mut pair = Pair::connected(&case.options(), vec![Duplex::both(link(10, 15))]);
            let recording = pair.record();
            let message = pattern(len, 1);
            lose(&mut pair, |pair| pair.client_send(&message, case.how(0, life(20))));
            let lost: Vec<_> = recording.sent(&CLIENT).into_iter().map(|seen| seen.bytes).collect();
            pair.client_send(b"after", case.how(0, Reliability::Reliable));
            let got = collect(&mut pair, ms(500));
            assert_eq!(got, [b"after"], "{case:?} {len}");
            // What was lost turns up after all.
            lost.iter().for_each(|bytes| pair.inject_server(0, CLIENT[0], bytes));
            pair.client_send(b"later", case.how(0, Reliability::Reliable));
            assert_eq!(collect(&mut pair, ms(500)), [b"later"], "{case:?} {len}");
        }
    }
}

/// The window that the server's last SACK told.
fn told_window(recording: &Recording) -> u32 {
    let bytes = recording.last(&SERVER, kind::SACK).unwrap();
    let packet = Packet::parse(&bytes).unwrap();
    let sack = packet.chunks().flatten().find(|raw| raw.kind == Sack::KIND).unwrap();
    let Ok(Chunk::Sack(sack)) = Chunk::parse(sack) else { panic!("no SACK") };
    sack.a_rwnd
}

#[test]
fn fragments_of_an_abandoned_message_release_the_receiver() {
    for case in CASES {
        let mut pair = Pair::connected(&case.options(), vec![Duplex::both(link(1, 15))]);
        let recording = pair.record();
        // 1 Mbit/s: two packets are through after 30 ms, the rest is lost, then expires.
        pair.client_send(&pattern(20_000, 1), case.how(3, life(60)));
        pair.run(ms(35));
        pair.client_send(b"x", on(1, Reliability::Reliable));
        lose(&mut pair, |pair| pair.run(ms(60)));
        pair.client_send(b"after", case.how(3, Reliability::Reliable));
        let got = collect(&mut pair, ms(2000));
        assert!(got.contains(&b"x".to_vec()) && got.contains(&b"after".to_vec()) && got.len() == 2, "{case:?}");
        assert_eq!(abandoned(&pair), 1, "{case:?}");
        assert!(recording.count(&CLIENT, case.forward()) > 0);
        pair.client_send(b"y", on(1, Reliability::Reliable));
        pair.run(ms(100));
        pair.server_recv();
        pair.client_send(b"z", on(1, Reliability::Reliable));
        pair.run(ms(300));
        let held = Options::live().limits.receive_buffer as u32 - told_window(&recording);
        assert!(held < 300, "{case:?}: {held} bytes are still held");
        assert_eq!(pair.on_client(|association, _| association.buffered()), 0);
    }
}

/// RFC 7496 §3.2.
#[test]
fn what_is_more_important_crowds_out_what_waits_and_is_less() {
    let options = Options::live().with(|options| {
        options.limits.send_buffer = 10_000;
        options.limits.max_message = 10_000;
    });
    let mut pair = Pair::new(&options, vec![Duplex::both(link(10, 15))]);
    // All of it waits for the handshake.
    let send = |pair: &mut Pair, stream, context, reliability| {
        let how = SendOptions { context, ..on(stream, reliability) };
        pair.on_client(|it, now| it.send(now, &pattern(2000, context), how))
    };
    for (context, rank) in [(1, 5), (2, 7), (3, 7), (4, 1)] {
        assert_eq!(send(&mut pair, 1, context, Reliability::Priority(rank)), Ok(()));
    }
    assert_eq!(send(&mut pair, 0, 5, Reliability::Lifetime(ms(20_000))), Ok(()));
    let full = send(&mut pair, 2, 6, Reliability::Priority(7));
    assert!(full.is_err(), "no more important than any: {full:?}");
    assert!(send(&mut pair, 2, 6, Reliability::Lifetime(ms(20_000))).is_err(), "of another rule");
    let how = on(2, Reliability::Priority(0));
    assert!(pair.on_client(|it, now| it.send(now, &pattern(9000, 6), how)).is_err(), "all of them are too few");
    assert_eq!(pair.on_client(|it, _| it.abandoned(None, None)), Abandoned::default(), "so that none went");
    assert_eq!(send(&mut pair, 2, 6, Reliability::Priority(6)), Ok(()));
    assert_eq!(send(&mut pair, 2, 7, Reliability::Reliable), Ok(()));
    let mut arrived = Vec::new();
    pair.until(ms(10_000), "the rest", |pair| {
        arrived.extend(pair.server_recv().into_iter().map(|(_, payload)| payload));
        arrived.len() == 5
    });
    for context in [1, 4, 5, 6, 7] {
        assert!(arrived.contains(&pattern(2000, context)), "{context}");
    }
    let given_up: Vec<_> = pair
        .client_events
        .iter()
        .filter_map(|event| match event {
            Event::Abandoned { context, sent: false, .. } => Some(*context),
            _ => None,
        })
        .collect();
    assert_eq!(given_up, [2, 3], "the least important, the older one first");
    let mut of = |stream, policy| pair.on_client(|it, _| it.abandoned(stream, policy));
    assert_eq!(of(Some(1), Some(AbandonmentPolicy::Priority)), Abandoned { unsent: 2, sent: 0 });
    assert_eq!((of(Some(2), None), of(None, Some(AbandonmentPolicy::Timed))), Default::default());
}

#[test]
fn so_many_retransmissions_and_no_more() {
    for case in CASES {
        for (limit, measured) in (0..4).flat_map(|limit| [(limit, true), (limit, false)]) {
            let mut pair = Pair::new(&case.options(), vec![Duplex::both(link(10, 15))]);
            pair.until(ms(500), "connect", |pair| pair.client_events.contains(&Event::Connected));
            if measured {
                pair.connect();
            }
            let recording = pair.record();
            let message = pattern(300, 1);
            pair.cut(0, true);
            pair.client_send(&message, case.how(0, Reliability::Retransmissions(limit)));
            pair.until(ms(20_000), "giving up", |pair| abandoned(pair) > 0);
            pair.cut(0, false);
            pair.client_send(b"after", case.how(0, Reliability::Retransmissions(limit + 9)));
            assert_eq!(collect(&mut pair, ms(8000)), [b"after"], "{case:?} {limit}");
            let sent = on_the_wire(&recording, &message);
            assert_eq!(sent.len(), usize::from(limit) + 1, "{case:?} {limit}: {sent:?}");
            assert_eq!(abandoned(&pair), 1, "{case:?} {limit}: {:?}", pair.client_events);
        }
    }
}

#[test]
fn what_arrived_before_it_expired_earns_credit_and_is_not_forwarded() {
    for case in CASES {
        let windows = |reliability: Reliability| {
            let options = case.options().with(|it| it.congestion.pacing = false);
            let mut pair = Pair::connected(&options, vec![Duplex::both(link(100, 40))]);
            let recording = pair.record();
            let mut windows = Vec::new();
            let mut sent = 0;
            for _ in 0..8 {
                let path = pair.client_path(0).unwrap();
                windows.push(path.cwnd);
                for _ in 0..path.cwnd.div_ceil(1000) {
                    pair.client_send(&pattern(1000, sent), case.how(0, reliability));
                    sent += 1;
                }
                pair.run(ms(200));
            }
            assert_eq!(pair.server_recv().len() as u64, sent);
            assert_eq!((abandoned(&pair), recording.count(&CLIENT, case.forward())), (0, 0), "{case:?}");
            windows
        };
        // Expires in flight, before its SACK can be back.
        let expired = windows(life(75));
        assert_eq!(expired, windows(Reliability::Reliable), "{case:?}");
        assert!(expired.last() > expired.first());
    }
}

/// Loses a message on two paths and lets it expire; from `deaf` on nothing goes through there for
/// 300 ms. Gives the recording and when the message behind it came out.
fn forwarded(case: Case, deaf: Option<Instant>) -> (Recording, Instant) {
    let mut pair = Pair::connected(&case.options(), vec![Duplex::both(link(10, 15)); 2]);
    let recording = pair.record();
    lose(&mut pair, |pair| pair.client_send(&pattern(500, 1), case.how(0, life(20))));
    for n in 0..6 {
        pair.client_send(format!("after {n}").as_bytes(), on(0, Reliability::Reliable));
        pair.run(ms(1));
    }
    let links = pair.links.clone();
    for (at, down) in deaf.iter().flat_map(|&at| [(at, true), (at + ms(300), false)]) {
        let links = links.clone();
        pair.net.at(at, move |net| links.iter().for_each(|&(there, _)| net.set_down(there, down)));
    }
    let mut got = Vec::new();
    pair.until(ms(3000), "the messages behind it", |pair| {
        got.extend(pair.server_recv());
        got.len() == 6
    });
    let arrived = pair.now();
    pair.until(ms(1000), "acknowledgements", |pair| pair.on_client(|association, _| association.buffered()) == 0);
    (recording, arrived)
}

#[test]
fn forward_tsn_goes_over_every_path_and_is_repeated_until_it_arrives() {
    for case in CASES {
        let (recording, _) = forwarded(case, None);
        let forwards = |recording: &Recording, address: &str| {
            let sent = recording.sent(&[address]).into_iter().filter(|seen| seen.kinds().contains(&case.forward()));
            sent.map(|seen| seen.at).collect::<Vec<_>>()
        };
        let (first, second) = (forwards(&recording, CLIENT[0]), forwards(&recording, CLIENT[1]));
        assert!(!first.is_empty() && !second.is_empty(), "{case:?}: {first:?} {second:?}");
        assert_eq!(first[0], second[0], "{case:?}: at once");
        assert!(first.len() + second.len() <= 4, "{case:?}: {first:?} {second:?}");
        // The same run, but those are lost.
        let deaf = first[0] - Duration::from_micros(1);
        let (recording, arrived) = forwarded(case, Some(deaf));
        let (first, second) = (forwards(&recording, CLIENT[0]), forwards(&recording, CLIENT[1]));
        assert!(first.len() >= 2 && second.len() >= 2, "{case:?}: {first:?} {second:?}");
        // What is unordered holds up nobody.
        assert!(case.unordered || arrived > deaf + ms(300), "{case:?}: {:?}", arrived - deaf);
        assert!(arrived < deaf + ms(1000), "{case:?}: {:?}", arrived - deaf);
    }
}

#[test]
fn every_message_arrives_or_is_reported_once_and_the_promised_ones_arrive_in_order() {
    for case in CASES {
        for seed in 0..3 {
            let lossy = LinkModel { loss: "10%".parse().unwrap(), ..link(2, 20) };
            let mut pair = Pair::connected(&case.options(), vec![Duplex::both(lossy); 2]);
            let mut rng = Rng::from_seed(seed);
            let count = 1000_u64;
            let mut got = Vec::new();
            for n in 0..count {
                let reliability = match n % 3 {
                    0 => Reliability::Reliable,
                    1 => life(20 + rng.below(100)),
                    _ => Reliability::Retransmissions(rng.below(2) as u16),
                };
                let mut payload = n.to_be_bytes().to_vec();
                payload.resize(8 + rng.below(2500) as usize, n as u8);
                let how = SendOptions { context: n, ..case.how((n % 5) as u16, reliability) };
                pair.client_send(&payload, how);
                pair.run(ms(4));
                got.extend(pair.server_recv());
            }
            pair.until(ms(30_000), "all promised", |pair| {
                got.extend(pair.server_recv());
                pair.on_client(|association, _| association.buffered()) == 0
            });
            pair.run(ms(300));
            got.extend(pair.server_recv());
            let number = |message: &[u8]| u64::from_be_bytes(message[..8].try_into().unwrap());
            let arrived: BTreeSet<u64> = got.iter().map(|(_, message)| number(message)).collect();
            assert_eq!(arrived.len(), got.len(), "{case:?}: nothing twice");
            let mut given_up = BTreeSet::new();
            for event in &pair.client_events {
                if let Event::Abandoned { context, stream, .. } = event {
                    assert!(given_up.insert(*context), "{case:?}: {context} reported twice");
                    assert_eq!(u64::from(*stream), context % 5);
                }
            }
            assert!(!given_up.is_empty(), "{case:?}: the test tests something");
            for n in 0..count {
                assert!(arrived.contains(&n) || given_up.contains(&n), "{case:?} seed {seed}: {n} vanished");
                assert!(n % 3 != 0 || (arrived.contains(&n) && !given_up.contains(&n)), "{case:?}: {n} was promised");
            }
            for stream in (0..5).filter(|_| !case.unordered) {
                let numbers: Vec<_> =
                    got.iter().filter(|(info, _)| info.stream == stream).map(|it| number(&it.1)).collect();
                assert!(numbers.is_sorted(), "{case:?} stream {stream}: {numbers:?}");
            }
            let stats = pair.on_client(|association, _| association.stats());
            assert_eq!(stats.abandoned_unsent + stats.abandoned_sent, given_up.len() as u64);
        }
    }
}
