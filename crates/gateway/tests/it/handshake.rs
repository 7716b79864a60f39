//! Who is let in, who is not and why, and who comes back.

use crate::common::{Pair, ms, secret};
use braidcast_core::Rng;
use braidcast_gateway::srt::{Direction, Ended, Endpoint, Event, KeyLength, Options, Passphrase, Refusal};
use braidcast_sim::link::{LinkModel, Loss};

fn link() -> LinkModel {
    LinkModel::wire(50_000_000, ms(20))
}

/// The reasons that both ends see.
fn refused(caller: Options, listener: Options, direction: Direction) -> Refusal {
    let mut pair = Pair::new(direction, caller, listener, link());
    pair.run(ms(500), 0);
    let [Event::RefusedByPeer(seen)] = pair.caller_events[..] else { panic!("{:?}", pair.caller_events) };
    let Some(&Event::Refused { why, .. }) = pair.listener_events.first() else { panic!("{:?}", pair.listener_events) };
    assert_eq!(seen, why);
    seen
}

#[test]
fn secrets_and_streams_must_fit() {
    let plain = Options::default;
    let with = |text| Options { passphrase: secret(text), ..plain() };
    let stream = |id: &str| Options { stream_id: Some(id.into()), ..plain() };
    let receive = Direction::Receive;
    assert_eq!(refused(with("correct horse"), with("wrong horses"), receive), Refusal::BAD_SECRET);
    assert_eq!(refused(plain(), with("correct horse"), receive), Refusal::UNSECURE);
    assert_eq!(refused(with("correct horse"), plain(), receive), Refusal::UNSECURE);
    assert_eq!(refused(plain(), stream("cam1"), receive), Refusal::FORBIDDEN);
    assert_eq!(refused(stream("#!::r=cam2"), stream("cam1"), receive), Refusal::FORBIDDEN);
    let named = Options { names: Some(vec!["cam1".into(), "cam2".into()]), ..plain() };
    assert_eq!(refused(stream("live/cam3"), named.clone(), receive), Refusal::FORBIDDEN);
    assert_eq!(refused(plain(), named.clone(), receive), Refusal::FORBIDDEN);
    let mut pair = Pair::new(receive, stream("live/cam2"), named, link());
    pair.run(ms(500), 1);
    assert!(matches!(pair.listener_events[..], [Event::Connected(_)]), "{:?}", pair.listener_events);
    assert_eq!(refused(stream("#!::r=cam1,m=request"), stream("cam1"), receive), Refusal::BAD_MODE);
    assert_eq!(refused(stream("#!::r=cam1,m=publish"), stream("cam1"), Direction::Send), Refusal::BAD_MODE);
    assert_eq!(refused(stream("#!::r=x.ts,t=file"), plain(), receive), Refusal::BAD_MODE);
}

/// A listener with a passphrase for each of two streams.
fn listed(first: &str, second: &str) -> Vec<(String, Passphrase)> {
    [("cam1", first), ("cam2", second)].map(|(name, text)| (name.to_owned(), secret(text).unwrap())).into()
}

#[test]
fn a_stream_of_a_list_is_opened_by_its_own_passphrase_only() {
    let receive = Direction::Receive;
    let listener = || Options { keys: Some(listed("correct horse", "another horse")), ..Options::default() };
    let caller = |stream: &str, text: Option<&str>| Options {
        stream_id: Some(stream.into()),
        passphrase: text.and_then(secret),
        ..Options::default()
    };
    assert_eq!(refused(caller("cam1", Some("another horse")), listener(), receive), Refusal::BAD_SECRET);
    assert_eq!(refused(caller("#!::r=live/cam2", Some("correct horse")), listener(), receive), Refusal::BAD_SECRET);
    assert_eq!(refused(caller("cam1", None), listener(), receive), Refusal::UNSECURE);
    for stranger in ["cam3", "", "#!::u=cam1"] {
        assert_eq!(refused(caller(stranger, Some("correct horse")), listener(), receive), Refusal::FORBIDDEN);
    }
    // A list in place of the one passphrase, which opens nothing then.
    let both = Options { passphrase: secret("for everybody"), ..listener() };
    assert_eq!(refused(caller("cam1", Some("for everybody")), both, receive), Refusal::BAD_SECRET);
    let mut pair = Pair::new(receive, caller("live/cam1", Some("correct horse")), listener(), link());
    pair.run(ms(500), 1);
    assert_eq!(pair.report(pair.listener).key_bytes, 16);
    // What changes for another stream ends no connection; what changes for its own does, and it stays away.
    pair.net.with(pair.listener, |it, now| it.set_keys(now, listed("correct horse", "a third horse")));
    pair.run(ms(500), 1);
    assert!(pair.net.node(pair.listener).is_connected() && pair.got.len() > 300, "{}", pair.got.len());
    pair.net.with(pair.listener, |it, now| it.set_keys(now, listed("a fourth horse", "a third horse")));
    pair.run(ms(1000), 1);
    let ended = |event: &Event| matches!(event, Event::Ended(_, Ended::ByUs));
    assert!(pair.listener_events.iter().any(ended), "{:?}", pair.listener_events);
    assert!(!pair.net.node(pair.listener).is_connected());
    assert!(pair.caller_events.contains(&Event::RefusedByPeer(Refusal::BAD_SECRET)), "{:?}", pair.caller_events);
}

#[test]
fn both_latencies_are_the_longer_ones_and_keys_are_the_callers() {
    let caller = Options {
        latency: ms(300),
        peer_latency: ms(500),
        passphrase: secret("correct horse"),
        key_length: KeyLength::Aes192,
        stream_id: Some("#!::r=cam1,m=publish".into()),
        ..Options::default()
    };
    let listener = Options {
        latency: ms(200),
        peer_latency: ms(400),
        passphrase: secret("correct horse"),
        stream_id: Some("cam1".into()),
        ..Options::default()
    };
    let mut pair = Pair::new(Direction::Receive, caller, listener, link());
    pair.run(ms(500), 1);
    let [call, listen] = [pair.report(pair.caller), pair.report(pair.listener)];
    assert_eq!((call.latency, call.peer_latency, call.key_bytes), (ms(400), ms(500), 24));
    assert_eq!((listen.latency, listen.peer_latency, listen.key_bytes), (ms(500), ms(400), 24));
    assert_eq!(listen.stream_id, "#!::r=cam1,m=publish");
}

#[test]
fn a_handshake_survives_losses() {
    // Of each direction the first two packets.
    let link = LinkModel { loss: Loss::Packets([0, 1].into()), ..link() };
    let mut pair = Pair::new(Direction::Receive, Options::default(), Options::default(), link);
    pair.run(ms(3000), 0);
    assert!(matches!(pair.caller_events[..], [Event::Connected(_)]), "{:?}", pair.caller_events);
    assert!(matches!(pair.listener_events[..], [Event::Connected(_)]), "{:?}", pair.listener_events);
}

#[test]
fn a_caller_comes_back_after_an_outage_and_says_once_that_nobody_answers() {
    let mut pair = Pair::new(Direction::Receive, Options::default(), Options::default(), link());
    pair.run(ms(1000), 1);
    for down in [true, false] {
        let (there, back) = pair.links;
        pair.net.set_down(there, down);
        pair.net.set_down(back, down);
        pair.run(ms(15_000), 1);
    }
    let kinds: Vec<_> = pair.caller_events.iter().map(|event| matches!(event, Event::Connected(_))).collect();
    assert_eq!(kinds, [true, false, false, true], "{:?}", pair.caller_events);
    assert!(matches!(pair.caller_events[1..3], [Event::Ended(_, Ended::Silent), Event::NoAnswer]));
    let last = pair.got.last().unwrap().0;
    let since =
        pair.got.iter().rposition(|(number, ..)| *number == last - 9000).expect("the last nine seconds are whole");
    assert!(pair.numbers()[since..].iter().copied().eq(last - 9000..=last));
}

#[test]
fn a_caller_that_is_not_heard_is_told_and_calls_anew_at_once() {
    // The listener hears nothing for longer than its patience; what it says itself is heard until then.
    let mut pair = Pair::new(Direction::Receive, Options::default(), Options::default(), link());
    pair.run(ms(1000), 1);
    let (there, back) = pair.links;
    pair.net.set_down(there, true);
    pair.run(ms(4500), 1);
    // What it says when it ends is lost.
    pair.net.set_down(back, true);
    pair.run(ms(1000), 1);
    pair.net.set_down(there, false);
    pair.net.set_down(back, false);
    // The caller itself would find out 5 s after it heard something last, in 4 s.
    pair.run(ms(500), 1);
    assert!(matches!(pair.caller_events[..], [_, _, Event::Connected(_)]), "{:?}", pair.caller_events);
    pair.run(ms(1000), 1);
    let [Event::Connected(_), Event::Ended(_, Ended::ByPeer), Event::Connected(_)] = pair.caller_events[..] else {
        panic!("{:?}", pair.caller_events)
    };
    let [Event::Connected(_), Event::Ended(_, Ended::Silent), Event::Connected(_)] = pair.listener_events[..] else {
        panic!("{:?}", pair.listener_events)
    };
    assert!(pair.got.last().is_some_and(|(number, ..)| *number > 7500), "{:?}", pair.got.last());
}

#[test]
fn a_caller_with_the_cookie_of_a_listener_that_is_gone_is_told_and_calls_anew() {
    let mut pair = Pair::new(Direction::Receive, Options::default(), Options::default(), link());
    // The cookie has come, and what brings it back is in flight.
    pair.run(ms(50), 0);
    let rng = Rng::from_seed(2);
    *pair.net.node_mut(pair.listener) = Endpoint::listener(pair.net.now(), Direction::Receive, Options::default(), rng);
    pair.run(ms(400), 0);
    let [Event::RefusedByPeer(Refusal::COOKIE), Event::Connected(_)] = pair.caller_events[..] else {
        panic!("{:?}", pair.caller_events)
    };
    assert!(matches!(pair.listener_events[..], [Event::Connected(_)]), "{:?}", pair.listener_events);
}

#[test]
fn an_end_that_closes_says_so_and_what_came_before_is_delivered() {
    let mut pair = Pair::new(Direction::Receive, Options::default(), Options::default(), link());
    pair.run(ms(1000), 1);
    let caller = pair.caller;
    pair.net.with(caller, |endpoint, now| endpoint.close(now));
    pair.run(ms(1000), 0);
    assert!(matches!(pair.caller_events[..], [Event::Connected(_), Event::Ended(_, Ended::ByUs)]));
    assert!(matches!(pair.listener_events[..], [Event::Connected(_), Event::Ended(_, Ended::ByPeer)]));
    // All that was sent once there was a connection, but for what was in flight when it closed.
    assert!(pair.got.len() > 850, "{}", pair.got.len());
}
