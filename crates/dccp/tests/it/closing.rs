//! How connections end, and how they do not: forged packets, packets out of step.

use crate::common::*;
use braidcast_dccp::wire::{Kind, Reset, ResetCode};
use braidcast_dccp::{CloseReason, Event, Options, State};
use braidcast_sim::Duplex;
use core::time::Duration;

fn open() -> Pair {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 20)));
    pair.until(ms(500), "open", |pair| pair.states() == (Some(State::Open), Some(State::Open)));
    pair.record.clear();
    pair
}

/// Numbers that an attacker who sees everything would know: the next of the client, and the last of the server.
fn numbers(pair: &mut Pair) -> (u64, u64) {
    pair.client_send(b"x").unwrap();
    pair.server_send(b"y").unwrap();
    pair.run(ms(500));
    let last = |from| pair.record.sent(from).last().unwrap().packet().header.seq;
    (last(CLIENT) + 1, last(SERVER))
}

#[test]
fn a_client_closes_with_close_and_reset() {
    let mut pair = open();
    pair.client_send(b"last words").unwrap();
    pair.on_client(|it, now| it.close(now));
    pair.run(ms(60));
    assert_eq!(pair.record.names(CLIENT), ["Data", "Close"], "what waited goes first");
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    assert_eq!(pair.record.names(SERVER).last(), Some(&"Reset"));
    assert_eq!(pair.states(), (None, None));
}

#[test]
fn a_server_asks_its_client_to_close_and_hold_time_wait() {
    let mut pair = open();
    pair.on_server(|it, now| it.close(now));
    assert_eq!(pair.states().1, Some(State::CloseReq));
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    assert_eq!((pair.record.names(SERVER), pair.record.names(CLIENT)), (vec!["CloseReq", "Reset"], vec!["Close"]));
}

#[test]
fn a_server_may_hold_time_wait_itself() {
    let options = Options { server_holds_time_wait: true, ..Options::default() };
    let mut pair = Pair::connected(&options, Duplex::both(link(10, 20)));
    pair.run(ms(100));
    pair.record.clear();
    pair.on_server(|it, now| it.close(now));
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    assert_eq!((pair.record.names(SERVER), pair.record.names(CLIENT)), (vec!["Close"], vec!["Reset"]));
}

#[test]
fn both_may_close_at_once() {
    let mut pair = open();
    pair.on_client(|it, now| it.close(now));
    pair.on_server(|it, now| it.close(now));
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    pair.run(Duration::from_secs(300));
    assert_eq!(pair.states(), (None, None));
}

/// A busy machine reads many packets before the application has its turn.
#[test]
fn what_came_before_the_end_can_be_read_after_it() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 20)));
    for n in 0..3 {
        pair.client_send(&message(n, 100)).unwrap();
    }
    pair.on_client(|it, now| it.close(now));
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    let got: Vec<u32> = pair.server_recv().iter().map(|it| number(it)).collect();
    assert_eq!(got, [0, 1, 2]);
    pair.run(ms(1));
    assert_eq!(pair.server_id(), None, "all was read");
}

#[test]
fn closing_survives_the_loss_of_every_fifth_packet() {
    for seed in 0..30 {
        let mut pair = Pair::seeded(seed, &Options::default(), Duplex::both(lossy(10, 20, "20%")));
        pair.until(ms(180_000), "connect", |pair| pair.states() == (Some(State::Open), Some(State::Open)));
        if seed % 2 == 0 {
            pair.on_client(|it, now| it.close(now));
        } else {
            pair.on_server(|it, now| it.close(now));
        }
        // If the last Reset is lost, the repeated Close finds no connection, and its Reset says so.
        pair.until(ms(600_000), "close", |pair| pair.states() == (None, None));
        let closed = |events: &[Event]| events.iter().filter(|event| matches!(event, Event::Closed(_))).count();
        assert_eq!((closed(&pair.client_events), closed(&pair.server_events)), (1, 1));
    }
}

/// Found by fuzzing: twice a round trip of nothing is nothing.
#[test]
fn closing_over_a_link_without_delay_does_not_spin() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(braidcast_sim::link::LinkModel::default()));
    pair.run(ms(1000));
    pair.net.set_down(pair.links.0, true);
    pair.record.clear();
    pair.on_client(|it, now| it.close(now));
    pair.run(ms(1000));
    assert_eq!(pair.record.names(CLIENT), ["Close"; 6], "after 20, 60, 140, 300 and 620 ms");
}

#[test]
fn who_closes_towards_a_peer_that_is_gone_gives_up_after_four_minutes() {
    for (client, waiting) in [(true, false), (false, false), (true, true)] {
        let mut pair = open();
        pair.net.set_down(pair.links.0, true);
        pair.net.set_down(pair.links.1, true);
        if waiting {
            // More than the window lets out.
            for n in 0..30 {
                pair.client_send(&message(n, 1000)).unwrap();
            }
            pair.run(ms(50));
        }
        let (begun, states) = (pair.net.now(), |pair: &Pair| pair.states());
        match client {
            true => pair.on_client(|it, now| it.close(now)),
            false => pair.on_server(|it, now| it.close(now)),
        }
        pair.run(Duration::from_secs(230));
        let (at_client, at_server) = states(&pair);
        let still = if client { at_client } else { at_server };
        let expected = if waiting {
            State::Open
        } else if client {
            State::Closing
        } else {
            State::CloseReq
        };
        assert_eq!(still, Some(expected), "client {client}, {:?}", pair.net.now().since(begun));
        pair.run(Duration::from_secs(20));
        let (events, state) = match client {
            true => (&pair.client_events, pair.states().0),
            false => (&pair.server_events, pair.states().1),
        };
        assert!(events.contains(&Event::Closed(CloseReason::NoAnswer)), "{events:?}");
        assert_eq!(state, None, "nothing is kept of it");
    }
}

#[test]
fn an_abort_is_told_to_the_other_end() {
    let mut pair = open();
    pair.on_server(|it, _| it.abort());
    let reset = CloseReason::Reset(Reset::new(ResetCode::ABORTED), String::new());
    pair.until_closed(&reset, &CloseReason::Aborted);
}

#[test]
fn a_forged_reset_or_close_with_wrong_numbers_is_challenged_and_ends_nothing() {
    let mut pair = open();
    let (seq, ack) = numbers(&mut pair);
    pair.record.clear();
    let reset = Reset::new(ResetCode::CLOSED);
    let far = 1 << 40;
    for (seq, ack) in
        [(seq + far, ack), (seq, ack + 1000), (seq - 1, ack), (seq, ack.wrapping_sub(far) & ((1 << 48) - 1))]
    {
        pair.inject(pair.server, &packet(true, seq, Kind::Reset { ack, reset }, &[], b""));
        pair.inject(pair.server, &packet(true, seq, Kind::Close { ack }, &[], b""));
    }
    let syncs: Vec<_> = pair.record.sent(SERVER).iter().map(|it| it.packet().header.kind).collect();
    assert_eq!(syncs.len(), 8);
    assert!(syncs.iter().all(|kind| matches!(kind, Kind::Sync { .. })), "{syncs:?}");
    assert_eq!(syncs[0], Kind::Sync { ack: seq - 1 }, "for a Reset: the last valid number (§7.5.4)");
    pair.run(ms(200));
    assert_eq!(pair.states(), (Some(State::Open), Some(State::Open)));
    // The right numbers do end it.
    pair.record.clear();
    let (seq, ack) = numbers(&mut pair);
    pair.inject(pair.server, &packet(true, seq, Kind::Reset { ack, reset }, &[], b""));
    pair.run(ms(5));
    assert_eq!(pair.states().1, None);
}

#[test]
fn blind_injection_delivers_nothing_and_costs_eight_syncs_a_second() {
    let mut pair = open();
    pair.record.clear();
    for n in 0..10_000_u64 {
        let seq = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        pair.inject(pair.server, &packet(true, seq, Kind::Data, &[], b"evil"));
        pair.inject(pair.server, &packet(true, seq, Kind::Sync { ack: seq ^ 77 }, &[], b""));
    }
    assert_eq!(pair.record.names(SERVER), ["Sync"; 8]);
    pair.run(ms(1500));
    assert!(pair.server_recv().is_empty());
    pair.client_send(b"good").unwrap();
    pair.run(ms(500));
    assert_eq!(pair.server_recv(), [b"good"]);
}

/// RFC 4340 §7.5.6, first example.
#[test]
fn a_burst_of_loss_beyond_the_window_is_mended_by_a_sync() {
    let mut pair = open();
    let (seq, ack) = numbers(&mut pair);
    pair.server_recv();
    pair.run(ms(1000));
    pair.record.clear();
    // What the client would send after a burst of 2000 that nobody got.
    pair.inject(pair.server, &packet(true, seq + 2000, Kind::DataAck { ack }, &[], b"lost to the window"));
    let syncs: Vec<_> = pair.record.sent(SERVER).iter().map(|it| it.packet().header.kind).collect();
    assert_eq!(syncs, [Kind::Sync { ack: seq + 2000 }]);
    let sync = pair.record.sent(SERVER)[0].packet().header.seq;
    pair.inject(pair.server, &packet(true, seq + 2001, Kind::SyncAck { ack: sync }, &[], b""));
    pair.inject(pair.server, &packet(true, seq + 2002, Kind::DataAck { ack }, &[], b"in step again"));
    pair.run(ms(10));
    assert_eq!(pair.server_recv(), [b"in step again"]);
}

/// RFC 4340 §7.5.6, last example: the client crashed and asks anew with the same ports.
#[test]
fn a_half_open_connection_is_cleaned_up() {
    let mut pair = open();
    let id = pair.client_id;
    pair.net.with(pair.client, |endpoint, _| {
        *endpoint = braidcast_dccp::Endpoint::new(Options::default(), braidcast_core::Rng::from_seed(99)).unwrap();
        assert!(endpoint.connection(id).is_none());
    });
    let route = braidcast_core::Route::new(braidcast_core::SocketId(0), SERVER.parse().unwrap());
    pair.client_events.clear();
    pair.run(ms(1000));
    pair.record.clear();
    pair.client_id =
        pair.net.with(pair.client, |endpoint, now| endpoint.connect(now, route, 4001, PORT, SERVICE).unwrap());
    pair.until(ms(5000), "second life", |pair| pair.client_events.contains(&Event::Connected));
    assert_eq!(pair.record.names(CLIENT)[..3], ["Request", "Reset", "Reset"]);
    assert_eq!(
        pair.record.names(SERVER)[..3],
        ["Sync", "Sync", "Response"],
        "the second Sync has the number for the Reset"
    );
}

/// Found by the fuzzer: the number of a Response follows from that of the Request, so copies of
/// both could open it again.
#[test]
fn copies_of_the_handshake_do_not_bring_an_aborted_connection_back() {
    for half_open in [0, 8] {
        let mut pair = Pair::connected(&Options { half_open, ..Options::default() }, Duplex::both(link(10, 10)));
        pair.client_send(b"once").unwrap();
        pair.run(ms(500));
        assert_eq!(pair.server_recv(), [b"once"]);
        let copies: Vec<_> = pair.record.sent(CLIENT).iter().map(|it| it.bytes.clone()).collect();
        pair.on_server(|it, _| it.abort());
        for seconds in [0, 59, 180] {
            pair.run(Duration::from_secs(seconds));
            copies.iter().for_each(|copy| pair.inject(pair.server, copy));
            assert!(pair.server_recv().is_empty(), "after {seconds} s");
        }
    }
}

#[test]
fn duplicates_are_delivered_once() {
    let mut pair = open();
    pair.client_send(b"once").unwrap();
    let sent = pair.record.last(CLIENT, "Data").or(pair.record.last(CLIENT, "DataAck")).unwrap();
    pair.run(ms(100));
    for _ in 0..3 {
        pair.inject(pair.server, &sent.bytes);
    }
    assert_eq!(pair.server_recv(), [b"once"]);
    assert_eq!(pair.on_server(|it, now| it.report(now).stats.duplicates), 3);
}

#[test]
fn options_that_must_be_understood_end_the_connection() {
    let end = |options: &[u8]| {
        let mut pair = open();
        let (seq, ack) = numbers(&mut pair);
        pair.record.clear();
        pair.inject(pair.server, &packet(true, seq, Kind::Ack { ack }, options, b""));
        let reset = pair.record.sent(SERVER).first().map(|it| it.packet().header.kind);
        pair.run(ms(10));
        match (reset, pair.states().1) {
            (Some(Kind::Reset { reset, .. }), None) => Some((reset.code, reset.data)),
            (None, Some(State::Open)) => None,
            other => panic!("{other:?}"),
        }
    };
    let mandatory = |data| Some((ResetCode::MANDATORY_ERROR, data));
    assert_eq!(end(&[1, 99, 4, 7, 8]), mandatory([99, 7, 8]), "unknown");
    assert_eq!(end(&[1, 200, 3, 7]), mandatory([200, 7, 0]), "of a CCID that does not know it");
    assert_eq!(end(&[1, 41, 3, 7]), mandatory([41, 7, 0]), "of a wrong length");
    assert_eq!(end(&[2, 2, 2, 1]), Some((ResetCode::OPTION_ERROR, [1, 0, 0])), "Mandatory at the end");
    assert_eq!(end(&[99, 4, 7, 8, 1, 2, 200, 3, 7]), None, "unknown, but not mandatory");
}

#[test]
fn only_a_server_asks_to_close() {
    let mut pair = open();
    let (seq, ack) = numbers(&mut pair);
    pair.record.clear();
    pair.inject(pair.server, &packet(true, seq, Kind::CloseReq { ack }, &[], b""));
    assert_eq!(pair.record.names(SERVER), ["Sync"]);
    assert_eq!(pair.states().1, Some(State::Open));
}
