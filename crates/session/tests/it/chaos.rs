//! Hours of random faults over three networks, which give other ports and prefixes, and a home that moves: a stream
//! flows again as soon as one of them works, a file arrives once, memory is flat.
//!
//! `make chaos` runs 24 hours of each; `CHAOS_HOURS` says how many, 2 without it, `BRAIDCAST_SEED` where to
//! begin. A failure prints both.

use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_media::{Kind, Run, Unit};
use braidcast_session::{ChannelId, Content, Event, Receiver, ReceiverOptions, Sender, SenderOptions};
use braidcast_sim::testing::seed_from_env;
use braidcast_sim::{Duplex, LinkId, LinkModel, Network, NodeId};
use core::time::Duration;
use std::net::SocketAddr;

const PORT: u16 = 9899;
const CHANNEL: ChannelId = ChannelId(0);
const NETWORKS: usize = 3;
/// The second half is what networks give the source in turns with the first.
const SOURCE: [&str; 2 * NETWORKS] =
    ["10.0.0.1:9899", "10.1.0.1:9899", "10.2.0.1:9899", "10.0.1.1:9899", "10.1.1.1:9899", "10.2.1.1:9899"];
const SINK: [&str; NETWORKS] = ["10.0.0.2:9899", "10.1.0.2:9899", "10.2.0.2:9899"];
/// Time from one unit to the next: a slow stream, so that a day takes a minute.
const PACE: Duration = Duration::from_millis(100);
/// Rates of the networks, bit/s, and their one-way delays, ms.
const LINKS: [(u64, u64); NETWORKS] = [(8_000_000, 15), (4_000_000, 40), (2_000_000, 150)];
/// A way that was replaced is left when the new one is up, or after this time.
const SIDE_BY_SIDE: Duration = Duration::from_secs(5);

/// How soon after network n works the stream must come out: six round trips, a second, the latency, and a unit.
fn back(n: usize) -> Duration {
    ms(12 * LINKS[n].1 + 1000 + 500 + 200)
}

/// How much longer it may take where large packets vanish, which has to be found out when the stream moves there.
const FOUND_NARROW: Duration = Duration::from_secs(5);
/// The same for a file, where what got lost before must come first.
const FILE_BACK: Duration = Duration::from_secs(30);

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Makes units of numbered packets for as long as it is asked to.
struct Source {
    sender: Sender,
    next: Instant,
    made: u64,
    reliable: bool,
    waiting: Option<Unit>,
    /// New ways that are not up yet, what they replace, and since when.
    moves: Vec<(Route, Route, Instant)>,
    ended: bool,
}

struct Sink {
    receiver: Receiver,
    buffer: Vec<u8>,
    last: Instant,
    /// The number of the next packet, in a file.
    expected: u64,
    came: u64,
    reliable: bool,
    ended: bool,
}

enum Node {
    Source(Box<Source>),
    Sink(Box<Sink>),
}

impl Source {
    fn unit(&mut self, now: Instant) -> Unit {
        let (kind, packets) = if self.reliable { (Kind::Data, 40) } else { (Kind::P, 4) };
        let bytes = (self.made..self.made + packets).flat_map(|n| {
            let mut packet = [0x47; 188];
            packet[4..12].copy_from_slice(&n.to_be_bytes());
            packet
        });
        let first = if self.reliable { self.made / packets } else { self.made };
        let count = if self.reliable { 1 } else { packets as u32 };
        let unit = Unit {
            kind,
            reference: true,
            continues: false,
            more: false,
            pid: 256,
            runs: vec![Run { first, count, null: false }],
            bytes: bytes.collect(),
            first_captured: now,
            last_captured: now,
            pts: None,
            dts: None,
        };
        self.made += packets;
        unit
    }

    /// Leaves the ways that are replaced by `these`.
    fn moved(&mut self, now: Instant, these: impl Fn(Route, Instant) -> bool) {
        for (_, old, _) in self.moves.extract_if(.., |(new, _, since)| these(*new, *since)) {
            self.sender.leave(now, old);
        }
    }

    fn after(&mut self, now: Instant) {
        while let Some(event) = self.sender.poll_event() {
            self.ended |= matches!(event, Event::Ended { .. });
            if let Event::PathUp(_, route) = event {
                self.moved(now, |new, _| new == route);
            }
            if event == Event::Room
                && let Some(unit) = self.waiting.take()
            {
                self.waiting = self.sender.push(now, unit);
            }
        }
        self.moved(now, |_, since| now - since > SIDE_BY_SIDE);
        while self.next <= now {
            self.next += PACE;
            if self.waiting.is_none() {
                let unit = self.unit(now);
                self.waiting = self.sender.push(now, unit);
            }
        }
    }
}

impl Sink {
    fn after(&mut self, now: Instant) {
        while self.receiver.poll_output(now, CHANNEL, &mut self.buffer) {
            self.last = now;
            for packet in self.buffer.chunks(188) {
                let n = u64::from_be_bytes(packet[4..12].try_into().unwrap());
                assert!(
                    if self.reliable { n == self.expected } else { n >= self.expected },
                    "{n} after {}",
                    self.expected
                );
                self.expected = n + 1;
                self.came += 1;
            }
            self.receiver.written(now, CHANNEL, self.came * 188);
        }
        while let Some((_, event)) = self.receiver.poll_event() {
            match &event {
                Event::Offered(offer) if offer.reliable => self.receiver.accept(now, CHANNEL, Content::default()),
                Event::Flush => self.receiver.flushed(now, CHANNEL),
                _ => {}
            }
            self.ended |= matches!(event, Event::Ended { .. });
        }
    }
}

impl Machine for Node {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Source(it) => {
                it.sender.handle_datagram(now, datagram);
                it.after(now);
            }
            Self::Sink(it) => {
                it.receiver.handle_datagram(now, datagram);
                it.after(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Source(it) => {
                it.sender.handle_timeout(now);
                it.after(now);
            }
            Self::Sink(it) => {
                it.receiver.handle_timeout(now);
                it.after(now);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Source(it) => it.sender.poll_transmit(now, buf),
            Self::Sink(it) => it.receiver.poll_transmit(now, buf),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Source(it) => [it.sender.poll_timeout(), Some(it.next)].into_iter().flatten().min(),
            Self::Sink(it) => it.receiver.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

/// What ails a network at the moment.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// Nothing gets through.
    Cut,
    /// Nothing gets there, answers get back.
    OneWay,
    /// The interface went down: the path has left, and joins when it is over.
    Bounce,
    /// Packets of more bytes vanish.
    Narrow(usize),
    /// Home is elsewhere, and its name says so when it is over.
    Moved,
}

/// Both ends of a network, as they see each other.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Ends {
    interface: u16,
    /// Where home sees the source.
    seen: SocketAddr,
    home: SocketAddr,
}

impl Ends {
    const fn route(&self) -> Route {
        Route::new(SocketId(self.interface), self.home)
    }
}

struct Chaos {
    net: Network<Node>,
    source: NodeId,
    sink: NodeId,
    links: Vec<(LinkId, LinkId)>,
    /// Nothing gets through.
    dead: LinkId,
    ends: Vec<Ends>,
    /// Home's port on a network, if the sender does not know it yet.
    next_home: [Option<u16>; NETWORKS],
    rng: Rng,
    /// What ails each network, and until when.
    faults: [Option<(Fault, Instant)>; NETWORKS],
    /// Since when a network has carried packets of any size without a break.
    good_since: [Option<Instant>; NETWORKS],
    /// When a network last dropped large packets.
    narrow_at: [Option<Instant>; NETWORKS],
    next_fault: Instant,
    worst: Duration,
    most_buffered: u64,
    /// Since the buffer was last looked at.
    steps: u32,
}

impl Chaos {
    fn new(seed: u64, reliable: bool) -> Self {
        let (mut net, rng) = (Network::new(seed), Rng::from_seed(seed));
        let route = |n: usize| Route::new(SocketId(n as u16), SINK[n].parse().unwrap());
        let routes: Vec<Route> = (0..NETWORKS).map(route).collect();
        let options = SenderOptions::default().with(|it| it.reliable = reliable);
        let sender = Sender::new(Instant::ZERO, options, rng.stream("source"), PORT, &routes).unwrap();
        let next = Instant::from_millis(500);
        let source = Source { sender, next, made: 0, reliable, waiting: None, moves: Vec::new(), ended: false };
        let source = net.add(Node::Source(Box::new(source)), SOURCE);
        let receiver = Receiver::new(ReceiverOptions::default(), rng.stream("sink")).unwrap();
        let last = Instant::ZERO;
        let sink = Sink { receiver, buffer: Vec::new(), last, expected: 0, came: 0, reliable, ended: false };
        let sink = net.add(Node::Sink(Box::new(sink)), SINK);
        let links = LINKS.iter().enumerate().map(|(n, &(rate, delay))| {
            let loss = braidcast_sim::link::Loss::Uniform(0.005);
            let model = LinkModel { loss, ..LinkModel::wire(rate, ms(delay)) };
            net.connect((source, n as u16), (sink, n as u16), Duplex::both(model))
        });
        let links = links.collect();
        let dead = net.add_link(LinkModel::default());
        net.set_down(dead, true);
        let ends = (0..NETWORKS).map(|n| Ends {
            interface: n as u16,
            seen: SOURCE[n].parse().unwrap(),
            home: SINK[n].parse().unwrap(),
        });
        Self {
            dead,
            ends: ends.collect(),
            next_home: [None; NETWORKS],
            net,
            source,
            sink,
            links,
            rng: rng.stream("faults"),
            faults: [None; NETWORKS],
            good_since: [Some(Instant::ZERO); NETWORKS],
            narrow_at: [None; NETWORKS],
            next_fault: Instant::from_millis(5000),
            worst: Duration::ZERO,
            most_buffered: 0,
            steps: 0,
        }
    }

    fn source(&self) -> &Source {
        match self.net.node(self.source) {
            Node::Source(source) => source,
            Node::Sink(_) => unreachable!("this node is the source"),
        }
    }

    fn sink(&self) -> &Sink {
        match self.net.node(self.sink) {
            Node::Sink(sink) => sink,
            Node::Source(_) => unreachable!("this node is the sink"),
        }
    }

    fn on_sender(&mut self, action: impl FnOnce(&mut Sender, Instant)) {
        self.net.with(self.source, |node, now| match node {
            Node::Source(source) => action(&mut source.sender, now),
            Node::Sink(_) => unreachable!("this node is the source"),
        });
    }

    /// A time of 50 ms to a minute, short ones as often as long ones.
    fn duration(&mut self) -> Duration {
        let exponent = (self.rng.u64() % 1000) as f64 / 1000.0;
        ms(50).mul_f64(1200_f64.powf(exponent))
    }

    /// Network n joins these ends from now on; what goes to the old ones gets lost.
    fn rewire(&mut self, n: usize, new: Ends) {
        let (there, back) = self.links[n];
        let at_home = (self.sink, n as u16);
        for (ends, there, back) in [(self.ends[n], self.dead, self.dead), (new, there, back)] {
            let here = (self.source, ends.interface);
            self.net.route(here, ends.home, &[there], at_home, ends.seen);
            self.net.route(at_home, ends.seen, &[back], here, ends.home);
        }
        self.ends[n] = new;
    }

    /// The sender learns of the way that network n has now, and keeps the old one until that is up.
    fn replace(&mut self, n: usize, old: Route) {
        let new = self.ends[n].route();
        self.net.with(self.source, |node, now| match node {
            Node::Source(source) => {
                let _joins_unless_it_ends = source.sender.join(now, new);
                source.moves.push((new, old, now));
            }
            Node::Sink(_) => unreachable!("this node is the source"),
        });
    }

    /// Network n gives the source another port, which nobody is told, or another prefix, which the kernel says.
    fn renew(&mut self, n: usize) {
        let old = self.ends[n];
        if self.faults[n].is_some() || self.source().moves.iter().any(|(new, ..)| *new == old.route()) {
            return;
        }
        if self.rng.u64().is_multiple_of(2) {
            let port = old.seen.port() % 50_000 + 1;
            self.rewire(n, Ends { seen: SocketAddr::new(old.seen.ip(), port), ..old });
        } else {
            let interface = (old.interface + NETWORKS as u16) % (2 * NETWORKS as u16);
            let seen = SOURCE[usize::from(interface)].parse().unwrap();
            self.rewire(n, Ends { interface, seen, ..old });
            self.replace(n, old.route());
            self.good_since[n] = Some(self.net.now());
        }
    }

    fn begin(&mut self, n: usize, fault: Fault, until: Instant) {
        if self.faults[n].is_some() {
            return;
        }
        let (there, back) = self.links[n];
        match fault {
            Fault::Cut => [there, back].iter().for_each(|&link| self.net.set_down(link, true)),
            Fault::OneWay => self.net.set_down(there, true),
            Fault::Bounce => {
                [there, back].iter().for_each(|&link| self.net.set_down(link, true));
                let route = self.ends[n].route();
                self.on_sender(|sender, now| sender.leave(now, route));
            }
            Fault::Narrow(mtu) => [there, back].iter().for_each(|&link| self.net.set_mtu(link, mtu)),
            Fault::Moved => {
                let old = self.ends[n];
                let port = old.home.port() % 50_000 + 1;
                self.rewire(n, Ends { home: SocketAddr::new(old.home.ip(), port), ..old });
                // The sender does not know yet.
                self.ends[n].home = old.home;
                self.next_home[n] = Some(port);
            }
        }
        self.faults[n] = Some((fault, until));
        // A narrow network works, once that is found out.
        self.good_since[n] = matches!(fault, Fault::Narrow(_)).then(|| self.net.now());
    }

    fn end(&mut self, n: usize) {
        let Some((fault, _)) = self.faults[n].take() else { return };
        let (there, back) = self.links[n];
        for link in [there, back] {
            self.net.set_down(link, false);
            self.net.set_mtu(link, usize::MAX);
        }
        if let Some(port) = self.next_home[n].take() {
            let old = self.ends[n].route();
            self.ends[n].home.set_port(port);
            self.replace(n, old);
        }
        if fault == Fault::Bounce {
            let route = self.ends[n].route();
            self.on_sender(|sender, now| {
                let _joins_unless_it_is_there = sender.join(now, route);
            });
        }
        self.good_since[n].get_or_insert(self.net.now());
    }

    /// Runs for 50 ms, and looks whether all is as it must be.
    fn step(&mut self) {
        let now = self.net.now();
        for n in 0..NETWORKS {
            if self.faults[n].is_some_and(|(_, until)| until <= now) {
                self.end(n);
            }
        }
        if self.next_fault <= now {
            self.next_fault = now + self.duration().min(ms(20_000));
            let until = now + self.duration();
            let fault = match self.rng.u64() % 6 {
                0 => Fault::Cut,
                1 => Fault::OneWay,
                2 => Fault::Bounce,
                3 => Fault::Moved,
                4 => {
                    let n = (self.rng.u64() % NETWORKS as u64) as usize;
                    return self.renew(n);
                }
                _ => Fault::Narrow(600 + (self.rng.u64() % 900) as usize),
            };
            let one = (self.rng.u64() % NETWORKS as u64) as usize;
            // Every fourth fault takes all networks at once.
            let all = self.rng.u64().is_multiple_of(4);
            (0..NETWORKS).filter(|&n| all || n == one).for_each(|n| self.begin(n, fault, until));
        }
        self.net.run_for(ms(50));
        self.check();
    }

    fn check(&mut self) {
        let now = self.net.now();
        assert!(!self.source().ended && !self.sink().ended, "the session ended by itself");
        let silent = now - self.sink().last;
        for n in 0..NETWORKS {
            if matches!(self.faults[n], Some((Fault::Narrow(_), _))) {
                self.narrow_at[n] = Some(now);
            }
            // What was silent while it was narrow has as long as after any other fault.
            let narrow = self.narrow_at[n].is_some_and(|at| now - at <= back(n));
            let back = match self.sink().reliable {
                true => FILE_BACK,
                false => back(n) + if narrow { FOUND_NARROW } else { Duration::ZERO },
            };
            let Some(since) = self.good_since[n].filter(|&since| now - since > back) else { continue };
            let pause = silent.min(now - since);
            self.worst = self.worst.max(pause);
            let here = |path: &braidcast_session::PathReport| path.state != "left";
            let paths = || self.source().sender.report(now).paths.into_iter().filter(here).collect::<Vec<_>>();
            assert!(
                pause <= back,
                "at {now:?} nothing for {silent:?}, though network {n} has worked since {since:?}: {:?} {:?}",
                self.faults,
                paths()
            );
        }
        self.steps += 1;
        if self.steps == 200 {
            self.steps = 0;
            self.most_buffered = self.most_buffered.max(self.source().sender.report(now).buffered_bytes);
        }
    }
}

/// Runs so many hours of it.
fn hours(reliable: bool) {
    let hours: f64 = std::env::var("CHAOS_HOURS").ok().and_then(|text| text.parse().ok()).unwrap_or(2.0);
    let seed = seed_from_env(1);
    eprintln!(
        "again: CHAOS_HOURS={hours} BRAIDCAST_SEED={} cargo test -p braidcast-session --test it chaos::",
        seed.get()
    );
    let mut chaos = Chaos::new(seed.get(), reliable);
    let end = Instant::ZERO + Duration::from_secs_f64(hours * 3600.0);
    while chaos.net.now() < end {
        chaos.step();
    }
    let (made, came) = (chaos.source().made, chaos.sink().came);
    println!(
        "{hours} h: {came} of {made} packets, at most {:?} without output while a network worked, {} bytes buffered at most",
        chaos.worst, chaos.most_buffered
    );
    assert!(chaos.most_buffered < 9 << 20, "{} bytes wait", chaos.most_buffered);
    if reliable {
        (0..NETWORKS).for_each(|n| chaos.end(n));
        chaos.net.run_for(ms(60_000));
        let (made, came) = (chaos.source().made, chaos.sink().came);
        assert!(came + 1000 > made, "{came} of {made} packets after a quiet minute");
        assert_eq!(chaos.sink().expected, came, "every packet once");
    }
}

#[test]
fn a_stream_flows_whenever_a_network_works() {
    hours(false);
}

#[test]
fn a_file_arrives_once_whatever_the_networks_do() {
    hours(true);
}
