//! Paths join, leave, fail and come back, through NATs, and none of it loses anything.

use crate::common::{
    CLIENT, Flow, Pair, Recording, SERVER, bulk, link, ms, on, packet, pattern, raw_packet, rebind, route, tag,
    transfer,
};
use braidcast_core::{Instant, Route, SocketId};
use braidcast_sctp::wire::chunk::{Asconf, Auth, Heartbeat, kind};
use braidcast_sctp::wire::{Chunk, Parameter, Parameters};
use braidcast_sctp::{CloseReason, Event, LossDetection, Options, PathState, Reliability, SchedulerKind, SendOptions};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Outage};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

fn good() -> Duplex {
    Duplex::both(link(10, 15))
}

fn server_paths(pair: &mut Pair) -> Vec<(String, PathState)> {
    pair.on_server(|association, _| association.paths().map(|it| (it.route.remote.to_string(), it.state)).collect())
}

fn client_sent(pair: &mut Pair, i: usize) -> u64 {
    pair.client_path(i).map_or(0, |path| path.sent_chunks)
}

#[test]
fn paths_join_through_nats_whatever_address_the_packets_hold() {
    let nat = ["203.0.113.6:61000", "203.0.113.7:62000", "203.0.113.8:63000"];
    let links = nat.iter().map(|address| good().behind_nat(address)).collect();
    let mut pair = Pair::new(&Options::live(), links);
    let recording = pair.record();
    pair.connect();
    let mut paths = server_paths(&mut pair);
    paths.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(paths, nat.map(|address| (address.to_string(), PathState::Active)));
    transfer(&mut pair, 300_000, 1000);
    assert!((0..3).all(|i| client_sent(&mut pair, i) > 0));
    for seen in recording.all() {
        let texts = CLIENT.iter().chain(&SERVER).chain(&nat);
        for text in texts {
            let IpAddr::V4(ip) = text.parse::<std::net::SocketAddr>().unwrap().ip() else { unreachable!() };
            let named = seen.kinds().iter().any(|it| matches!(*it, kind::INIT | kind::ASCONF | kind::ASCONF_ACK))
                && seen.bytes.windows(4).any(|window| window == ip.octets());
            assert!(!named, "{ip} stands in a packet");
        }
    }
    for i in 1..3 {
        let joins: Vec<_> =
            recording.sent(&CLIENT[i..=i]).into_iter().filter(|seen| seen.kinds().contains(&kind::ASCONF)).collect();
        assert!(
            !joins.is_empty() && joins.iter().all(|seen| seen.kinds()[0] == kind::AUTH),
            "sent from the path itself"
        );
    }
}

/// The most bits that left from `address` in any second, with the headers of IP and UDP.
fn most_in_a_second(recording: &Recording, address: &str) -> usize {
    let sent: Vec<_> = recording.sent(&[address]).iter().map(|it| (it.at, 8 * (it.bytes.len() + 28))).collect();
    let (mut oldest, mut bits, mut most) = (0, 0, 0);
    for &(at, len) in &sent {
        bits += len;
        while sent[oldest].0 + ms(1000) <= at {
            bits -= sent[oldest].1;
            oldest += 1;
        }
        most = most.max(bits);
    }
    most
}

#[test]
fn a_path_is_sent_no_more_than_it_may_take_and_the_others_carry_the_rest() {
    let mut pair = Pair::new(&Options::live(), vec![good(), good()]);
    let recording = pair.record();
    pair.on_client(|it, _| it.set_limit(route(1), Some(1_000_000)));
    pair.connect();
    bulk(&mut pair, 1000, ms(3000));
    let (free, limited) = (most_in_a_second(&recording, CLIENT[0]), most_in_a_second(&recording, CLIENT[1]));
    assert!(free > 8_000_000, "{free} bit/s of ten million");
    assert!((900_000..1_100_000).contains(&limited), "{limited} bit/s of a million, and a burst");

    pair.on_client(|it, _| it.set_limit(route(1), None));
    recording.clear();
    bulk(&mut pair, 1000, ms(3000));
    let freed = most_in_a_second(&recording, CLIENT[1]);
    assert!(freed > 8_000_000, "{freed} bit/s of ten million");
}

/// An ASCONF with this serial number that adds `address`.
fn add_ip(serial: u32, address: IpAddr) -> Vec<u8> {
    let mut parameters = Vec::new();
    let mut w = braidcast_core::Writer::new(&mut parameters);
    Parameter::AddIp { correlation: 1, address }.emit(&mut w);
    let wildcard = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let mut bytes = Vec::new();
    let asconf = Asconf { serial, address: wildcard, parameters: Parameters::new(&parameters) };
    asconf.emit(&mut braidcast_core::Writer::new(&mut bytes));
    bytes
}

#[test]
fn a_join_without_a_good_authentication_is_dropped_without_a_word() {
    let mut pair = Pair::connected(&Options::live(), vec![good()]);
    let recording = pair.record();
    pair.client_send(b"x", SendOptions::default());
    pair.run(ms(100));
    let data = recording.last(&CLIENT, kind::I_DATA).unwrap();
    let (tag, tsn) = (tag(&data), pair_tsn(&data));
    pair.run(ms(2000));
    recording.clear();
    // The first serial number is the initial TSN, which is that of the first data chunk.
    for serial in [tsn, tsn.wrapping_add(1)] {
        for address in [Ipv4Addr::UNSPECIFIED, Ipv4Addr::new(192, 0, 2, 9)] {
            let asconf = add_ip(serial, IpAddr::V4(address));
            for from in ["192.0.2.9:9899", CLIENT[0]] {
                pair.inject_server(0, from, &raw_packet(tag, &asconf));
                for (hmac_id, hmac) in [(1, &[7; 20][..]), (3, &[7; 32]), (3, &[7; 20]), (9, &[])] {
                    let mut chunks = Vec::new();
                    let auth = Auth { key_id: 0, hmac_id, hmac };
                    auth.emit(&mut braidcast_core::Writer::new(&mut chunks));
                    chunks.extend_from_slice(&asconf);
                    pair.inject_server(0, from, &raw_packet(tag, &chunks));
                }
            }
        }
    }
    assert_eq!(server_paths(&mut pair).len(), 1);
    assert_eq!(recording.count(&SERVER, kind::ASCONF_ACK), 0);
    assert!(recording.all().iter().all(|seen| seen.to != "192.0.2.9:9899".parse().unwrap()));
    let stranger = packet(tag, &[Chunk::Heartbeat(braidcast_sctp::wire::chunk::Heartbeat { info: b"?" })]);
    pair.inject_server(0, "192.0.2.9:9899", &stranger);
    assert!(recording.all().iter().all(|seen| seen.to != "192.0.2.9:9899".parse().unwrap()));
    assert!(pair.on_server(|association, _| association.stats().dropped_packets) >= 20);
    pair.client_send(b"y", SendOptions::default());
    pair.until(ms(500), "a message", |pair| pair.server_recv().iter().any(|(_, it)| it == b"y"));
}

/// The TSN of the I-DATA chunk that a packet begins with.
fn pair_tsn(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[16..20].try_into().unwrap())
}

#[test]
fn a_join_with_another_key_is_refused_and_the_first_path_goes_on() {
    let keyed = |key: &[u8]| Options::live().with(|it| it.key = key.to_vec());
    let mut pair = Pair::with(keyed(b"right"), keyed(b"wrong"), vec![good(), good()]);
    pair.until(ms(1000), "connect", |pair| pair.client_events.contains(&Event::Connected));
    transfer(&mut pair, 300_000, 1000);
    pair.run(ms(5000));
    assert_eq!(server_paths(&mut pair).len(), 1);
    assert_eq!(pair.client_path(1).map_or(PathState::Unconfirmed, |path| path.state), PathState::Unconfirmed);
    assert_eq!(client_sent(&mut pair, 1), 0);
    let mut pair = Pair::connected(&keyed(b"same"), vec![good(), good()]);
    transfer(&mut pair, 300_000, 1000);
    assert!(client_sent(&mut pair, 1) > 0);
}

#[test]
fn a_path_leaves_at_both_ends_and_data_goes_on() {
    for leaving in 0..2 {
        let mut pair = Pair::connected(&Options::live(), vec![good(), good()]);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(300));
        let gone = pair.client_path(leaving).unwrap().id;
        pair.on_client(|association, now| association.leave(now, route(leaving)));
        flow.run(&mut pair, ms(1000));
        flow.finish(&mut pair);
        assert!(pair.client_events.contains(&Event::PathRemoved(gone, route(leaving))));
        assert_eq!(server_paths(&mut pair), [(CLIENT[1 - leaving].to_string(), PathState::Active)]);
        assert!(pair.server_events.iter().any(|event| matches!(event, Event::PathRemoved(..))));
    }
}

#[test]
fn each_end_may_leave_a_path_while_the_other_one_leaves_another() {
    for (links, by_client, by_server) in [
        (3, 0, 1),
        (3, 2, 0),
        (3, 1, 2),
        (2, 0, 0),
        (2, 1, 1),
        (3, 0, 0),
        (3, 1, 1),
        (3, 2, 2),
        (4, 0, 0),
        (4, 3, 3),
        (4, 1, 2),
    ] {
        let what = format!("{links} paths, the client leaves {by_client}, the server {by_server}");
        let mut pair = Pair::connected(&Options::live(), vec![good(); links]);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(300));
        // The interfaces are gone before anybody says so.
        pair.cut(by_client, true);
        pair.cut(by_server, true);
        pair.on_client(|association, now| association.leave(now, route(by_client)));
        let from_server = Route::new(SocketId(by_server as u16), CLIENT[by_server].parse().unwrap());
        pair.on_server(|association, now| association.leave(now, from_server));
        flow.run(&mut pair, ms(3000));
        flow.finish(&mut pair);
        transfer(&mut pair, 100_000, 1000);
        let mut paths = server_paths(&mut pair);
        paths.sort_by(|a, b| a.0.cmp(&b.0));
        let stay = (0..links).filter(|it| *it != by_client && *it != by_server);
        let expected: Vec<_> = stay.map(|i| (CLIENT[i].to_string(), PathState::Active)).collect();
        assert_eq!(paths, expected, "{what}");
    }
}

#[test]
fn of_three_paths_one_leaves_and_the_other_two_stay() {
    for leaving in 0..3 {
        let mut pair = Pair::connected(&Options::live(), vec![good(), good(), good()]);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(200));
        // The interface is gone before anybody says so.
        pair.cut(leaving, true);
        pair.on_client(|association, now| association.leave(now, route(leaving)));
        flow.run(&mut pair, ms(2000));
        flow.finish(&mut pair);
        let mut paths = server_paths(&mut pair);
        paths.sort_by(|a, b| a.0.cmp(&b.0));
        let expected: Vec<_> =
            (0..3).filter(|i| *i != leaving).map(|i| (CLIENT[i].to_string(), PathState::Active)).collect();
        assert_eq!(paths, expected, "{leaving}");
        for i in (0..3).filter(|i| *i != leaving) {
            let before = client_sent(&mut pair, i);
            transfer(&mut pair, 200_000, 1000);
            assert!(client_sent(&mut pair, i) > before, "path {i} is used after {leaving} left");
        }
    }
}

#[test]
fn a_path_joins_while_data_flows_and_takes_its_share() {
    let mut pair = Pair::over(1, Options::live(), Options::live(), vec![good(), good()]);
    pair.until(ms(500), "connect", |pair| pair.client_events.contains(&Event::Connected));
    let mut flow = Flow::default();
    flow.run(&mut pair, ms(300));
    let id = pair.on_client(|association, now| association.join(now, route(1)).unwrap());
    let again = pair.on_client(|association, now| association.join(now, route(1)).unwrap());
    assert_eq!(id, again);
    flow.run(&mut pair, ms(500));
    flow.finish(&mut pair);
    assert!(pair.client_events.contains(&Event::PathUp(id, route(1))));
    transfer(&mut pair, 1_000_000, 1000);
    assert!(client_sent(&mut pair, 1) > 100);
    // Left and joined again, it is another path.
    pair.on_client(|association, now| association.leave(now, route(1)));
    flow.run(&mut pair, ms(300));
    let later = pair.on_client(|association, now| association.join(now, route(1)).unwrap());
    assert!(later > id);
    pair.connect();
}

#[test]
fn a_join_over_an_interface_that_leads_nowhere_hurts_nobody_and_succeeds_later() {
    let mut pair = Pair::over(1, Options::live(), Options::live(), vec![good(), good()]);
    pair.cut(1, true);
    pair.until(ms(500), "connect", |pair| pair.client_events.contains(&Event::Connected));
    pair.on_client(|association, now| association.join(now, route(1)).unwrap());
    let mut flow = Flow::default();
    flow.run(&mut pair, ms(8000));
    flow.finish(&mut pair);
    assert!(!pair.client_events.iter().any(|event| matches!(event, Event::PathDown(..) | Event::Closed(_))));
    pair.cut(1, false);
    pair.until(ms(8000), "the join", |pair| pair.client_path(1).is_some_and(|path| path.state == PathState::Active));
}

#[test]
fn a_dead_path_is_noticed_within_a_second_loses_nothing_and_is_used_again_when_it_returns() {
    for scheduler in [SchedulerKind::RoundRobin, SchedulerKind::LowestDelay] {
        for one_way in [false, true] {
            let options = Options::live().with(|it| it.paths.scheduler = scheduler);
            let mut pair = Pair::connected(&options, vec![good(), Duplex::both(link(10, 25))]);
            let mut flow = Flow::default();
            flow.run(&mut pair, ms(500));
            let (there, back) = pair.links[0];
            pair.net.set_down(there, true);
            pair.net.set_down(back, !one_way);
            let (cut, dead) = (pair.now(), pair.client_path(0).unwrap().id);
            let mut noticed = None;
            for _ in 0..200 {
                flow.run(&mut pair, ms(10));
                if noticed.is_none() && pair.client_events.contains(&Event::PathDown(dead, route(0))) {
                    noticed = Some(pair.now() - cut);
                }
            }
            assert!(noticed.is_some_and(|after| after <= ms(1000)), "{scheduler} {one_way}: {noticed:?}");
            let held_up = flow.sent - flow.received;
            assert!(held_up < 60, "{scheduler} {one_way}: goes on over the other path, {held_up} behind");
            pair.client_events.clear();
            let before = client_sent(&mut pair, 0);
            pair.net.set_down(there, false);
            pair.net.set_down(back, false);
            flow.run(&mut pair, ms(4000));
            assert!(pair.client_events.contains(&Event::PathUp(dead, route(0))), "{scheduler} {one_way}");
            assert!(client_sent(&mut pair, 0) > before + 20, "{scheduler} {one_way}: used again");
            flow.finish(&mut pair);
            assert_eq!(pair.on_client(|association, _| association.stats().abandoned_sent), 0);
        }
    }
}

#[test]
fn an_idle_path_that_dies_is_noticed_by_its_heartbeats() {
    let mut pair = Pair::connected(&Options::live(), vec![good(), good()]);
    pair.run(ms(3000));
    pair.cut(1, true);
    pair.until(ms(2000), "notice", |pair| {
        let down = |events: &[Event]| events.iter().any(|event| matches!(event, Event::PathDown(..)));
        down(&pair.client_events) && down(&pair.server_events)
    });
    assert_eq!(pair.client_path(0).unwrap().state, PathState::Active);
}

#[test]
fn a_path_whose_nat_forgot_it_comes_back_by_itself() {
    for links in 1..=2 {
        let nat = |n: usize| format!("203.0.113.7:{}", 40_000 + n);
        let duplexes = (0..links).map(|i| if i + 1 == links { good().behind_nat(&nat(0)) } else { good() }).collect();
        let mut pair = Pair::connected(&Options::live(), duplexes);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(300));
        // More often than there may be paths at once.
        for n in 0..10 {
            rebind(&mut pair, links - 1, &nat(n), &nat(n + 1));
            let mut back = None;
            let start = pair.now();
            for _ in 0..100 {
                flow.run(&mut pair, ms(100));
                assert!(pair.server_exists(), "{links} {n} {:?} {:?}", pair.server_events, pair.client_events);
                let there = server_paths(&mut pair).contains(&(nat(n + 1), PathState::Active));
                if there && pair.client_path(links - 1).is_some_and(|path| path.state == PathState::Active) {
                    back = Some(pair.now() - start);
                    break;
                }
            }
            assert!(back.is_some_and(|after| after < ms(5000)), "{links} links, change {n}: {back:?}");
        }
        flow.finish(&mut pair);
        assert!(server_paths(&mut pair).len() <= Options::live().paths.max_paths);
    }
}

#[test]
fn a_new_path_takes_the_room_of_one_that_has_failed_and_of_no_other() {
    let options = Options::live().with(|it| it.paths.max_paths = 2);
    let mut pair = Pair::over(2, options.clone(), options, vec![good(), good(), good()]);
    let has = |pair: &mut Pair, i: usize, state: PathState| {
        pair.on_client(|it, _| it.paths().any(|path| path.route == route(i) && path.state == state))
    };
    pair.until(ms(5000), "connect", |pair| pair.server_exists() && (0..2).all(|i| has(pair, i, PathState::Active)));
    let full = pair.on_client(|it, now| it.join(now, route(2)).map_err(|error| error.to_string()));
    assert_eq!(full.err().as_deref(), Some("2 paths are in use, more are not allowed"));
    pair.cut(1, true);
    pair.until(ms(20_000), "fail", |pair| has(pair, 1, PathState::Inactive));
    pair.on_client(|it, now| it.join(now, route(2))).unwrap();
    pair.until(ms(5000), "join", |pair| has(pair, 2, PathState::Active));
    assert!(has(&mut pair, 0, PathState::Active) && pair.on_client(|it, _| it.paths().count()) == 2);
}

#[test]
fn with_all_paths_dead_the_association_ends_in_bounded_time() {
    let give_up = Options::live().with(|it| it.timers.give_up = Some(ms(20_000)));
    for (options, limit) in [(give_up, 21_000), (Options::default(), 600_000)] {
        for busy in [true, false] {
            let mut pair = Pair::connected(&options, vec![good(), good()]);
            pair.run(ms(500));
            if busy {
                pair.client_send(&pattern(50_000, 1), SendOptions::default());
            }
            pair.cut(0, true);
            pair.cut(1, true);
            pair.net.run_for(ms(limit));
            pair.run(ms(1));
            for events in [&pair.client_events, &pair.server_events] {
                assert_eq!(events.last(), Some(&Event::Closed(CloseReason::PathsFailed)), "busy: {busy}");
            }
            for node in [pair.client, pair.server] {
                assert_eq!(pair.net.node(node).associations().count(), 0);
            }
        }
    }
}

/// Nothing but heartbeats is answered to an end that only receives, or where both are silent.
#[test]
fn an_end_that_gives_up_soon_asks_often_enough_to_know() {
    for (rate, patience) in [(Options::live(), 400), (Options::live(), 1000), (Options::default(), 2000)] {
        let options = rate.with(|it| it.timers.give_up = Some(ms(patience)));
        let mut pair = Pair::connected(&options, vec![good(), good()]);
        for busy in [true, false] {
            for _ in 0..100 {
                if busy {
                    pair.client_send(&pattern(1000, 1), SendOptions::default());
                }
                pair.run(ms(100));
            }
            let over = |events: &[Event]| events.iter().any(|event| matches!(event, Event::Closed(_)));
            let ends = [&pair.client_events, &pair.server_events];
            assert!(!ends.into_iter().any(|it| over(it)), "{patience} ms, busy: {busy}: {ends:?}");
        }
    }
}

#[test]
fn the_mtu_of_a_path_is_found_and_bulk_flows() {
    let narrow = LinkModel { mtu: 1400, ..link(10, 15) };
    let mut pair = Pair::connected(&Options::live(), vec![Duplex::both(narrow), good()]);
    pair.run(ms(5000));
    // IPv4 and UDP take 28 bytes of 1400.
    assert_eq!(pair.client_path(0).unwrap().mtu, 1372);
    assert_eq!(pair.client_path(1).unwrap().mtu, 1472);
    for events in [&pair.client_events, &pair.server_events] {
        assert!(!events.iter().any(|event| matches!(event, Event::PathDown(..))), "probes are no failures: {events:?}");
    }
    transfer(&mut pair, 2_000_000, 30_000);
    let lost = pair.client_path(0).unwrap().lost_chunks;
    assert_eq!(pair.net.link(pair.links[0].0).stats().dropped_loss, 0);
    let dropped = pair.net.link(pair.links[0].0).stats().dropped_queue;
    assert!(lost <= 2 * dropped + 2, "{lost} taken for lost, {dropped} dropped by the queue");
}

#[test]
fn an_mtu_that_shrinks_is_noticed_and_what_is_stuck_goes_over_the_other_path() {
    let mut pair = Pair::connected(&Options::live(), vec![good(), good()]);
    transfer(&mut pair, 300_000, 1400);
    assert_eq!(pair.client_path(0).unwrap().mtu, 1472);
    let narrow = pair.net.add_link(LinkModel { mtu: 1300, ..link(10, 15) });
    let (client, server) = ((pair.client, 0), (pair.server, 0));
    pair.net.route(client, SERVER[0].parse().unwrap(), &[narrow], server, CLIENT[0].parse().unwrap());
    transfer(&mut pair, 5_000_000, 30_000);
    let path = pair.client_path(0).unwrap();
    assert!(path.mtu <= 1272, "{}", path.mtu);
    transfer(&mut pair, 1_000_000, 30_000);
    let later = pair.client_path(0).unwrap();
    assert!(
        later.sent_chunks > path.sent_chunks + 100 && later.lost_chunks < path.lost_chunks + 50,
        "it is of use again"
    );
}

/// Retransmitted and sent chunks of 3 MB over paths of 5 and 80 ms without loss.
fn uneven(loss_detection: LossDetection, scheduler: SchedulerKind) -> (u64, u64) {
    let options = Options::live().with(|it| {
        it.papers.loss_detection = loss_detection;
        it.paths.scheduler = scheduler;
    });
    let roomy = |delay| LinkModel { queue: "4000p".parse().unwrap(), ..link(10, delay) };
    let mut pair = Pair::connected(&options, vec![Duplex::both(roomy(5)), Duplex::both(roomy(80))]);
    transfer(&mut pair, 3_000_000, 1200);
    let count = |of: fn(&braidcast_sctp::PathReport) -> u64, pair: &mut Pair| {
        pair.on_client(|association, _| association.paths().map(|path| of(&path)).sum())
    };
    assert!(client_sent(&mut pair, 1) > 100);
    (count(|path| path.retransmitted_chunks, &mut pair), count(|path| path.sent_chunks, &mut pair))
}

#[test]
fn reordering_between_paths_never_looks_like_loss() {
    for loss_detection in [LossDetection::Time, LossDetection::Count] {
        for scheduler in [SchedulerKind::RoundRobin, SchedulerKind::LowestDelay] {
            let (repeated, sent) = uneven(loss_detection, scheduler);
            assert_eq!(repeated, 0, "{loss_detection:?} {scheduler}: of {sent}");
        }
    }
}

#[test]
fn reordering_within_a_path_costs_few_retransmissions_by_time() {
    let repeated = |loss_detection| {
        let options = Options::live().with(|it| it.papers.loss_detection = loss_detection);
        let model = LinkModel { reorder: "5%,10ms".parse().unwrap(), ..link(10, 40) };
        let mut pair = Pair::connected(&options, vec![Duplex::both(model)]);
        transfer(&mut pair, 2_000_000, 1200);
        let path = pair.client_path(0).unwrap();
        path.retransmitted_chunks as f64 / path.sent_chunks as f64
    };
    let (time, count) = (repeated(LossDetection::Time), repeated(LossDetection::Count));
    assert!(time < 0.01, "{time} by time, {count} by count");
    assert!(count > time);
}

#[test]
fn the_route_of_a_socket_that_is_not_there_is_no_harm() {
    let mut pair = Pair::connected(&Options::live(), vec![good()]);
    let nowhere = Route::new(SocketId(7), "192.0.2.1:9".parse().unwrap());
    pair.on_client(|association, now| association.join(now, nowhere).unwrap());
    let mut flow = Flow::default();
    flow.run(&mut pair, ms(3000));
    flow.finish(&mut pair);
    pair.on_client(|association, now| association.leave(now, nowhere));
    assert_eq!(pair.on_client(|association, _| association.paths().count()), 1);
}

#[test]
fn what_was_cut_for_a_larger_mtu_is_not_copied_over_a_smaller_one() {
    // The second path is confirmed when the first one has carried full packets for long, and knows only the base MTU
    // then. Copies of what is out cannot go over it, which must not stop anything.
    let at = |n: u64| Instant::ZERO + ms(n);
    let late = LinkModel { outages: vec![Outage::window(at(0), at(2500))], ..link(8, 20) };
    let mut pair = Pair::new(&Options::live(), vec![Duplex::both(link(8, 150)), Duplex::both(late)]);
    pair.until(ms(2000), "connect", |pair| pair.server_exists());
    pair.on_client(|association, _| association.set_copied(0, true));
    let (mut sent, mut active) = (0, 0);
    while active < 100 {
        assert!(sent < 3000, "the second path was never confirmed");
        pair.client_send(&pattern(3000, sent), on(0, Reliability::Reliable));
        sent += 1;
        pair.run(ms(10));
        active += u64::from(pair.client_path(1).is_some_and(|path| path.state == PathState::Active));
    }
    pair.run(ms(3000));
    assert_eq!(pair.server_recv().len() as u64, sent);
}

/// Each end lists its addresses on two links.
fn listing() -> (Options, Options) {
    let of = |all: [&str; 4]| all[..2].iter().map(|at| at.parse::<SocketAddr>().unwrap().ip()).collect();
    let options = |addresses| Options::live().with(|it| it.local_addresses = addresses);
    (options(of(CLIENT)), options(of(SERVER)))
}

#[test]
fn routes_between_listed_addresses_need_no_join() {
    let (client, server) = listing();
    let mut pair = Pair::with(client, server, vec![good(), good()]);
    let recording = pair.record();
    pair.connect();
    assert_eq!(recording.count(&CLIENT, kind::ASCONF), 0);
    transfer(&mut pair, 1_000_000, 1000);
    assert!(client_sent(&mut pair, 0) > 0 && client_sent(&mut pair, 1) > 0);
}

#[test]
fn where_only_one_side_lists_its_addresses_paths_join_as_ever() {
    let (client, _) = listing();
    let mut pair = Pair::with(client, Options::live(), vec![good(), good()]);
    let recording = pair.record();
    pair.connect();
    assert!(recording.count(&CLIENT, kind::ASCONF) > 0);
}

#[test]
fn a_packet_from_a_listed_address_makes_a_path_and_one_from_elsewhere_does_not() {
    let (client, server) = listing();
    let mut pair = Pair::over(1, client, server, vec![good(), good()]);
    let recording = pair.record();
    pair.until(ms(5_000), "connect", |pair| pair.server_exists() && pair.on_client(|it, _| it.is_established()));
    let tag_of_server = tag(&recording.last(&CLIENT, kind::COOKIE_ECHO).unwrap());
    let heartbeat = packet(tag_of_server, &[Chunk::Heartbeat(Heartbeat { info: b"anything" })]);
    pair.inject_server(1, "10.9.0.9:9899", &heartbeat);
    pair.inject_server(1, CLIENT[1], &packet(tag_of_server ^ 1, &[Chunk::Heartbeat(Heartbeat { info: b"forged" })]));
    assert_eq!(server_paths(&mut pair).len(), 1);
    pair.inject_server(1, CLIENT[1], &heartbeat);
    assert_eq!(server_paths(&mut pair)[1], (CLIENT[1].into(), PathState::Unconfirmed));
    // The server's heartbeat comes from an address that it listed, so the client takes that path in, too.
    pair.until(ms(5_000), "both confirm it", |pair| {
        let active = PathState::Active;
        pair.client_path(1).is_some_and(|path| path.state == active) && server_paths(pair)[1].1 == active
    });
}

#[test]
fn two_paths_that_each_work_one_way_make_one_that_works() {
    for (forth, back) in [(0, 1), (1, 0)] {
        let mut pair = Pair::connected(&Options::live(), vec![good(), good()]);
        let mut flow = Flow::default();
        flow.run(&mut pair, ms(2000));
        pair.net.set_down(pair.links[back].0, true);
        pair.net.set_down(pair.links[forth].1, true);
        flow.run(&mut pair, ms(10_000));
        let before = flow.received;
        flow.run(&mut pair, ms(10_000));
        let share = (flow.received - before) as f64 / 5000.0;
        assert!(share > 0.5, "forth over {forth}: {share} of what the application has for it");
        flow.finish(&mut pair);
        pair.on_client(|association, now| association.shutdown(now));
        pair.until(ms(5_000), "both to end", |pair| {
            let done = Event::Closed(CloseReason::Shutdown);
            pair.client_events.contains(&done) && pair.server_events.contains(&done)
        });
    }
}
