//! What an application is told that it may send, over an emulated link of the loopback interface.

use braidcast_core::{Instant, Rng};
use braidcast_emulate::Emulator;
use braidcast_sim::link::{LinkModel, Rate, parse};
use braidcast_socket::{ConnectionId, Error, Event, Path, Protection, RateOptions, RateReport, SendOptions, Socket};
use std::net::SocketAddr;
use std::time::Duration;

const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

fn loopback() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// A server that takes all that comes, behind a link of this rate, which may change. The threads end with the process.
fn behind(rate: &str) -> SocketAddr {
    let mut server = Socket::new(&Protection::Anyone).unwrap();
    let at = server.bind(loopback()).unwrap();
    server.listen();
    std::thread::spawn(move || {
        let mut message = Vec::new();
        while let Some((connection, event)) = server.poll(PATIENCE).unwrap() {
            while event == Event::Readable && server.recv(connection, &mut message).unwrap().is_some() {}
        }
    });
    let rate = Rate::Schedule(parse::rate_schedule(rate).unwrap());
    let there =
        LinkModel { rate, delay: Duration::from_millis(20), queue: "1s".parse().unwrap(), ..LinkModel::default() };
    let back = LinkModel { delay: Duration::from_millis(20), ..LinkModel::default() };
    let mut emulator = Emulator::new(loopback(), at, there, back, &Rng::from_seed(1)).unwrap();
    let at = emulator.listen_addr();
    std::thread::spawn(move || emulator.run(None));
    at
}

/// Sends 25 frames a second, as large as they may be, until `until` ms after the socket was made.
/// Returns the means of the rates and of the frames' sizes that were reported since `from`, bit/s.
fn pictures(socket: &mut Socket, connection: ConnectionId, from: u64, until: u64) -> (f64, f64) {
    let (from, until) = (Instant::from_millis(from), Instant::from_millis(until));
    let (mut told, mut next) = (Vec::<RateReport>::new(), socket.now());
    while next < until {
        while socket.now() < next {
            socket.poll(Some(next - socket.now())).unwrap();
        }
        let report = socket.rate_report(connection).unwrap().expect("it is connected");
        if next >= from {
            told.push(report);
        }
        let picture = vec![7; report.next_frame_bits as usize / 8];
        let how = SendOptions::new().deadline(Duration::from_millis(250));
        if !picture.is_empty() {
            socket.send(connection, &picture, &how).unwrap();
        }
        next += Duration::from_millis(40);
    }
    let mean = |of: fn(&RateReport) -> f64| told.iter().map(of).sum::<f64>() / told.len() as f64;
    (mean(|it| it.rate), mean(|it| it.next_frame_bits as f64 * 1e3 / it.frame_interval_ms))
}

#[test]
fn the_rate_is_that_of_the_link_and_follows_it() {
    let at = behind("0s:1mbit,12s:300kbit");
    let mut socket = Socket::new(&Protection::Anyone).unwrap();
    let connection = socket.connect(&[Path::to(at)]).unwrap();
    while socket.poll(PATIENCE).unwrap().expect("nothing happened for long") != (connection, Event::Connected) {}
    assert_eq!(socket.rate_report(connection).unwrap(), None, "nobody has asked for it");
    socket.follow_rate(connection, &RateOptions::default()).unwrap();
    let (rate, sizes) = pictures(&mut socket, connection, 6_000, 11_000);
    assert!((0.7e6..1.3e6).contains(&rate) && (0.6e6..1.3e6).contains(&sizes), "of 1 Mbit/s: {rate}, {sizes}");
    let (rate, sizes) = pictures(&mut socket, connection, 15_000, 20_000);
    assert!((0.21e6..0.39e6).contains(&rate) && (0.15e6..0.39e6).contains(&sizes), "of 300 kbit/s: {rate}, {sizes}");
}

#[test]
fn of_a_connection_that_is_not_there_nothing_is_told() {
    let mut socket = Socket::new(&Protection::Plain).unwrap();
    let nobody = ConnectionId(5);
    assert!(matches!(socket.rate_report(nobody), Err(Error::NoConnection(_))));
    assert!(matches!(socket.follow_rate(nobody, &RateOptions::default()), Err(Error::NoConnection(_))));
    let connection = socket.connect(&[Path::to("127.0.0.1:9".parse().unwrap())]).unwrap();
    socket.follow_rate(connection, &RateOptions::default()).unwrap();
    assert_eq!(socket.rate_report(connection).unwrap(), None, "it is not connected yet");
}
