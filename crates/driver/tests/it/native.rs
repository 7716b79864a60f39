//! Native IP: the driver on raw sockets of the loopback interface. Protocol 253 is for experiments
//! (RFC 3692); sockets for all addresses hear the other tests too, so they have numbers of their
//! own.

use crate::common;
use crate::common::{Client, Echo};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Route, SocketId, Transmit};
use braidcast_driver::{Bind, BindError, Carrier, Driver, Wake};
use std::net::{IpAddr, SocketAddr};
use std::process::Command;
use std::time::Duration;

const PROTOCOL: u8 = 253;
const INSIDE: &str = "BRAIDCAST_TEST_UNPRIVILEGED";

/// A driver with a raw socket on `addr`; `None` if this user may open none and the test is skipped.
fn bound(addr: &str, protocol: u8) -> Option<(Driver, SocketId)> {
    let mut driver = Driver::new().unwrap();
    match driver.bind(&Bind::to_ip(addr.parse().unwrap(), protocol)) {
        Ok(id) => Some((driver, id)),
        Err(BindError::NotAllowed { .. }) => {
            common::skipped("native IP: it needs CAP_NET_RAW");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn native(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse::<IpAddr>().unwrap(), 0)
}

#[test]
fn datagrams_come_back_over_ipv4() {
    let Some((mut driver, client_socket)) = bound("127.0.0.1", PROTOCOL) else { return };
    let Some((mut server, server_socket)) = bound("127.0.0.2", PROTOCOL) else { return };
    let mut client = Client::new(client_socket, native("127.0.0.2"), 2_000);
    let mut echo = Echo::default();
    let limit = Instant::ZERO + Duration::from_secs(20);
    while !client.done() && driver.now() < limit {
        let step = |driver: &Driver| Some(driver.now() + Duration::from_millis(1));
        driver.drive(&mut client, step(&driver)).unwrap();
        server.drive(&mut echo, step(&server)).unwrap();
    }
    let socket = driver.socket(client_socket).unwrap();
    assert_eq!(client.answers.len(), 2_000, "{:?}", socket.stats());
    assert!(client.answers.iter().all(|(.., ecn)| *ecn == Ecn::Ect0), "the ECN mark is kept in both directions");
    assert_eq!(socket.stats().received_bytes, 2_000_000, "no header is counted or given to the machine");
    assert_eq!((socket.local_addr(), socket.carrier()), (native("127.0.0.1"), Carrier::Ip(PROTOCOL)));
    assert!(!socket.may_fragment());
    assert_eq!(server.socket(server_socket).unwrap().stats().received_datagrams, 2_000);
}

#[test]
fn datagrams_come_back_over_ipv6() {
    // The loopback has one address of IPv6: the socket hears and answers itself.
    if common::has_ipv6()
        && let Some((mut driver, socket)) = bound("::1", PROTOCOL)
    {
        let mut echo = Echo::default();
        echo.queue.push_back((Route::new(socket, native("::1")), Ecn::Ect1, vec![9; 1_000]));
        let heard = until_heard(&mut driver, socket, &mut echo);
        assert_eq!(heard, (Route::new(socket, native("::1")), Ecn::Ect1, 1_000));
        assert!(!driver.socket(socket).unwrap().may_fragment());
    }
}

#[test]
fn a_socket_for_all_addresses_answers_from_the_one_that_was_spoken_to() {
    let protocol = PROTOCOL + 1;
    let Some((mut driver, client)) = bound("127.0.0.5", protocol) else { return };
    driver.bind(&Bind::default().with(|it| it.carrier = Carrier::Ip(protocol))).unwrap();
    let mut echo = Echo::default();
    echo.queue.push_back((Route::new(client, native("127.0.0.3")), Ecn::Ce, b"hello".to_vec()));
    let heard = until_heard(&mut driver, client, &mut echo);
    assert_eq!(heard, (Route::new(client, native("127.0.0.3")), Ecn::Ce, 5));
}

/// What comes to `socket` first.
fn until_heard(driver: &mut Driver, socket: SocketId, echo: &mut Echo) -> (Route, Ecn, usize) {
    let until = driver.now() + Duration::from_secs(5);
    loop {
        assert_ne!(driver.drive(echo, Some(until)).unwrap(), Wake::Until);
        if let Some(heard) = echo.last.get(&socket) {
            return *heard;
        }
    }
}

#[test]
fn what_is_too_long_or_has_a_port_is_counted_and_the_rest_goes_on() {
    let Some((mut driver, socket)) = bound("127.0.0.9", PROTOCOL) else { return };
    let mut echo = Echo::default();
    let with_port = SocketAddr::new("127.0.0.9".parse().unwrap(), 9);
    for (to, len) in [(with_port, 100), (native("127.0.0.9"), 65_530), (native("127.0.0.9"), 100)] {
        echo.queue.push_back((Route::new(socket, to), Ecn::NotEct, vec![1; len]));
    }
    let until = driver.now() + Duration::from_secs(5);
    while driver.socket(socket).unwrap().stats().received_datagrams == 0 {
        assert_ne!(driver.drive(&mut echo, Some(until)).unwrap(), Wake::Until);
    }
    let stats = driver.socket(socket).unwrap().stats();
    assert_eq!((stats.unsendable, stats.too_big, stats.receive_errors), (1, 1, 0), "{stats:?}");
}

#[test]
fn a_socket_bound_to_an_interface_hears_nothing_of_the_others() {
    let protocol = PROTOCOL - 1;
    let Some((mut driver, _)) = bound("127.0.0.1", protocol) else { return };
    let elsewhere = Command::new("sh").args(["-c", "ls /sys/class/net | grep -v '^lo$' | head -n 1"]).output().unwrap();
    let elsewhere = String::from_utf8(elsewhere.stdout).unwrap();
    let on = |device: &str| Bind::to_device(device.trim(), 0).with(|it| it.carrier = Carrier::Ip(protocol));
    if elsewhere.is_empty() {
        return common::skipped("a second interface, for native IP");
    }
    let there = driver.bind(&on(&elsewhere)).unwrap();
    let here = driver.bind(&on("lo")).unwrap();
    let mut echo = Echo::default();
    echo.queue.push_back((Route::new(here, native("127.0.0.10")), Ecn::NotEct, vec![1; 100]));
    let until = driver.now() + Duration::from_millis(200);
    while driver.drive(&mut echo, Some(until)).unwrap() != Wake::Until && echo.echoed < 10 {}
    let received = |id| driver.socket(id).unwrap().stats().received_datagrams;
    assert!(received(here) > 0);
    assert_eq!(received(there), 0);
}

#[test]
fn without_the_right_the_error_says_what_to_do() {
    if std::env::var_os(INSIDE).is_some() {
        let error = Driver::new().unwrap().bind(&Bind::to_ip("127.0.0.1".parse().unwrap(), 132)).unwrap_err();
        assert!(matches!(error, BindError::NotAllowed { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.starts_with("IP protocol 132 needs the right") && text.contains("setcap cap_net_raw"), "{text}");
        return;
    }
    let me = std::env::current_exe().unwrap();
    let test = ["--exact", "native::without_the_right_the_error_says_what_to_do", "--nocapture"];
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    let mut command = if is_root { Command::new("setpriv") } else { Command::new(&me) };
    if is_root {
        command.args(["--bounding-set=-net_raw", "--inh-caps=-net_raw"]).arg(&me);
    }
    match command.args(test).env(INSIDE, "1").output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("ok. 1 passed"), "{said}");
        }
        Err(error) => common::skipped(&format!("native IP without rights: {error}")),
    }
}

#[test]
fn while_a_socket_is_open_the_kernel_does_not_say_that_the_protocol_is_unreachable() {
    // A raw socket for ICMP hears what the kernel sends.
    let Some((mut driver, icmp)) = bound("127.0.0.21", 1) else { return };
    let sender = driver.bind(&Bind::to_ip("127.0.0.21".parse().unwrap(), PROTOCOL)).unwrap();
    let unreachable = |driver: &mut Driver| {
        let before = driver.socket(icmp).unwrap().stats().received_datagrams;
        let mut one = Client::new(sender, native("127.0.0.22"), 1);
        let until = driver.now() + Duration::from_millis(100);
        // What comes back is ICMP, which is none of the client's.
        while driver.drive(&mut SendOnly(&mut one), Some(until)).unwrap() != Wake::Until {}
        driver.socket(icmp).unwrap().stats().received_datagrams - before
    };
    assert_eq!(unreachable(&mut driver), 1);
    let listener = driver.bind(&Bind::to_ip("127.0.0.22".parse().unwrap(), PROTOCOL)).unwrap();
    assert_eq!(unreachable(&mut driver), 0);
    assert_eq!(driver.socket(listener).unwrap().stats().received_datagrams, 1);
}

/// Takes no notice of what comes.
struct SendOnly<'a>(&'a mut Client);

impl Machine for SendOnly<'_> {
    type Event = ();

    fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.0.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}
