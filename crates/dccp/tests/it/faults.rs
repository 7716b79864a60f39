//! What peers, strangers and networks do wrong, one test for each.
//!
//! Some have a file of their own: floods of Requests (`memory.rs`, `handshake.rs`), forged Resets
//! and numbers out of the window (`closing.rs`), options that must be understood and are not
//! (`closing.rs`), a path that carries less (`path_mtu.rs`).

use crate::common::*;
use braidcast_dccp::wire::Kind;
use braidcast_dccp::{Ccid, CcidReport, Options, ServiceCode, State};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, QueueLimit};
use core::time::Duration;

fn open() -> Pair {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 10)));
    pair.until(ms(500), "open", |pair| pair.states() == (Some(State::Open), Some(State::Open)));
    pair.run(ms(500));
    pair.record.clear();
    pair
}

/// The next number of the client, and one of the server's that it may acknowledge.
fn numbers(pair: &mut Pair) -> (u64, u64) {
    pair.client_send(b"x").unwrap();
    pair.run(ms(500));
    pair.server_recv();
    let last = |address| pair.record.sent(address).last().unwrap().packet().header.seq;
    (last(CLIENT) + 1, last(SERVER))
}

fn report(pair: &mut Pair) -> CcidReport {
    pair.on_client(|it, now| it.report(now)).ccid
}

/// Both ends are open and carry data.
fn assert_works(pair: &mut Pair) {
    assert_eq!(pair.states(), (Some(State::Open), Some(State::Open)));
    pair.server_recv();
    pair.client_send(b"still there").unwrap();
    pair.run(ms(500));
    assert_eq!(pair.server_recv(), [b"still there"]);
}

#[test]
fn a_bad_checksum_drops_the_packet_without_a_word() {
    let addresses = ["10.1.0.1:0", "10.1.0.2:0"];
    let mut pair = Pair::native(&Options::default(), Duplex::both(link(10, 10)), addresses);
    pair.connect();
    pair.run(ms(500));
    pair.client_send(b"a message of several words").unwrap();
    let sent = pair.record.sent(addresses[0]).pop().unwrap().bytes;
    pair.record.clear();
    for bit in 0..sent.len() * 8 {
        let mut damaged = sent.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        inject(&mut pair.net, pair.server, addresses[0], &damaged);
    }
    assert!(pair.record.sent(addresses[1]).is_empty() && pair.server_recv().is_empty());
    pair.run(ms(500));
    assert_eq!(pair.server_recv(), [b"a message of several words"], "the whole one gets through");
    assert_eq!(pair.states(), (Some(State::Open), Some(State::Open)));
}

#[test]
fn a_bad_option_length_ends_the_options_and_nothing_else() {
    let mut pair = open();
    for options in [&[40, 0][..], &[40, 1, 7, 7], &[38, 200, 1, 1], &[32, 2, 0, 0], &[39], &[255, 255, 255, 255]] {
        let (seq, ack) = numbers(&mut pair);
        pair.record.clear();
        pair.inject(pair.server, &packet(true, seq, Kind::DataAck { ack }, options, b"data"));
        assert_eq!(pair.server_recv(), [b"data"], "{options:?}");
        assert!(!pair.record.names(SERVER).contains(&"Reset"), "{options:?}");
        // The client has not sent what was injected: its next number is taken already.
        let _ = pair.client_send(b"skipped");
        pair.run(ms(300));
        pair.server_recv();
    }
    assert_works(&mut pair);
}

#[test]
fn a_response_for_another_service_is_no_answer() {
    let mut pair = Pair::new(&Options::default(), Duplex::both(lossy(10, 5, "100%")));
    let ack = pair.record.sent(CLIENT).first().map_or(0, |it| it.packet().header.seq);
    pair.inject(pair.client, &packet(false, 77, Kind::Response { ack, service: ServiceCode(1) }, &[], b""));
    assert_eq!(pair.states().0, Some(State::Request));
    assert_eq!(pair.record.names(CLIENT).last(), Some(&"Reset"), "RFC 4340 §8.5 step 4");
    pair.inject(pair.client, &packet(false, 78, Kind::Response { ack, service: SERVICE }, &[], b""));
    assert_eq!(pair.states().0, Some(State::PartOpen));
}

#[test]
fn negotiation_that_loops_costs_a_packet_for_a_packet() {
    let mut pair = open();
    let (seq, ack) = numbers(&mut pair);
    pair.record.clear();
    for n in 0..200_u64 {
        // Another congestion control each time, a feature that is unknown, and a Confirm that nobody asked for.
        let ccid = 2 + (n % 2) as u8;
        let options = [32, 5, 1, ccid, 5 - ccid, 34, 4, 126, n as u8, 35, 4, 1, 2, 0, 0, 0];
        pair.inject(pair.server, &packet(true, seq + n, Kind::Ack { ack }, &options, b""));
    }
    assert!(pair.record.names(SERVER).len() <= 200, "{}", pair.record.names(SERVER).len());
    pair.record.clear();
    pair.run(Duration::from_secs(60));
    assert!(pair.record.names(SERVER).len() < 10, "nothing goes on by itself: {:?}", pair.record.names(SERVER));
    assert_eq!(pair.states().1, Some(State::Open));
}

/// A link with a queue of 40 packets.
fn queued() -> Duplex {
    Duplex::both(LinkModel { queue: QueueLimit::Packets(40).into(), ..link(4, 20) })
}

/// Sends as much as is taken for `duration`; packets with data that left.
fn stream(pair: &mut Pair, duration: Duration) -> usize {
    let end = pair.net.now() + duration;
    pair.record.clear();
    while pair.net.now() < end {
        while pair.client_send(&[7; 1000]).is_ok() {}
        pair.run(ms(5));
        pair.server_recv();
    }
    pair.record.names(CLIENT).iter().filter(|name| name.starts_with("Data")).count()
}

#[test]
fn lost_feedback_slows_every_congestion_control_down_and_it_recovers() {
    for ccid in Ccid::ALL.map(|(_, ccid)| ccid) {
        let options = Options { ccids: vec![ccid], ..Options::default() };
        let mut pair = Pair::connected(&options, queued());
        stream(&mut pair, Duration::from_secs(5));
        let before = stream(&mut pair, Duration::from_secs(5));
        pair.net.set_down(pair.links.1, true);
        stream(&mut pair, Duration::from_secs(10));
        let blind = stream(&mut pair, Duration::from_secs(10));
        assert!(
            blind <= 20 && blind * 10 < before,
            "{ccid}: {before} packets in 5 s, {blind} in 10 s without feedback"
        );
        assert!(report(&mut pair).timeouts > 2, "{ccid}");
        pair.net.set_down(pair.links.1, false);
        stream(&mut pair, Duration::from_secs(30));
        let after = stream(&mut pair, Duration::from_secs(5));
        assert!(after * 2 > before, "{ccid}: {before} packets in 5 s, {after} later");
    }
}

#[test]
fn after_an_idle_hour_every_congestion_control_sends_again() {
    for ccid in Ccid::ALL.map(|(_, ccid)| ccid) {
        let options = Options { ccids: vec![ccid], ..Options::default() };
        let mut pair = Pair::connected(&options, queued());
        let before = stream(&mut pair, Duration::from_secs(5));
        pair.run(Duration::from_secs(60));
        pair.record.clear();
        pair.run(Duration::from_secs(3600));
        assert!(pair.record.all().len() < 10, "{ccid}: {} packets in an idle hour", pair.record.all().len());
        stream(&mut pair, Duration::from_secs(5));
        let after = stream(&mut pair, Duration::from_secs(5));
        assert!(after * 10 > before * 9, "{ccid}: {before} packets in 5 s, {after} after the hour");
        assert_eq!(pair.states(), (Some(State::Open), Some(State::Open)));
    }
}
