//! RIST, both ends ours, over the simulator's networks.

use crate::common::ms;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_gateway::rist::wire::rtcp::{Composer, Item, Items};
use braidcast_gateway::rist::{Endpoint, Event, Options, Profile, Refusal, Report, Secret};
use braidcast_gateway::rtp::Header;
use braidcast_gateway::srt::KeyLength;
use braidcast_sim::link::{Jitter, LinkModel, Loss, Reorder, ReorderHow};
use braidcast_sim::testing::{Seed, seed_from_env};
use braidcast_sim::{Duplex, LinkId, Network, NodeId};
use core::time::Duration;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

const SENDER: [&str; 2] = ["10.0.0.1:1000", "10.0.0.1:1001"];
const RECEIVER: [&str; 2] = ["10.0.0.2:2000", "10.0.0.2:2001"];

/// A sender, a receiver, and a link between each two of their sockets.
struct Pair {
    net: Network<Endpoint>,
    nodes: [NodeId; 2],
    links: Vec<(LinkId, LinkId)>,
    events: [Vec<Event>; 2],
    sent: Vec<Instant>,
    /// Number of each payload, when it was delivered and when it was due.
    got: Vec<(u64, Instant, Instant)>,
    _seed: Seed,
}

fn receiver(options: Options, rng: &Rng, now: Instant) -> Endpoint {
    Endpoint::receiver(now, options, rng.stream("receiver"))
}

impl Pair {
    fn new(sender: Options, receiving: Options, link: &LinkModel) -> Self {
        let seed = seed_from_env(1);
        let rng = Rng::from_seed(seed.get());
        let mut net = Network::new(seed.get());
        let to = RECEIVER[0].parse().unwrap();
        let sender = net.add(Endpoint::sender(Instant::ZERO, to, sender, rng.stream("sender")), SENDER);
        let receiver = net.add(receiver(receiving, &rng, Instant::ZERO), RECEIVER);
        let links = (0..2).map(|n| net.connect((sender, n), (receiver, n), Duplex::both(link.clone()))).collect();
        let (events, sent, got) = (Default::default(), vec![], vec![]);
        Self { net, nodes: [sender, receiver], links, events, sent, got, _seed: seed }
    }

    /// Runs in steps of a millisecond; sends a payload in each.
    fn run(&mut self, duration: Duration) {
        let end = self.net.now() + duration;
        let mut buf = Vec::new();
        while self.net.now() < end {
            self.net.run_for(ms(1));
            let now = self.net.now();
            let mut payload = [0x47; 1316];
            payload[1..9].copy_from_slice(&(self.sent.len() as u64).to_be_bytes());
            self.sent.push(now);
            self.net.with(self.nodes[0], |endpoint, now| endpoint.push(now, &payload));
            while let Some((_, due)) = self.net.with(self.nodes[1], |endpoint, now| endpoint.deliver(now, &mut buf)) {
                assert_eq!((buf.len(), buf[0], buf[1315]), (1316, 0x47, 0x47));
                self.got.push((u64::from_be_bytes(buf[1..9].try_into().unwrap()), now, due));
            }
            for (node, events) in self.nodes.into_iter().zip(&mut self.events) {
                events.extend(std::iter::from_fn(|| self.net.poll_event(node)));
            }
        }
    }

    fn report(&self, which: usize) -> Report {
        self.net.node(self.nodes[which]).report().expect("a stream")
    }

    /// Shortest and longest time from push to delivery.
    fn delays(&self) -> (Duration, Duration) {
        let delays = self.got.iter().map(|(number, at, _)| *at - self.sent[*number as usize]);
        (delays.clone().min().unwrap(), delays.max().unwrap())
    }

    /// All that was sent since the first that came is there, but for `missing`.
    fn whole(&self, missing: u64) {
        assert!(self.got.is_sorted_by(|a, b| a.0 < b.0), "in order, once");
        let span = self.got.last().unwrap().0 - self.got[0].0 + 1;
        assert!(span - self.got.len() as u64 <= missing, "{} of {span} came", self.got.len());
    }

    fn set_down(&mut self, down: bool) {
        for (there, back) in self.links.clone() {
            self.net.set_down(there, down);
            self.net.set_down(back, down);
        }
    }
}

fn link() -> LinkModel {
    LinkModel::wire(100_000_000, ms(20))
}

fn options(latency: u64) -> Options {
    Options { latency: ms(latency), ..Options::default() }
}

fn keyed(secret: &str, key_length: KeyLength) -> Options {
    Options { secret: Some(Secret::new(secret.into()).unwrap()), key_length, ..options(300) }
}

#[test]
fn a_clean_link_holds_the_latency_to_the_millisecond_for_minutes_in_each_profile() {
    for profile in [Profile::Simple, Profile::Main] {
        let mut pair = Pair::new(Options { profile, ..options(300) }, options(300), &link());
        pair.run(Duration::from_secs(100));
        pair.whole(0);
        let (least, most) = pair.delays();
        assert!(least >= ms(319) && most <= ms(323), "{least:?} to {most:?}");
        assert!(pair.got.iter().all(|(_, at, due)| *due <= *at && *at - *due <= ms(2)));
        let (sent, received) = (pair.report(0), pair.report(1));
        assert_eq!((sent.sent.repeated, received.received.missing, received.received.useless), (0, 0, 0));
        assert!((ms(39)..ms(43)).contains(&received.rtt), "{:?}", received.rtt);
        assert_eq!((received.profile, received.key_bytes, &received.name[..]), (profile, 0, "braidcast"));
        assert_eq!(pair.events, [vec![Event::Came(1)], vec![Event::Came(1)]]);
    }
}

#[test]
fn five_percent_of_loss_are_repaired_with_each_length_of_keys() {
    for key_length in [KeyLength::Aes128, KeyLength::Aes256] {
        let model = LinkModel { loss: Loss::Uniform(0.05), ..link() };
        let mut pair = Pair::new(keyed("correct horse", key_length), keyed("correct horse", KeyLength::Aes128), &model);
        pair.run(Duration::from_secs(20));
        // Six or seven round trips: of 20,000 packets none is lost as often.
        pair.whole(1);
        let (sent, received) = (pair.report(0).sent, pair.report(1));
        assert!(received.received.missing > 700 && received.received.undecrypted == 0, "{received:?}");
        assert_eq!(received.key_bytes, key_length.bytes());
        assert!(sent.repeated < received.received.missing * 3 / 2, "{sent:?} {received:?}");
    }
}

#[test]
fn jitter_reordering_and_duplicates_do_not_double_the_rate() {
    let reorder = Reorder { share: 0.3, how: ReorderHow::LateBy { mean: ms(30), spread: ms(10) } };
    let model = LinkModel { reorder, jitter: Jitter::Uniform(ms(2)), duplicate: 0.02, ..link() };
    let mut pair = Pair::new(options(300), options(300), &model);
    pair.run(Duration::from_secs(10));
    pair.whole(0);
    let (sent, received) = (pair.report(0).sent, pair.report(1));
    assert!(sent.repeated * 50 < sent.packets, "{sent:?}");
    assert!((ms(20)..=ms(100)).contains(&received.reordering), "{:?}", received.reordering);
    assert!(received.received.useless > 100);
}

#[test]
fn an_outage_that_is_shorter_than_the_latency_loses_nothing() {
    let mut pair = Pair::new(options(3000), options(3000), &link());
    pair.run(ms(4000));
    for down in [true, false] {
        pair.set_down(down);
        pair.run(ms(if down { 1000 } else { 6000 }));
    }
    pair.whole(0);
}

#[test]
fn a_sender_that_begins_anew_is_followed_and_is_another_stream() {
    let mut pair = Pair::new(options(300), options(300), &link());
    pair.run(ms(3000));
    // Another source and other numbers, at once.
    let rng = Rng::from_seed(99);
    let to = RECEIVER[0].parse().unwrap();
    let now = pair.net.now();
    pair.net.with(pair.nodes[0], |endpoint, _| *endpoint = Endpoint::sender(now, to, options(300), rng));
    let before = pair.got.len();
    pair.run(ms(3000));
    assert!(pair.got.len() > before + 1500, "{} of 3000", pair.got.len() - before);
    let refused = pair.events[1].iter().any(|it| matches!(it, Event::Refused { why: Refusal::Busy, .. }));
    assert!(refused && pair.events[1].ends_with(&[Event::Replaced(1), Event::Came(2)]), "{:?}", pair.events[1]);
    // Silence ends it.
    let quiet = Endpoint::receiver(now, options(300), Rng::from_seed(1));
    pair.net.with(pair.nodes[0], |endpoint, _| *endpoint = quiet);
    pair.run(ms(6000));
    assert_eq!(pair.events[1].last(), Some(&Event::Went(2)));
}

#[test]
fn who_does_not_fit_is_refused_with_its_reason_and_once_a_second() {
    let main = |latency| Options { profile: Profile::Main, ..options(latency) };
    let secret = |text| keyed(text, KeyLength::Aes128);
    for (sender, receiving, why) in [
        (secret("wrong horse"), secret("correct horse"), Refusal::WrongSecret),
        (main(300), secret("correct horse"), Refusal::Clear),
        (options(300), secret("correct horse"), Refusal::Clear),
        (secret("correct horse"), options(300), Refusal::Encrypted),
    ] {
        let mut pair = Pair::new(sender, receiving, &link());
        pair.run(ms(3500));
        let peer = SENDER.map(|addr| addr.parse().unwrap());
        let fits = |it: &Event| matches!(it, Event::Refused { peer: from, why: reason } if peer.contains(from) && *reason == why);
        assert!(pair.got.is_empty() && pair.events[1].iter().all(fits), "{:?}", pair.events[1]);
        assert!((3..=4).contains(&pair.events[1].len()), "{:?}", pair.events[1]);
    }
}

#[test]
fn strangers_neither_fill_memory_nor_slow_the_stream() {
    let mut pair =
        Pair::new(keyed("correct horse", KeyLength::Aes128), keyed("correct horse", KeyLength::Aes128), &link());
    pair.run(ms(2000));
    let (receiver, mut rng) = (pair.nodes[1], Rng::from_seed(5));
    let refused = |pair: &Pair| pair.report(1).received.undecrypted;
    for n in 0..3000_u32 {
        // From 3000 addresses: tunnels with any key, RTCP and RTP in clear, and garbage.
        let from = SocketAddr::from(([10, 9, (n >> 8) as u8, n as u8], 7));
        let mut bytes = match n % 4 {
            0 => vec![0x30, 0x08, 0x88, 0xb6],
            1 => vec![0x80, 200, 0, 6],
            2 => vec![0x80, 33, n as u8, 1],
            _ => vec![],
        };
        let start = bytes.len();
        bytes.resize(1200, 0);
        rng.fill(&mut bytes[start..]);
        for socket in 0..2 {
            let route = Route::new(SocketId(socket), from);
            let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &bytes };
            pair.net.with(receiver, |endpoint, now| endpoint.handle_datagram(now, datagram));
        }
        if n % 3 == 0 {
            pair.run(ms(1));
        }
    }
    pair.run(ms(2000));
    pair.whole(0);
    let (least, most) = pair.delays();
    assert!(most - least <= ms(4), "{least:?} to {most:?}");
    assert!(refused(&pair) >= 700, "{}", refused(&pair));
    // One stream, and a word a second for each reason.
    let came = pair.events[1].iter().filter(|it| matches!(it, Event::Came(_))).count();
    assert!(came == 1 && pair.events[1].len() < 10, "{:?}", pair.events[1]);
    assert_eq!(pair.report(1).remotes, [SENDER[0].parse().unwrap()]);
}

#[test]
fn numbers_that_begin_anew_are_another_stream_and_late_copies_are_not() {
    let mut receiver = Endpoint::receiver(Instant::ZERO, options(200), Rng::from_seed(1));
    let (mut buf, mut got) = (Vec::new(), Vec::new());
    let mut send = |receiver: &mut Endpoint, at: u64, sequence: u16| {
        let mut packet = Vec::new();
        Header::of_ts(sequence, at as u32 * 90, 8).write(&mut packet);
        packet.extend([0x47; 188]);
        let (now, route) = (Instant::from_millis(at), Route::new(SocketId(0), SENDER[0].parse().unwrap()));
        receiver.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &packet });
        receiver.handle_timeout(now);
        got.extend(std::iter::from_fn(|| receiver.deliver(now, &mut buf).map(|(stream, _)| stream)));
        got.len()
    };
    for n in 0..100 {
        send(&mut receiver, n * 10, 40_000 + n as u16);
    }
    // All of them again, while new ones come.
    let before =
        (0..100).map(|n| send(&mut receiver, 1000 + n * 10, 40_000 + [n, 100 + n][n as usize % 2] as u16)).max();
    assert!(before.unwrap() < 160 && receiver.report().unwrap().stream == 1);
    // The same source, and other numbers.
    let after = (0..300).map(|n| send(&mut receiver, 2000 + n * 10, 20_000 + n as u16)).max();
    assert!(after.unwrap() > before.unwrap() + 150 && receiver.report().unwrap().stream == 2);
}

/// A receiver without a secret, a stream that has source 8, and what is counted of each address.
struct Open {
    receiver: Endpoint,
    came: BTreeMap<IpAddr, usize>,
    sent: BTreeMap<IpAddr, usize>,
    /// Who was asked for missing packets, once for each request.
    asked: Vec<IpAddr>,
    /// Which of the sender's reports came last, as each of the receiver's says.
    last_reports: Vec<u32>,
}

impl Open {
    fn new() -> Self {
        let receiver = Endpoint::receiver(Instant::ZERO, options(1000), Rng::from_seed(1));
        let (came, sent) = (BTreeMap::new(), BTreeMap::new());
        Self { receiver, came, sent, asked: Vec::new(), last_reports: Vec::new() }
    }

    fn hear(&mut self, now: Instant, socket: u16, from: SocketAddr, bytes: &[u8]) {
        let route = Route::new(SocketId(socket), from);
        *self.came.entry(from.ip()).or_default() += bytes.len() + 28;
        self.receiver.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: bytes });
        self.drain(now);
    }

    fn drain(&mut self, now: Instant) {
        let mut buf = Vec::new();
        self.receiver.handle_timeout(now);
        while self.receiver.deliver(now, &mut buf).is_some() {}
        while let Some(transmit) = self.receiver.poll_transmit(now, &mut buf) {
            let to = transmit.route.remote.ip();
            *self.sent.entry(to).or_default() += buf.len() + 28;
            self.asked.extend(Items::new(&buf).any(|item| matches!(item, Item::Missing(_))).then_some(to));
            // A receiver report of one block, and there its sixth word (RFC 3550 §6.4.1).
            if buf[..2] == [0x81, 201] {
                self.last_reports.push(u32::from_be_bytes(buf[24..28].try_into().unwrap()));
            }
        }
    }

    /// The stream's packet of this number, and its sender's report.
    fn stream(&mut self, now: Instant, sequence: u16) {
        let from: [SocketAddr; 2] = SENDER.map(|addr| addr.parse().unwrap());
        let mut packet = Vec::new();
        Header::of_ts(sequence, (now.as_micros() * 9 / 100) as u32, 8).write(&mut packet);
        packet.extend([0x47; 188]);
        self.hear(now, 0, from[0], &packet);
        if sequence.is_multiple_of(10) {
            let mut report = Vec::new();
            Composer::new(8, &mut report).sender_report(0, 0, 0, 0);
            self.hear(now, 1, from[1], &report);
        }
    }
}

/// The shortest RTCP with the stream's source.
fn shortest() -> Vec<u8> {
    let mut bytes = Vec::new();
    Composer::new(8, &mut bytes).receiver_report(None);
    bytes
}

#[test]
fn nobody_has_more_than_three_times_the_bytes_sent_to_an_address_that_is_not_theirs() {
    let mut open = Open::new();
    let start = |n: u64| Instant::from_millis(10 * n);
    for n in 0..3000_u64 {
        // Every fifth is lost, and never comes.
        if n % 5 != 0 || n % 10 == 0 {
            open.stream(start(n), n as u16);
        }
        // In the names of 500 addresses, over some ports of each; one of them has RTP in its name too.
        let from = SocketAddr::from(([192, 0, 2 + (n % 500 / 250) as u8, (n % 250) as u8], 7 + (n / 500) as u16 % 3));
        open.hear(start(n), 1, from, &shortest());
        let remotes = open.receiver.report().unwrap().remotes.len();
        assert!(remotes <= 16, "{remotes}");
    }
    for (ip, sent) in &open.sent {
        assert!(*sent <= 3 * open.came[ip], "{sent} bytes to {ip} for {}", open.came[ip]);
    }
    let sender: IpAddr = SENDER[0].parse::<SocketAddr>().unwrap().ip();
    let asked = open.asked.iter().filter(|ip| **ip == sender).count();
    assert!(asked * 2 > open.asked.len() && asked > 250, "{asked} of {}", open.asked.len());
}

#[test]
fn who_claims_to_send_the_stream_takes_no_place_of_who_does() {
    let mut open = Open::new();
    let at = |n: u64| Instant::from_millis(10 * n);
    open.stream(at(0), 1);
    for n in 1..400_u64 {
        // Before the sender's first report they hold all places, and they stay.
        for host in 0..16 {
            open.hear(at(n), 1, SocketAddr::from(([192, 0, 2, host], 7)), &shortest());
        }
        if n % 5 != 2 {
            open.stream(at(n), 1 + n as u16);
        }
        if n == 9 {
            open.asked.clear(); // Only now the sender has said where it hears requests.
        }
    }
    let sender: IpAddr = SENDER[0].parse::<SocketAddr>().unwrap().ip();
    assert!(open.asked.len() > 50 && open.asked.iter().all(|ip| *ip == sender), "{:?}", open.asked);
}

#[test]
fn who_claims_once_holds_no_place_for_longer_than_a_second() {
    let mut open = Open::new();
    let at = |n: u64| Instant::from_millis(10 * n);
    open.stream(at(0), 1);
    // As from the sender's own address, whose other ports nobody knows.
    let sender: SocketAddr = SENDER[1].parse().unwrap();
    (0..16).for_each(|n| open.hear(at(1), 1, SocketAddr::new(sender.ip(), 5000 + n), &shortest()));
    (2..300).filter(|n| n % 5 != 2).for_each(|n| open.stream(at(n), 1 + n as u16));
    assert!(open.receiver.report().unwrap().remotes.contains(&sender));
}

#[test]
fn a_report_behind_that_of_another_source_changes_nothing() {
    let mut open = Open::new();
    let report = |first: u32, behind: u64| {
        let mut bytes = Vec::new();
        Composer::new(first, &mut bytes).receiver_report(None);
        Composer::new(8, &mut bytes).sender_report(behind << 16, 0, 0, 0);
        bytes
    };
    for n in 0..100 {
        let now = Instant::from_millis(10 * n);
        open.stream(now, 1 + 10 * n as u16);
        open.hear(now, 1, SENDER[1].parse().unwrap(), &report(8, 5));
        open.hear(now, 1, "192.0.2.1:7".parse().unwrap(), &report(10, 9));
    }
    let (_, later) = open.last_reports.split_at(1);
    assert!(later.len() > 5 && later.iter().all(|it| *it == 5), "{later:?}");
}

#[test]
fn one_victim_gets_no_reports_for_a_word_in_its_name() {
    let mut open = Open::new();
    let victim: SocketAddr = "192.0.2.1:7".parse().unwrap();
    for n in 0..400_u64 {
        // Two of three are lost.
        if n % 3 == 0 {
            open.stream(Instant::from_millis(10 * n), n as u16);
        }
        if n == 50 {
            open.hear(Instant::from_millis(500), 1, victim, &shortest());
        }
        open.drain(Instant::from_millis(10 * n + 5));
    }
    let (came, sent) = (open.came[&victim.ip()], open.sent.get(&victim.ip()).copied().unwrap_or(0));
    assert!(sent <= 3 * came, "{sent} bytes for {came}");
}

#[test]
fn a_clock_is_followed_although_nobody_tells_the_round_trip() {
    let mut receiver = Endpoint::receiver(Instant::ZERO, options(200), Rng::from_seed(1));
    let mut buf = Vec::new();
    for n in 0..10_000_u64 {
        // The sender's clock is late by one in a thousand: 100 ms in all.
        let (at, timestamp) = (n * 10, (n * 10 * 90 * 999 / 1000) as u32);
        let mut packet = Vec::new();
        Header::of_ts(n as u16, timestamp, 8).write(&mut packet);
        packet.extend([0x47; 188]);
        let (now, route) = (Instant::from_millis(at), Route::new(SocketId(0), SENDER[0].parse().unwrap()));
        receiver.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &packet });
        receiver.handle_timeout(now);
        while receiver.deliver(now, &mut buf).is_some() {}
    }
    assert_eq!(receiver.report().unwrap().received.skipped, 0);
    let held = held_by(&mut receiver, Instant::from_millis(99_990));
    assert!((ms(180)..=ms(210)).contains(&held), "{held:?}");
}

/// How long after `now` the last payload is due.
fn held_by(receiver: &mut Endpoint, now: Instant) -> Duration {
    let mut buf = Vec::new();
    let later = now + Duration::from_secs(1);
    let due = std::iter::from_fn(|| receiver.deliver(later, &mut buf)).last().expect("a payload").1;
    due.since(now)
}

#[test]
fn only_the_stream_s_sender_says_what_the_round_trip_is() {
    let mut open = Open::new();
    let now = Instant::from_millis(20_000);
    open.stream(now, 0);
    let answer = |source: u32, ago: Duration| {
        let mut bytes = Vec::new();
        let asked = now.as_nanos() - ago.as_nanos() as u64;
        let stamp = ((u128::from(asked) << 32) / 1_000_000_000) as u64;
        let mut to = Composer::new(source, &mut bytes);
        if source != 0 {
            to.receiver_report(None);
        }
        to.echo_answer(source, stamp);
        bytes
    };
    let rtt = |open: &Open| open.receiver.report().unwrap().rtt;
    let stranger: SocketAddr = "192.0.2.1:7".parse().unwrap();
    for source in [0, 10] {
        open.hear(now, 1, stranger, &answer(source, ms(5000)));
        assert_eq!(rtt(&open), ms(100));
    }
    open.hear(now, 1, SENDER[1].parse().unwrap(), &answer(8, ms(40)));
    assert!(rtt(&open).abs_diff(ms(40)) < ms(1), "{:?}", rtt(&open));
}

/// A sender of the simple profile that has sent as many packets, and the number of the first.
fn sender_of(packets: u16) -> (Endpoint, u16) {
    let now = Instant::from_millis(1000);
    let mut sender = Endpoint::sender(now, RECEIVER[0].parse().unwrap(), options(1000), Rng::from_seed(1));
    let mut first = None;
    for _ in 0..packets {
        sender.push(now, &[0x47; 188]);
        for packet in sent(&mut sender, now) {
            first.get_or_insert(u16::from_be_bytes([packet[2], packet[3]]));
        }
    }
    (sender, first.unwrap())
}

fn sent(endpoint: &mut Endpoint, now: Instant) -> Vec<Vec<u8>> {
    let mut buf = Vec::new();
    std::iter::from_fn(|| endpoint.poll_transmit(now, &mut buf).map(|_| buf.clone())).collect()
}

fn ask(sender: &mut Endpoint, now: Instant, ranges: &[&[(u16, u16)]]) -> Vec<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut to = Composer::new(0, &mut bytes);
    to.receiver_report(None);
    ranges.iter().for_each(|ranges| to.missing(0, ranges));
    let route = Route::new(SocketId(1), RECEIVER[1].parse().unwrap());
    sender.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: &bytes });
    sent(sender, now)
}

#[test]
fn one_datagram_asks_for_4096_packets_at_most() {
    let (mut sender, _) = sender_of(1);
    ask(&mut sender, Instant::from_millis(1000), &[&[(0, u16::MAX)][..]; 40]);
    assert_eq!(sender.report().unwrap().sent.asked, 4096);
}

#[test]
fn copies_that_find_no_room_are_not_counted_and_sent_when_they_are_asked_for_again() {
    let (mut sender, first) = sender_of(600);
    let now = Instant::from_millis(1000);
    let copies = ask(&mut sender, now, &[&[(first, 599)]]).len();
    assert_eq!((copies, sender.report().unwrap().sent.repeated), (512, 512));
    let copies = ask(&mut sender, now, &[&[(first, 599)]]).len();
    assert_eq!((copies, sender.report().unwrap().sent.repeated), (88, 600));
}

#[test]
fn who_was_not_heard_lately_is_not_asked_for_what_is_missing() {
    let mut open = Open::new();
    let gone: SocketAddr = "192.0.2.1:7".parse().unwrap();
    for n in 0..400_u64 {
        let now = Instant::from_millis(10 * n);
        if n % 5 != 1 {
            open.stream(now, n as u16);
        }
        // Another address of the sender, up to half a second.
        if n < 50 {
            let mut bytes = shortest();
            Composer::new(8, &mut bytes).name(&"x".repeat(200));
            open.hear(now, 1, gone, &bytes);
        }
        if n == 250 {
            open.asked.clear();
        }
    }
    assert!(open.asked.len() > 20 && !open.asked.contains(&gone.ip()), "{:?}", open.asked);
}

#[test]
fn what_nobody_may_be_asked_for_yet_is_asked_for_as_soon_as_somebody_may() {
    let mut receiver = Endpoint::receiver(Instant::ZERO, options(1000), Rng::from_seed(1));
    // Media comes from one host, and reports from another, to which little may be sent for what it brings.
    let [media, reports] = [(0, SENDER[0]), (1, "192.0.2.1:7")]
        .map(|(socket, remote)| Route::new(SocketId(socket), remote.parse().unwrap()));
    let mut asked = Vec::new();
    for n in 0..100_u64 {
        let now = Instant::from_millis(10 * n);
        let mut hear = |route, bytes: &[u8]| {
            receiver.handle_datagram(now, Datagram { route, ecn: Ecn::NotEct, payload: bytes });
        };
        let mut packet = Vec::new();
        Header::of_ts(n as u16, (n * 900) as u32, 8).write(&mut packet);
        packet.extend([0x47; 188]);
        if n != 20 {
            hear(media, &packet);
        }
        // The second one comes when nothing is left of what the first one allows for, and a packet is missing.
        if n == 5 || n == 25 {
            hear(reports, &shortest());
        }
        receiver.handle_timeout(now);
        let is_request = |bytes: &Vec<u8>| Items::new(bytes).any(|item| matches!(item, Item::Missing(_)));
        asked.extend(sent(&mut receiver, now).iter().filter(|bytes| is_request(bytes)).map(|_| n));
    }
    assert_eq!(asked.first(), Some(&25), "{asked:?}");
}
