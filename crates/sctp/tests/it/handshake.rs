//! How an association begins and ends: four messages, no state before the third, restarts, aborts, what is unknown.

use crate::common::hand::Hand;
use crate::common::{CLIENT, Pair, SERVER, kinds, link, ms, packet, pattern, raw_packet, route, tag};
use braidcast_core::{Datagram, Ecn, Instant, Lobby, Machine, Rng, Route, SocketId, Writer};
use braidcast_sctp::wire::chunk::{Abort, CookieEcho, Data, Heartbeat, Init, kind};
use braidcast_sctp::wire::{Cause, Causes, Chunk, Packet, Parameter, Parameters, seal};
use braidcast_sctp::{CloseReason, Endpoint, Event, Options, SendError, SendOptions};
use braidcast_sim::link::{LinkModel, Loss};
use braidcast_sim::{Duplex, Network};
use core::time::Duration;

fn drop_packets(numbers: &[u64]) -> LinkModel {
    LinkModel { loss: Loss::Packets(numbers.iter().copied().collect()), ..link(10, 15) }
}

fn count(events: &[Event], wanted: &Event) -> usize {
    events.iter().filter(|event| *event == wanted).count()
}

#[test]
fn four_messages_and_two_round_trips_connect() {
    let mut pair = Pair::new(&Options::default(), vec![Duplex::both(link(10, 15))]);
    let recording = pair.record();
    pair.until(ms(1000), "connect", |pair| pair.client_events.contains(&Event::Connected));
    assert!(pair.now() < Instant::from_millis(63), "{:?}", pair.now());
    let firsts = |addresses: &[&str]| recording.sent(addresses).iter().map(|it| it.kinds()[0]).collect::<Vec<_>>();
    assert_eq!(firsts(&CLIENT)[..2], [kind::INIT, kind::COOKIE_ECHO]);
    assert_eq!(firsts(&SERVER)[..2], [kind::INIT_ACK, kind::COOKIE_ACK]);
    assert!(pair.server_events.contains(&Event::Connected));
}

#[test]
fn any_of_the_four_may_be_lost() {
    for (there, back) in [(&[0][..], &[][..]), (&[1], &[]), (&[], &[0]), (&[], &[1]), (&[0, 2], &[0, 1])] {
        let duplex = Duplex::new(drop_packets(there), drop_packets(back));
        let mut pair = Pair::new(&Options::default(), vec![duplex]);
        pair.client_send(b"sent before it was up", SendOptions::default());
        pair.until(ms(30_000), "a message", |pair| !pair.server_recv().is_empty());
        pair.run(ms(5000));
        assert_eq!(count(&pair.client_events, &Event::Connected), 1, "{there:?} {back:?}");
        assert_eq!(count(&pair.server_events, &Event::Connected), 1, "{there:?} {back:?}");
        assert_eq!(pair.net.node(pair.server).associations().count(), 1);
    }
}

#[test]
fn both_paths_join_though_the_handshake_moved_to_the_other_route() {
    for (there, back) in [(&[0][..], &[][..]), (&[1], &[]), (&[], &[0]), (&[], &[1]), (&[1], &[1])] {
        let lossy = Duplex::new(drop_packets(there), drop_packets(back));
        let mut pair = Pair::connected(&Options::live(), vec![lossy, Duplex::both(link(10, 15))]);
        for id in [pair.client, pair.server] {
            assert_eq!(pair.net.node(id).associations().count(), 1, "{there:?} {back:?}");
        }
        for i in 0..2 {
            assert_eq!(pair.client_path(i).unwrap().state, braidcast_sctp::PathState::Active);
        }
    }
}

#[test]
fn a_recorded_cookie_does_not_let_a_stranger_join() {
    let mut pair = Pair::new(&Options::live(), vec![Duplex::both(link(10, 15))]);
    let recording = pair.record();
    pair.connect();
    let echo = recording.last(&CLIENT, kind::COOKIE_ECHO).unwrap();
    pair.inject_server(0, "192.0.2.9:9899", &echo);
    pair.run(ms(2000));
    assert_eq!(pair.on_server(|association, _| association.paths().count()), 1);
}

#[test]
fn a_peer_that_never_answers_is_given_up() {
    let options = Options::live().with(|it| it.timers.max_init_retransmits = 3);
    let mut pair = Pair::new(&options, vec![Duplex::both(LinkModel { loss: Loss::Uniform(1.0), ..link(10, 5) }); 2]);
    pair.until(ms(10_000), "giving up", |pair| !pair.client_events.is_empty());
    assert_eq!(pair.client_events, [Event::Closed(CloseReason::NoAnswer)]);
    assert!(pair.net.node(pair.client).association(pair.client_id).is_none());
}

#[test]
fn the_init_tries_the_second_route_when_the_first_is_dead() {
    let dead = LinkModel { loss: Loss::Uniform(1.0), ..link(10, 5) };
    let mut pair = Pair::new(&Options::live(), vec![Duplex::both(dead), Duplex::both(link(10, 5))]);
    pair.until(ms(1000), "connect", |pair| pair.client_events.contains(&Event::Connected));
    pair.client_send(b"hello", SendOptions::default());
    pair.until(ms(100), "a message", |pair| !pair.server_recv().is_empty());
}

/// An INIT with this tag and these parameters.
fn init(initiate_tag: u32, parameters: &[u8]) -> Vec<u8> {
    let parameters = Parameters::new(parameters);
    let init =
        Init { initiate_tag, a_rwnd: 100_000, outbound_streams: 9, inbound_streams: 9, initial_tsn: 5, parameters };
    packet(0, &[Chunk::Init(init)])
}

#[test]
fn ten_thousand_inits_leave_no_state() {
    let mut server = Endpoint::new(Options::default(), Rng::from_seed(1)).unwrap();
    server.listen();
    let mut buf = Vec::new();
    let mut now = Instant::ZERO;
    let mut flood = |server: &mut Endpoint, pause: Duration, polled: bool| {
        let (mut replies, mut longest) = (0, 0);
        for n in 0..10_000_u32 {
            now += pause;
            let [_, _, a, b] = n.to_be_bytes();
            let route = Route::new(SocketId(0), format!("10.9.{a}.{b}:{}", 1024 + n).parse().unwrap());
            let payload = init(n + 1, &[]);
            server.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &payload });
            while let Some(transmit) = polled.then(|| server.poll_transmit(now, &mut buf)).flatten() {
                assert_eq!((transmit.route, kinds(&buf), tag(&buf)), (route, vec![kind::INIT_ACK], n + 1));
                assert!(buf.len() <= route.longest_answer(payload.len()), "{} bytes", buf.len());
                (replies, longest) = (replies + 1, buf.len().max(longest));
            }
        }
        (replies, longest)
    };
    let (replies, longest) = flood(&mut server, ms(1), true);
    assert_eq!(replies, 10_000);
    assert!(longest < 600, "{longest} bytes");
    assert_eq!(server.associations().count(), 0);
    assert_eq!(server.poll_timeout(), None);
    // Faster ones are answered at the lobby's rate: 50,000 a second for 0.2 s.
    let (replies, _) = flood(&mut server, Duration::from_micros(20), true);
    let most = (Lobby::BURST + Lobby::PER_SECOND / 5) as i32;
    assert!((most - 2..=most).contains(&replies), "{replies} answers");
    // Nobody takes the replies: they do not pile up.
    flood(&mut server, ms(1), false);
    let waiting = core::iter::from_fn(|| server.poll_transmit(Instant::from_millis(30_000), &mut buf)).count();
    assert_eq!(waiting, Endpoint::MAX_REPLIES);
    assert_eq!(server.associations().count(), 0);
}

#[test]
fn an_answer_to_a_stranger_is_at_most_three_times_as_long_and_the_handshake_goes_on() {
    let unknown: Vec<u8> = (0..30_u8).flat_map(|n| [0xc1, n, 0, 4]).collect();
    let forward_tsn = [0xc0, 0, 0, 4];
    for parameters in [&[][..], &forward_tsn, &unknown] {
        for remote in ["192.0.2.1:9899", "[2001:db8::1]:9899", "192.0.2.1:0"] {
            let mut server = Endpoint::new(Options::live(), Rng::from_seed(1)).unwrap();
            server.listen();
            let (route, now) = (Route::new(SocketId(0), remote.parse().unwrap()), Instant::from_millis(5));
            let mut say = |payload: &[u8]| {
                let mut buf = Vec::new();
                server.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload });
                server.poll_transmit(now, &mut buf);
                buf
            };
            let first = init(7, parameters);
            let answer = say(&first);
            let (given, taken) = (first.len() + route.headers(), answer.len() + route.headers());
            assert!(taken <= 3 * given, "{given} bytes are answered by {taken}");
            let read = Packet::parse(&answer).unwrap();
            let Some(Ok(Chunk::InitAck(ack))) = read.chunks().next().and_then(Result::ok).map(Chunk::parse) else {
                panic!("no INIT ACK");
            };
            let cookie = ack.parameters.iter().flatten().find(|raw| raw.kind == 7).unwrap().value;
            let echo = packet(ack.initiate_tag, &[Chunk::CookieEcho(CookieEcho { cookie })]);
            assert_eq!(kinds(&say(&echo)), [kind::COOKIE_ACK]);
        }
    }
}

#[test]
fn a_cookie_with_any_bit_flipped_is_dropped_without_a_word() {
    let (mut hand, echo) = Hand::up_to_the_cookie(&Options::default());
    let end = 12 + usize::from(u16::from_be_bytes([echo[14], echo[15]]));
    for at in 16..end {
        let mut forged = echo.clone();
        forged[at] ^= 1 << (at % 8);
        seal(&mut forged);
        hand.server_gets(0, &forged);
        assert_eq!(hand.server.associations().count(), 0, "byte {at}");
        assert!(hand.server_sends().is_empty(), "byte {at}");
    }
    let cookie = pattern(280, 1);
    hand.server_gets(0, &packet(tag(&echo), &[Chunk::CookieEcho(CookieEcho { cookie: &cookie })]));
    assert_eq!((hand.server.associations().count(), hand.server_sends().len()), (0, 0));
    hand.server_gets(0, &echo);
    assert_eq!(hand.server.associations().count(), 1);
}

#[test]
fn a_cookie_with_the_wrong_tag_or_port_is_dropped() {
    let (mut hand, echo) = Hand::up_to_the_cookie(&Options::default());
    for at in 0..8 {
        let mut wrong = echo.clone();
        wrong[at] ^= 1;
        seal(&mut wrong);
        hand.server_gets(0, &wrong);
        assert_eq!((hand.server.associations().count(), hand.server_sends().len()), (0, 0), "byte {at}");
    }
}

#[test]
fn a_stale_cookie_is_answered_and_the_client_begins_again() {
    let (mut hand, echo) = Hand::up_to_the_cookie(&Options::default());
    hand.now += ms(60_001);
    hand.server_gets(0, &echo);
    assert_eq!(hand.server.associations().count(), 0);
    let error = hand.server_sends().remove(0);
    let raw = Packet::parse(&error).unwrap().chunks().next().unwrap().unwrap();
    let Ok(Chunk::Error(chunk)) = Chunk::parse(raw) else { panic!("{raw:?}") };
    let cause = Cause::parse(chunk.causes.iter().next().unwrap().unwrap()).unwrap();
    assert_eq!(cause, Cause::StaleCookie { staleness: 1000 });
    hand.client_gets(0, &error);
    hand.settle();
    assert!(hand.client_events().contains(&Event::Connected));
    assert_eq!(hand.server.associations().count(), 1);
}

#[test]
fn a_replayed_cookie_changes_nothing() {
    let (mut hand, echo) = Hand::up_to_the_cookie(&Options::default());
    hand.server_gets(0, &echo);
    hand.settle();
    let id = hand.client.associations().next().unwrap();
    let now = hand.now;
    hand.client.association_mut(id).unwrap().send(now, b"one", SendOptions::default()).unwrap();
    hand.settle();
    hand.server_events();
    for _ in 0..10 {
        hand.server_gets(0, &echo);
    }
    assert_eq!(hand.server.associations().count(), 1);
    assert!(hand.server_sends().iter().flat_map(|packet| kinds(packet)).all(|it| it == kind::COOKIE_ACK));
    assert!(!hand.server_events().iter().any(|event| matches!(event, Event::Restarted | Event::Connected)));
    hand.client.association_mut(id).unwrap().send(now, b"two", SendOptions::default()).unwrap();
    hand.settle();
    let (server, mut buf) = (hand.server.associations().next().unwrap(), Vec::new());
    for expected in ["one", "two"] {
        hand.server.association_mut(server).unwrap().recv(now, &mut buf).unwrap();
        assert_eq!(buf, expected.as_bytes());
    }
}

#[test]
fn both_connect_at_once_and_become_one_association() {
    let rng = Rng::from_seed(1);
    let mut net = Network::new(1);
    let options = Options::live();
    let a = net.add(Endpoint::new(options.clone(), rng.stream("a")).unwrap(), CLIENT[..2].iter().copied());
    let b = net.add(Endpoint::new(options, rng.stream("b")).unwrap(), SERVER[..2].iter().copied());
    for i in 0..2 {
        net.connect((a, i), (b, i), Duplex::both(link(10, 15)));
    }
    let back = |i: usize| Route::new(SocketId(i as u16), CLIENT[i].parse().unwrap());
    let a_id = net.with(a, |endpoint, now| endpoint.connect(now, 9899, &[route(0), route(1)]).unwrap());
    let b_id = net.with(b, |endpoint, now| endpoint.connect(now, 9899, &[back(0), back(1)]).unwrap());
    net.run_for(ms(2000));
    for (node, id) in [(a, a_id), (b, b_id)] {
        assert_eq!(net.node(node).associations().collect::<Vec<_>>(), [id]);
        let events: Vec<_> = core::iter::from_fn(|| net.poll_event(node)).map(|(_, event)| event).collect();
        assert_eq!(count(&events, &Event::Connected), 1, "{events:?}");
        assert!(!events.contains(&Event::Restarted));
        let association = net.node(node).association(id).unwrap();
        assert_eq!(association.paths().filter(|it| it.state == braidcast_sctp::PathState::Active).count(), 2);
        net.with(node, |endpoint, now| {
            endpoint.association_mut(id).unwrap().send(now, b"hello", SendOptions::default()).unwrap();
        });
    }
    net.run_for(ms(500));
    for (node, id) in [(a, a_id), (b, b_id)] {
        let mut buf = Vec::new();
        let got = net.with(node, |endpoint, now| endpoint.association_mut(id).unwrap().recv(now, &mut buf));
        assert!(got.is_some());
        assert_eq!(buf, b"hello");
    }
}

#[test]
fn a_client_that_lost_its_state_starts_over_and_data_flows_both_ways() {
    for links in 1..=2 {
        let options = Options::live();
        let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 15)); links]);
        pair.client_send(b"before", SendOptions::default());
        pair.until(ms(500), "a message", |pair| !pair.server_recv().is_empty());
        // The server is in the middle of sending when the client's machine goes.
        for n in 0..200_u64 {
            let payload = pattern(1000, n);
            pair.on_server(|association, now| association.send(now, &payload, SendOptions::default())).unwrap();
        }
        pair.run(ms(20));
        *pair.net.node_mut(pair.client) = Endpoint::new(options, Rng::from_seed(99)).unwrap();
        let routes: Vec<_> = (0..links).map(route).collect();
        pair.client_id = pair.net.with(pair.client, |endpoint, now| endpoint.connect(now, 9899, &routes).unwrap());
        pair.client_events.clear();
        pair.until(ms(5000), "restart", |pair| {
            pair.server_events.contains(&Event::Restarted) && pair.client_events.contains(&Event::Connected)
        });
        pair.connect();
        assert_eq!(pair.net.node(pair.server).associations().count(), 1);
        pair.server_events.clear();
        pair.client_send(b"after", SendOptions::default());
        pair.until(ms(1000), "a message", |pair| pair.server_recv().iter().any(|(_, it)| it == b"after"));
        assert!(pair.server_events.contains(&Event::Readable), "{:?}", pair.server_events);
        pair.client_recv();
        pair.on_server(|association, now| association.send(now, b"back", SendOptions::default())).unwrap();
        pair.until(ms(2000), "a message back", |pair| pair.client_recv().iter().any(|(_, it)| it == b"back"));
        pair.until(ms(1000), "acknowledgements", |pair| {
            pair.on_server(|association, _| association.buffered()) == 0
                && pair.on_client(|association, _| association.buffered()) == 0
        });
    }
}

#[test]
fn an_idle_association_that_restarted_still_looks_after_its_path() {
    let options = Options::live();
    let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 15))]);
    *pair.net.node_mut(pair.client) = Endpoint::new(options, Rng::from_seed(99)).unwrap();
    pair.client_id = pair.net.with(pair.client, |endpoint, now| endpoint.connect(now, 9899, &[route(0)]).unwrap());
    pair.until(ms(5000), "restart", |pair| pair.server_events.contains(&Event::Restarted));
    pair.run(ms(100));
    pair.server_events.clear();
    pair.cut(0, true);
    pair.until(ms(3000), "notice", |pair| pair.server_events.iter().any(|event| matches!(event, Event::PathDown(..))));
}

const DATA: Chunk<'static> = Chunk::Data(Data {
    tsn: 1,
    stream: 0,
    ssn: 0,
    ppid: 0,
    unordered: false,
    first: true,
    last: true,
    immediate: false,
    timed: false,
    payload: b"x",
});

#[test]
fn packets_with_a_wrong_tag_or_port_do_no_harm() {
    let mut pair = Pair::connected(&Options::live(), vec![Duplex::both(link(10, 15))]);
    let recording = pair.record();
    pair.client_send(b"x", SendOptions::default());
    pair.run(ms(100));
    let good = tag(&recording.last(&CLIENT, kind::I_DATA).unwrap());
    let abort = Chunk::Abort(Abort { reflected: false, causes: Causes::new(&[]) });
    let reflected = Chunk::Abort(Abort { reflected: true, causes: Causes::new(&[]) });
    recording.clear();
    pair.inject_server(0, CLIENT[0], &packet(good ^ 1, &[abort]));
    pair.inject_server(0, CLIENT[0], &packet(good ^ 1, &[reflected]));
    let mut wrong_port = packet(good, &[abort]);
    for at in [0, 2] {
        wrong_port[at] ^= 1;
        seal(&mut wrong_port);
        pair.inject_server(0, CLIENT[0], &wrong_port);
    }
    pair.inject_server(0, "192.0.2.9:1", &packet(good, &[abort]));
    assert!(recording.sent(&SERVER).is_empty(), "an ABORT is never answered");
    pair.inject_server(0, CLIENT[0], &packet(good ^ 1, &[DATA]));
    assert!(
        recording.sent(&SERVER).is_empty(),
        "nor data of an association that is no more, over a route that is in use"
    );
    // Data for nobody is answered by an ABORT that reflects its tag (RFC 9260 §8.4 item 8).
    let mut stranger = packet(good ^ 1, &[DATA]);
    stranger[0] ^= 1;
    seal(&mut stranger);
    pair.inject_server(0, CLIENT[0], &stranger);
    let answer = recording.sent(&SERVER).pop().unwrap();
    assert_eq!((answer.kinds(), tag(&answer.bytes)), (vec![kind::ABORT], good ^ 1));
    pair.server_recv();
    pair.client_send(b"still here", SendOptions::default());
    pair.until(ms(500), "a message", |pair| !pair.server_recv().is_empty());
    assert!(!pair.server_events.iter().any(|event| matches!(event, Event::Closed(_))));
    assert!(!pair.client_events.iter().any(|event| matches!(event, Event::Closed(_))));
}

#[test]
fn an_abort_ends_both_ends_at_once_with_its_reason() {
    for by_client in [true, false] {
        let mut pair = Pair::connected(&Options::live(), vec![Duplex::both(link(10, 15)); 2]);
        pair.client_send(&pattern(50_000, 1), SendOptions::default());
        let told = Event::Closed(CloseReason::Aborted);
        if by_client {
            pair.on_client(|association, now| association.abort(now, "enough"));
        } else {
            pair.on_server(|association, now| association.abort(now, "enough"));
        }
        pair.run(ms(100));
        let (here, there) = if by_client {
            (&pair.client_events, &pair.server_events)
        } else {
            (&pair.server_events, &pair.client_events)
        };
        assert_eq!(here.last(), Some(&told));
        let Some(Event::Closed(CloseReason::AbortedByPeer(why))) = there.last() else { panic!("{there:?}") };
        assert!(why.to_string().contains("enough"), "{why}");
        for node in [pair.client, pair.server] {
            assert_eq!(pair.net.node(node).associations().count(), 0);
        }
    }
}

#[test]
fn a_peer_that_does_not_listen_refuses() {
    let mut hand = Hand::new(&Options::default());
    hand.server.stop_listening();
    let id = hand.connect();
    hand.settle();
    let events = hand.client_events();
    assert!(matches!(&events[..], [Event::Closed(CloseReason::AbortedByPeer(_))]), "{events:?}");
    assert!(hand.client.association(id).is_none());
}

#[test]
fn no_more_associations_than_allowed() {
    let mut hand = Hand::new(&Options::default().with(|it| it.limits.max_associations = 0));
    hand.connect();
    hand.settle();
    assert!(matches!(hand.client_events()[..], [Event::Closed(CloseReason::AbortedByPeer(_))]));
    assert_eq!(hand.server.associations().count(), 0);
}

/// A stranger at `remote` shakes hands by hand; the chunks that answer its COOKIE ECHO, and its peer's tag.
fn stranger(server: &mut Endpoint, now: Instant, remote: &str) -> (Vec<u8>, u32) {
    let route = Route::new(SocketId(0), remote.parse().unwrap());
    let mut say = |payload: &[u8]| {
        let mut buf = Vec::new();
        server.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload });
        let mut answer = Vec::new();
        while let Some(transmit) = server.poll_transmit(now, &mut buf) {
            if transmit.route == route {
                answer.clone_from(&buf);
            }
        }
        answer
    };
    let answer = say(&init(7, &[]));
    let read = Packet::parse(&answer).unwrap();
    let Some(Ok(Chunk::InitAck(ack))) = read.chunks().next().and_then(Result::ok).map(Chunk::parse) else {
        panic!("no INIT ACK");
    };
    let cookie = ack.parameters.iter().flatten().find(|raw| raw.kind == 7).unwrap().value;
    (kinds(&say(&packet(ack.initiate_tag, &[Chunk::CookieEcho(CookieEcho { cookie })]))), ack.initiate_tag)
}

#[test]
fn one_host_cannot_take_all_associations() {
    let mut server =
        Endpoint::new(Options::default().with(|it| it.limits.max_associations = 8), Rng::from_seed(1)).unwrap();
    server.listen();
    let at = Instant::from_millis;
    let (taken, tag) = stranger(&mut server, at(1), "192.0.2.9:1000");
    assert_eq!(taken, [kind::COOKIE_ACK]);
    for n in 0..7 {
        assert_eq!(stranger(&mut server, at(2 + n), &format!("192.0.2.1:{}", 1000 + n)).0, [kind::COOKIE_ACK]);
    }
    // All have just been heard.
    assert_eq!(stranger(&mut server, at(100), "192.0.2.1:2000").0, [kind::ABORT]);
    for n in 0..50 {
        let now = at(1000 + 10 * n);
        let (taken, _) = stranger(&mut server, now, &format!("192.0.2.{}:{}", 1 + n % 2, 3000 + n));
        assert!(taken == [kind::COOKIE_ACK] || n >= 7, "{n}: {taken:?}");
        assert!(server.associations().count() <= 8);
    }
    // The one of the other host has been silent for longer than any, and is still there.
    let route = Route::new(SocketId(0), "192.0.2.9:1000".parse().unwrap());
    let hello = packet(tag, &[Chunk::Heartbeat(Heartbeat { info: &[1; 8] })]);
    server.handle_datagram(at(2000), Datagram { route, ecn: Ecn::NotEct, payload: &hello });
    let mut buf = Vec::new();
    let next = || server.poll_transmit(at(2000), &mut buf).map(|it| (it.route, kinds(&buf)));
    let answers: Vec<_> = core::iter::from_fn(next).collect();
    let answered = answers.iter().any(|(to, kinds)| *to == route && kinds.contains(&kind::HEARTBEAT_ACK));
    assert!(answered, "{answers:?}");
}

#[test]
fn an_init_with_tag_zero_is_dropped_and_one_without_streams_or_room_refused() {
    let mut hand = Hand::new(&Options::default());
    hand.server_gets(0, &init(0, &[]));
    assert!(hand.server_sends().is_empty(), "RFC 9260 §3.3.2: silently discarded");
    // a_rwnd, outbound and inbound streams.
    for field in [20..24, 24..26, 26..28] {
        let mut none = init(7, &[]);
        none[field].fill(0);
        seal(&mut none);
        hand.server_gets(0, &none);
        let answer = hand.server_sends().remove(0);
        assert_eq!((kinds(&answer), tag(&answer)), (vec![kind::ABORT], 7));
    }
}

#[test]
fn unknown_chunks_are_treated_as_their_high_bits_say() {
    let mut pair = Pair::connected(&Options::live(), vec![Duplex::both(link(10, 15))]);
    let recording = pair.record();
    pair.client_send(b"x", SendOptions::default());
    pair.run(ms(100));
    let tag = tag(&recording.last(&CLIENT, kind::I_DATA).unwrap());
    let heartbeat = Chunk::Heartbeat(Heartbeat { info: b"well?" });
    for (unknown, skipped, reported) in
        [(0x3e, false, false), (0x7e, false, true), (0xbe, true, false), (0xfe, true, true)]
    {
        let mut chunks = vec![unknown, 0, 0, 5, 9, 0, 0, 0];
        heartbeat.emit(&mut Writer::new(&mut chunks));
        recording.clear();
        pair.inject_server(0, CLIENT[0], &raw_packet(tag, &chunks));
        let answers = (recording.count(&SERVER, kind::HEARTBEAT_ACK) == 1, recording.count(&SERVER, kind::ERROR) == 1);
        assert_eq!(answers, (skipped, reported), "{unknown:#x}");
        if reported {
            let error = recording.last(&SERVER, kind::ERROR).unwrap();
            assert!(error.windows(5).any(|window| window == &chunks[..5]), "the chunk comes back whole");
        }
    }
}

#[test]
fn unknown_parameters_are_treated_as_their_high_bits_say() {
    for (unknown, skipped, reported) in
        [(0x3ffe_u16, false, false), (0x7ffe, false, true), (0xbffe, true, false), (0xfffe, true, true)]
    {
        let mut parameters = Vec::new();
        let mut w = Writer::new(&mut parameters);
        w.u16(unknown);
        w.u16(5);
        w.bytes(&[9, 0, 0, 0]);
        // A second one, which is always reported unless the first says stop.
        w.u16(0xfffd);
        w.u16(4);
        let mut hand = Hand::new(&Options::default());
        hand.server_gets(0, &init(7, &parameters));
        let answer = hand.server_sends().remove(0);
        let raw = Packet::parse(&answer).unwrap().chunks().next().unwrap().unwrap();
        let Ok(Chunk::InitAck(ack)) = Chunk::parse(raw) else { panic!("{raw:?}") };
        let told: Vec<_> = ack
            .parameters
            .iter()
            .filter_map(|raw| match Parameter::parse(raw.unwrap()) {
                Ok(Parameter::UnrecognizedParameter(bytes)) => Some(u16::from_be_bytes([bytes[0], bytes[1]])),
                _ => None,
            })
            .collect();
        let mut expected = Vec::new();
        expected.extend(reported.then_some(unknown));
        expected.extend(skipped.then_some(0xfffd));
        assert_eq!(told, expected, "{unknown:#x}");
    }
}

#[test]
fn what_cannot_be_sent_is_refused_with_the_limit() {
    let options = Options::default().with(|it| {
        it.limits.streams = 4;
        it.limits.send_buffer = 10_000;
        it.limits.max_message = 5000;
    });
    let mut pair = Pair::connected(&options, vec![Duplex::both(link(10, 15))]);
    let on = |stream| SendOptions { stream, ..SendOptions::default() };
    pair.on_client(|association, now| {
        assert_eq!(association.send(now, b"x", on(4)), Err(SendError::NoSuchStream { stream: 4, count: 4 }));
        assert_eq!(association.send(now, &[], on(0)), Err(SendError::Empty));
        assert_eq!(association.send(now, &[0; 5001], on(0)), Err(SendError::TooLong { len: 5001, limit: 5000 }));
        assert_eq!(association.send(now, &[0; 5000], on(0)), Ok(()));
        assert_eq!(association.send(now, &[0; 5000], on(0)), Ok(()));
        let full = SendError::BufferFull { needed: 1, free: 0, limit: 10_000 };
        assert_eq!(association.send(now, &[0; 1], on(0)), Err(full));
    });
    pair.until(ms(500), "room", |pair| pair.client_events.contains(&Event::Writable));
    pair.on_client(|association, now| association.shutdown(now));
    pair.on_client(|association, now| {
        assert_eq!(association.send(now, b"x", on(0)), Err(SendError::Closing));
    });
}
