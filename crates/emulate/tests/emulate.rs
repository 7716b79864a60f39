//! The link emulator between real sockets of the loopback interface.

#[path = "../../driver/tests/it/common/mod.rs"]
mod common;

use braidcast_core::{Instant, Rng};
use braidcast_driver::{Bind, Driver, Wake};
use braidcast_emulate::{Emulator, EmulatorReport, Stopped};
use braidcast_sim::link::{LinkModel, Loss};
use common::{Client, Echo};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// An echo server behind an emulator, each in a thread of its own.
struct Behind {
    at: SocketAddr,
    stop: Arc<AtomicBool>,
    server: JoinHandle<u64>,
    emulator: JoinHandle<EmulatorReport>,
}

impl Behind {
    fn new(ip: &str, forth: LinkModel, back: LinkModel) -> Self {
        let any: SocketAddr = SocketAddr::new(ip.parse().unwrap(), 0);
        let stop = Arc::new(AtomicBool::new(false));
        let mut driver = Driver::new().unwrap();
        let socket = driver.bind(&Bind::to_addr(any)).unwrap();
        let server_at = driver.socket(socket).unwrap().local_addr();
        let mut emulator = Emulator::new(any, server_at, forth, back, &Rng::from_seed(1)).unwrap();
        let at = emulator.listen_addr();
        let running = Arc::clone(&stop);
        let server = std::thread::spawn(move || {
            let mut echo = Echo::default();
            while !running.load(Ordering::Relaxed) {
                let until = driver.now() + Duration::from_millis(20);
                driver.drive(&mut echo, Some(until)).unwrap();
            }
            echo.echoed
        });
        let running = Arc::clone(&stop);
        let emulator = std::thread::spawn(move || {
            while !running.load(Ordering::Relaxed) {
                let until = emulator.now() + Duration::from_millis(20);
                assert_eq!(emulator.run(Some(until)).unwrap(), Stopped::Until);
            }
            emulator.report()
        });
        Self { at, stop, server, emulator }
    }

    /// How many datagrams reached the server, and what the emulator says.
    fn end(self) -> (u64, EmulatorReport) {
        self.stop.store(true, Ordering::Relaxed);
        (self.server.join().unwrap(), self.emulator.join().unwrap())
    }
}

fn talk(ip: &str, at: SocketAddr, set: impl FnOnce(&mut Client)) -> Client {
    let mut driver = Driver::new().unwrap();
    let socket = driver.bind(&Bind::to_addr(SocketAddr::new(ip.parse().unwrap(), 0))).unwrap();
    let mut client = Client::new(socket, at, 0);
    set(&mut client);
    let limit = Instant::ZERO + Duration::from_secs(30);
    while !client.done() {
        assert_ne!(driver.drive(&mut client, Some(limit)).unwrap(), Wake::Until, "{} answers", client.answers.len());
    }
    client
}

#[test]
fn each_direction_delays_by_its_own_delay() {
    let delay = |ms| LinkModel { delay: Duration::from_millis(ms), ..LinkModel::default() };
    let behind = Behind::new("127.0.0.1", delay(30), delay(12));
    let client = talk("127.0.0.1", behind.at, |client| (client.total, client.window) = (100, 10));
    behind.end();
    assert_eq!(client.answers.len(), 100);
    let mut round_trips: Vec<Duration> =
        client.answers.iter().map(|(number, at, _)| *at - client.sent_at[*number as usize]).collect();
    round_trips.sort_unstable();
    println!("42 ms took {:?} to {:?}", round_trips[0], round_trips[99]);
    assert!(round_trips[0] >= Duration::from_millis(42), "{:?}", round_trips[0]);
    assert!(round_trips[0] < Duration::from_millis(60), "the best of ten: {:?}", round_trips[0]);
}

#[test]
fn the_seed_fixes_which_datagrams_are_lost_and_the_share_is_right() {
    let (ip, headers) = if common::has_ipv6() { ("::1", 48) } else { ("127.0.0.1", 28) };
    let run = || {
        let lossy = LinkModel { loss: Loss::Uniform(0.1), ..LinkModel::default() };
        let behind = Behind::new(ip, lossy, LinkModel::default());
        // Few at once, so that no queue or socket buffer overflows and nothing but the loss drops.
        let client = talk(ip, behind.at, |client| (client.total, client.window) = (2_000, 100));
        let mut numbers: Vec<u32> = client.answers.iter().map(|(number, ..)| *number).collect();
        numbers.sort_unstable();
        let (echoed, report) = behind.end();
        assert_eq!(echoed, numbers.len() as u64);
        assert_eq!(report.to_forward.offered_packets, 2_000);
        assert_eq!(report.to_forward.offered_bytes, 2_000 * (1_000 + headers), "IP and UDP headers count");
        assert_eq!(report.to_forward.delivered_packets, echoed);
        assert_eq!(report.to_forward.dropped_loss, 2_000 - echoed);
        assert_eq!(report.to_clients.delivered_packets, echoed);
        numbers
    };
    let first = run();
    assert!((1_720..1_880).contains(&first.len()), "{} of 2000", first.len());
    assert_eq!(run(), first);
}

#[test]
fn the_rate_is_kept() {
    // 1028 bytes each with IPv4 and UDP headers: 150 take 308 ms at 4 Mbit/s.
    let behind = Behind::new("127.0.0.1", LinkModel::wire(4_000_000, Duration::ZERO), LinkModel::default());
    let client = talk("127.0.0.1", behind.at, |client| (client.total, client.window) = (150, 150));
    behind.end();
    let took = client.answers.last().unwrap().1 - client.sent_at[0];
    assert!(took >= Duration::from_micros(308_000), "{took:?}");
    assert!(took < Duration::from_millis(1_000), "{took:?}");
}

#[test]
fn several_clients_each_get_their_own_answers() {
    let behind = Behind::new("127.0.0.1", LinkModel::default(), LinkModel::default());
    let at = behind.at;
    let clients: Vec<_> = (0..4)
        .map(|i| {
            std::thread::spawn(move || talk("127.0.0.1", at, |client| (client.total, client.len) = (500, 400 + i)))
        })
        .collect();
    // Each client checks the length of what it gets, which no other one has.
    for client in clients {
        assert_eq!(client.join().unwrap().answers.len(), 500);
    }
    let (echoed, report) = behind.end();
    assert_eq!((echoed, report.clients, report.clients_seen), (2_000, 4, 4));
    assert_eq!((report.refused_packets, report.stray_packets), (0, 0));
}

#[test]
fn a_flipped_bit_is_one_bit() {
    let model = LinkModel { corrupt: 1.0, ..LinkModel::default() };
    let behind = Behind::new("127.0.0.1", model, LinkModel::default());
    let socket_addr = behind.at;
    let (_, report) = {
        let mut driver = Driver::new().unwrap();
        let socket = driver.bind(&Bind::to_addr("127.0.0.1:0".parse().unwrap())).unwrap();
        let mut collect = Collect { sent: false, socket, to: socket_addr, got: Vec::new() };
        let until = driver.now() + Duration::from_secs(5);
        while collect.got.is_empty() {
            assert_ne!(driver.drive(&mut collect, Some(until)).unwrap(), Wake::Until);
        }
        let flipped: u32 = collect.got.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!((collect.got.len(), flipped), (300, 1));
        behind.end()
    };
    assert_eq!(report.to_forward.corrupted_packets, 1);
}

#[test]
fn an_address_that_cannot_be_listened_on_is_an_error_that_says_why() {
    let addr = |text: &str| text.parse::<SocketAddr>().unwrap();
    let perfect = LinkModel::default();
    let rng = Rng::from_seed(1);
    let error = Emulator::new(addr("192.0.2.5:0"), addr("127.0.0.1:9"), perfect.clone(), perfect, &rng).unwrap_err();
    assert!(error.to_string().starts_with("192.0.2.5 is not an address of this machine"), "{error}");
}

/// Sends 300 zero bytes and keeps what comes back.
struct Collect {
    sent: bool,
    socket: braidcast_core::SocketId,
    to: SocketAddr,
    got: Vec<u8>,
}

impl braidcast_core::Machine for Collect {
    type Event = ();

    fn handle_datagram(&mut self, _: Instant, datagram: braidcast_core::Datagram<'_>) {
        self.got = datagram.payload.to_vec();
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<braidcast_core::Transmit> {
        if std::mem::replace(&mut self.sent, true) {
            return None;
        }
        buf.resize(300, 0);
        let route = braidcast_core::Route::new(self.socket, self.to);
        Some(braidcast_core::Transmit { route, ecn: braidcast_core::Ecn::NotEct, segment_size: None })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}
