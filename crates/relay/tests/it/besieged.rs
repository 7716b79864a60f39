//! Strangers, and members that mean harm.

use crate::common::{RELAY, addr, ask, drain, owner, relay};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_relay::{
    Admission, Circuit, Client, Control, Credentials, Header, Keys, Leg, OwnerSecret, Place, Proof, Quota, Reason,
    Registration, Relay, Rights, Tag, signed,
};
use core::time::Duration;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

fn write(message: Control) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    bytes
}

fn one(answers: &[(SocketAddr, Vec<u8>)]) -> Control {
    let [(_, bytes)] = answers else { panic!("{answers:?}") };
    Control::read(bytes).unwrap()
}

fn cookie(relay: &mut Relay, now: Instant, from: SocketAddr) -> [u8; 16] {
    let answer = one(&ask(relay, now, from, &write(Control::Hello { nonce: 3 })));
    let Control::Challenge { nonce: 3, cookie } = answer else { panic!("{answer:?}") };
    cookie
}

/// Registers as a new member would; the answer.
fn register(relay: &mut Relay, now: Instant, from: SocketAddr, place: Place, leg: u16, member: u64) -> Control {
    let cookie = cookie(relay, now, from);
    let registration = Registration { place, leg: Leg(leg), epoch: 1, member, hidden: false, proof: None };
    let mut answers = ask(relay, now, from, &write(Control::Register { nonce: 4, cookie, registration }));
    // Members are told of each other besides.
    answers.retain(|(_, bytes)| !matches!(Control::read(bytes), Ok(Control::Peer { .. })));
    one(&answers)
}

fn tag(answer: Control) -> Tag {
    let Control::Registered { tag, .. } = answer else { panic!("{answer:?}") };
    tag
}

fn packet(tag: Tag, leg: u16, payload: &[u8]) -> Vec<u8> {
    [&Header { tag, leg: Leg(leg) }.bytes()[..], payload].concat()
}

#[test]
fn a_hundred_thousand_that_never_answer_are_not_remembered() {
    let mut it = relay(Admission::Open(None));
    let (now, hello) = (Instant::from_millis(5), write(Control::Hello { nonce: 1 }));
    for n in 0..100_000_u32 {
        let from = SocketAddr::from(([10, (n >> 16) as u8, (n >> 8) as u8, n as u8], 7));
        let answers = ask(&mut it, now, from, &hello);
        assert!(answers.len() == 1 && answers[0].0 == from && answers[0].1.len() < hello.len());
    }
    assert_eq!(it.report().members, 0);
    assert_eq!(it.poll_timeout(), None, "it waits for nothing");
}

#[test]
fn a_registration_is_worthless_from_elsewhere_or_later() {
    let (mut it, (secret, circuit)) = (relay(Admission::Open(None)), owner());
    let [a, b] = ["192.0.2.1:1", "192.0.2.2:1"].map(addr);
    let cookie = cookie(&mut it, Instant::ZERO, a);
    let place = Place::Owner(secret);
    let registration = Registration { place, leg: Leg(0), epoch: 1, member: 1, hidden: false, proof: None };
    let bytes = write(Control::Register { nonce: 1, cookie, registration });
    assert!(ask(&mut it, Instant::ZERO, b, &bytes).is_empty());
    assert!(ask(&mut it, Instant::from_millis(60_000), a, &bytes).is_empty());
    assert_eq!(it.report().members, 0);
    // The number of the circuit alone makes no owner.
    let place = Place::Owner(OwnerSecret(circuit.0));
    tag(register(&mut it, Instant::ZERO, a, place, 0, 1));
    let guest = register(&mut it, Instant::ZERO, b, Place::Guest(circuit), 1, 2);
    assert!(matches!(guest, Control::Refused { reason: Reason::NoCircuit, .. }), "{guest:?}");
}

#[test]
fn a_tag_that_was_overheard_is_worthless_at_another_address() {
    let (mut it, (secret, circuit)) = (relay(Admission::Open(None)), owner());
    let [a, b, c] = ["192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1"].map(addr);
    let now = Instant::ZERO;
    let first = tag(register(&mut it, now, a, Place::Owner(secret), 0, 1));
    let second = tag(register(&mut it, now, b, Place::Guest(circuit), 9, 2));
    assert_eq!(ask(&mut it, now, b, &packet(second, 0, b"hello")), [(a, packet(first, 9, b"hello"))]);
    for stolen in [first, second] {
        for leg in [0, 9] {
            let answers = ask(&mut it, now, c, &packet(stolen, leg, b"hello"));
            assert_eq!(one(&answers), Control::Unknown { tag: stolen });
            assert_eq!(answers[0].0, c, "nothing goes to a member");
        }
        assert!(ask(&mut it, now, c, &write(Control::Leave { tag: stolen })).is_empty());
    }
    assert_eq!(it.report().members, 2, "and nobody was made to leave");
}

#[test]
fn a_side_has_64_legs_and_a_relay_as_many_members_as_it_is_told() {
    let (mut it, (secret, circuit)) = (relay(Admission::Open(None)), owner());
    let now = Instant::ZERO;
    tag(register(&mut it, now, addr("192.0.2.1:1"), Place::Owner(secret), 0, 1));
    for n in 0..100 {
        let from = SocketAddr::from(([198, 51, 100, n as u8], 1));
        let answer = register(&mut it, now, from, Place::Guest(circuit), n, u64::from(n));
        assert_eq!(matches!(answer, Control::Registered { .. }), n < 64, "{n}: {answer:?}");
    }
    for n in 0..2000_u16 {
        let from = SocketAddr::from(([10, 0, (n >> 8) as u8, n as u8], 1));
        let mut secret = OwnerSecret([0; 16]);
        secret.0[..2].copy_from_slice(&n.to_be_bytes());
        let answer = register(&mut it, now, from, Place::Owner(secret), 0, u64::from(n));
        let full = matches!(answer, Control::Refused { reason: Reason::Full, .. });
        assert_eq!(full, n >= 1000 - 65, "{n}: {answer:?}");
    }
    assert_eq!(it.report().members, 1000);
}

#[test]
fn of_a_relay_on_two_threads_either_takes_what_comes_and_all_of_it_is_counted_once() {
    let (secret, circuit) = owner();
    let mut threads = [relay(Admission::Open(Some(8_000_000))), relay(Admission::Open(None))];
    threads[1] = threads[0].beside();
    let [a, b] = ["192.0.2.1:1", "192.0.2.2:1"].map(addr);
    let now = Instant::ZERO;
    let owner = tag(register(&mut threads[0], now, a, Place::Owner(secret), 0, 1));
    let guest = tag(register(&mut threads[1], now, b, Place::Guest(circuit), 9, 2));
    for _ in 0..200 {
        for thread in &mut threads {
            for (from, to, tag, leg) in [(a, b, owner, 9), (b, a, guest, 0)] {
                let out = ask(thread, now, from, &packet(tag, leg, &[7; 992]));
                assert!(out.len() <= 1 && out.iter().all(|(at, bytes)| *at == to && bytes.len() == 1000), "{out:?}");
            }
        }
    }
    let [one, two] = threads.each_ref().map(Relay::report);
    assert_eq!(one, two);
    let client = &one.clients[0];
    assert_eq!(client.packets + client.over_rate, 800);
    assert_eq!((client.bytes, client.bytes / 250_000), (client.packets * 1000, 1), "one rate for both");
    let [first, second] = &mut threads;
    second.set_admission(Admission::Listed(BTreeMap::new(), Arc::new(Plain)));
    assert_eq!(first.report().members, 0);
}

#[test]
fn what_waits_for_a_socket_that_takes_nothing_is_bounded() {
    let (mut it, (secret, circuit)) = (relay(Admission::Open(None)), owner());
    let [a, b] = ["192.0.2.1:1", "192.0.2.2:1"].map(addr);
    let now = Instant::ZERO;
    tag(register(&mut it, now, a, Place::Owner(secret), 0, 1));
    let guest = tag(register(&mut it, now, b, Place::Guest(circuit), 9, 2));
    for size in [1, 1400] {
        let packet = packet(guest, 0, &vec![7; size]);
        for _ in 0..20_000 {
            let route = Route::new(SocketId(0), b);
            it.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &packet });
        }
        let out = drain(&mut it, now);
        let bytes: usize = out.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(out.len() <= 16_384 && bytes <= 8 << 20, "{} packets, {bytes} bytes", out.len());
        assert_eq!(out.len(), if size == 1 { 16_384 } else { (8 << 20) / 1408 });
    }
    assert_eq!(it.report().overflowed, 40_000 - 16_384 - (8 << 20) / 1408);
}

/// Signatures are the key and the message: good enough to see who asks for them.
struct Plain;

impl Keys for Plain {
    fn fingerprint(&self, public: &[u8; 32]) -> [u8; 32] {
        *public
    }

    fn is_signed(&self, proof: &Proof, message: &[u8]) -> bool {
        proof.signature.starts_with(message)
    }
}

#[test]
fn a_list_lets_in_who_signs_and_closes_what_is_taken_off_it() {
    let rights = Rights { name: "studio".into(), max_rate: None, circuits: 2, quota: None };
    let list = BTreeMap::from([([1; 32], rights)]);
    let mut it = relay(Admission::Listed(list, Arc::new(Plain)));
    let (now, a) = (Instant::ZERO, addr("192.0.2.1:1"));
    let open = |it: &mut Relay, secret: u8, key: Option<u8>, good: bool| {
        let place = Place::Owner(OwnerSecret([secret; 16]));
        let cookie = cookie(it, now, a);
        let proof = key.map(|key| {
            let mut signature = [0; 64];
            let message = signed(&cookie, if good { 8 } else { 9 }, place.circuit());
            signature[..message.len()].copy_from_slice(&message);
            Proof { public: [key; 32], signature }
        });
        let registration = Registration { place, leg: Leg(0), epoch: 1, member: 1, hidden: false, proof };
        one(&ask(it, now, a, &write(Control::Register { nonce: 8, cookie, registration })))
    };
    let refused =
        |answer: Control, why: Reason| assert!(matches!(answer, Control::Refused { reason, .. } if reason == why));
    refused(open(&mut it, 1, None, true), Reason::NotAuthorized);
    refused(open(&mut it, 1, Some(2), true), Reason::NotAuthorized);
    tag(open(&mut it, 1, Some(1), true));
    tag(open(&mut it, 2, Some(1), true));
    refused(open(&mut it, 3, Some(1), true), Reason::Full);
    assert_eq!(it.report().clients[0].name, "studio");
    it.set_admission(Admission::Listed(BTreeMap::new(), Arc::new(Plain)));
    assert_eq!((it.report().members, it.report().circuits), (0, 0));
}

/// A line of the list says how many bytes its client's circuits may carry in a time.
#[test]
fn a_quota_ends_what_a_client_may_send_until_its_time_is_over() {
    let at = |second: u64| Instant::from_millis(second * 1000);
    let list = |bytes| {
        let quota = Some(Quota { bytes, every: Duration::from_secs(20) });
        let rights = Rights { name: "studio".into(), max_rate: None, circuits: 2, quota };
        Admission::Listed(BTreeMap::from([([1; 32], rights)]), Arc::new(Plain))
    };
    let (mut it, a, b) = (relay(list(100_800)), addr("192.0.2.1:1"), addr("192.0.2.2:1"));
    let place = Place::Owner(OwnerSecret([5; 16]));
    let open = |it: &mut Relay, now: Instant| {
        let cookie = cookie(it, now, a);
        let message = signed(&cookie, 8, place.circuit());
        let mut signature = [0; 64];
        signature[..message.len()].copy_from_slice(&message);
        let proof = Some(Proof { public: [1; 32], signature });
        let registration = Registration { place, leg: Leg(0), epoch: 1, member: 1, hidden: true, proof };
        one(&ask(it, now, a, &write(Control::Register { nonce: 8, cookie, registration })))
    };
    let owner = tag(open(&mut it, at(0)));
    let guest = tag(register(&mut it, at(0), b, Place::Guest(place.circuit()), 9, 2));
    let passes = |it: &mut Relay, now: Instant| {
        let sent = [(b, packet(guest, 0, &[0; 1000])), (a, packet(owner, 9, &[0; 1000]))];
        (0..130).filter(|n| !ask(it, now, sent[n % 2].0, &sent[n % 2].1).is_empty()).count()
    };
    let report = |it: &Relay| {
        let client = it.report().clients[0].clone();
        (client.bytes, client.over_quota, client.quota_bytes, client.quota_left_bytes)
    };
    assert_eq!(passes(&mut it, at(1)), 100, "both directions together");
    assert_eq!(report(&it), (100_800, 30, Some(100_800), Some(0)));
    assert!(matches!(open(&mut it, at(20)), Control::Refused { reason: Reason::OverQuota, .. }), "who asks hears why");
    tag(open(&mut it, at(21)));
    assert_eq!(passes(&mut it, at(22)), 100, "it is whole again");
    it.set_admission(list(110_880));
    assert_eq!(passes(&mut it, at(24)), 10, "what was used stays used");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever strangers send, members get nothing of it, and nobody more bytes than it sent.
    #[test]
    fn no_sequence_of_strangers_packets_reaches_a_member_or_grows(
        packets in prop::collection::vec((0..4_u8, 0..6_u8, prop::collection::vec(any::<u8>(), 0..200), 0..30_000_u64), 1..200)
    ) {
        let (mut it, (secret, circuit)) = (relay(Admission::Open(None)), owner());
        let [a, b] = ["192.0.2.1:1", "192.0.2.2:1"].map(addr);
        let first = tag(register(&mut it, Instant::ZERO, a, Place::Owner(secret), 0, 1));
        tag(register(&mut it, Instant::ZERO, b, Place::Guest(circuit), 9, 2));
        let (mut millis, mut sent, mut got) = (0, BTreeMap::<SocketAddr, usize>::new(), BTreeMap::<SocketAddr, usize>::new());
        for (who, kind, bytes, pause) in packets {
            let from = SocketAddr::from(([198, 51, 100, who], 1));
            millis += pause / 1000;
            let word = bytes.iter().fold(0_u64, |word, byte| (word << 8) | u64::from(*byte));
            let message = match kind {
                0 => write(Control::Hello { nonce: word }),
                1 => packet(Tag::new(word), word as u16, &bytes),
                2 => packet(first, 9, &bytes),
                3 => write(Control::Keep { nonce: word, tag: first }),
                4 => write(Control::Register {
                    nonce: word,
                    cookie: [who; 16],
                    registration: Registration {
                        place: Place::Guest(Circuit([who; 16])), leg: Leg(1), epoch: word, member: word, hidden: false, proof: None,
                    },
                }),
                _ => bytes,
            };
            *sent.entry(from).or_default() += message.len();
            for (to, answer) in ask(&mut it, Instant::from_millis(millis), from, &message) {
                prop_assert_eq!(to, from);
                *got.entry(to).or_default() += answer.len();
            }
            prop_assert!(got.get(&from).is_none_or(|got| *got <= sent[&from]));
        }
        prop_assert_eq!(it.report().members, 2);
        prop_assert_eq!(it.report().packets, 0);
    }
}

/// What an end sends before it has a place waits: the newest of it.
#[test]
fn of_what_waits_for_a_place_the_newest_packets_are_kept() {
    let (mut relay, mut now, from) = (relay(Admission::Open(None)), Instant::from_millis(1), addr("192.0.2.1:1000"));
    let credentials = Credentials { place: Place::Owner(owner().0), epoch: 1, hidden: false, signer: None };
    let mut client = Client::new(now, addr(RELAY), credentials, Leg(1), Rng::from_seed(3));
    for n in 0..200 {
        assert!(!client.wrap(now, Leg(1), &mut vec![n; 100], 100, &mut Vec::new()));
    }
    let mut kept = Vec::new();
    for _ in 0..20 {
        while let Some(bytes) = client.poll() {
            kept.extend(Header::read(&bytes).map(|(_, packet)| packet[0]));
            for (_, answer) in ask(&mut relay, now, from, &bytes) {
                client.handle(now, &answer);
            }
        }
        now += Duration::from_millis(100);
        client.handle_timeout(now);
    }
    assert_eq!(kept, (136..200).collect::<Vec<_>>());
}
