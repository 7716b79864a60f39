use crate::relay::{Relay, Request};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_sim::link::LinkModel;
use std::net::SocketAddr;
use std::time::Duration;

const LISTEN: SocketId = SocketId(0);

fn forward() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5000))
}

fn client(number: u16) -> SocketAddr {
    SocketAddr::from(([198, 51, 100, 1], 1000 + number))
}

fn relay(model: LinkModel) -> Relay {
    Relay::new(LISTEN, forward(), [model.clone(), model], &Rng::from_seed(1))
}

fn send(relay: &mut Relay, now: Instant, socket: SocketId, remote: SocketAddr, payload: &[u8]) {
    relay.handle_datagram(now, Datagram { route: Route::new(socket, remote), ecn: Ecn::Ect0, payload });
}

/// Opens the sockets asked for, numbered from 1; the requests to close.
fn serve(relay: &mut Relay, next: &mut u16) -> Vec<SocketId> {
    let mut closed = Vec::new();
    while let Some(request) = relay.poll_event() {
        match request {
            Request::Open(client) => {
                relay.opened(client, Some(SocketId(*next)));
                *next += 1;
            }
            Request::Close(socket) => closed.push(socket),
        }
    }
    closed
}

fn sent(relay: &mut Relay, now: Instant) -> Option<(Transmit, Vec<u8>)> {
    let mut buf = Vec::new();
    relay.poll_transmit(now, &mut buf).map(|transmit| (transmit, buf))
}

#[test]
fn packets_of_one_length_leave_together_and_answers_find_back() {
    let (mut relay, now, mut sockets) = (relay(LinkModel::default()), Instant::from_millis(1), 1);
    for payload in ["aa", "bb", "cc", "d", "ee"] {
        send(&mut relay, now, LISTEN, client(0), payload.as_bytes());
    }
    assert_eq!(sent(&mut relay, now), None, "no socket yet");
    serve(&mut relay, &mut sockets);
    let there = |segment_size| Transmit { route: Route::new(SocketId(1), forward()), ecn: Ecn::Ect0, segment_size };
    assert_eq!(sent(&mut relay, now), Some((there(Some(2)), b"aabbcc".to_vec())));
    assert_eq!(sent(&mut relay, now), Some((there(None), b"d".to_vec())));
    assert_eq!(sent(&mut relay, now), Some((there(None), b"ee".to_vec())));
    assert_eq!(sent(&mut relay, now), None);

    send(&mut relay, now, SocketId(1), forward(), b"answer");
    let (transmit, payload) = sent(&mut relay, now).unwrap();
    assert_eq!((transmit.route, payload), (Route::new(LISTEN, client(0)), b"answer".to_vec()));
    send(&mut relay, now, SocketId(1), client(9), b"from elsewhere");
    assert_eq!(sent(&mut relay, now), None);
    assert_eq!(relay.report(now, forward()).stray_packets, 1);
}

#[test]
fn a_client_silent_for_five_minutes_is_forgotten_and_may_come_again() {
    let (mut relay, mut now, mut sockets) = (relay(LinkModel::default()), Instant::ZERO, 1);
    send(&mut relay, now, LISTEN, client(0), b"x");
    serve(&mut relay, &mut sockets);
    sent(&mut relay, now);
    let mut closed = Vec::new();
    while closed.is_empty() {
        now = relay.poll_timeout().unwrap();
        relay.handle_timeout(now);
        closed = serve(&mut relay, &mut sockets);
    }
    assert_eq!(closed, [SocketId(1)]);
    assert!((300..=310).contains(&now.since(Instant::ZERO).as_secs()));
    assert_eq!(relay.poll_timeout(), None);
    send(&mut relay, now, LISTEN, client(0), b"x");
    serve(&mut relay, &mut sockets);
    assert_eq!(sent(&mut relay, now).unwrap().0.route.socket, SocketId(2));
}

#[test]
fn more_clients_than_there_is_room_for_are_refused() {
    let (mut relay, now, mut sockets) = (relay(LinkModel::default()), Instant::ZERO, 1);
    for number in 0..300 {
        send(&mut relay, now, LISTEN, client(number), b"x");
    }
    serve(&mut relay, &mut sockets);
    let report = relay.report(now, forward());
    assert_eq!((report.clients, report.clients_seen, report.refused_packets), (256, 256, 44));
}

#[test]
fn a_client_that_no_socket_can_be_opened_for_loses_its_packets_only() {
    let (mut relay, now) = (relay(LinkModel::default()), Instant::ZERO);
    send(&mut relay, now, LISTEN, client(0), b"x");
    send(&mut relay, now, LISTEN, client(1), b"y");
    let Some(Request::Open(first)) = relay.poll_event() else { panic!("nothing asked for") };
    let Some(Request::Open(second)) = relay.poll_event() else { panic!("nothing asked for") };
    relay.opened(first, None);
    relay.opened(second, Some(SocketId(7)));
    let (transmit, payload) = sent(&mut relay, now).unwrap();
    assert_eq!((transmit.route.socket, payload), (SocketId(7), b"y".to_vec()));
    assert_eq!(relay.report(now, forward()).refused_packets, 1);
}

#[test]
fn copies_and_reused_buffers_never_mix_payloads() {
    let model = LinkModel { duplicate: 0.5, delay: Duration::from_millis(3), ..LinkModel::default() };
    let (mut relay, mut sockets) = (relay(model), 1);
    let mut seen = [0_u8; 200];
    for step in 0..250_u64 {
        let now = Instant::from_millis(step);
        if let Ok(number) = u8::try_from(step)
            && number < 200
        {
            send(&mut relay, now, LISTEN, client(0), &[number; 50]);
        }
        serve(&mut relay, &mut sockets);
        while let Some((transmit, buf)) = sent(&mut relay, now) {
            for payload in transmit.datagrams(&buf) {
                assert!(payload.len() == 50 && payload.iter().all(|byte| *byte == payload[0]));
                seen[usize::from(payload[0])] += 1;
            }
        }
    }
    assert!(seen.iter().all(|times| (1..=2).contains(times)), "{seen:?}");
    assert!((70..130).contains(&seen.iter().filter(|times| **times == 2).count()));
}

#[test]
fn the_queues_marks_go_out() {
    let queue = "codel:0ms,1ns,ecn".parse().unwrap();
    let model = LinkModel { queue, ..LinkModel::wire(1_000_000, Duration::ZERO) };
    let (mut relay, mut sockets) = (relay(model), 1);
    for _ in 0..10 {
        send(&mut relay, Instant::ZERO, LISTEN, client(0), &[0; 972]);
    }
    serve(&mut relay, &mut sockets);
    // A packet takes 8 ms. The first left nothing behind, the second begins the interval; then all are marked until the
    // queue is short.
    let marks: Vec<_> = (1..=10)
        .filter_map(|n| sent(&mut relay, Instant::from_millis(n * 8)))
        .map(|(transmit, _)| transmit.ecn == Ecn::Ce)
        .collect();
    let expected = [false, false, true, true, true, true, true, true, false, false];
    assert_eq!(marks, expected);
    assert_eq!(relay.report(Instant::ZERO, forward()).to_forward.marked_packets, 6);
}
