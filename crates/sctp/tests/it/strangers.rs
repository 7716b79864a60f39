//! What somebody without the keys brings about beside protected associations, and what a peer that
//! lost its state does.

use crate::common;
use braidcast_core::Rng;
use braidcast_sctp::wire::chunk::Init;
use braidcast_sctp::wire::chunk::{Abort, Shutdown, ShutdownComplete, kind};
use braidcast_sctp::wire::param::kind as parameter;
use braidcast_sctp::wire::{Causes, Chunk, Packet, Parameters};
use braidcast_sctp::{
    AssociationId, CloseReason, Endpoint, Event, Options, PathState, PeerCause, SecurityOptions, SendOptions,
};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use braidcast_sim::Duplex;
use common::hand::Hand;
use common::{CLIENT, Flow, Pair, SERVER, link, ms, packet, route, tag, transfer};
use std::sync::Arc;

/// What somebody in between changes of an INIT, and how.
type Change = (&'static str, fn(&mut Init<'_>));

fn options() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    Options::live().with(|it| it.security = Some(SecurityOptions::new(method)))
}

fn two_links() -> Vec<Duplex> {
    vec![Duplex::both(link(10, 5)), Duplex::both(link(10, 20))]
}

fn closed(events: &[Event]) -> Option<&CloseReason> {
    events.iter().find_map(|event| match event {
        Event::Closed(reason) => Some(reason),
        _ => None,
    })
}

/// Tags of the packets to the server and to the client.
fn tags(pair: &mut Pair) -> (u32, u32) {
    let recording = pair.record();
    pair.client_send(b"x", SendOptions::default());
    pair.until(ms(5000), "packets in both directions", |_| {
        [&CLIENT, &SERVER].iter().all(|end| !recording.sent(&end[..]).is_empty())
    });
    let last = |end: &[&str]| tag(&recording.sent(end).last().unwrap().bytes);
    (last(&CLIENT), last(&SERVER))
}

/// All chunks in clear that end an association of others.
fn endings(pair: &mut Pair, (to_server, to_client): (u32, u32)) {
    for reflected in [false, true] {
        let (server_tag, client_tag) = if reflected { (to_client, to_server) } else { (to_server, to_client) };
        let chunks = [
            Chunk::Abort(Abort { reflected, causes: Causes::new(&[]) }),
            Chunk::ShutdownComplete(ShutdownComplete { reflected }),
            Chunk::Shutdown(Shutdown { cumulative_tsn: 0 }),
        ];
        for path in 0..2 {
            for chunk in &chunks {
                pair.inject_server(path, CLIENT[usize::from(path)], &packet(server_tag, &[*chunk]));
                pair.inject_client(path, SERVER[usize::from(path)], &packet(client_tag, &[*chunk]));
            }
        }
    }
}

#[test]
fn what_is_said_in_clear_ends_nothing_however_long_the_fade_behind_it() {
    for fade in [100, 400, 600, 3000, 20_000] {
        let mut pair = Pair::connected(&options(), two_links());
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(200));
        flow.finish(&mut pair);
        let tags = tags(&mut pair);
        pair.until(ms(1000), "the message", |pair| !pair.server_recv().is_empty());
        endings(&mut pair, tags);
        (0..2).for_each(|path| pair.cut(path, true));
        flow.run(&mut pair, ms(fade));
        endings(&mut pair, tags);
        (0..2).for_each(|path| pair.cut(path, false));
        let gap = flow.resumes(&mut pair);
        assert!(gap < ms(1500), "after a fade of {fade} ms: {gap:?}");
        flow.run(&mut pair, ms(500));
        flow.finish(&mut pair);
        assert_eq!(closed(&pair.client_events), None, "{fade} ms");
        assert_eq!(pair.net.node(pair.client).associations().count(), 1);
        // What asked at the server who is there has left again.
        pair.until(ms(12_000), "one association is left", |pair| {
            pair.net.node(pair.server).associations().count() == 1
        });
        transfer(&mut pair, 50_000, 1000);
    }
}

#[test]
fn who_is_there_is_asked_once_a_second_at_most() {
    let mut pair = Pair::connected(&options(), two_links());
    let tags = tags(&mut pair);
    let recording = pair.record();
    let begun = pair.now();
    while pair.now() - begun < ms(5000) {
        endings(&mut pair, tags);
        pair.run(ms(5));
    }
    let asked = recording.count(&CLIENT, kind::INIT);
    assert!((1..=12).contains(&asked), "{asked} INITs over two paths in 5 s");
    assert_eq!(closed(&pair.client_events), None);
}

/// Puts another endpoint in the place of the client, or of the server, which forgets everything.
fn restart(pair: &mut Pair, client: bool, seed: u64) {
    let node = if client { pair.client } else { pair.server };
    let mut fresh = Endpoint::new(options(), Rng::from_seed(seed)).unwrap();
    fresh.listen();
    pair.net.with(node, |endpoint, _| *endpoint = fresh);
}

#[test]
fn a_client_that_crashed_is_back_from_the_same_addresses_within_two_seconds() {
    let mut pair = Pair::connected(&options(), two_links());
    transfer(&mut pair, 50_000, 1000);
    for round in 0..3 {
        pair.client_events.clear();
        pair.server_events.clear();
        restart(&mut pair, true, 100 + round);
        let (client, routes) = (pair.client, [route(0), route(1)]);
        pair.client_id = pair.net.with(client, |endpoint, now| endpoint.connect(now, 9899, &routes).unwrap());
        let begun = pair.now();
        pair.until(ms(2000), "the newcomer's place", |pair| {
            pair.client_events.contains(&Event::Connected)
                && closed(&pair.server_events).is_some()
                && pair.net.node(pair.server).associations().count() == 1
        });
        assert!(pair.now() - begun < ms(1000), "{:?}", pair.now() - begun);
        transfer(&mut pair, 50_000, 1000);
    }
}

#[test]
fn a_client_learns_within_two_seconds_that_its_server_was_killed_and_connects_again() {
    let mut pair = Pair::connected(&options(), two_links());
    transfer(&mut pair, 50_000, 1000);
    restart(&mut pair, false, 77);
    pair.client_send(b"x", SendOptions::default());
    let begun = pair.now();
    pair.until(ms(2000), "the client learns it", |pair| closed(&pair.client_events).is_some());
    assert_eq!(closed(&pair.client_events), Some(&CloseReason::AbortedByPeer(PeerCause::None)));
    let (client, routes) = (pair.client, [route(0), route(1)]);
    pair.client_events.clear();
    pair.client_id = pair.net.with(client, |endpoint, now| endpoint.connect(now, 9899, &routes).unwrap());
    pair.until(ms(2000), "connected again", |pair| pair.client_events.contains(&Event::Connected));
    assert!(pair.now() - begun < ms(2000));
    pair.connect();
    transfer(&mut pair, 50_000, 1000);
    assert_eq!(pair.net.node(pair.server).associations().count(), 1);
}

#[test]
fn a_stranger_at_a_members_address_changes_nothing() {
    // Who sees packets and can send from a member's address gets as far as the cookie, and has no
    // key.
    let mut pair = Pair::connected(&options(), two_links());
    let mut flow = Flow::default();
    let mut stranger = Pair::new(&options(), two_links());
    let recording = stranger.record();
    stranger.run(ms(15));
    let init = recording.sent(&CLIENT)[0].bytes.clone();
    for _ in 0..20 {
        let answers = pair.record();
        pair.inject_server(0, CLIENT[0], &init);
        flow.run(&mut pair, ms(100));
        let init_ack = answers.last(&SERVER, kind::INIT_ACK).expect("it is answered as from anybody");
        stranger.inject_client(0, SERVER[0], &init_ack);
        stranger.run(ms(1));
        if let Some(echo) = recording.last(&CLIENT, kind::COOKIE_ECHO) {
            pair.inject_server(0, CLIENT[0], &echo);
        }
        flow.run(&mut pair, ms(100));
    }
    flow.finish(&mut pair);
    assert_eq!(closed(&pair.client_events), None);
    assert!(!pair.server_events.contains(&Event::Restarted));
}

#[test]
fn both_connect_at_once_and_one_protected_association_comes_of_it() {
    let mut pair = Pair::new(&options(), two_links());
    let server = pair.server;
    let back = [braidcast_core::Route::new(braidcast_core::SocketId(0), CLIENT[0].parse().unwrap())];
    pair.net.with(server, |endpoint, now| endpoint.connect(now, 9899, &back).unwrap());
    pair.until(ms(3000), "both are told", |pair| {
        [&pair.client_events, &pair.server_events].iter().all(|events| events.contains(&Event::Connected))
    });
    pair.run(ms(3000));
    assert_eq!(pair.net.node(pair.server).associations().count(), 1);
    transfer(&mut pair, 50_000, 1000);
}

/// The packet with its INIT or INIT ACK as `change` leaves it: the chunk, and the parameters that
/// it keeps.
fn changed(bytes: &[u8], change: &dyn Fn(&mut Init<'_>), keeps: &dyn Fn(u16) -> bool) -> Vec<u8> {
    let read = Packet::parse(bytes).unwrap();
    let chunk = Chunk::parse(read.chunks().next().unwrap().unwrap()).unwrap();
    let (Chunk::Init(mut init) | Chunk::InitAck(mut init)) = chunk else { panic!("{chunk:?}") };
    let kept = init.parameters.iter().flatten().filter(|raw| keeps(raw.kind));
    let mut parameters = Vec::new();
    for raw in kept {
        parameters.extend_from_slice(raw.bytes);
        parameters.resize(parameters.len().next_multiple_of(4), 0);
    }
    init.parameters = Parameters::new(&parameters);
    change(&mut init);
    let it = if matches!(chunk, Chunk::Init(_)) { Chunk::Init(init) } else { Chunk::InitAck(init) };
    packet(read.header.verification_tag, &[it])
}

/// A handshake and what follows, with somebody in between who changes both INITs. Returns how it
/// ended at both ends, and whether either was told that it is connected.
fn with_somebody_in_between(
    there: &dyn Fn(&[u8]) -> Vec<u8>,
    back: &dyn Fn(&[u8]) -> Vec<u8>,
) -> (Option<CloseReason>, Option<CloseReason>, bool) {
    let mut hand = Hand::new(&options());
    hand.connect();
    let init = hand.client_sends().remove(0);
    hand.server_gets(0, &there(&init));
    let init_ack = hand.server_sends().remove(0);
    hand.client_gets(0, &back(&init_ack));
    let (mut client, mut server) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        hand.settle();
        client.extend(hand.client_events());
        server.extend(hand.server_events());
        hand.now += ms(20);
    }
    let told = client.contains(&Event::Connected) || server.contains(&Event::Connected);
    (closed(&client).cloned(), closed(&server).cloned(), told)
}

#[test]
fn who_changes_what_is_offered_is_found_out_at_once() {
    let all = |_| true;
    let same = |_: &mut Init<'_>| {};
    let (client, server, told) = with_somebody_in_between(&<[u8]>::to_vec, &<[u8]>::to_vec);
    assert_eq!((client, server, told), (None, None, true), "nobody in between");
    let offered = [
        parameter::SUPPORTED_EXTENSIONS,
        parameter::FORWARD_TSN_SUPPORTED,
        parameter::ECN_CAPABLE,
        parameter::ZERO_CHECKSUM_ACCEPTABLE,
        parameter::PADDING,
    ];
    for gone in offered {
        let strip = |bytes: &[u8]| changed(bytes, &same, &|kind| kind != gone);
        for (there, back) in [(true, true), (true, false), (false, true)] {
            let pass = |on: bool, bytes: &[u8]| if on { strip(bytes) } else { bytes.to_vec() };
            let (client, server, told) = with_somebody_in_between(&|it| pass(there, it), &|it| pass(back, it));
            if gone == parameter::PADDING && !there {
                continue; // No INIT ACK has it.
            }
            assert!(!told, "{gone:#06x} {there} {back}");
            let why = format!("{gone:#06x} {there} {back}: {client:?} {server:?}");
            assert!(why.contains("somebody in between changed what the two ends offered each other"), "{why}");
            assert!(client.is_some() && server.is_some(), "{why}");
        }
    }
    let changes: [Change; 3] = [
        ("streams there", |init| init.outbound_streams = 6),
        ("streams back", |init| init.inbound_streams = 6),
        ("window", |init| init.a_rwnd = 2000),
    ];
    for (what, change) in changes {
        let change = |bytes: &[u8]| changed(bytes, &change, &all);
        let (client, server, told) = with_somebody_in_between(&change, &change);
        assert!(!told && client.is_some() && server.is_some(), "{what}: {client:?} {server:?}");
    }
}

/// Two ends up to the cookie, which is as short as one of a stranger can be: its INIT has what it must have.
fn up_to_the_shortest_cookie(options: &Options) -> (Hand, Vec<u8>) {
    let mut hand = Hand::new(options);
    hand.connect();
    let init = changed(&hand.client_sends().remove(0), &|_| {}, &|kind| kind == parameter::KEY_MANAGEMENT);
    hand.server_gets(0, &init);
    let init_ack = hand.server_sends().remove(0);
    hand.client_gets(0, &init_ack);
    let echo = hand.client_sends().remove(0);
    (hand, echo)
}

/// Somebody sends a cookie as from another address, and the server has much to say: that address
/// gets a few heartbeats, and never more than three times what was sent in its name.
#[test]
fn a_cookie_from_another_address_than_its_own_brings_that_one_no_data() {
    let cases = [(options(), false), (options(), true), (Options::live(), false), (Options::live(), true)];
    for (options, shortest) in cases {
        let (mut hand, echo) =
            if shortest { up_to_the_shortest_cookie(&options) } else { Hand::up_to_the_cookie(&options) };
        hand.server_gets(1, &echo);
        let id = hand.server.associations().next().expect("perhaps the peer uses its other address");
        for _ in 0..50 {
            let message = [0; 1000];
            hand.server.association_mut(id).unwrap().send(hand.now, &message, SendOptions::default()).unwrap();
        }
        let mut bytes = 0;
        for n in 0..400 {
            bytes += hand.server_sends().iter().map(|packet| packet.len() + 28).sum::<usize>();
            hand.server_events();
            // A session sends away who says nothing.
            if let Some(association) = hand.server.association_mut(id).filter(|_| shortest && n == 12) {
                association.abort(hand.now, "nothing was said for three seconds");
            }
            hand.now += ms(250);
        }
        assert!((44..3 * (echo.len() + 28)).contains(&bytes), "{bytes} bytes for {}", echo.len() + 28);
        assert_eq!(hand.server.associations().count(), 0, "nobody is there");
    }
}

/// The client's other address is heard first, if it is there or not: in both cases there is one
/// association, at once.
#[test]
fn a_cookie_from_another_address_leads_to_the_one_association_of_its_client() {
    for options in [options(), Options::live()] {
        for is_there in [false, true] {
            let (mut hand, echo) = Hand::up_to_the_cookie(&options);
            hand.server_gets(1, &echo);
            let asked = hand.server_sends();
            if is_there {
                // As its routes are: it answers where it is asked.
                asked.iter().for_each(|packet| hand.client_gets(0, packet));
                hand.client_sends().iter().for_each(|packet| hand.server_gets(1, packet));
            } else {
                hand.server_gets(0, &echo);
            }
            let ids: Vec<_> = hand.server.associations().collect();
            let [id] = ids[..] else { panic!("{ids:?}") };
            let usable = hand.server.association(id).unwrap().paths().filter(|path| path.state == PathState::Active);
            let from: Vec<_> = usable.map(|path| path.route.remote.to_string()).collect();
            assert_eq!(from, [CLIENT[usize::from(is_there)]]);
        }
    }
}

#[test]
fn an_init_without_padding_is_answered_too() {
    let mut hand = Hand::new(&options());
    hand.connect();
    let init = hand.client_sends().remove(0);
    let short = changed(&init, &|_| {}, &|kind| kind == parameter::KEY_MANAGEMENT);
    hand.server_gets(0, &short);
    let answers = hand.server_sends();
    assert!(answers.len() == 1 && answers[0].len() + 28 <= 3 * (short.len() + 28), "{}", short.len());
}

/// What a client sent before it crashed may arrive after it is back, over the slower of its paths.
/// A record alone does not restore the association that it has forgotten.
#[test]
fn a_record_that_comes_late_keeps_no_association_that_is_dead() {
    for slow in [100, 200, 300, 400] {
        let links = vec![Duplex::both(link(10, 5)), Duplex::both(link(10, slow))];
        let mut pair = Pair::connected(&options(), links);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(2000));
        pair.server_events.clear();
        pair.client_events.clear();
        restart(&mut pair, true, 100 + slow);
        let (client, routes) = (pair.client, [route(0), route(1)]);
        pair.client_id = pair.net.with(client, |endpoint, now| endpoint.connect(now, 9899, &routes).unwrap());
        pair.until(ms(5000), "the newcomer alone", |pair| {
            pair.client_events.contains(&Event::Connected)
                && closed(&pair.server_events).is_some()
                && pair.net.node(pair.server).associations().count() == 1
        });
    }
}

/// Two ends that have their keys, what the client calls its association, and the tag in packets to
/// the server.
fn agreed() -> (Hand, AssociationId, u32) {
    let mut hand = Hand::new(&options());
    let id = hand.connect();
    for _ in 0..100 {
        hand.settle();
        hand.now += ms(10);
    }
    hand.client.association_mut(id).unwrap().send(hand.now, b"x", SendOptions::default()).unwrap();
    let sent = hand.client_sends();
    let old = tag(&sent[0]);
    sent.iter().for_each(|it| hand.server_gets(0, it));
    for _ in 0..20 {
        hand.settle();
        hand.now += ms(10);
    }
    hand.server_events();
    (hand, id, old)
}

/// Somebody forges an ABORT, lets the client's question through and drops all else that it sends, for
/// longer than any doubt lasts, and in one case the question's answers too. That is silence, and no
/// answer: the server keeps the association.
#[test]
fn silence_of_the_old_association_beside_the_one_that_asks_ends_nothing() {
    for drops_answers in [false, true] {
        let (mut hand, id, old) = agreed();
        let back = hand.server.associations().next().unwrap();
        hand.client_gets(0, &packet(old, &[Chunk::Abort(Abort { reflected: true, causes: Causes::new(&[]) })]));
        let (begun, mut proved) = (hand.now, 0);
        while hand.now - begun < ms(6000) {
            let (there, back) = (hand.client_sends(), hand.server_sends());
            hand.now += ms(10);
            for bytes in there.iter().filter(|bytes| tag(bytes) != old) {
                if proved == 0 || !drops_answers {
                    hand.server_gets(0, bytes);
                }
                // A record of the association that asks: the server has its proof.
                proved += usize::from(bytes.get(12) == Some(&kind::DTLS));
            }
            back.iter().for_each(|it| hand.client_gets(0, it));
        }
        assert!(proved > 0);
        assert_eq!((closed(&hand.server_events()), closed(&hand.client_events())), (None, None), "{drops_answers}");
        // The attacker is gone.
        for _ in 0..1500 {
            hand.settle();
            hand.now += ms(10);
        }
        assert_eq!(hand.server.associations().collect::<Vec<_>>(), [back], "who asked has left");
        hand.client.association_mut(id).unwrap().send(hand.now, b"y", SendOptions::default()).unwrap();
        hand.settle();
        let mut message = Vec::new();
        let association = hand.server.association_mut(back).unwrap();
        while association.recv(hand.now, &mut message).is_some() && message != b"y" {}
        assert_eq!(message, b"y");
    }
}

/// The server has ended it, and the ABORT was lost: the client asks, and believes the server's word in
/// a record.
#[test]
fn an_end_whose_association_is_gone_at_the_other_end_learns_it() {
    let (mut hand, id, _) = agreed();
    let back = hand.server.associations().next().unwrap();
    hand.server.association_mut(back).unwrap().abort(hand.now, "lost");
    hand.server_sends();
    hand.server_events();
    hand.client.association_mut(id).unwrap().send(hand.now, b"y", SendOptions::default()).unwrap();
    let begun = hand.now;
    while closed(&hand.client_events()).is_none() {
        hand.settle();
        hand.now += ms(10);
        assert!(hand.now - begun < ms(2000), "the client learned nothing");
    }
}

/// The SHUTDOWN ACK is lost, and somebody says in clear that all is over: the end that shuts down
/// learns by another one that its peer has everything.
#[test]
fn a_shutdown_that_a_word_in_clear_completes_is_one_at_both_ends() {
    for chunk in [
        Chunk::ShutdownComplete(ShutdownComplete { reflected: true }),
        Chunk::Abort(Abort { reflected: true, causes: Causes::new(&[]) }),
    ] {
        let (mut hand, id, _) = agreed();
        hand.client_events();
        hand.client.association_mut(id).unwrap().shutdown(hand.now);
        hand.client_sends().iter().for_each(|packet| hand.server_gets(0, packet));
        let lost = hand.server_sends();
        hand.server_gets(0, &packet(tag(&lost[0]), &[chunk]));
        hand.settle();
        let both = [hand.client_events(), hand.server_events()];
        let reasons = both.each_ref().map(|events| closed(events).cloned());
        assert_eq!(reasons, [Some(CloseReason::Shutdown), Some(CloseReason::Shutdown)]);
    }
}

/// A record of an association that is gone is answered though another one stands at its address: by
/// one packet that is no longer.
#[test]
fn a_record_of_an_association_that_is_gone_is_answered() {
    let mut hand = Hand::new(&options());
    let id = hand.connect();
    hand.settle();
    hand.client.association_mut(id).unwrap().send(hand.now, b"x", SendOptions::default()).unwrap();
    let mut record = hand.client_sends().remove(0);
    assert_eq!(record[12], kind::DTLS);
    let gone = tag(&record) ^ 1;
    record[4..8].copy_from_slice(&gone.to_be_bytes());
    braidcast_sctp::wire::seal(&mut record);
    hand.server_gets(0, &record);
    let answers = hand.server_sends();
    let [answer] = &answers[..] else { panic!("{} answers", answers.len()) };
    assert_eq!((tag(answer), answer[12], answer[13] & 1), (gone, kind::ABORT, 1));
    assert!(answer.len() <= record.len());
    assert!(hand.server.associations().count() == 1 && closed(&hand.server_events()).is_none());
}
