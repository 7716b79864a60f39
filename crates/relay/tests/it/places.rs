//! Ends that meet, are forgotten, and come again.

use crate::common::{Above, End, RELAY, World, addr, ask, drain, owner, relay};
use braidcast_core::{Instant, Machine, Rng};
use braidcast_relay::{Admission, Client, ClientEvent, Credentials, HEADER, Leg, Place, Reason};
use core::time::Duration;
use std::collections::VecDeque;

const SECOND: Duration = Duration::from_secs(1);

fn pair() -> World {
    let (secret, circuit) = owner();
    let receiver = End::new(Instant::ZERO, Place::Owner(secret), Some(0), "192.0.2.1:1000", 1);
    let sender = End::new(Instant::ZERO, Place::Guest(circuit), None, "198.51.100.1:2000", 2);
    World::new(vec![receiver, sender])
}

fn came(above: &mut Above) -> Vec<Vec<u8>> {
    std::mem::take(&mut above.came).into_iter().map(|(_, bytes)| bytes).collect()
}

#[test]
fn both_ends_meet_and_each_hears_the_other_as_a_leg() {
    let mut world = pair();
    world.ends[1].send(Leg(0), b"early: before there is a place");
    world.pass(SECOND);
    let sees = |end: &End| matches!(end.events[..], [.., ClientEvent::Registered(at)] if at.0 == end.outside);
    assert!(world.ends.iter().all(sees), "each knows how the relay sees it");
    let came_there = std::mem::take(&mut world.ends[0].above.came);
    let [(leg, bytes)] = &came_there[..] else { panic!("{came_there:?}") };
    assert_eq!(bytes, b"early: before there is a place");
    world.ends[0].send(*leg, b"back");
    world.pass(SECOND);
    assert_eq!(world.ends[1].above.came, [(Leg(0), b"back".to_vec())]);
}

#[test]
fn a_packet_is_eight_bytes_longer_on_its_way_and_keeps_its_mark() {
    let mut world = pair();
    world.pass(SECOND);
    let joined = [[1; 100], [2; 100], [3; 100]].concat();
    let route = braidcast_core::Route::new(braidcast_core::SocketId(0), braidcast_relay::address_of(Leg(0)));
    world.ends[1].above.out.push_back((route, joined[..250].to_vec(), Some(100)));
    let End { legs, above, .. } = &mut world.ends[1];
    let sent = drain(&mut legs.over(above), world.now);
    let lengths: Vec<usize> = sent.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(lengths, [100 + HEADER, 100 + HEADER, 50 + HEADER], "segments stay segments");
    let relay = world.relay.as_mut().unwrap();
    for (transmit, bytes) in sent {
        assert_eq!(transmit.ecn, braidcast_core::Ecn::Ect0);
        let route = braidcast_core::Route::new(transmit.route.socket, addr("198.51.100.1:2000"));
        let passed = braidcast_core::Datagram { route, ecn: braidcast_core::Ecn::Ce, payload: &bytes };
        relay.handle_datagram(world.now, passed);
        let out = drain(relay, world.now);
        let [(on, same)] = &out[..] else { panic!("{out:?}") };
        assert_eq!((on.ecn, same.len()), (braidcast_core::Ecn::Ce, bytes.len()));
        assert_eq!(same[HEADER..], bytes[HEADER..], "the relay changes nothing");
    }
}

#[test]
fn a_relay_that_was_restarted_is_told_again_within_a_second() {
    let mut world = pair();
    world.pass(SECOND);
    world.ends[1].send(Leg(0), b"before");
    world.pass(SECOND);
    let leg = world.ends[0].above.came[0].0;
    world.relay = None;
    world.pass(SECOND);
    world.relay = Some(relay(Admission::Open(None)));
    world.pass(SECOND);
    came(&mut world.ends[0].above);
    world.ends[1].send(Leg(0), b"after");
    world.pass(Duration::from_millis(10));
    assert_eq!(world.ends[0].above.came, [(leg, b"after".to_vec())], "by the same leg: it is the same path");
}

#[test]
fn who_has_no_stream_is_told_of_a_restart_by_its_next_question() {
    let mut world = pair();
    world.pass(SECOND * 60);
    world.relay = Some(relay(Admission::Open(None)));
    world.pass(SECOND * 12);
    assert_eq!(world.relay.as_ref().unwrap().report().members, 2);
}

#[test]
fn who_gets_another_address_keeps_its_leg_and_the_old_address_gets_nothing() {
    let mut world = pair();
    world.ends[1].send(Leg(0), b"before");
    world.pass(SECOND);
    let leg = world.ends[0].above.came[0].0;
    world.ends[1].outside = addr("198.51.100.1:2001");
    world.ends[1].send(Leg(0), b"lost");
    world.pass(Duration::from_millis(50));
    world.ends[1].send(Leg(0), b"after");
    world.pass(SECOND);
    assert_eq!(world.ends[0].above.came.last(), Some(&(leg, b"after".to_vec())));
    assert_eq!(world.relay.as_ref().unwrap().report().members, 2);
}

#[test]
fn of_two_programs_with_one_ticket_the_later_one_has_the_place() {
    let (secret, circuit) = owner();
    let mut world = pair();
    world.pass(SECOND);
    let later = End::started(world.now, Place::Owner(secret), Some(0), "192.0.2.9:1000", (3, 2));
    world.ends.push(later);
    world.pass(SECOND);
    world.ends[1].send(Leg(0), b"for the later one");
    world.pass(SECOND * 20);
    assert_eq!(came(&mut world.ends[2].above), [b"for the later one"]);
    assert!(came(&mut world.ends[0].above).is_empty());
    assert!(world.ends[0].events.contains(&ClientEvent::Refused(Reason::Replaced)), "{:?}", world.ends[0].events);
    let guest = End::new(world.now, Place::Guest(circuit), Some(0), "192.0.2.7:1", 4);
    world.ends.push(guest);
    world.pass(SECOND);
    assert_eq!(world.relay.as_ref().unwrap().report().members, 3, "a guest takes no owner's place");
}

#[test]
fn a_guest_waits_for_the_owner_and_is_told() {
    let (secret, circuit) = owner();
    let mut world = World::new(vec![End::new(Instant::ZERO, Place::Guest(circuit), None, "192.0.2.1:1", 1)]);
    world.pass(SECOND * 30);
    assert_eq!(world.ends[0].events, [ClientEvent::Refused(Reason::NoCircuit)]);
    world.ends.push(End::new(world.now, Place::Owner(secret), Some(0), "192.0.2.2:1", 2));
    world.pass(SECOND * 3);
    assert!(matches!(world.ends[0].events[..], [_, ClientEvent::Registered(_)]));
}

#[test]
fn who_is_silent_is_forgotten_after_a_minute_and_who_leaves_at_once() {
    let mut world = pair();
    world.pass(SECOND);
    world.ends[1].legs.remove_all();
    world.settle();
    assert_eq!(world.relay.as_ref().unwrap().report().members, 1);
    world.ends.clear();
    world.pass(SECOND * 62);
    let report = world.relay.as_ref().unwrap().report();
    assert_eq!((report.members, report.circuits), (0, 0));
    assert!(world.relay.as_ref().unwrap().poll_timeout().is_none(), "nothing is left to do");
}

#[test]
fn a_rate_is_kept_to_and_bytes_are_counted_by_client() {
    let mut world = pair();
    world.relay = Some(relay(Admission::Open(Some(800_000))));
    world.pass(SECOND);
    for _ in 0..1000 {
        world.ends[1].send(Leg(0), &[0; 1000]);
        world.pass(Duration::from_millis(5));
    }
    let report = world.relay.as_ref().unwrap().report();
    let [client] = &report.clients[..] else { panic!("{report:?}") };
    assert_eq!((client.name.as_str(), client.circuits), ("192.0.2.1", 1), "who opened the circuit pays for it");
    assert!((500_000..600_000).contains(&client.bytes), "{client:?}");
    assert_eq!(client.packets + client.over_rate, 1000);
    assert_eq!(client.bytes, client.packets * 1008);
}

#[test]
fn what_is_no_packet_of_a_member_is_answered_with_less_or_not_at_all() {
    let mut it = relay(Admission::Open(None));
    let at = addr("192.0.2.1:1");
    for len in [0, 8, 10, 11, 100] {
        let mut packet = vec![0x80; len];
        if let Some(first) = packet.first_mut() {
            *first = 0xff;
        }
        let answers = ask(&mut it, Instant::ZERO, at, &packet);
        assert!(answers.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() <= len, "{len}: {answers:?}");
        assert_eq!(answers.is_empty(), len < 11);
    }
}

#[test]
fn ends_whose_nats_let_them_through_go_past_the_relay() {
    let mut world = pair();
    world.nats_let_through = true;
    world.pass(SECOND);
    let [there, here] = [0, 1].map(|end| world.ends[end].outside);
    assert!(world.ends[1].events.contains(&ClientEvent::Straight(there)), "{:?}", world.ends[1].events);
    assert!(world.ends[0].events.contains(&ClientEvent::Straight(here)), "{:?}", world.ends[0].events);
    let route = braidcast_core::Route::new(braidcast_core::SocketId(0), there);
    world.ends[1].above.out.push_back((route, b"straight on".to_vec(), None));
    world.relay = None;
    world.settle();
    assert_eq!(world.ends[0].above.straight, [(here, b"straight on".to_vec())], "as it was, without the 8 bytes");
}

#[test]
fn nothing_from_elsewhere_than_relay_and_other_end_comes_in() {
    let mut world = pair();
    world.pass(SECOND);
    let stranger = braidcast_core::Route::new(braidcast_core::SocketId(0), addr("198.51.100.77:1"));
    let End { legs, above, .. } = &mut world.ends[0];
    for payload in [&b"hello"[..], &[0x80; 100], &[0; 40]] {
        let datagram = braidcast_core::Datagram { route: stranger, ecn: braidcast_core::Ecn::NotEct, payload };
        legs.over(above).handle_datagram(world.now, datagram);
    }
    assert!(drain(&mut legs.over(above), world.now).is_empty() && above.straight.is_empty() && above.came.is_empty());
}

#[test]
fn who_hides_is_told_to_nobody_and_told_of_nobody() {
    for hides in [0, 1] {
        let (mut world, (secret, circuit)) = (pair(), owner());
        let place = if hides == 0 { Place::Owner(secret) } else { Place::Guest(circuit) };
        world.ends[hides].hide(world.now, place, 0);
        world.nats_let_through = true;
        world.pass(SECOND * 3);
        let straight = |end: &End| end.events.iter().any(|it| matches!(it, ClientEvent::Straight(_)));
        assert!(!world.ends.iter().any(straight), "{hides}");
        world.ends[1].send(Leg(0), b"by the relay");
        world.pass(SECOND);
        assert_eq!(came(&mut world.ends[0].above), [b"by the relay"]);
    }
}

#[test]
fn who_is_far_away_gets_a_place_in_two_round_trips_and_keeps_it() {
    const WAY: Duration = Duration::from_millis(600);
    let ((secret, _), from) = (owner(), addr("192.0.2.1:1000"));
    let credentials = Credentials { place: Place::Owner(secret), epoch: 1, hidden: false, signer: None };
    let mut relay = relay(Admission::Open(None));
    let mut end = Client::new(Instant::ZERO, addr(RELAY), credentials, Leg(0), Rng::from_seed(3));
    let (mut there, mut back, mut events) = (VecDeque::new(), VecDeque::new(), Vec::new());
    for ms in (0..60_000).step_by(10) {
        let now = Instant::from_millis(ms);
        if end.next(now) <= now {
            end.handle_timeout(now);
        }
        there.extend(core::iter::from_fn(|| end.poll()).map(|bytes| (now + WAY, bytes)));
        while let Some((_, bytes)) = there.pop_front_if(|(at, _)| *at <= now) {
            back.extend(ask(&mut relay, now, from, &bytes).into_iter().map(|(_, answer)| (now + WAY, answer)));
        }
        while let Some((_, bytes)) = back.pop_front_if(|(at, _)| *at <= now) {
            end.handle(now, &bytes);
        }
        events.extend(core::iter::from_fn(|| end.poll_event()).map(|event| (now, event)));
    }
    let [(at, ClientEvent::Registered(_))] = events[..] else { panic!("{events:?}") };
    assert!(at <= Instant::ZERO + WAY * 4 + Duration::from_millis(40), "{at:?}");
}
