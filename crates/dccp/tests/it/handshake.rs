//! How connections begin.

use crate::common::*;
use braidcast_core::{Machine, Rng, Route, SocketId};
use braidcast_dccp::wire::{Builder, Checksum, Header, Kind, Opt, Reset, ResetCode, ServiceCode};
use braidcast_dccp::{CloseReason, ConnectError, Endpoint, Event, Limits, Options, SendError, SendOptions, State};
use braidcast_sim::{Duplex, Network};
use core::time::Duration;

#[test]
fn three_packets_open_a_connection_and_the_server_keeps_nothing_before_the_third() {
    let stateless = Options { half_open: 0, ..Options::default() };
    let mut pair = Pair::new(&stateless, Duplex::both(link(10, 20)));
    pair.until(ms(100), "response", |pair| !pair.record.sent(SERVER).is_empty());
    assert_eq!(pair.server_id(), None, "no state before the answer to the Response");
    let response = pair.record.last(SERVER, "Response").unwrap();
    assert!(response.packet().options.known().any(|option| matches!(option, Opt::InitCookie(_))));
    pair.connect();
    assert_eq!(pair.record.names(CLIENT)[..2], ["Request", "Ack"]);
    pair.until(ms(500), "open", |pair| pair.states() == (Some(State::Open), Some(State::Open)));
    let rtts = [pair.on_client(|it, now| it.report(now).rtt), pair.on_server(|it, now| it.report(now).rtt)];
    assert!(rtts.iter().flatten().all(|rtt| *rtt > ms(39) && *rtt < ms(45)) && rtts[0].is_some(), "{rtts:?}");
}

/// A server whose client is played by hand: from `from`, with port 4001 and its first number 1000. Gives its Response.
fn request(pair: &mut Pair, from: &str) -> Option<Seen> {
    pair.record.clear();
    inject(&mut pair.net, pair.server, from, &packet(true, 1000, Kind::Request { service: SERVICE }, &[], b""));
    pair.record.last(SERVER, "Response")
}

fn by_hand(half_open: usize) -> Pair {
    Pair::new(&Options { half_open, ..Options::default() }, Duplex::both(lossy(10, 5, "100%")))
}

#[test]
fn a_request_is_answered_with_at_most_three_times_its_bytes() {
    for half_open in [0, 128] {
        let mut pair = by_hand(half_open);
        let route = Route::new(SocketId(0), CLIENT.parse().unwrap());
        let asked = packet(true, 1000, Kind::Request { service: SERVICE }, &[], b"").len();
        let answer = request(&mut pair, CLIENT).expect("a Response").packet().as_bytes().len();
        let (given, taken) = (asked + route.headers(), answer + route.headers());
        assert!(taken <= 3 * given, "{given} bytes are answered by {taken}");
    }
}

/// As Linux, which ignores Init Cookies.
#[test]
fn a_client_that_brings_no_cookie_back_connects_by_default() {
    let mut pair = by_hand(Options::default().half_open);
    let response = request(&mut pair, CLIENT).unwrap();
    assert!(response.packet().options.known().any(|option| matches!(option, Opt::InitCookie(_))), "for those that do");
    let ack = response.packet().header.seq;
    pair.inject(pair.server, &packet(true, 1001, Kind::Ack { ack }, &[], b""));
    pair.inject(pair.server, &packet(true, 1002, Kind::DataAck { ack }, &[], b"without a cookie"));
    assert_eq!(pair.states().1, Some(State::Open));
    assert_eq!(pair.server_recv(), [b"without a cookie"]);
}

#[test]
fn a_flood_of_requests_pushes_the_oldest_out_which_hurts_no_client_with_a_cookie() {
    let mut pair = by_hand(4);
    let response = request(&mut pair, CLIENT).unwrap();
    let ack = response.packet().header.seq;
    for n in 1..=100 {
        request(&mut pair, &format!("10.9.0.{n}:6511"));
    }
    assert_eq!(pair.net.node(pair.server).connections().count(), 4);
    // Pushed out, so all that is left of it is in its cookie.
    pair.record.clear();
    pair.inject(pair.server, &packet(true, 1001, Kind::Ack { ack }, &[], b""));
    assert_eq!(pair.record.names(SERVER), ["Reset"]);
    let cookies = response.packet().options.known().filter_map(|option| match option {
        Opt::InitCookie(bytes) => Some([&[36, bytes.len() as u8 + 2], bytes].concat()),
        _ => None,
    });
    let cookies: Vec<u8> = cookies.flatten().collect();
    pair.inject(pair.server, &packet(true, 1001, Kind::Ack { ack }, &cookies, b""));
    assert_eq!(pair.states().1, Some(State::Open));
    assert_eq!(pair.net.node(pair.server).connections().count(), 5);
}

/// Raw sockets get what is for other processes of the machine: they must not be answered for.
#[test]
fn straight_over_ip_only_our_own_ports_are_answered_for() {
    let addresses = ["10.1.0.1:0", "10.1.0.2:0"];
    let [from, to] = addresses.map(|it| it.parse::<std::net::SocketAddr>().unwrap());
    let answers = |options: &Options, port: u16, kind: Kind| {
        let mut pair = Pair::native(options, Duplex::both(link(10, 5)), addresses);
        pair.connect();
        pair.run(ms(100));
        pair.record.clear();
        let header =
            Header { source_port: 9, destination_port: port, ccval: 0, coverage: 0, short: false, seq: 1, kind };
        let mut bytes = Vec::new();
        Builder::begin(&mut bytes, &header).finish(&[], Checksum::Ip(from.ip(), to.ip()));
        inject(&mut pair.net, pair.server, addresses[0], &bytes);
        pair.record.names(addresses[1])
    };
    let (request, ack) = (Kind::Request { service: ServiceCode(1) }, Kind::Ack { ack: 7 });
    let default = Options::default();
    assert!(answers(&default, PORT + 1, request).is_empty() && answers(&default, PORT + 1, ack).is_empty());
    assert_eq!(answers(&default, PORT, request), ["Reset"], "we listen there");
    assert_eq!(answers(&default, PORT, ack), ["Reset"]);
    let alone = Options { answer_for_host: true, ..default };
    assert_eq!((answers(&alone, PORT + 1, request), answers(&alone, PORT + 1, ack)), (vec!["Reset"], vec!["Reset"]));
}

/// A Reset may get lost; whoever repeats its packets to a client that is gone must hear of it all the same.
#[test]
fn a_port_stays_ours_for_a_while_after_its_last_connection() {
    let mut pair = Pair::native(&Options::default(), Duplex::both(link(10, 5)), ["10.1.0.1:0", "10.1.0.2:0"]);
    pair.connect();
    pair.run(ms(100));
    pair.server_send(b"late").unwrap();
    let late = pair.record.sent("10.1.0.2:0").pop().unwrap();
    pair.on_client(|it, _| it.abort());
    pair.run(ms(100));
    for (seconds, answers) in [(1, 1), (238, 1), (2, 0)] {
        pair.run(Duration::from_secs(seconds));
        pair.record.clear();
        inject(&mut pair.net, pair.client, "10.1.0.2:0", &late.bytes);
        assert_eq!(pair.record.names("10.1.0.1:0").len(), answers);
    }
}

#[test]
fn the_handshake_survives_the_loss_of_every_fifth_packet() {
    for seed in 0..40 {
        let options = Options { half_open: seed as usize % 2, ..Options::default() };
        let mut pair = Pair::seeded(seed, &options, Duplex::both(lossy(10, 20, "20%")));
        pair.until(ms(180_000), "connect", |pair| pair.states() == (Some(State::Open), Some(State::Open)));
    }
}

/// The Request is repeated after a second, before the first Response can be there.
#[test]
fn a_round_trip_longer_than_the_retry_opens_one_connection_that_works() {
    for half_open in [0, 4] {
        let options = Options { half_open, ..Options::default() };
        let mut pair = Pair::new(&options, Duplex::both(link(10, 1400)));
        pair.until(ms(20_000), "open", |pair| pair.states() == (Some(State::Open), Some(State::Open)));
        assert!(pair.record.names(CLIENT).iter().filter(|name| **name == "Request").count() >= 2);
        for n in 0..10 {
            pair.client_send(&message(n, 100)).unwrap();
            pair.server_send(&message(100 + n, 100)).unwrap();
            pair.run(ms(3000));
        }
        pair.run(ms(10_000));
        let numbers: Vec<u32> = pair.server_recv().iter().map(|it| number(it)).collect();
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
        assert_eq!(pair.client_recv().len(), 10);
        let lost =
            [pair.on_client(|it, now| it.report(now).ccid.lost), pair.on_server(|it, now| it.report(now).ccid.lost)];
        assert_eq!(lost, [0, 0], "numbers that were skipped are no loss");
        assert_eq!(pair.net.node(pair.server).connections().count(), 1);
    }
}

#[test]
fn refusals_say_why() {
    let refused = |port, service, expected: ResetCode| {
        let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 5)));
        pair.client_events.clear();
        let route = Route::new(SocketId(0), SERVER.parse().unwrap());
        pair.net.with(pair.client, |endpoint, now| endpoint.connect(now, route, 0, port, service).unwrap());
        pair.run(ms(100));
        let reset = CloseReason::Reset(Reset::new(expected), String::new());
        assert_eq!(pair.client_events, [Event::Closed(reset)]);
    };
    refused(PORT + 1, SERVICE, ResetCode::CONNECTION_REFUSED);
    refused(PORT, ServiceCode(1), ResetCode::BAD_SERVICE_CODE);
    let full = Options { max_connections: 0, ..Options::default() };
    let mut pair = Pair::with(Options::default(), full, Duplex::both(link(10, 5)));
    pair.run(ms(100));
    let busy = CloseReason::Reset(Reset::new(ResetCode::TOO_BUSY), String::new());
    assert_eq!(pair.client_events, [Event::Closed(busy)]);
}

#[test]
fn nobody_there_is_reported_after_three_minutes() {
    let mut pair = Pair::new(&Options::default(), Duplex::both(lossy(10, 5, "100%")));
    pair.run(Duration::from_secs(179));
    assert!(pair.client_events.is_empty());
    let times: Vec<u64> = pair.record.sent(CLIENT).iter().map(|it| it.at.as_micros() / 1_000_000).collect();
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 127], "RFC 4340 §8.1.1: doubling, up to 64 s");
    let numbers: Vec<u64> = pair.record.sent(CLIENT).iter().map(|it| it.packet().header.seq).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "each Request has a number of its own");
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.client_events, [Event::Closed(CloseReason::NoAnswer)]);
    let last = pair.record.sent(CLIENT).pop().unwrap();
    let Kind::Reset { ack, reset } = last.packet().header.kind else { panic!("{last:?}") };
    assert_eq!((ack, reset.code), (0, ResetCode::ABORTED));
}

#[test]
fn an_altered_or_old_cookie_opens_nothing() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 5)));
    let ack = pair.record.sent(CLIENT)[1].bytes.clone();
    // The right cookie at another server, and an altered one at the right server, whose connection is gone.
    for (change, same_server) in [(false, false), (true, true)] {
        let mut bytes = ack.clone();
        if change {
            bytes[40] ^= 1;
        }
        let mut net = Network::new(1);
        let endpoint = if same_server {
            Endpoint::new(Options::default(), Rng::from_seed(1).stream("server")).unwrap()
        } else {
            Endpoint::new(Options::default(), Rng::from_seed(9).stream("server")).unwrap()
        };
        let node = net.add(endpoint, [SERVER]);
        let peer = net.add(Endpoint::new(Options::default(), Rng::from_seed(2)).unwrap(), [CLIENT]);
        net.connect((node, 0), (peer, 0), Duplex::both(link(10, 5)));
        net.with(node, |endpoint, _| endpoint.listen(PORT, SERVICE).unwrap());
        let record = Recording::default();
        record.listen(&mut net);
        inject(&mut net, node, CLIENT, &bytes);
        let Kind::Reset { reset, .. } = record.sent(SERVER)[0].packet().header.kind else { panic!("no Reset") };
        assert_eq!(reset.code, ResetCode::BAD_INIT_COOKIE);
        assert_eq!(net.node(node).connections().count(), 0);
    }
    let id = pair.server_id().unwrap();
    pair.net.with(pair.server, |endpoint, _| endpoint.connection_mut(id).unwrap().abort());
    pair.run(Duration::from_secs(70));
    pair.record.clear();
    pair.inject(pair.server, &ack);
    assert_eq!(pair.record.names(SERVER), ["Reset"], "older than a minute");
}

#[test]
fn ports_of_a_closed_connection_rest_for_four_minutes() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 5)));
    pair.on_client(|it, now| it.close(now));
    pair.until_closed(&CloseReason::Closed, &CloseReason::Closed);
    let route = Route::new(SocketId(0), SERVER.parse().unwrap());
    let connect = |pair: &mut Pair, port| {
        pair.net.with(pair.client, |endpoint, now| endpoint.connect(now, route, port, PORT, SERVICE))
    };
    pair.run(Duration::from_secs(200));
    assert_eq!(connect(&mut pair, 4001), Err(ConnectError::PortsInUse));
    assert!(connect(&mut pair, 0).is_ok());
    pair.run(Duration::from_secs(41));
    assert!(connect(&mut pair, 4001).is_ok());
}

#[test]
fn native_ip_works_with_both_families() {
    for addresses in [["10.1.0.1:0", "10.1.0.2:0"], ["[fd00::1]:0", "[fd00::2]:0"]] {
        let mut pair = Pair::native(&Options::default(), Duplex::both(link(10, 5)), addresses);
        pair.connect();
        pair.client_send(b"straight over IP").unwrap();
        pair.run(ms(100));
        assert_eq!(pair.server_recv(), [b"straight over IP"]);
        // `packet` checks the checksum, with the addresses.
        assert!(pair.record.all().iter().all(|seen| seen.packet().header.seq > 0));
    }
}

#[test]
fn messages_that_cannot_be_sent_are_refused_with_the_reason() {
    let mut pair =
        Pair::connected(&Options { send_queue: Limits::messages(3), ..Options::default() }, Duplex::both(link(1, 50)));
    let limit = pair.on_client(|it, _| it.max_payload());
    assert_eq!(pair.client_send(&vec![0; limit + 1]), Err(SendError::TooLong { len: limit + 1, limit }));
    let coverage = |coverage| SendOptions { coverage, ..SendOptions::default() };
    let covered = pair.on_client(|it, now| it.send(now, b"12345", coverage(3)));
    assert_eq!(covered, Err(SendError::Coverage { coverage: 3, len: 5 }));
    let refused = pair.on_client(|it, now| it.send(now, b"12345", coverage(1)));
    assert_eq!(refused, Err(SendError::CoverageRefused { coverage: 1, minimum: 0 }));
    let sent = (0..100).take_while(|&n| pair.client_send(&message(n, 1000)).is_ok()).count();
    assert_eq!(sent, 6, "three in the window, three in the queue");
    assert_eq!(pair.client_send(b""), Err(SendError::QueueFull { messages: 3, bytes: 3000 }));
    pair.run(ms(300));
    assert!(pair.client_events.contains(&Event::Writable));
    pair.on_client(|it, now| it.close(now));
    assert_eq!(pair.client_send(b""), Err(SendError::Closing));
}

#[test]
fn a_drained_endpoint_stays_quiet_for_an_idle_hour() {
    let mut pair = Pair::connected(&Options::default(), Duplex::both(link(10, 5)));
    pair.client_send(b"one").unwrap();
    pair.run(Duration::from_secs(10));
    pair.record.clear();
    pair.run(Duration::from_secs(3600));
    assert!(pair.record.all().is_empty());
    assert_eq!(pair.net.node(pair.client).poll_timeout(), None);
    pair.client_send(b"two").unwrap();
    pair.run(ms(100));
    assert_eq!(pair.server_recv(), [b"one", b"two"]);
}

/// Linux's server takes the features from the one packet that makes it OPEN, so that must not be one without Confirms.
#[test]
fn a_client_repeats_its_confirms_until_it_hears_from_open() {
    let mut pair = Pair::new(&Options::default(), Duplex::new(lossy(10, 20, "100%"), link(10, 20)));
    pair.run(ms(5));
    let ack = pair.record.sent(CLIENT)[0].packet().header.seq;
    // Change L(Send NDP Count, 1).
    let response = Kind::Response { ack, service: SERVICE };
    pair.inject(pair.client, &packet(false, 77, response, &[32, 4, 7, 1], b""));
    pair.run(ms(1000));
    let confirms = |it: &Seen| {
        let is = |it: &Opt<'_>| matches!(it, Opt::Feature(it) if it.confirm && it.feature == 7);
        it.packet().options.known().filter(is).count()
    };
    let acks: Vec<usize> = pair.record.sent(CLIENT).iter().filter(|it| it.name() == "Ack").map(confirms).collect();
    assert!(acks.len() >= 3 && acks.iter().all(|&count| count == 1), "{acks:?}");
}
