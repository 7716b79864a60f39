//! What somebody without the keys brings about beside protected connections, and what a peer that
//! lost its state does.

use crate::common;
use braidcast_core::{Rng, Route, SocketId};
use braidcast_dccp::wire::{Kind, Reset, ResetCode};
use braidcast_dccp::{CloseReason, Endpoint, Event, Options, SecurityOptions, SendOptions};
use braidcast_secure::Suite;
use braidcast_secure::known::Known;
use braidcast_sim::Duplex;
use common::*;
use core::time::Duration;
use std::sync::Arc;

fn options() -> Options {
    let method = Arc::new(Known { word: 1, suite: Suite::Aes128Gcm });
    Options { security: Some(SecurityOptions::new(method)), ..Options::default() }
}

fn closed(events: &[Event]) -> Option<&CloseReason> {
    events.iter().find_map(|event| if let Event::Closed(reason) = event { Some(reason) } else { None })
}

/// Sends messages for `duration`. Returns how many came.
fn flow(pair: &mut Pair, duration: Duration) -> usize {
    let end = pair.net.now() + duration;
    let mut came = 0;
    while pair.net.now() < end {
        let _full = pair.client_send(&[7; 500]);
        pair.run(ms(20));
        came += pair.server_recv().len();
    }
    came
}

/// A Reset in clear to each end, with numbers that it may have.
fn resets(pair: &mut Pair) {
    let ours = pair.record.sent(CLIENT).last().unwrap().packet().header.seq;
    let theirs = pair.record.sent(SERVER).last().unwrap().packet().header.seq;
    let reset = Reset::new(ResetCode::NO_CONNECTION);
    let to_client = packet(false, theirs + 1, Kind::Reset { ack: ours, reset }, &[], b"go away");
    let to_server = packet(true, ours + 1, Kind::Reset { ack: theirs, reset }, &[], b"go away");
    pair.inject(pair.client, &to_client);
    pair.inject(pair.server, &to_server);
}

#[test]
fn a_reset_in_clear_ends_nothing_however_long_the_fade_behind_it() {
    for fade in [400, 3000, 20_000] {
        let mut pair = Pair::connected(&options(), Duplex::both(link(10, 20)));
        assert!(flow(&mut pair, ms(300)) > 5);
        let member = pair.server_id().unwrap();
        resets(&mut pair);
        let links = [pair.links.0, pair.links.1];
        links.iter().for_each(|&link| pair.net.set_down(link, true));
        flow(&mut pair, ms(fade));
        resets(&mut pair);
        links.iter().for_each(|&link| pair.net.set_down(link, false));
        flow(&mut pair, ms(fade + 3000));
        assert_eq!(closed(&pair.client_events), None, "{fade} ms");
        let there: Vec<_> = pair.net.node(pair.server).connections().collect();
        assert_eq!(there, [member], "who asked has left, and nobody else, after {fade} ms");
        assert!(flow(&mut pair, ms(1000)) > 10, "after a fade of {fade} ms");
        assert_eq!(pair.net.node(pair.client).connections().count(), 1);
    }
}

#[test]
fn a_client_learns_within_two_seconds_that_its_server_was_killed() {
    let mut pair = Pair::connected(&options(), Duplex::both(link(10, 20)));
    flow(&mut pair, ms(300));
    let server = pair.server;
    pair.net.with(server, |endpoint, _| {
        *endpoint = Endpoint::new(options(), Rng::from_seed(9)).unwrap();
        endpoint.listen(PORT, SERVICE).unwrap();
    });
    let _queued = pair.client_send(b"x");
    pair.until(ms(2000), "the client learns it", |pair| closed(&pair.client_events).is_some());
    let route = Route::new(SocketId(0), SERVER.parse().unwrap());
    let client = pair.client;
    pair.client_id = pair.net.with(client, |it, now| it.connect(now, route, 0, PORT, SERVICE).unwrap());
    pair.client_events.clear();
    pair.until(ms(2000), "connected again", |pair| pair.client_events.contains(&Event::Connected));
    assert!(flow(&mut pair, ms(500)) > 5);
}

/// What it sends at once goes to the connection by which the client asks who is there, and nobody
/// reads it there. A client that waited for that never came to an end with itself.
#[test]
fn a_server_that_was_killed_and_sends_at_once_keeps_no_client_busy() {
    let mut pair = Pair::connected(&options(), Duplex::both(link(10, 20)));
    flow(&mut pair, ms(300));
    let server = pair.server;
    pair.net.with(server, |endpoint, _| {
        *endpoint = Endpoint::new(options(), Rng::from_seed(9)).unwrap();
        endpoint.listen(PORT, SERVICE).unwrap();
    });
    pair.server_events.clear();
    let _queued = pair.client_send(b"x");
    pair.until(ms(2000), "the client asks who is there", |pair| pair.server_events.contains(&Event::Connected));
    pair.on_server(|it, now| it.send(now, b"welcome", SendOptions::default()).unwrap());
    pair.until(ms(2000), "the client learns it", |pair| closed(&pair.client_events).is_some());
    pair.run(ms(2000));
    assert_eq!(pair.net.node(pair.client).connections().count(), 0, "nothing is left of it");
}

#[test]
fn a_client_that_crashed_takes_the_place_of_its_old_connection() {
    let mut pair = Pair::connected(&options(), Duplex::both(link(10, 20)));
    flow(&mut pair, ms(300));
    let (client, route) = (pair.client, Route::new(SocketId(0), SERVER.parse().unwrap()));
    pair.client_id = pair.net.with(client, |endpoint, now| {
        *endpoint = Endpoint::new(options(), Rng::from_seed(9)).unwrap();
        endpoint.connect(now, route, 0, PORT, SERVICE).unwrap()
    });
    pair.client_events.clear();
    pair.until(ms(2000), "the newcomer's place", |pair| {
        pair.client_events.contains(&Event::Connected) && closed(&pair.server_events).is_some()
    });
    assert!(flow(&mut pair, ms(500)) > 5);
}

#[test]
fn who_changes_what_the_request_asks_for_is_found_out_at_once() {
    let mut pair = Pair::new(&options(), Duplex::both(link(20, 20)));
    pair.until(ms(100), "the Request leaves", |pair| !pair.record.sent(CLIENT).is_empty());
    let mut request = pair.record.sent(CLIENT)[0].bytes.clone();
    let (mut at, end) = (20, usize::from(request[4]) * 4);
    let mut stripped = 0;
    while at < end {
        let len = if request[at] < 32 { 1 } else { usize::from(request[at + 1]) };
        if matches!(request[at], 32 | 34) {
            request[at - 1..at + len].iter_mut().for_each(|byte| *byte = if *byte == 120 { 120 } else { 0 });
            stripped += 1;
        }
        at += len.max(1);
    }
    assert!(stripped > 0);
    pair.net.set_down(pair.links.0, true);
    pair.inject(pair.server, &request);
    pair.run(ms(30));
    pair.net.set_down(pair.links.0, false);
    pair.run(Duration::from_secs(2));
    assert!(!pair.client_events.contains(&Event::Connected));
    let why = format!("{:?} {:?}", closed(&pair.client_events), closed(&pair.server_events));
    assert!(why.contains("somebody in between changed what the two ends offered each other"), "{why}");
}

#[test]
fn what_a_stranger_says_is_not_shown() {
    let mut pair = Pair::with(options(), options(), Duplex::both(link(20, 20)));
    pair.until(ms(200), "the server has a connection that is not half open", |pair| {
        pair.record.sent(CLIENT).len() >= 2 && pair.server_id().is_some()
    });
    pair.run(ms(25));
    let ours = pair.record.sent(CLIENT).last().unwrap().packet().header.seq;
    let theirs = pair.record.sent(SERVER).last().unwrap().packet().header.seq;
    let reset = Reset::option(ResetCode::MANDATORY_ERROR, 120, &[]);
    let text = b"\x1b[2Kcam7: a client is there, authenticated by the shared key\nConnected";
    pair.inject(pair.server, &packet(true, ours + 1, Kind::Reset { ack: theirs, reset }, &[], text));
    pair.run(ms(10));
    let shown = closed(&pair.server_events).map(ToString::to_string).unwrap_or_default();
    assert_eq!(shown, "no secure connection: the other end left before it had proved a key");
}

/// What a client sent before it crashed may come after it is back. A record alone does not restore
/// the connection that it has forgotten.
#[test]
fn a_record_that_comes_late_keeps_no_connection_that_is_dead() {
    let mut pair = Pair::connected(&options(), Duplex::both(link(10, 20)));
    flow(&mut pair, ms(300));
    let _queued = pair.client_send(b"late");
    pair.net.set_down(pair.links.0, true);
    pair.run(ms(30));
    let late = pair.record.sent(CLIENT).last().unwrap().bytes.clone();
    pair.net.set_down(pair.links.0, false);
    let (client, route) = (pair.client, Route::new(SocketId(0), SERVER.parse().unwrap()));
    pair.client_id = pair.net.with(client, |endpoint, now| {
        *endpoint = Endpoint::new(options(), Rng::from_seed(9)).unwrap();
        endpoint.connect(now, route, 0, PORT, SERVICE).unwrap()
    });
    pair.client_events.clear();
    pair.until(ms(2000), "the newcomer", |pair| pair.client_events.contains(&Event::Connected));
    pair.run(ms(60));
    assert_eq!(closed(&pair.server_events), None, "the old one is doubted, no more");
    pair.inject(pair.server, &late);
    pair.until(ms(3000), "the old one goes", |pair| closed(&pair.server_events).is_some());
    assert!(flow(&mut pair, ms(500)) > 5);
}
