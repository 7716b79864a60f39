//! Connections whose packets are protected, with keys that everybody knows.

use crate::common::*;
use braidcast_dccp::wire::{Kind, Reset, ResetCode};
use braidcast_dccp::{Ccid, CloseReason, Event, Options, SecurityOptions, SendError, SendOptions};
use braidcast_secure::known::Known;
use braidcast_secure::{Limits, Opener, Suite};
use braidcast_sim::Duplex;
use core::time::Duration;
use std::sync::Arc;

fn with(word: u8, limits: Limits, ccid: Ccid) -> Options {
    let method = Arc::new(Known { word, suite: Suite::Aes128Gcm });
    Options { ccids: vec![ccid], security: Some(SecurityOptions::new(method).limits(limits)), ..Options::default() }
}

fn options() -> Options {
    with(1, Limits::default(), Ccid::Two)
}

fn plain() -> Options {
    Options { security: None, ..options() }
}

fn closed(events: &[Event]) -> Option<&CloseReason> {
    events.iter().find_map(|event| if let Event::Closed(reason) = event { Some(reason) } else { None })
}

fn is_record(seen: &Seen) -> bool {
    Opener::low_bits(seen.packet().payload).is_some()
}

/// Sends `count` messages of `len` bytes; those that came, in order.
fn transfer(pair: &mut Pair, count: u32, len: usize) -> Vec<u32> {
    let (mut sent, mut came) = (0, Vec::new());
    let end = pair.net.now() + Duration::from_secs(60);
    while pair.net.now() < end && (sent < count || pair.on_client(|it, now| it.report(now).queued_messages) > 0) {
        while sent < count && pair.client_send(&message(sent, len)).is_ok() {
            sent += 1;
        }
        pair.run(ms(5));
        came.extend(pair.server_recv().iter().map(|it| number(it)));
    }
    pair.run(ms(500));
    came.extend(pair.server_recv().iter().map(|it| number(it)));
    came
}

#[test]
fn every_packet_after_the_keys_is_a_record_to_the_end() {
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four, Ccid::Cubic] {
        let mut pair = Pair::connected(&with(1, Limits::default(), ccid), Duplex::both(link(20, 20)));
        pair.run(ms(100));
        pair.record.clear();
        assert_eq!(transfer(&mut pair, 200, 1000), (0..200).collect::<Vec<_>>(), "{ccid:?}");
        pair.server_send(b"back").unwrap();
        pair.run(ms(100));
        assert_eq!(pair.client_recv(), [b"back"]);
        pair.on_client(|it, now| it.close(now));
        pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
        let (ours, theirs) = (pair.record.sent(CLIENT), pair.record.sent(SERVER));
        assert!(ours.len() > 200 && theirs.len() > 10 && ours.iter().chain(&theirs).all(is_record), "{ccid:?}");
    }
}

#[test]
fn what_waited_for_the_keys_arrives_two_round_trips_after_the_request() {
    let mut pair = Pair::new(&options(), Duplex::both(link(100, 50)));
    let secret = [0xA5; 900];
    pair.client_send(&secret).unwrap();
    pair.until(ms(1000), "the message", |pair| pair.server_recv() == [secret]);
    let at = pair.net.now().as_micros();
    assert!((250_000..260_000).contains(&at), "{at}");
    assert!(!pair.client_events.contains(&Event::Connected), "the server has not confirmed yet");
    pair.connect();
    let connected = pair.net.now().as_micros();
    assert!((300_000..310_000).contains(&connected), "{connected}");
    let shows = |bytes: &[u8]| bytes.windows(16).any(|window| window == [0xA5; 16]);
    assert!(pair.record.all().iter().all(|seen| !shows(&seen.bytes)));
}

#[test]
fn keys_are_agreed_on_whatever_gets_lost() {
    for seed in 0..40 {
        let mut pair = Pair::seeded(seed, &options(), Duplex::both(lossy(10, 20, "20%")));
        // Requests that get lost are repeated after 1, 3, 7 and 15 s.
        pair.until(ms(120_000), "connect", |pair| {
            pair.client_events.contains(&Event::Connected) && pair.server_events.contains(&Event::Connected)
        });
        let came = transfer(&mut pair, 50, 500);
        assert!(came.len() > 5 && came.is_sorted(), "seed {seed}: {} came", came.len());
    }
}

#[test]
fn keys_change_under_load_and_loss_without_a_message_too_few() {
    let limits = Limits::default().with(|it| (it.records, it.drain) = (300, Duration::from_secs(2)));
    let mut pair = Pair::connected(&with(1, limits, Ccid::Two), Duplex::both(lossy(10, 10, "1%")));
    let came = transfer(&mut pair, 3000, 900);
    let lost = pair.on_client(|it, now| it.report(now).ccid.lost);
    assert!(came.len() as u64 + lost >= 3000, "{} came, {lost} were lost", came.len());
    // 300 records an epoch: ten changes, of which the low bits of the epoch show four.
    let epochs: std::collections::BTreeSet<_> =
        pair.record.sent(CLIENT).iter().filter_map(|it| Opener::low_bits(it.packet().payload)).collect();
    assert_eq!(epochs.len(), 4);
}

#[test]
fn packets_in_clear_end_and_change_nothing() {
    let mut pair = Pair::connected(&options(), Duplex::both(link(20, 20)));
    transfer(&mut pair, 20, 500);
    let (of_client, of_server) = (pair.record.sent(CLIENT), pair.record.sent(SERVER));
    let (ours, theirs) = (of_client.last().unwrap().packet().header.seq, of_server.last().unwrap().packet().header.seq);
    for code in [ResetCode::CLOSED, ResetCode::ABORTED, ResetCode::NO_CONNECTION, ResetCode::MANDATORY_ERROR] {
        let reset = Reset::option(code, 120, &[]);
        let bytes = packet(true, ours + 1, Kind::Reset { ack: theirs, reset }, &[], b"go away");
        pair.inject(pair.server, &bytes);
        let bytes = packet(false, theirs + 1, Kind::Reset { ack: ours, reset }, &[], b"go away");
        pair.inject(pair.client, &bytes);
        pair.run(ms(700));
    }
    for kind in [Kind::Close { ack: theirs }, Kind::CloseReq { ack: theirs }, Kind::Data, Kind::Sync { ack: theirs }] {
        let bytes = packet(true, ours + 20, kind, &[], b"a message of somebody else's");
        pair.inject(pair.server, &bytes);
    }
    // Records that came already.
    for seen in of_client.iter().filter(|it| is_record(it)) {
        pair.inject(pair.server, &seen.bytes);
    }
    pair.run(Duration::from_secs(2));
    assert!(pair.server_recv().is_empty());
    assert_eq!((closed(&pair.client_events), closed(&pair.server_events)), (None, None));
    assert_eq!(transfer(&mut pair, 20, 500), (0..20).collect::<Vec<_>>());
}

#[test]
fn header_and_options_cannot_be_changed() {
    let mut pair = Pair::connected(&options(), Duplex::both(link(20, 20)));
    pair.run(ms(100));
    pair.record.clear();
    pair.client_send(b"hello").unwrap();
    pair.run(ms(5));
    let sent = pair.record.sent(CLIENT).last().unwrap().bytes.clone();
    pair.run(ms(100));
    assert_eq!(pair.server_recv(), [b"hello"]);
    for at in 4..sent.len() {
        // The checksum is UDP's here.
        let mut changed = sent.clone();
        changed[at] ^= 1;
        // A number that did not come yet, so that only the record shows it.
        changed[15] = changed[15].wrapping_add(3);
        pair.inject(pair.server, &changed);
        assert!(pair.server_recv().is_empty(), "byte {at}");
    }
    pair.run(Duration::from_secs(1));
    assert_eq!((closed(&pair.client_events), closed(&pair.server_events)), (None, None));
}

#[test]
fn ends_that_do_not_go_together_are_told_why_within_a_second() {
    let both = |client: Options, server: Options| {
        let mut pair = Pair::with(client, server, Duplex::both(link(20, 20)));
        pair.run(ms(1000));
        assert!(!pair.client_events.contains(&Event::Connected) && !pair.server_events.contains(&Event::Connected));
        let turned_away = pair.net.with(pair.server, |endpoint, _| endpoint.poll_turned_away());
        let of_server = turned_away.map(|(_, reason)| reason).or_else(|| closed(&pair.server_events).cloned());
        (closed(&pair.client_events).cloned().unwrap().to_string(), of_server.unwrap().to_string())
    };
    let (client, server) = both(options(), plain());
    assert!(client.contains("the other end does not encrypt, and this end insists on it"), "{client}");
    assert!(server.contains("the other end encrypts, and this end does not"), "{server}");
    let (client, server) = both(plain(), options());
    assert!(client.contains("the other end encrypts, and this end does not"), "{client}");
    assert!(server.contains("the other end does not encrypt, and this end insists on it"), "{server}");
    let (client, server) = both(options(), with(2, Limits::default(), Ccid::Two));
    assert!(client.contains("no secure connection") && server.contains("no secure connection"), "{client} {server}");
    assert!(client.contains("another word") || server.contains("another word"), "{client} {server}");
}

#[test]
fn what_goes_into_a_packet_leaves_room_for_the_record() {
    let mut pair = Pair::connected(&options(), Duplex::both(link(20, 20)));
    let limit = pair.on_client(|it, _| it.max_payload());
    assert!(matches!(pair.client_send(&vec![1; limit + 1]), Err(SendError::TooLong { .. })));
    pair.record.clear();
    for _ in 0..30 {
        pair.client_send(&vec![1; limit]).unwrap();
    }
    pair.run(Duration::from_secs(1));
    assert_eq!(pair.server_recv().len(), 30);
    let longest = pair.record.sent(CLIENT).iter().map(|it| it.bytes.len()).max().unwrap();
    assert!(longest <= Options::default().max_packet && longest > Options::default().max_packet - 24, "{longest}");
    let partly = SendOptions { coverage: 2, ..SendOptions::default() };
    let refused = pair.on_client(|it, now| it.send(now, &[0; 100], partly));
    assert!(matches!(refused, Err(SendError::CoverageRefused { .. })));
    assert!(Options { data_checksum: true, ..options() }.check().is_err());
}

#[test]
fn a_handshake_that_somebody_in_between_takes_part_in_comes_to_nothing() {
    // The offer in the Response is another one than the server made: keys differ, and nobody is told of a connection.
    let limits = Limits::default().with(|it| it.patience = Duration::from_secs(2));
    let mut pair = Pair::new(&with(1, limits, Ccid::Two), Duplex::both(link(20, 20)));
    pair.until(ms(100), "the Response leaves", |pair| !pair.record.sent(SERVER).is_empty());
    let mut response = pair.record.sent(SERVER)[0].bytes.clone();
    // Its option: Mandatory, 120, length, then the tie breaker.
    let at = response.windows(2).position(|it| it == [1, 120]).unwrap();
    response[at + 3] ^= 1;
    pair.inject(pair.client, &response);
    pair.run(Duration::from_secs(4));
    assert!(!pair.client_events.contains(&Event::Connected));
    assert!(matches!(closed(&pair.client_events), Some(CloseReason::Insecure(_))), "{:?}", pair.client_events);
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_no_cookie_is_needed_twice() {
    let run = |half_open| {
        let options = Options { half_open, ..options() };
        let mut pair = Pair::seeded(7, &options, Duplex::both(lossy(10, 20, "5%")));
        pair.connect();
        transfer(&mut pair, 100, 700);
        pair.record.all().into_iter().map(|it| it.bytes).collect::<Vec<_>>()
    };
    assert_eq!(run(128), run(128));
    // A server that keeps no state before the cookie comes back.
    assert!(run(0).len() > 100);
}

/// Satellites, and LTE whose buffers are full. Three round trips are what there is to say.
#[test]
fn a_far_end_is_connected_with_in_six_round_trips_and_a_second() {
    for ccid in [Ccid::Two, Ccid::Three, Ccid::Four, Ccid::Cubic] {
        for one_way in [125, 300, 600, 1_000] {
            let mut pair = Pair::new(&with(1, Limits::default(), ccid), Duplex::both(link(2, one_way)));
            let most = ms(12 * one_way + 1_000);
            pair.until(most, "connect", |pair| pair.client_events.contains(&Event::Connected));
            // Nothing was repeated: all timers know how far it is.
            let sent = [CLIENT, SERVER].map(|end| pair.record.sent(end).len());
            println!("{ccid:?}, one-way delay {one_way} ms: {:?}, {sent:?} packets", pair.net.now());
        }
    }
}
