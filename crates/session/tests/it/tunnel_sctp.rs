//! Two ends of a tunnel over SCTP and two paths in memory, over networks that take time and can be cut.
#![allow(missing_docs, reason = "a test")]

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_sctp::{Algorithm, SchedulerKind};
use braidcast_session::Redundancy;
use braidcast_session::tunnel::{Class, SctpOptions, Settings, Tunnel, TunnelEvent};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

const ENTRANCE: SocketId = SocketId(10);
const EXIT: SocketId = SocketId(20);
const PATHS: usize = 2;
const WAY: Duration = Duration::from_millis(20);

fn address(host: u8, port: u16) -> SocketAddr {
    ([10, 0, 0, host], port).into()
}

struct Pair {
    now: Instant,
    /// Client and server.
    ends: [Tunnel; 2],
    /// When it arrives, at which end, over which path.
    air: VecDeque<(Instant, usize, usize, Vec<u8>)>,
    cut: [bool; PATHS],
    /// One packet out of this number is lost over the first path.
    loses: Option<u64>,
    packets: [u64; PATHS],
    /// Bits a second and delay of each path, if they are not as quick as [`WAY`] and without a limit.
    narrow: Option<[(u64, Duration); PATHS]>,
    /// When all that a path has taken has left, by end and path.
    busy: [[Instant; PATHS]; 2],
    /// What came out for applications at each end, and when.
    came: [Vec<(Instant, Vec<u8>)>; 2],
    told: Vec<TunnelEvent>,
}

impl Pair {
    fn new(options: &SctpOptions) -> Self {
        let settings = Settings { lifetime: Duration::from_millis(200), ..Settings::default() };
        let mut ends = ["client", "server"].map(|name| {
            let forwards = vec![(address(9, 5000), Class::default())];
            Tunnel::over_sctp(options, Rng::from_seed(5).stream(name), settings.clone(), forwards).unwrap()
        });
        let now = Instant::from_millis(1);
        ends[0].add_entrance(ENTRANCE, 0, Class::default());
        ends[1].serve(SocketId(0), SctpOptions::PORT).unwrap();
        for path in 0..PATHS {
            let route = Route::new(SocketId(path as u16), address(2, 9000));
            if path == 0 {
                ends[0].dial(now, route, SctpOptions::PORT);
            } else {
                ends[0].join(now, route);
            }
        }
        let (air, came) = (VecDeque::new(), [Vec::new(), Vec::new()]);
        let mut pair = Self {
            now,
            ends,
            air,
            cut: [false; PATHS],
            loses: None,
            packets: [0; PATHS],
            narrow: None,
            busy: [[now; PATHS]; 2],
            came,
            told: Vec::new(),
        };
        pair.run(Duration::from_secs(2));
        assert!(pair.told.iter().any(|it| matches!(it, TunnelEvent::Connected(_))), "{:?}", pair.told);
        pair
    }

    fn settle(&mut self) {
        let mut buf = Vec::new();
        for at in 0..2 {
            while let Some(Transmit { route, segment_size, .. }) = self.ends[at].poll_transmit(self.now, &mut buf) {
                if route.socket >= ENTRANCE {
                    self.came[at].push((self.now, buf.clone()));
                    continue;
                }
                // The client's sockets have an address each.
                let path = if at == 0 { usize::from(route.socket.0) } else { usize::from(route.remote.port() - 7000) };
                for packet in buf.chunks(segment_size.unwrap_or(buf.len())) {
                    self.packets[path] += 1;
                    let lost = path == 0 && self.loses.is_some_and(|each| self.packets[0].is_multiple_of(each));
                    let Some(arrival) = self.arrival(at, path, packet.len()) else { continue };
                    if !self.cut[path] && !lost {
                        let place = self.air.partition_point(|(before, ..)| *before <= arrival);
                        self.air.insert(place, (arrival, 1 - at, path, packet.to_vec()));
                    }
                }
            }
            while let Some(event) = self.ends[at].poll_event() {
                if let TunnelEvent::WantSocket(link, flow, _) = event {
                    self.ends[at].give_socket(link, flow, EXIT);
                }
                self.told.push(event);
            }
        }
    }

    /// When a packet that leaves now arrives; `None` if the path's queue of 300 ms is full.
    fn arrival(&mut self, at: usize, path: usize, len: usize) -> Option<Instant> {
        let Some((rate, delay)) = self.narrow.map(|narrow| narrow[path]) else { return Some(self.now + WAY) };
        let busy = &mut self.busy[at][path];
        let begins = (*busy).max(self.now);
        if begins > self.now + Duration::from_millis(300) {
            return None;
        }
        *busy = begins + Duration::from_nanos((len as u64 + 28) * 8 * 1_000_000_000 / rate);
        Some(*busy + delay)
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while self.now < end {
            self.now += Duration::from_millis(1);
            while self.air.front().is_some_and(|(at, ..)| *at <= self.now) {
                let Some((_, to, path, packet)) = self.air.pop_front() else { break };
                let route = match to {
                    0 => Route::new(SocketId(path as u16), address(2, 9000)),
                    _ => Route::new(SocketId(0), address(1, 7000 + path as u16)),
                };
                let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &packet };
                self.ends[to].handle_datagram(self.now, datagram);
            }
            for at in 0..2 {
                if self.ends[at].poll_timeout().is_some_and(|due| due <= self.now) {
                    self.ends[at].handle_timeout(self.now);
                }
            }
            self.settle();
        }
    }

    /// The application at the client sends `count` datagrams of `len` bytes, one each 20 ms; how
    /// many come out at the server, and the longest that one took.
    fn speak(&mut self, count: usize, len: usize) -> (usize, Duration) {
        self.came[1].clear();
        for n in 0..count {
            let mut payload = vec![0; len];
            payload[..8].copy_from_slice(&self.now.as_nanos().to_be_bytes());
            let route = Route::new(ENTRANCE, address(8, 1 + (n % 3) as u16));
            self.ends[0].handle_datagram(self.now, Datagram { route, ecn: Ecn::NotEct, payload: &payload });
            self.run(Duration::from_millis(20));
        }
        self.run(Duration::from_millis(500));
        let took = |(at, bytes): &(Instant, Vec<u8>)| {
            let sent = Instant::from_nanos(u64::from_be_bytes(*bytes.first_chunk().unwrap()));
            at.since(sent)
        };
        (self.came[1].len(), self.came[1].iter().map(took).max().unwrap_or_default())
    }
}

#[test]
fn datagrams_of_any_length_come_in_time_over_two_paths_of_which_one_is_cut() {
    let mut pair = Pair::new(&SctpOptions::default());
    assert_eq!(pair.speak(50, 160).0, 50);
    assert_eq!(pair.speak(20, 9000).0, 20, "as many packets as it takes");
    pair.cut = [true, false];
    let (came, longest) = pair.speak(250, 160);
    assert!(came >= 245, "{came} of 250");
    assert!(longest <= Duration::from_millis(200), "{longest:?}: later they are useless");
    pair.cut = [false, false];
    pair.run(Duration::from_secs(5));
    let ups = pair.told.iter().filter(|it| matches!(it, TunnelEvent::Path(_, _, true))).count();
    assert!(ups > 0, "{:?}", pair.told);
    pair.cut = [false, true];
    assert!(pair.speak(250, 160).0 >= 240);
    assert!(!pair.told.iter().any(|it| matches!(it, TunnelEvent::Disconnected(..))), "{:?}", pair.told);
}

#[test]
fn answers_come_back_and_redundancy_makes_up_for_losses() {
    let options = SctpOptions { redundancy: Redundancy::Auto, ..SctpOptions::default() };
    let mut pair = Pair::new(&options);
    pair.loses = Some(12);
    assert!(pair.speak(300, 400).0 >= 297);
    let route = Route::new(EXIT, address(9, 5000));
    pair.ends[1].handle_datagram(pair.now, Datagram { route, ecn: Ecn::NotEct, payload: b"well?" });
    pair.run(Duration::from_millis(300));
    assert!(pair.came[0].iter().any(|(_, bytes)| bytes == b"well?"));
}

#[test]
fn applications_are_told_what_they_may_send() {
    let mut pair = Pair::new(&SctpOptions::default());
    let told = |pair: &Pair, end: usize| {
        let (_, link) = pair.ends[end].links().next().unwrap();
        pair.ends[end].rate_report(pair.now, link)
    };
    let before = told(&pair, 0).unwrap();
    assert_eq!((before.rate, before.frame_interval_ms, before.is_floor), (1e6, 40.0, true));
    // 4 Mbit/s, whatever was told: the network carries them. Who sends nothing is told no more than at first.
    for _ in 0..3_000 {
        let route = Route::new(ENTRANCE, address(8, 1));
        pair.ends[0].handle_datagram(pair.now, Datagram { route, ecn: Ecn::NotEct, payload: &[0; 500] });
        pair.run(Duration::from_millis(1));
    }
    let (sends, listens) = (told(&pair, 0).unwrap(), told(&pair, 1).unwrap());
    assert!(sends.rate > 4e6 && sends.next_frame_bits > 150_000, "{sends:?}");
    assert_eq!(listens.rate, 1e6, "{listens:?}");
    pair.ends[0].close(pair.now);
    pair.run(Duration::from_secs(1));
    assert_eq!(told(&pair, 0), None);
    assert_eq!((pair.ends[0].no_rate().next_frame_bits, pair.ends[0].no_rate().rate), (0, 1e5));
}

#[test]
fn a_tunnel_says_goodbye() {
    let mut pair = Pair::new(&SctpOptions::default());
    pair.speak(5, 100);
    let now = pair.now;
    pair.ends[0].close(now);
    pair.run(Duration::from_secs(1));
    assert!(pair.ends.iter().all(Tunnel::is_closed));
    let agreed = |it: &TunnelEvent| matches!(it, TunnelEvent::Disconnected(_, farewell) if farewell.agreed);
    assert_eq!(pair.told.iter().filter(|it| agreed(it)).count(), 2, "{:?}", pair.told);
}

/// Video of 25 frames and `kbit` a second, and voice, through a tunnel over two paths: the shares of
/// voice and of whole frames that come within 200 ms.
fn conference(options: &SctpOptions, kbit: usize, paths: [(u64, u64); PATHS], loses: Option<u64>) -> (f64, f64) {
    const SECONDS: u64 = 30;
    let mut pair = Pair::new(options);
    pair.narrow = Some(paths.map(|(kbit, delay)| (kbit * 1000, Duration::from_millis(delay))));
    pair.loses = loses;
    let began = pair.now;
    let parts = kbit * 1000 / 25 / 8 / 1100;
    let mut say = |pair: &mut Pair, port: u16, number: u64, len: usize| {
        let mut payload = vec![0; len];
        payload[..8].copy_from_slice(&pair.now.as_nanos().to_be_bytes());
        payload[8..16].copy_from_slice(&number.to_be_bytes());
        let route = Route::new(ENTRANCE, address(8, port));
        pair.ends[0].handle_datagram(pair.now, Datagram { route, ecn: Ecn::NotEct, payload: &payload });
    };
    for n in 0..SECONDS * 50 {
        say(&mut pair, 1, u64::MAX, 160);
        if n % 2 == 0 {
            (0..parts).for_each(|_| say(&mut pair, 2, n, 1100));
        }
        pair.run(Duration::from_millis(20));
    }
    pair.run(Duration::from_millis(500));
    let (mut voice, mut frames) = (0, std::collections::BTreeMap::new());
    for (at, bytes) in &pair.came[1] {
        let [sent, number] = [0, 8].map(|from| u64::from_be_bytes(*bytes[from..].first_chunk().unwrap()));
        if at.since(Instant::from_nanos(sent)) <= Duration::from_millis(200) {
            *(if number == u64::MAX { &mut voice } else { frames.entry(number).or_insert(0) }) += 1;
        }
    }
    assert!(pair.now.since(began) >= Duration::from_secs(SECONDS));
    let whole = frames.values().filter(|count| **count == parts).count();
    (f64::from(voice) / (SECONDS * 50) as f64, whole as f64 / (SECONDS * 25) as f64)
}

#[test]
fn what_a_tunnel_runs_by_itself_brings_more_in_time_than_plain_paths() {
    let plain = SctpOptions {
        redundancy: Redundancy::None,
        reinject: false,
        scheduler: SchedulerKind::default(),
        congestion: Algorithm::Veno,
        ..SctpOptions::default()
    };
    let mut sums = [(0.0, 0.0); 2];
    for (name, kbit, paths, loses) in [
        ("enough", 700, [(1000, 20), (800, 30)], None),
        ("lossy", 700, [(1000, 20), (800, 30)], Some(30)),
        ("unlike", 700, [(1000, 15), (600, 90)], Some(50)),
        ("narrow", 1300, [(1000, 20), (600, 40)], Some(100)),
    ] {
        let figures = [&plain, &SctpOptions::default()].map(|options| conference(options, kbit, paths, loses));
        println!("{name}: voice, frames in time: plain {:.4?}, profile {:.4?}", figures[0], figures[1]);
        sums.iter_mut().zip(figures).for_each(|(sum, it)| *sum = (sum.0 + it.0 / 4.0, sum.1 + it.1 / 4.0));
    }
    println!("mean: {sums:.4?}");
}
