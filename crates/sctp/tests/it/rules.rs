//! Rules of RFC 9260 that a well-behaved peer never tries: each test is a sentence of `docs/requirements/rfc9260.txt`.

use crate::common;
use crate::common::hand::{Hand, feed};
use crate::common::{CLIENT, kinds, ms, packet, raw_packet, route, tag};
use braidcast_core::{Machine, Rng, Writer};
use braidcast_sctp::wire::chunk::{
    Abort, CookieEcho, ErrorChunk, ForwardTsn, Heartbeat, IForwardTsn, Init, Sack, ShutdownComplete, kind,
};
use braidcast_sctp::wire::{Cause, Causes, Chunk, Entries, Packet, Parameters};
use braidcast_sctp::{AssociationId, CloseReason, Endpoint, Event, Options, SendOptions};

/// Two ends whose handshake is done, with the tags of packets to each and the client's initial TSN.
struct Up {
    hand: Hand,
    id: AssociationId,
    to_client: u32,
    to_server: u32,
    tsn: u32,
}

/// The INIT or INIT ACK that a packet holds.
fn init_of(bytes: &[u8]) -> Init<'_> {
    let packet = Packet::parse(bytes).unwrap();
    match Chunk::parse(packet.chunks().next().unwrap().unwrap()) {
        Ok(Chunk::Init(init) | Chunk::InitAck(init)) => init,
        other => panic!("{other:?}"),
    }
}

fn up(options: &Options) -> Up {
    let mut hand = Hand::new(options);
    let id = hand.connect();
    let init = hand.client_sends().remove(0);
    let (to_client, tsn) = (init_of(&init).initiate_tag, init_of(&init).initial_tsn);
    hand.server_gets(0, &init);
    let init_ack = hand.server_sends().remove(0);
    let to_server = init_of(&init_ack).initiate_tag;
    hand.client_gets(0, &init_ack);
    hand.settle();
    Up { hand, id, to_client, to_server, tsn }
}

fn closed(events: &[Event]) -> Option<&CloseReason> {
    events.iter().find_map(|event| if let Event::Closed(reason) = event { Some(reason) } else { None })
}

/// The first cause of the ABORT or ERROR in a packet, by its code.
fn cause(bytes: &[u8]) -> Option<u16> {
    let packet = Packet::parse(bytes).unwrap();
    let causes = packet.chunks().flatten().find_map(|raw| match Chunk::parse(raw) {
        Ok(Chunk::Abort(abort)) => Some(abort.causes),
        Ok(Chunk::Error(error)) => Some(error.causes),
        _ => None,
    })?;
    causes.iter().flatten().next().and_then(|raw| Cause::parse(raw).ok()).map(|it| it.kind())
}

#[test]
fn who_acknowledges_what_was_never_sent_is_left() {
    for (beyond, gap) in [(1, None), (0, Some((1, 1))), (0, Some((2, 9)))] {
        let mut it = up(&Options::default());
        it.hand.client.association_mut(it.id).unwrap().send(it.hand.now, b"one", SendOptions::default()).unwrap();
        assert_eq!(it.hand.client_sends().len(), 1);
        let blocks: Vec<u8> = gap
            .iter()
            .flat_map(|(start, end): &(u16, u16)| [start.to_be_bytes(), end.to_be_bytes()].concat())
            .collect();
        let cumulative_tsn = it.tsn.wrapping_add(beyond);
        let sack =
            Sack { cumulative_tsn, a_rwnd: 9000, flags: 0, gaps: Entries::new(&blocks), duplicates: Entries::EMPTY };
        it.hand.client_gets(0, &packet(it.to_client, &[Chunk::Sack(sack)]));
        let sent = it.hand.client_sends();
        assert!(sent.len() == 1 && kinds(&sent[0]) == [kind::ABORT], "{beyond} {gap:?}");
        assert!(matches!(closed(&it.hand.client_events()), Some(CloseReason::Violation(_))));
    }
}

#[test]
fn an_init_ack_with_values_that_it_must_not_have_is_answered_by_abort() {
    // Offset of the field in the packet, its value, `true` if that ends the association, and the flags
    // of the ABORT.
    for (at, value, end, flags) in [
        (16, &[0, 0, 0, 0][..], true, 1),
        (24, &[0, 0], true, 0),
        (26, &[0, 0], true, 0),
        (20, &[0, 0, 5, 219], false, 0),
    ] {
        let mut hand = Hand::new(&Options::default());
        let _id = hand.connect();
        let init = hand.client_sends().remove(0);
        hand.server_gets(0, &init);
        let good = hand.server_sends().remove(0);
        let mut bad = good.clone();
        bad[at..at + value.len()].copy_from_slice(value);
        hand.client_gets(0, &raw_packet(tag(&good), &bad[12..]));
        let sent = hand.client_sends();
        assert!(sent.len() == 1 && kinds(&sent[0]) == [kind::ABORT], "{at}: {sent:?}");
        assert_eq!(sent[0][13], flags, "the T bit");
        let expected = if flags == 1 { tag(&good) } else { init_of(&good).initiate_tag };
        assert_eq!(tag(&sent[0]), expected);
        let events = hand.client_events();
        assert_eq!(closed(&events).is_some(), end, "{at}: {events:?}");
        if !end {
            hand.client_gets(0, &good);
            hand.settle();
            assert!(hand.client_events().contains(&Event::Connected), "it only dropped that packet");
        }
    }
}

#[test]
fn an_init_ack_asks_for_no_more_streams_than_the_peer_takes() {
    let mut hand = Hand::new(&Options::default());
    let few = Options::default().with(|options| options.limits.streams = 3);
    hand.client = Endpoint::new(few, Rng::from_seed(5)).unwrap();
    let _id = hand.connect();
    let init = hand.client_sends().remove(0);
    hand.server_gets(0, &init);
    let ack = hand.server_sends().remove(0);
    assert_eq!((init_of(&ack).outbound_streams, init_of(&init).inbound_streams), (3, 3));
}

#[test]
fn a_packet_with_tag_0_that_holds_no_init_is_dropped_without_a_word() {
    let mut it = up(&Options::default());
    for chunk in
        [Chunk::ShutdownAck(braidcast_sctp::wire::chunk::ShutdownAck), Chunk::Heartbeat(Heartbeat { info: b"?" })]
    {
        feed(&mut it.hand.server, it.hand.now, 1, CLIENT[1], &packet(0, &[chunk]));
        assert_eq!(it.hand.server_sends(), Vec::<Vec<u8>>::new());
    }
}

#[test]
fn the_t_bit_belongs_to_the_peers_tag_only() {
    let mut it = up(&Options::default());
    let abort = |reflected| Chunk::Abort(Abort { reflected, causes: Causes::new(&[]) });
    it.hand.client_gets(0, &packet(it.to_client, &[abort(true)]));
    it.hand.client_gets(0, &packet(it.to_server, &[abort(false)]));
    assert_eq!(closed(&it.hand.client_events()), None);
    it.hand.client_gets(0, &packet(it.to_server, &[abort(true)]));
    assert!(closed(&it.hand.client_events()).is_some(), "the peer knows of no association");
}

/// RFC 5061 §4.1.1: an address that the peer knows, by which it may look for the association; the
/// wildcard where lists would be wrong.
#[test]
fn a_request_to_join_names_an_address_that_was_listed() {
    for listed in [None, Some(std::net::IpAddr::from([192, 0, 2, 77]))] {
        let options = Options::default().with(|it| it.local_addresses = listed.into_iter().collect());
        let mut it = up(&options);
        it.hand.client.association_mut(it.id).unwrap().join(it.hand.now, route(1)).unwrap();
        let sent = it.hand.client_sends();
        let named = sent.iter().find_map(|bytes| {
            let packet = Packet::parse(bytes).unwrap();
            packet.chunks().flatten().find_map(|raw| match Chunk::parse(raw) {
                Ok(Chunk::Asconf(asconf)) => Some(asconf.address),
                _ => None,
            })
        });
        assert_eq!(named, Some(listed.unwrap_or(std::net::IpAddr::from([0, 0, 0, 0]))));
    }
}

/// Who sends over a path has taken it in, so that it need not be asked once more.
#[test]
fn a_path_whose_answer_to_the_join_was_lost_is_asked_when_the_peer_asks() {
    let mut it = up(&Options::default());
    it.hand.client.association_mut(it.id).unwrap().join(it.hand.now, route(1)).unwrap();
    it.hand.client_sends().iter().for_each(|packet| it.hand.server_gets(1, packet));
    let answers = it.hand.server_sends();
    let of = |sought| move |packet: &&Vec<u8>| kinds(packet).contains(&sought);
    assert!(answers.iter().any(|packet| of(kind::ASCONF_ACK)(&packet)));
    let asks = answers.iter().find(of(kind::HEARTBEAT)).expect("the server asks the new address");
    it.hand.client_gets(1, asks);
    let sent = it.hand.client_sends();
    assert!(sent.iter().any(|packet| of(kind::HEARTBEAT)(&packet)), "{sent:?}");
    sent.iter().for_each(|packet| it.hand.server_gets(1, packet));
    it.hand.server_sends().iter().for_each(|packet| it.hand.client_gets(1, packet));
    let events = it.hand.client_events();
    assert!(events.iter().any(|event| matches!(event, Event::PathUp(_, path) if *path == route(1))), "{events:?}");
}

/// Linux looks for the association by addresses, and a path that is yet to join has one that it does not know.
#[test]
fn a_reflected_abort_from_where_nobody_has_joined_yet_ends_that_path_alone() {
    let mut it = up(&Options::default());
    it.hand.client.association_mut(it.id).unwrap().join(it.hand.now, route(1)).unwrap();
    let asconf = it.hand.client_sends();
    assert!(!asconf.is_empty());
    it.hand.client_gets(1, &packet(it.to_server, &[Chunk::Abort(Abort { reflected: true, causes: Causes::new(&[]) })]));
    let events = it.hand.client_events();
    assert_eq!(closed(&events), None);
    assert!(events.iter().any(|it| matches!(it, Event::PathRemoved(_, path) if *path == route(1))), "{events:?}");
}

#[test]
fn a_shutdown_complete_with_the_t_bit_and_our_own_tag_ends_nothing() {
    let mut it = up(&Options::default());
    it.hand.client.association_mut(it.id).unwrap().shutdown(it.hand.now);
    let shutdown = it.hand.client_sends().remove(0);
    it.hand.server_gets(0, &shutdown);
    assert_eq!(kinds(&it.hand.server_sends()[0]), [kind::SHUTDOWN_ACK]);
    let complete = |reflected| Chunk::ShutdownComplete(ShutdownComplete { reflected });
    it.hand.server_gets(0, &packet(it.to_server, &[complete(true)]));
    assert_eq!(closed(&it.hand.server_events()), None);
    it.hand.server_gets(0, &packet(it.to_server, &[complete(false)]));
    assert_eq!(closed(&it.hand.server_events()), Some(&CloseReason::Shutdown));
}

#[test]
fn data_that_comes_after_shutdown_is_answered_by_shutdown_and_gives_the_peer_more_time() {
    let mut it = up(&Options::default());
    it.hand.client.association_mut(it.id).unwrap().shutdown(it.hand.now);
    let first = it.hand.client_sends();
    assert_eq!(kinds(&first[0]), [kind::SHUTDOWN]);
    // The SHUTDOWN was lost; the other end goes on sending.
    let mut due = it.hand.client.poll_timeout().unwrap();
    let server = it.hand.server.associations().next().unwrap();
    for n in 0..5_u64 {
        it.hand.now += ms(100);
        let now = it.hand.now;
        it.hand.server.association_mut(server).unwrap().send(now, &[n as u8; 100], SendOptions::default()).unwrap();
        it.hand.server_sends().iter().for_each(|data| it.hand.client_gets(0, data));
        let answers = it.hand.client_sends();
        assert!(answers.len() == 1 && kinds(&answers[0]).contains(&kind::SHUTDOWN), "{:?}", answers[0]);
        assert!(kinds(&answers[0]).contains(&kind::SACK));
        let later = it.hand.client.poll_timeout().unwrap();
        assert!(later > due, "T2 begins anew");
        due = later;
        if n == 4 {
            it.hand.server_gets(0, &answers[0]);
        }
    }
    it.hand.settle();
    assert_eq!(closed(&it.hand.client_events()), Some(&CloseReason::Shutdown));
}

#[test]
fn a_heartbeat_is_answered_from_cookie_echoed_on() {
    let mut hand = Hand::new(&Options::default());
    let _id = hand.connect();
    let init = hand.client_sends().remove(0);
    let heartbeat = packet(init_of(&init).initiate_tag, &[Chunk::Heartbeat(Heartbeat { info: b"are you there?" })]);
    hand.client_gets(0, &heartbeat);
    assert_eq!(hand.client_sends(), Vec::<Vec<u8>>::new(), "nobody can know the tag's owner yet");
    hand.server_gets(0, &init);
    let init_ack = hand.server_sends().remove(0);
    hand.client_gets(0, &init_ack);
    assert_eq!(kinds(&hand.client_sends()[0]), [kind::COOKIE_ECHO]);
    hand.client_gets(0, &heartbeat);
    let answer = hand.client_sends();
    assert!(answer.len() == 1 && kinds(&answer[0]) == [kind::HEARTBEAT_ACK]);
    assert_eq!(tag(&answer[0]), init_of(&init_ack).initiate_tag);
}

#[test]
fn nothing_answers_a_packet_with_abort() {
    let heartbeat = || Chunk::Heartbeat(Heartbeat { info: b"?" });
    let abort = || Chunk::Abort(Abort { reflected: false, causes: Causes::new(&[]) });
    let mut it = up(&Options::default());
    it.hand.server_gets(0, &packet(it.to_server, &[heartbeat(), abort()]));
    assert_eq!(it.hand.server_sends(), Vec::<Vec<u8>>::new());
    assert!(closed(&it.hand.server_events()).is_some());
    // A SACK that is too short for its fields, then ABORT.
    let mut it = up(&Options::default());
    let mut chunks = vec![kind::SACK, 0, 0, 8, 0, 0, 0, 0];
    abort().emit(&mut Writer::new(&mut chunks));
    it.hand.server_gets(0, &raw_packet(it.to_server, &chunks));
    assert_eq!(it.hand.server_sends(), Vec::<Vec<u8>>::new());
}

#[test]
fn what_one_packet_makes_us_answer_fits_one_packet() {
    let mut it = up(&Options::default());
    // Of a type that is to be skipped and reported.
    let unknown = [&[0xee, 0, 0, 40][..], &[7; 36]].concat();
    it.hand.server_gets(0, &raw_packet(it.to_server, &unknown.repeat(35)));
    let answers = it.hand.server_sends();
    assert_eq!(answers.len(), 1);
    let reports = kinds(&answers[0]);
    assert!(reports.len() > 20 && reports.iter().all(|it| *it == kind::ERROR), "{reports:?}");
}

/// An INIT like `init`, of one who was started anew: with another tag, and `address` listed besides.
fn restarting(init: &[u8], address: Option<[u8; 4]>) -> Vec<u8> {
    let mut chunk = init[12..].to_vec();
    chunk[7] ^= 1;
    if let Some(address) = address {
        chunk.extend_from_slice(&[0, 5, 0, 8]);
        chunk.extend_from_slice(&address);
        let len = chunk.len() as u16;
        chunk[2..4].copy_from_slice(&len.to_be_bytes());
    }
    raw_packet(0, &chunk)
}

#[test]
fn who_restarts_must_not_bring_new_addresses() {
    let listed = Options::default().with(|options| options.local_addresses = vec!["10.1.0.1".parse().unwrap()]);
    let mut hand = Hand::new(&listed);
    let _id = hand.connect();
    let init = hand.client_sends().remove(0);
    hand.server_gets(0, &init);
    hand.server_sends().iter().for_each(|packet| hand.client_gets(0, packet));
    hand.settle();
    hand.server_gets(0, &restarting(&init, Some([10, 9, 9, 9])));
    let refusal = hand.server_sends();
    assert_eq!((refusal.len(), kinds(&refusal[0]), cause(&refusal[0])), (1, vec![kind::ABORT], Some(11)));
    assert!(refusal[0].windows(8).any(|window| window == [0, 5, 0, 8, 10, 9, 9, 9]), "it is listed");
    assert_eq!(hand.server.associations().count(), 1, "and changes nothing");
    hand.server_gets(0, &restarting(&init, None));
    assert_eq!(kinds(&hand.server_sends()[0]), [kind::INIT_ACK]);
}

#[test]
fn a_peer_that_was_started_anew_while_we_shut_down_hears_of_that() {
    let mut it = up(&Options::default());
    let mut anew = Endpoint::new(Options::default(), Rng::from_seed(99)).unwrap();
    anew.connect(it.hand.now, 9899, &[route(0)]).unwrap();
    let mut buf = Vec::new();
    let mut sends = |endpoint: &mut Endpoint, now| {
        endpoint.handle_timeout(now);
        core::iter::from_fn(|| endpoint.poll_transmit(now, &mut buf).map(|_| buf.clone())).collect::<Vec<_>>()
    };
    let init = sends(&mut anew, it.hand.now).remove(0);
    it.hand.server_gets(0, &init);
    let init_ack = it.hand.server_sends().remove(0);
    feed(&mut anew, it.hand.now, 0, common::SERVER[0], &init_ack);
    let echo = sends(&mut anew, it.hand.now).remove(0);
    assert_eq!(kinds(&echo), [kind::COOKIE_ECHO]);
    // The old one's SHUTDOWN comes before its COOKIE ECHO.
    it.hand.client.association_mut(it.id).unwrap().shutdown(it.hand.now);
    let shutdown = it.hand.client_sends().remove(0);
    it.hand.server_gets(0, &shutdown);
    assert_eq!(kinds(&it.hand.server_sends()[0]), [kind::SHUTDOWN_ACK]);
    it.hand.server_gets(0, &echo);
    let answers = it.hand.server_sends();
    let all: Vec<u8> = answers.iter().flat_map(|packet| kinds(packet)).collect();
    assert_eq!(all, [kind::SHUTDOWN_ACK, kind::ERROR]);
    assert_eq!(cause(&answers[0]), Some(10));
    assert!(!it.hand.server_events().contains(&Event::Restarted));
}

/// RFC 3758 §3.3.
#[test]
fn who_takes_no_part_in_partial_reliability_does_not_know_forward_tsn() {
    let mut it = up(&Options::default());
    // The server forgets that the client could: an INIT without the parameter.
    let mut hand = Hand::new(&Options::default());
    let _id = hand.connect();
    let init = hand.client_sends().remove(0);
    let parsed = init_of(&init);
    let (tsn, bare) = (parsed.initial_tsn, Init { parameters: Parameters::new(&[]), ..parsed });
    hand.server_gets(0, &packet(0, &[Chunk::Init(bare)]));
    let init_ack = hand.server_sends().remove(0);
    let to_server = init_of(&init_ack).initiate_tag;
    let cookie = init_of(&init_ack).parameters.iter().flatten().find(|raw| raw.kind == 7).unwrap().value;
    hand.server_gets(0, &packet(to_server, &[Chunk::CookieEcho(CookieEcho { cookie })]));
    assert_eq!(kinds(&hand.server_sends()[0])[0], kind::COOKIE_ACK);
    let forward = ForwardTsn { new_cumulative_tsn: tsn.wrapping_add(5), skips: Entries::EMPTY };
    hand.server_gets(0, &packet(to_server, &[Chunk::ForwardTsn(forward)]));
    let answer = hand.server_sends().remove(0);
    assert_eq!((kinds(&answer), cause(&answer)), (vec![kind::ERROR], Some(6)));
    // One that takes part skips.
    let forward = IForwardTsn { new_cumulative_tsn: it.tsn.wrapping_add(5), skips: Entries::EMPTY };
    it.hand.server_gets(0, &packet(it.to_server, &[Chunk::IForwardTsn(forward)]));
    it.hand.now += ms(300);
    assert_eq!(kinds(&it.hand.server_sends()[0]), [kind::SACK]);
}

/// RFC 8260 §2.2.3, §2.3.1.
#[test]
fn chunks_of_the_other_kind_of_data_end_the_association() {
    for interleaving in [true, false] {
        let mut it = up(&Options::default().with(|options| options.interleaving = interleaving));
        let new_cumulative_tsn = it.tsn.wrapping_add(1);
        let wrong = match interleaving {
            true => Chunk::ForwardTsn(ForwardTsn { new_cumulative_tsn, skips: Entries::EMPTY }),
            false => Chunk::IForwardTsn(IForwardTsn { new_cumulative_tsn, skips: Entries::EMPTY }),
        };
        it.hand.server_gets(0, &packet(it.to_server, &[wrong]));
        let sent = it.hand.server_sends();
        assert!(sent.len() == 1 && kinds(&sent[0]) == [kind::ABORT], "interleaving {interleaving}: {sent:?}");
    }
}

/// RFC 5061 §5.1 A9.
#[test]
fn who_does_not_know_asconf_after_all_is_not_asked_again() {
    let mut it = up(&Options::default());
    let now = it.hand.now;
    it.hand.client.association_mut(it.id).unwrap().join(now, route(1)).unwrap();
    let asconf = it.hand.client_sends().remove(0);
    assert!(kinds(&asconf).contains(&kind::ASCONF));
    let mut causes = Vec::new();
    Cause::UnrecognizedChunk(&[kind::ASCONF, 0, 0, 4]).emit(&mut Writer::new(&mut causes));
    it.hand.client_gets(0, &packet(it.to_client, &[Chunk::Error(ErrorChunk { causes: Causes::new(&causes) })]));
    for _ in 0..30 {
        it.hand.now += ms(1000);
        let sent = it.hand.client_sends();
        assert!(!sent.iter().any(|packet| kinds(packet).contains(&kind::ASCONF)), "T-4 goes on");
        sent.iter().for_each(|packet| it.hand.server_gets(0, packet));
        it.hand.server_sends().iter().for_each(|packet| it.hand.client_gets(0, packet));
    }
}
