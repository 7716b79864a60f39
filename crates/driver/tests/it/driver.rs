//! The driver on real sockets of the loopback interface.
#![allow(clippy::disallowed_methods, reason = "threads of tests that are slower than others")]

use crate::common;
use crate::common::{Client, Echo, Idle, Metronome};
use braidcast_core::{Ecn, Instant, Route, SocketId};
use braidcast_driver::{Bind, BindError, Direction, Driver, Wake};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn bound(addr: &str) -> (Driver, SocketId, SocketAddr) {
    let mut driver = Driver::new().unwrap();
    let id = driver.bind(&Bind::to_addr(addr.parse().unwrap())).unwrap();
    let local = driver.socket(id).unwrap().local_addr();
    (driver, id, local)
}

fn echo_everything(client_addr: &str, server_addr: &str, reach_at: Option<&str>) {
    let (mut server, server_socket, mut server_at) = bound(server_addr);
    if let Some(ip) = reach_at {
        server_at.set_ip(ip.parse().unwrap());
    }
    let stop = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            let mut echo = Echo::default();
            while !stop.load(Ordering::Relaxed) {
                let until = server.now() + Duration::from_millis(20);
                server.drive(&mut echo, Some(until)).unwrap();
            }
            server.socket(server_socket).unwrap().stats()
        }
    });
    let (mut driver, socket, _) = bound(client_addr);
    let mut client = Client::new(socket, server_at, 10_000);
    let limit = Instant::ZERO + Duration::from_secs(20);
    while !client.done() && driver.now() < limit {
        driver.drive(&mut client, Some(limit)).unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    let served = thread.join().unwrap();

    assert_eq!(client.answers.len(), 10_000, "{:?} {served:?}", driver.socket(socket).unwrap().stats());
    let mut numbers: Vec<u32> = client.answers.iter().map(|(number, ..)| *number).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..10_000));
    assert!(client.answers.iter().all(|(.., ecn)| *ecn == Ecn::Ect0), "the ECN mark is kept in both directions");
    let sent = driver.socket(socket).unwrap().stats();
    assert_eq!((sent.sent_datagrams, sent.sent_bytes), (10_000, 10_000_000));
    if driver.socket(socket).unwrap().max_segments() > 1 {
        assert!(sent.send_calls <= 1_100, "segmentation offload was not used: {sent:?}");
    }
}

#[test]
fn ten_thousand_datagrams_come_back_over_ipv4() {
    echo_everything("127.0.0.1:0", "127.0.0.1:0", None);
}

/// Two drivers have a share of what comes to one port, and each answers from there; no third program gets one.
#[allow(clippy::disallowed_types, reason = "clients of the system alone")]
#[test]
fn sockets_of_two_threads_share_a_port_and_nobody_else_gets_it() {
    let (mut first, id, at) = bound("127.0.0.1:0");
    let bind = Bind::to_addr(at);
    let mut second = Driver::with_clock(first.clock()).unwrap();
    assert_eq!(second.bind_beside(&mut first, id, &bind).unwrap(), id, "the same number");
    assert_eq!(second.socket(id).unwrap().local_addr(), at);
    let refused = Driver::new().unwrap().bind(&bind);
    assert!(matches!(refused, Err(BindError::InUse { .. })), "{refused:?}");
    let clients: Vec<_> = (0..32).map(|_| std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).collect();
    for client in &clients {
        client.connect(at).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client.send(&[7; 20]).unwrap();
    }
    let (mut echo, until) = (Echo::default(), first.now() + Duration::from_millis(300));
    for driver in [&mut first, &mut second] {
        while driver.drive(&mut echo, Some(until)).unwrap() != Wake::Until {}
    }
    clients.iter().for_each(|client| assert_eq!(client.recv(&mut [0; 100]).unwrap(), 20));
    let got = [&first, &second].map(|driver| driver.socket(id).unwrap().stats().received_datagrams);
    assert!(got[0] + got[1] == 32 && got.iter().all(|count| *count > 0), "{got:?}");
}

#[test]
fn ten_thousand_datagrams_come_back_over_ipv6() {
    if common::has_ipv6() {
        echo_everything("[::1]:0", "[::1]:0", None);
    }
}

#[test]
fn a_socket_for_any_address_speaks_ipv4_with_plain_addresses() {
    if common::has_ipv6() {
        echo_everything("[::]:0", "127.0.0.1:0", None);
        echo_everything("127.0.0.1:0", "[::]:0", Some("127.0.0.1"));
    }
}

#[test]
fn timers_of_one_millisecond_come_on_time_and_never_early() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let period = Duration::from_millis(1);
    let mut metronome = Metronome { period, next: driver.now() + period, lateness: Vec::new() };
    let until = driver.now() + Duration::from_millis(500);
    while driver.drive(&mut metronome, Some(until)).unwrap() != Wake::Until {}
    let mut lateness = metronome.lateness;
    assert!((450..=510).contains(&lateness.len()), "{} ticks in 500 ms", lateness.len());
    lateness.sort_unstable();
    println!(
        "late by: median {:?}, 90 % {:?}, worst {:?}",
        lateness[lateness.len() / 2],
        lateness[lateness.len() * 9 / 10],
        lateness.last().unwrap()
    );
    // epoll's own timeout would be late by half a millisecond on average. Most of a busy machine's
    // delays are beyond us.
    assert!(lateness[lateness.len() / 4] < Duration::from_millis(1), "{:?}", lateness[lateness.len() / 4]);
}

#[test]
fn waiting_ends_at_the_time_given() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let until = driver.now() + Duration::from_micros(1_500);
    assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Until);
    assert!(driver.now() >= until);
}

#[test]
fn an_address_that_is_not_ours_is_refused_with_what_there_is() {
    let error = Driver::new().unwrap().bind(&Bind::to_addr("192.0.2.77:0".parse().unwrap())).unwrap_err();
    assert!(matches!(error, BindError::NoSuchAddress { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("192.0.2.77 is not an address of this machine; it has"), "{text}");
    assert!(text.contains("lo (127.0.0.1"), "{text}");
}

#[test]
fn an_interface_that_is_not_there_is_refused_with_what_there_is() {
    for name in ["nosuchif0", "an-interface-name-that-is-too-long"] {
        let error = Driver::new().unwrap().bind(&Bind::to_device(name, 0)).unwrap_err();
        assert!(matches!(error, BindError::NoSuchInterface { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(name) && text.contains("lo (127.0.0.1"), "{text}");
    }
}

#[test]
fn a_port_in_use_is_refused_by_name() {
    let (mut driver, _, local) = bound("127.0.0.1:0");
    let error = driver.bind(&Bind::to_addr(local)).unwrap_err();
    assert_eq!(error.to_string(), format!("UDP {local} is in use by another program; pick another port, or 0 for any"));
}

#[test]
fn a_socket_bound_to_an_interface_echoes_through_it() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let by_device = driver.bind(&Bind::to_device("lo", 0)).unwrap();
    let port = driver.socket(by_device).unwrap().local_addr().port();
    let sender = driver.bind(&Bind::to_addr("127.0.0.1:0".parse().unwrap())).unwrap();
    let at = SocketAddr::new("127.0.0.1".parse().unwrap(), port);
    let mut echo = Echo::default();
    echo.queue.push_back((Route::new(sender, at), Ecn::NotEct, b"there and back".to_vec()));
    let until = driver.now() + Duration::from_secs(5);
    while driver.socket(sender).unwrap().stats().received_datagrams == 0 {
        assert_ne!(driver.drive(&mut echo, Some(until)).unwrap(), Wake::Until);
    }
}

#[test]
fn what_cannot_be_sent_is_counted_and_the_rest_goes_on() {
    let (mut driver, socket, local) = bound("127.0.0.1:0");
    let nobody = {
        let (_driver, _, addr) = bound("127.0.0.1:0");
        addr
    };
    let mut echo = Echo::default();
    let mut send = |socket, to, len| echo.queue.push_back((Route::new(socket, to), Ecn::NotEct, vec![1; len]));
    send(socket, nobody, 100);
    send(socket, "[2001:db8::1]:9".parse().unwrap(), 100);
    send(socket, local, 65_535);
    send(SocketId(99), local, 100);
    send(socket, local, 100);
    let until = driver.now() + Duration::from_secs(5);
    while driver.socket(socket).unwrap().stats().received_datagrams == 0 {
        assert_ne!(driver.drive(&mut echo, Some(until)).unwrap(), Wake::Until);
    }
    let stats = driver.socket(socket).unwrap().stats();
    assert_eq!((stats.unsendable, stats.too_big, driver.misrouted()), (1, 1, 1), "{stats:?}");
}

#[test]
fn an_input_is_reported_until_it_is_read() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let input = driver.register(near.as_raw_fd(), Direction::Read).unwrap();
    far.write_all(b"ab").unwrap();
    let wake = |driver: &mut Driver| {
        let until = driver.now() + Duration::from_millis(20);
        driver.drive(&mut Idle, Some(until)).unwrap()
    };
    let mut byte = [0];
    for _ in 0..2 {
        assert_eq!(wake(&mut driver), Wake::Input(input));
        near.read_exact(&mut byte).unwrap();
    }
    assert_eq!(wake(&mut driver), Wake::Until);
    far.write_all(b"c").unwrap();
    driver.pause(input).unwrap();
    assert_eq!(wake(&mut driver), Wake::Until);
    driver.resume(input).unwrap();
    assert_eq!(wake(&mut driver), Wake::Input(input));
    near.read_exact(&mut byte).unwrap();
    drop(far);
    assert_eq!(wake(&mut driver), Wake::Input(input), "the other end was closed");
    driver.unregister(input).unwrap();
    assert_eq!(wake(&mut driver), Wake::Until);
}

#[test]
fn a_drained_input_is_reported_when_there_is_more() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let (mut near, mut far) = UnixStream::pair().unwrap();
    let input = driver.register(near.as_raw_fd(), Direction::Read).unwrap();
    let mut byte = [0];
    for _ in 0..3 {
        far.write_all(b"a").unwrap();
        let until = driver.now() + Duration::from_secs(5);
        assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Input(input));
        near.read_exact(&mut byte).unwrap();
        driver.drained(input);
    }
    let until = driver.now() + Duration::from_millis(20);
    assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Until);
}

#[test]
fn an_input_that_rests_is_reported_afterwards() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let (near, mut far) = UnixStream::pair().unwrap();
    let input = driver.register(near.as_raw_fd(), Direction::Read).unwrap();
    far.write_all(b"a").unwrap();
    let rested = driver.now() + Duration::from_millis(20);
    driver.rest(input, rested).unwrap();
    let wake = |driver: &mut Driver, until| driver.drive(&mut Idle, Some(until)).unwrap();
    let before = driver.now() + Duration::from_millis(5);
    assert_eq!(wake(&mut driver, before), Wake::Until);
    let after = rested + Duration::from_secs(5);
    assert_eq!(wake(&mut driver, after), Wake::Input(input));
    assert!(driver.now() >= rested);

    // What is paused stays so, however long it should have rested.
    driver.pause(input).unwrap();
    driver.rest(input, rested).unwrap();
    let soon = driver.now() + Duration::from_millis(5);
    assert_eq!(wake(&mut driver, soon), Wake::Until);
    driver.resume(input).unwrap();
    let after = driver.now() + Duration::from_secs(5);
    assert_eq!(wake(&mut driver, after), Wake::Input(input));
    driver.rest(input, after).unwrap();
    driver.unregister(input).unwrap();
}

#[test]
fn after_its_rest_an_input_is_looked_at_whether_anything_came_or_not() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let (mut near, mut far) = UnixStream::pair().unwrap();
    near.set_nonblocking(true).unwrap();
    let input = driver.register(near.as_raw_fd(), Direction::Read).unwrap();
    let mut buf = [0; 9];
    for came in [3, 0, 2, 0] {
        far.write_all(&buf[..came]).unwrap();
        let rested = driver.now() + Duration::from_millis(3);
        driver.rest(input, rested).unwrap();
        let until = driver.now() + Duration::from_secs(5);
        assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Input(input));
        assert!(driver.now() >= rested);
        assert_eq!(near.read(&mut buf).unwrap_or_default(), came);
    }
    // One that was read to its end, and does not rest again, is reported once there is more.
    driver.drained(input);
    let until = driver.now() + Duration::from_millis(5);
    assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Until);
    far.write_all(b"a").unwrap();
    let until = driver.now() + Duration::from_secs(5);
    assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Input(input));
}

#[test]
fn a_regular_file_is_always_ready() {
    let (mut driver, ..) = bound("127.0.0.1:0");
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let input = driver.register(file.as_raw_fd(), Direction::Read).unwrap();
    for _ in 0..3 {
        assert_eq!(driver.drive(&mut Idle, None).unwrap(), Wake::Input(input));
    }
    driver.pause(input).unwrap();
    let until = driver.now() + Duration::from_millis(2);
    assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Until);
}

#[test]
fn answers_come_from_the_address_that_was_spoken_to() {
    for server_addr in if common::has_ipv6() { &["0.0.0.0:0", "[::]:0"][..] } else { &["0.0.0.0:0"] } {
        let (mut driver, server, at) = bound(server_addr);
        let client = driver.bind(&Bind::to_addr("127.0.0.1:0".parse().unwrap())).unwrap();
        let spoken_to = SocketAddr::new("127.0.0.3".parse().unwrap(), at.port());
        let mut echo = Echo::default();
        echo.queue.push_back((Route::new(client, spoken_to), Ecn::NotEct, b"hello".to_vec()));
        let until = driver.now() + Duration::from_secs(5);
        // The client echoes too, to where the answer came from; it reaches the server only if that
        // was right.
        while driver.socket(server).unwrap().stats().received_datagrams < 2 {
            assert_ne!(driver.drive(&mut echo, Some(until)).unwrap(), Wake::Until);
            if let Some((route, ..)) = echo.queue.front().filter(|(route, ..)| route.socket == client) {
                assert_eq!(route.remote, spoken_to);
            }
        }
    }
}

#[test]
fn a_remote_with_port_zero_does_no_harm() {
    let (mut driver, socket, local) = bound("127.0.0.1:0");
    let segments = driver.socket(socket).unwrap().max_segments();
    let mut echo = Echo::default();
    for to in [SocketAddr::new(local.ip(), 0), local] {
        echo.queue.push_back((Route::new(socket, to), Ecn::Ce, vec![7; 10]));
    }
    let until = driver.now() + Duration::from_secs(5);
    while driver.socket(socket).unwrap().stats().received_datagrams == 0 {
        assert_ne!(driver.drive(&mut echo, Some(until)).unwrap(), Wake::Until);
    }
    let socket = driver.socket(socket).unwrap();
    assert_eq!((socket.max_segments(), socket.stats().unsendable), (segments, 1));
}

#[test]
fn the_kernel_grants_buffers_and_forbids_fragments() {
    let (driver, socket, _) = bound("127.0.0.1:0");
    let socket = driver.socket(socket).unwrap();
    assert!(socket.receive_buffer().unwrap() >= 100_000);
    assert!(socket.send_buffer().unwrap() >= 100_000);
    assert!(!socket.may_fragment());
    assert_eq!(socket.warning(), None);
}

#[test]
fn another_thread_ends_a_wait() {
    let mut driver = Driver::new().unwrap();
    let waker = driver.waker().unwrap();
    // Before it waits, and several times: once is enough.
    waker.wake();
    waker.wake();
    assert_eq!(driver.drive(&mut Idle, None).unwrap(), Wake::Called);
    let until = driver.now() + Duration::from_millis(10);
    assert_eq!(driver.drive(&mut Idle, Some(until)).unwrap(), Wake::Until);
    let caller = driver.waker().unwrap();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        caller.wake();
    });
    assert_eq!(driver.drive(&mut Idle, None).unwrap(), Wake::Called);
    thread.join().unwrap();
    drop(driver);
    waker.wake();
}
