//! The emulated link, as seen from its sockets.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common;
use crate::common::{Running, Test, free_ports};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

fn socket(port: u16) -> UdpSocket {
    let socket = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

#[test]
fn datagrams_take_the_delay_each_way_and_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let [listen, forward, client] = free_ports();
    let (server, client) = (socket(forward), socket(client));
    let args = format!("emulate 127.0.0.1:{listen} 127.0.0.1:{forward} --delay 40ms --json");
    let emulator = Running::start(dir.path(), &args).wait_for("listening");
    let start = Instant::now();
    client.send_to(b"there", ("127.0.0.1", listen)).unwrap();
    let mut buf = [0; 100];
    let (len, from) = server.recv_from(&mut buf).unwrap();
    assert_eq!(&buf[..len], b"there");
    assert!(start.elapsed() >= Duration::from_millis(40));
    server.send_to(b"and back", from).unwrap();
    let len = client.recv(&mut buf).unwrap();
    assert_eq!(&buf[..len], b"and back");
    assert!(start.elapsed() >= Duration::from_millis(80));
    emulator.interrupt();
    let ran = emulator.finish();
    ran.says(0, &[]);
    let report = ran.json();
    assert_eq!((&report["command"], &report["seed"]), (&"emulate".into(), &1.into()));
    assert_eq!(
        (&report["to_forward"]["delivered_packets"], &report["to_clients"]["delivered_packets"]),
        (&1.into(), &1.into())
    );
}

#[test]
fn it_ends_by_itself_after_the_duration() {
    let ran =
        Test::new(&format!("emulate 127.0.0.1:{} 127.0.0.1:9 --duration 200ms --quiet", common::free_port())).run();
    ran.says(0, &[]);
    assert_eq!((ran.stderr.as_str(), ran.out()), ("", ""));
}

#[test]
fn a_recording_that_is_none_is_named_with_its_line() {
    let ran = Test::new("emulate 127.0.0.1:9 127.0.0.1:9 --trace bad.up").file("bad.up", "1\n2\nthree\n").run();
    ran.says(1, &["bad.up line 3", "`three`"]);
    let ran =
        Test::new("emulate 127.0.0.1:9 127.0.0.1:9 --trace short.up --trace-from 1s").file("short.up", "1\n2\n").run();
    ran.says(2, &["--trace-from 1000 ms", "short.up", "2 ms"]);
}

#[test]
fn an_address_in_use_is_named() {
    let port = common::free_port();
    let _taken = socket(port);
    let ran = Test::new(&format!("emulate 127.0.0.1:{port} 127.0.0.1:9")).run();
    ran.says(1, &[&format!("127.0.0.1:{port}"), "in use", "another"]);
}
