//! Records without checksum (RFC 9653): where both ends agreed, as long as the path bears it, and nowhere else.

use crate::common;
use crate::common::hand::Hand;
use crate::common::{Pair, Seen, kinds, link, ms, raw_packet, transfer};
use braidcast_core::Rng;
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::wire::{BY_RECORD, Chunk, Packet, Parameter, seal};
use braidcast_sctp::{AssociationId, Endpoint, Event, Options, SecurityOptions, SendOptions};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use braidcast_sim::Duplex;
use proptest::prelude::*;
use std::sync::Arc;

fn options() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    Options::live().with(|it| it.security = Some(SecurityOptions::new(method)))
}

fn has_checksum(packet: &[u8]) -> bool {
    packet[8..12] != [0; 4]
}

fn offered(packet: &[u8]) -> Option<u32> {
    let packet = Packet::parse(packet).unwrap();
    let Ok(Chunk::Init(init) | Chunk::InitAck(init)) = Chunk::parse(packet.chunks().next()?.unwrap()) else {
        return None;
    };
    init.parameters.iter().flatten().flat_map(Parameter::parse).find_map(|parameter| match parameter {
        Parameter::ZeroChecksumAcceptable(method) => Some(method),
        _ => None,
    })
}

#[test]
fn records_have_no_checksum_and_all_else_has() {
    let mut pair = Pair::new(&options(), vec![Duplex::both(link(10, 5)), Duplex::both(link(10, 20))]);
    let recording = pair.record();
    pair.connect();
    transfer(&mut pair, 300_000, 5000);
    let (records, clear): (Vec<Seen>, Vec<Seen>) =
        recording.all().into_iter().partition(|seen| seen.kinds() == [kind::DTLS]);
    assert!(records.len() > 300 && records.iter().all(|seen| !has_checksum(&seen.bytes)));
    assert!(clear.len() >= 6 && clear.iter().all(|seen| has_checksum(&seen.bytes)));
    assert_eq!(clear.iter().filter(|seen| offered(&seen.bytes) == Some(BY_RECORD)).count() / 2, 2, "INIT, INIT ACK");
}

#[test]
fn who_does_not_encrypt_does_not_offer_it() {
    let mut pair = Pair::new(&Options::live(), vec![Duplex::both(link(10, 5))]);
    let recording = pair.record();
    pair.connect();
    transfer(&mut pair, 100_000, 3000);
    assert!(recording.all().iter().all(|seen| has_checksum(&seen.bytes) && offered(&seen.bytes).is_none()));
}

/// Two ends that are up, whose packets are carried by hand; the server takes records without
/// checksum or not.
fn agreed_on(server_takes: bool) -> (Hand, AssociationId) {
    let mut hand = Hand::new(&options());
    hand.server = Endpoint::new(options().with(|it| it.zero_checksum = server_takes), Rng::from_seed(2)).unwrap();
    hand.server.listen();
    let id = hand.connect();
    hand.settle();
    assert!(hand.client_events().contains(&Event::Connected));
    (hand, id)
}

/// The packet with a message that the client sends.
fn with_message(hand: &mut Hand, id: AssociationId) -> Vec<u8> {
    let (now, how) = (hand.now, SendOptions::default());
    hand.client.association_mut(id).unwrap().send(now, b"a message", how).unwrap();
    hand.client_sends().pop().expect("a packet")
}

/// What the server has read since, and how many packets it has dropped so far.
fn server(hand: &mut Hand) -> (Option<Vec<u8>>, u64) {
    let (now, id) = (hand.now, hand.server.associations().next().expect("it is up"));
    let (association, mut message) = (hand.server.association_mut(id).unwrap(), Vec::new());
    (association.recv(now, &mut message).map(|_| message), association.stats().dropped_packets)
}

#[test]
fn a_record_without_checksum_goes_to_nobody_who_did_not_ask_for_it() {
    let (mut hand, id) = agreed_on(false);
    let packet = with_message(&mut hand, id);
    assert!(kinds(&packet) == [kind::DTLS] && has_checksum(&packet));
    hand.server_gets(0, &packet);
    assert_eq!(server(&mut hand).0, Some(b"a message".to_vec()));
    // The server does without: the INIT asked for it.
    hand.now += ms(50);
    let answers = hand.server_sends();
    assert!(!answers.is_empty() && answers.iter().all(|packet| !has_checksum(packet)));
}

#[test]
fn a_record_without_checksum_is_dropped_by_who_did_not_ask_for_it() {
    let mut hand = Hand::new(&Options::live());
    let id = hand.connect();
    hand.settle();
    let tag = common::tag(&with_message(&mut hand, id));
    let mut record = raw_packet(tag, &[kind::DTLS, 0, 0, 8, 0, 1, 2, 3]);
    let bare = [&record[..8], &[0; 4], &record[12..]].concat();
    let (_, dropped) = server(&mut hand);
    hand.server_gets(0, &bare);
    assert_eq!(server(&mut hand).1, dropped + 1);
    assert!(hand.server_sends().is_empty());
    // Nor is it answered where the association is not known.
    bare_to_nobody(&mut hand, &bare);
    // With a checksum it is a chunk of an unknown type, which is reported (RFC 9260 §3.2).
    seal(&mut record);
    hand.server_gets(0, &record);
    assert!(hand.server_sends().iter().any(|packet| kinds(packet).contains(&kind::ERROR)));
}

fn bare_to_nobody(hand: &mut Hand, bare: &[u8]) {
    let mut stray = bare.to_vec();
    stray[4] ^= 1;
    hand.server_gets(2, &stray);
    assert!(hand.server_sends().is_empty());
}

#[test]
fn a_checksum_is_verified_where_there_is_one() {
    let (mut hand, id) = agreed_on(true);
    let packet = with_message(&mut hand, id);
    assert!(!has_checksum(&packet));
    let mut wrong = packet.clone();
    wrong[11] = 1;
    hand.server_gets(0, &wrong);
    assert_eq!(server(&mut hand).0, None);
    let mut right = packet;
    seal(&mut right);
    hand.server_gets(0, &right);
    assert_eq!(server(&mut hand).0, Some(b"a message".to_vec()));
}

#[test]
fn only_a_record_alone_can_do_without() {
    let (mut hand, id) = agreed_on(true);
    let packet = with_message(&mut hand, id);
    let cookie_ack = [kind::COOKIE_ACK, 0, 0, 4];
    for chunks in [[&packet[12..], &cookie_ack].concat(), [&cookie_ack, &packet[12..]].concat()] {
        let bare = [&packet[..12], &chunks].concat();
        assert!(Packet::parse(&bare).is_err());
        hand.server_gets(0, &bare);
        assert_eq!(server(&mut hand).0, None);
    }
}

#[test]
fn a_path_that_does_not_bear_them_gets_checksums_after_one_timeout() {
    let (mut hand, id) = agreed_on(true);
    let mut lost = vec![with_message(&mut hand, id)];
    let begun = hand.now;
    let passed = loop {
        assert!(hand.now - begun < ms(2000), "{} packets without checksum", lost.len());
        hand.now += ms(10);
        let (pass, drop): (Vec<_>, Vec<_>) = hand.client_sends().into_iter().partition(|packet| has_checksum(packet));
        lost.extend(drop);
        if !pass.is_empty() {
            break pass;
        }
    };
    assert!(passed.iter().all(|packet| kinds(packet) == [kind::DTLS]));
    passed.iter().for_each(|packet| hand.server_gets(0, packet));
    hand.settle();
    // And so it stays.
    let next = with_message(&mut hand, id);
    assert!(has_checksum(&next));
    hand.server_gets(0, &next);
    assert!(core::iter::from_fn(|| server(&mut hand).0).count() == 2);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Wherever a packet without checksum is damaged, what was in it is not taken; whole, it is.
    #[test]
    fn no_damage_goes_unnoticed(damage in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4)) {
        let (mut hand, id) = agreed_on(true);
        let packet = with_message(&mut hand, id);
        let mut damaged = packet.clone();
        // What nobody reads: flags, the zero byte, padding.
        let length = usize::from(u16::from_be_bytes([packet[14], packet[15]]));
        let read: Vec<usize> = (0..12 + length).filter(|at| ![13, 16].contains(at)).collect();
        for (index, change) in damage {
            damaged[read[index.index(read.len())]] ^= change;
        }
        prop_assume!(damaged != packet);
        hand.server_gets(0, &damaged);
        prop_assert_eq!(server(&mut hand).0, None);
        prop_assert!(hand.server_events().iter().all(|event| !matches!(event, Event::Closed(_))));
        hand.server_gets(0, &packet);
        prop_assert_eq!(server(&mut hand).0, Some(b"a message".to_vec()));
    }
}
