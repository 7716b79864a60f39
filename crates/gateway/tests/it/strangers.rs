//! What anybody may send to an open port.

use crate::common::{LISTENER, Pair, ms, secret};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_gateway::srt::wire::{Control, ControlKind, Handshake, HandshakeType, Hello, HelloFlags, Packet};
use braidcast_gateway::srt::wire::{Extension, ExtensionKind, KeyMaterial, WhichKeys};
use braidcast_gateway::srt::{Direction, Endpoint, Event, Options, Refusal};
use braidcast_sim::link::LinkModel;
use std::net::SocketAddr;

/// A listener, and somebody at an address.
struct Door {
    listener: Endpoint,
    now: Instant,
}

impl Door {
    fn new(options: Options) -> Self {
        let listener = Endpoint::listener(Instant::ZERO, Direction::Receive, options, Rng::from_seed(1));
        Self { listener, now: Instant::from_millis(10) }
    }

    fn say(&mut self, from: SocketAddr, bytes: &[u8]) -> Vec<Vec<u8>> {
        let route = Route::new(SocketId(0), from);
        self.listener.handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: bytes });
        let mut answers = Vec::new();
        let mut buf = Vec::new();
        while self.listener.poll_transmit(self.now, &mut buf).is_some() {
            answers.push(buf.clone());
        }
        answers
    }

    fn shake(&mut self, from: SocketAddr, handshake: &Handshake) -> Option<Handshake> {
        let mut body = Vec::new();
        handshake.write(&mut body);
        let mut packet = Vec::new();
        Control { kind: ControlKind::Handshake, info: 0, timestamp: 0, to: 0, body: &body }.write(&mut packet);
        let answers = self.say(from, &packet);
        let Packet::Control(control) = Packet::parse(answers.first()?).unwrap() else { panic!("a control packet") };
        assert!(answers.len() == 1 && answers[0].len() <= packet.len(), "an answer is no longer than its question");
        Some(Handshake::parse(control.body).unwrap())
    }

    /// The cookie for an address, and the handshake that goes on with it.
    fn invited(&mut self, from: SocketAddr) -> Handshake {
        let answer = self.shake(from, &hello(4, HandshakeType::Induction)).unwrap();
        let mut conclusion = hello(5, HandshakeType::Conclusion);
        conclusion.cookie = answer.cookie;
        conclusion.flags = 1;
        conclusion.extensions.push(says(HelloFlags(0xbf), 0x01_05_01));
        conclusion
    }
}

fn says(flags: HelloFlags, version: u32) -> Extension {
    Hello { version, flags, receive_latency: 120, send_latency: 0 }.extension(ExtensionKind::Request)
}

fn hello(version: u32, kind: HandshakeType) -> Handshake {
    Handshake {
        version,
        encryption: 0,
        flags: if version == 4 { 2 } else { 0 },
        first_sequence: 5,
        mtu: 1500,
        window: 8192,
        kind,
        socket: 77,
        cookie: 0,
        address: [0; 16],
        extensions: Vec::new(),
    }
}

fn addr(n: u16) -> SocketAddr {
    ([192, 0, 2, 1], n).into()
}

#[test]
fn nothing_is_kept_of_who_has_no_cookie() {
    let mut door = Door::new(Options::default());
    let conclusion = door.invited(addr(1));
    let refused = HandshakeType::Refusal(Refusal::COOKIE.0);
    assert_eq!(door.shake(addr(2), &conclusion).unwrap().kind, refused);
    let wrong = Handshake { cookie: conclusion.cookie ^ 1, ..conclusion.clone() };
    assert_eq!(door.shake(addr(1), &wrong).unwrap().kind, refused);
    assert!(!door.listener.is_connected() && door.listener.poll_event().is_none());
    // A minute later it is still good, two minutes later not.
    door.now = Instant::from_millis(119_000);
    assert_eq!(door.shake(addr(1), &conclusion).unwrap().kind, HandshakeType::Conclusion);
    door.now = Instant::from_millis(121_000);
    assert_eq!(door.shake(addr(1), &Handshake { socket: 78, ..conclusion }).unwrap().kind, refused);
}

#[test]
fn each_thing_that_is_not_supported_has_its_own_code() {
    let mut door = Door::new(Options::default());
    let good = door.invited(addr(1));
    let text = Extension::text;
    let with = |extension: Extension| {
        let mut handshake = good.clone();
        handshake.extensions.push(extension);
        handshake
    };
    let first = |extension| Handshake { extensions: vec![extension], ..good.clone() };
    let filter = "fec,cols:10,rows:5";
    for (handshake, code) in [
        (Handshake { version: 4, ..good.clone() }, Refusal::VERSION),
        (first(says(HelloFlags(0xbf), 0x01_02_03)), Refusal::VERSION),
        (first(says(HelloFlags(0xff), 0x01_05_01)), Refusal::MESSAGE_API),
        (Handshake { extensions: vec![], ..good.clone() }, Refusal::ROGUE),
        (with(text(ExtensionKind::Congestion, "file")), Refusal::CONGESTION),
        (with(text(ExtensionKind::Filter, filter)), Refusal::FILTER),
        (with(Extension { kind: ExtensionKind::Group, content: vec![0; 8] }), Refusal::GROUP),
        (with(Extension { kind: ExtensionKind::KeyRequest, content: vec![0; 8] }), Refusal::ROGUE),
    ] {
        let answer = door.shake(addr(1), &handshake).unwrap();
        assert_eq!(answer.kind, HandshakeType::Refusal(code.0), "{code}");
        assert!(matches!(door.listener.poll_event(), Some(Event::Refused { why, .. }) if why == code));
    }
    assert!(!door.listener.is_connected());
    // And live mode by its name is what it is.
    assert_eq!(
        door.shake(addr(1), &with(text(ExtensionKind::Congestion, "live"))).unwrap().kind,
        HandshakeType::Conclusion
    );
}

#[test]
fn guesses_at_the_passphrase_are_counted() {
    let mut door = Door::new(Options { passphrase: secret("correct horse"), ..Options::default() });
    let wrapped = KeyMaterial { which: WhichKeys::Even, key_len: 16, salt: [1; 16], wrapped: vec![7; 24] };
    let mut answers = 0;
    for port in 1..=60 {
        let mut guess = door.invited(addr(port));
        guess.extensions.push(Extension { kind: ExtensionKind::KeyRequest, content: wrapped.to_bytes() });
        if let Some(answer) = door.shake(addr(port), &guess) {
            assert_eq!(answer.kind, HandshakeType::Refusal(Refusal::BAD_SECRET.0));
            answers += 1;
        }
    }
    assert_eq!(answers, 20);
}

#[test]
fn a_second_sender_waits_until_the_first_is_silent() {
    let mut door = Door::new(Options { connections: 1, ..Options::default() });
    let (first, second) = (door.invited(addr(1)), door.invited(addr(2)));
    assert_eq!(door.shake(addr(1), &first).unwrap().kind, HandshakeType::Conclusion);
    assert_eq!(door.shake(addr(2), &second).unwrap().kind, HandshakeType::Refusal(Refusal::CONFLICT.0));
    // Asked again, as if the answer had been lost: the same one.
    assert_eq!(door.shake(addr(1), &first).unwrap().kind, HandshakeType::Conclusion);
    door.now = Instant::from_millis(1100);
    let mut body = Vec::new();
    second.write(&mut body);
    let mut packet = Vec::new();
    Control { kind: ControlKind::Handshake, info: 0, timestamp: 0, to: 0, body: &body }.write(&mut packet);
    // The answer, and a farewell to the other one.
    assert_eq!(door.say(addr(2), &packet).len(), 2);
}

#[test]
fn a_stream_flows_on_through_garbage_and_forgeries() {
    let options = Options { passphrase: secret("correct horse"), ..Options::default() };
    let link = LinkModel::wire(100_000_000, ms(10));
    let mut pair = Pair::new(Direction::Receive, options.clone(), options, link);
    let mut rng = Rng::from_seed(9);
    pair.run(ms(300), 1);
    for _ in 0..1000 {
        pair.run(ms(1), 1);
        let listener = pair.listener;
        for from in ["192.0.2.9:9".parse().unwrap(), "10.0.0.1:1000".parse().unwrap(), LISTENER.parse().unwrap()] {
            let mut bytes = vec![0; rng.below(200) as usize];
            rng.fill(&mut bytes);
            // Some look like control packets for nobody, or for everybody.
            if bytes.len() > 16 && rng.chance(0.5) {
                bytes[..4].copy_from_slice(&[0x80, rng.below(9) as u8, 0, 0]);
                bytes[12..16].fill(0);
            }
            pair.net.with(listener, |endpoint, now| {
                let route = Route::new(SocketId(0), from);
                endpoint.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &bytes });
            });
        }
    }
    let numbers = pair.numbers();
    assert!(numbers.len() > 1000 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
}
