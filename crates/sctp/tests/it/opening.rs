//! An association before its handshake is done: what it takes, how it ends, and what it takes along when it opens.

use crate::common::hand::Hand;
use crate::common::{kinds, ms, route, tag};
use braidcast_sctp::wire::chunk::kind;
use braidcast_sctp::wire::seal;
use braidcast_sctp::{Association, AssociationId, CloseReason, Event, JoinError, Options, Reliability, SendOptions};

/// A client whose INIT was answered, its COOKIE ECHO, and the tag that the server chose.
fn cookie_echoed() -> (Hand, AssociationId, Vec<u8>, u32) {
    let mut hand = Hand::new(&Options::default());
    let id = hand.connect();
    let init = hand.client_sends().remove(0);
    hand.server_gets(0, &init);
    let init_ack = hand.server_sends().remove(0);
    hand.client_gets(0, &init_ack);
    let echo = hand.client_sends().remove(0);
    let peer_tag = tag(&echo);
    (hand, id, echo, peer_tag)
}

fn client(hand: &mut Hand, id: AssociationId) -> &mut Association {
    hand.client.association_mut(id).unwrap()
}

#[test]
fn nobody_is_told_of_an_end_while_the_peers_tag_is_unknown() {
    let mut hand = Hand::new(&Options::default());
    let id = hand.connect();
    assert_eq!(kinds(&hand.client_sends()[0]), [kind::INIT]);
    let now = hand.now;
    let association = client(&mut hand, id);
    association.abort(now, "enough");
    assert!(association.is_closed());
    assert_eq!(association.paths().count(), 1, "what it had can be read still");
    assert_eq!(association.recv(now, &mut Vec::new()), None);
    assert_eq!(association.join(now, route(1)), Err(JoinError::Closing));
    assert!(hand.client_sends().is_empty());
    assert_eq!(hand.client_events(), [Event::Closed(CloseReason::Aborted)]);
    assert_eq!(hand.client.associations().count(), 0);
}

#[test]
fn the_peer_is_told_of_an_end_once_its_tag_is_known_and_not_after_a_stale_cookie() {
    let (mut hand, id, _, peer_tag) = cookie_echoed();
    let now = hand.now;
    client(&mut hand, id).abort(now, "enough");
    let packets = hand.client_sends();
    assert_eq!((kinds(&packets[0]), tag(&packets[0]), packets.len()), (vec![kind::ABORT], peer_tag, 1));

    let (mut hand, id, echo, _) = cookie_echoed();
    hand.now += ms(60_001);
    hand.server_gets(0, &echo);
    let error = hand.server_sends().remove(0);
    assert_eq!(kinds(&error), [kind::ERROR]);
    hand.client_gets(0, &error);
    let now = hand.now;
    client(&mut hand, id).abort(now, "enough");
    assert!(hand.client_sends().is_empty(), "what was settled is void");
}

#[test]
fn a_message_that_waits_too_long_for_the_handshake_is_given_up() {
    let mut hand = Hand::new(&Options::default());
    let id = hand.connect();
    hand.client_sends();
    let (now, how) = (hand.now, SendOptions::default());
    let short = SendOptions { reliability: Reliability::Lifetime(ms(10)), context: 7, ..how };
    client(&mut hand, id).send(now, b"short", short).unwrap();
    client(&mut hand, id).send(now, b"long", how).unwrap();
    assert_eq!((client(&mut hand, id).buffered(), client(&mut hand, id).waiting()), (9, 9));
    hand.now += ms(10);
    hand.client_sends();
    let gone = Event::Abandoned { stream: 0, ppid: 0, context: 7, sent: false, why: None };
    assert_eq!(hand.client_events(), [gone]);
    let association = client(&mut hand, id);
    assert_eq!((association.buffered(), association.stats().abandoned_unsent), (4, 1));
    association.shutdown(now);
    assert!(!association.is_closed(), "a message waits");
}

#[test]
fn what_is_bundled_behind_the_cookie_ack_is_taken() {
    let (mut hand, id, echo, _) = cookie_echoed();
    hand.server_gets(0, &echo);
    let (now, server) = (hand.now, hand.server.associations().next().unwrap());
    hand.server.association_mut(server).unwrap().send(now, b"at once", SendOptions::default()).unwrap();
    let packets = hand.server_sends();
    let (ack, data) = (&packets[0], packets.last().unwrap());
    assert_eq!((kinds(ack)[0], kinds(data)), (kind::COOKIE_ACK, vec![kind::I_DATA]));
    // Before the COOKIE ACK data is not taken, and with it in one packet it is.
    hand.client_gets(0, data);
    assert_eq!(client(&mut hand, id).recv(now, &mut Vec::new()), None);
    let mut both = ack.clone();
    both.extend_from_slice(&data[12..]);
    seal(&mut both);
    hand.client_gets(0, &both);
    let mut buf = Vec::new();
    assert!(client(&mut hand, id).recv(now, &mut buf).is_some());
    assert_eq!(buf, b"at once");
    assert_eq!(client(&mut hand, id).paths().next().map(|path| path.received_packets), Some(3));
}
