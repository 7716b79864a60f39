//! Random faults at the border, in simulated time: SRT, SRTLA over two links, and RIST in both profiles.
//!
//! A minute of each kind in `make test`; `BRAIDCAST_BORDER_HOURS=24` and a seed of its own in `make more-border`. A
//! failure names the seed of the half hour in which it was.

#[path = "../it/common/phone.rs"]
mod phone;

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_gateway::rist;
use braidcast_gateway::srt::{Direction, Endpoint, KeyLength, Options, Passphrase};
use braidcast_gateway::srtla;
use braidcast_sim::link::{Jitter, LinkModel, Loss, Reorder, ReorderHow};
use braidcast_sim::{DropReason, LinkId, Network, NodeId, TapAction, TapEvent};
use core::time::Duration;
use phone::Phone;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

const SENDER: [&str; 2] = ["10.0.0.1:1000", "10.0.0.1:1001"];
const RECEIVER: [&str; 2] = ["10.0.0.2:2000", "10.0.0.2:2001"];
/// Both ends' latency.
const LATENCY: Duration = Duration::from_millis(600);
/// Time between payloads: 2.1 Mbit/s.
const EACH: Duration = Duration::from_millis(5);
/// How long nothing may come out while the sender sends and a network is there, beside the time
/// after which steps towards a connection are taken again that this network lost.
const STALL: Duration = Duration::from_secs(2);
/// All that lost steps excuse together: two of SRTLA's questions, or eight other steps. A network
/// here loses at most 5 % of its packets, so the same step is lost three times in a row once in
/// 8000 times at most. Whatever takes longer has another reason, and lost steps must not hide it.
const EXCUSE: Duration = Duration::from_secs(2);
/// Time after which a caller by SRT asks again, and we answer SRTLA again.
const AGAIN: Duration = Duration::from_millis(250);
/// Time after which a sender by SRTLA asks again; the tests' phone has that of BELABOX.
const SRTLA_ASKS: Duration = Duration::from_secs(1);
/// A session.
const HALF_HOUR: Duration = Duration::from_secs(1800);

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Srt,
    Srtla,
    RistSimple,
    RistMain,
}

const KINDS: [Kind; 4] = [Kind::Srt, Kind::Srtla, Kind::RistSimple, Kind::RistMain];

/// Either end, for one network.
enum Node {
    Srt(Box<Endpoint>),
    Phone(Box<Phone>),
    Rist(Box<rist::Endpoint>),
}

macro_rules! each {
    ($node:expr, $it:ident => $do:expr) => {
        match $node {
            Node::Srt($it) => $do,
            Node::Phone($it) => $do,
            Node::Rist($it) => $do,
        }
    };
}

impl Machine for Node {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        each!(self, it => it.handle_datagram(now, datagram));
    }

    fn handle_timeout(&mut self, now: Instant) {
        each!(self, it => it.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        each!(self, it => it.poll_transmit(now, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        each!(self, it => it.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<()> {
        each!(self, it => it.poll_event().map(|_| ()))
    }
}

impl Node {
    fn push(&mut self, now: Instant, payload: &[u8]) {
        match self {
            Self::Srt(it) => it.push(now, payload),
            Self::Phone(it) => it.inside.push(now, payload),
            Self::Rist(it) => it.push(now, payload),
        }
    }

    fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> bool {
        match self {
            Self::Srt(it) => it.deliver(now, buf).is_some(),
            Self::Rist(it) => it.deliver(now, buf).is_some(),
            Self::Phone(_) => false,
        }
    }
}

impl Kind {
    fn srt(self) -> Options {
        let passphrase = Some(Passphrase::new("correct horse".into()).unwrap());
        let reordering = if self == Self::Srtla { Duration::from_millis(40) } else { Duration::ZERO };
        Options { latency: LATENCY, passphrase, reordering, key_refresh: 20_000, ..Options::default() }
    }

    fn rist(self) -> rist::Options {
        let secret = (self == Self::RistMain).then(|| rist::Secret::new("correct horse".into()).unwrap());
        rist::Options { latency: LATENCY, secret, key_length: KeyLength::Aes256, ..rist::Options::default() }
    }

    fn sender(self, now: Instant, rng: &mut Rng) -> Node {
        let to = RECEIVER[0].parse().unwrap();
        let fork = rng.fork();
        match self {
            Self::Srt => Node::Srt(Box::new(Endpoint::caller(now, to, self.srt(), fork))),
            Self::Srtla => Node::Phone(Box::new(Phone::new(now, self.srt(), vec![to; 2], rng.u32() as u8, fork))),
            Self::RistSimple | Self::RistMain => {
                Node::Rist(Box::new(rist::Endpoint::sender(now, to, self.rist(), fork)))
            }
        }
    }

    fn receiver(self, now: Instant, rng: &mut Rng) -> Node {
        let fork = rng.fork();
        match self {
            Self::Srt => Node::Srt(Box::new(Endpoint::listener(now, Direction::Receive, self.srt(), fork))),
            Self::Srtla => Node::Srt(Box::new(Endpoint::bonded_listener(now, self.srt(), fork))),
            Self::RistSimple | Self::RistMain => Node::Rist(Box::new(rist::Endpoint::receiver(now, self.rist(), fork))),
        }
    }

    /// Where the receiver's end of the sender's socket `n` is.
    fn at(self, n: u16) -> u16 {
        if self == Self::RistSimple { n } else { 0 }
    }

    /// Time between a sender's questions while it has no connection.
    fn question(self) -> Duration {
        match self {
            Self::Srt => AGAIN,
            Self::Srtla => SRTLA_ASKS,
            Self::RistSimple | Self::RistMain => Duration::ZERO,
        }
    }

    fn sockets(self) -> u16 {
        if matches!(self, Self::Srtla | Self::RistSimple) { 2 } else { 1 }
    }
}

struct Border {
    kind: Kind,
    net: Network<Node>,
    rng: Rng,
    sender: NodeId,
    receiver: NodeId,
    /// Of each socket of the sender, there and back.
    links: Vec<[LinkId; 2]>,
    down: Vec<bool>,
    sent: u64,
    last: Option<u64>,
    came: u64,
    /// Nothing can have come out before this.
    excused: Instant,
    /// The receiver began anew, and nothing has come out since.
    anew: bool,
    worst: Duration,
    /// The longest that is not excused by what was lost.
    worst_own: Duration,
    /// What was done last, and what of it was printed.
    done: String,
    told: String,
    lost: Rc<RefCell<Lost>>,
}

/// What networks that were up lost of steps towards a connection since something came out last.
#[derive(Default)]
struct Lost {
    /// What each of them costs, together; [`EXCUSE`] at most.
    cost: Duration,
    /// What happened to each step, for who looks for the reason of a stall.
    steps: Vec<String>,
}

impl Lost {
    fn see(&mut self, event: &TapEvent<'_>) {
        let TapEvent { at, action, from, payload, .. } = event;
        let asks = SENDER.iter().any(|own| from.to_string() == *own);
        let Some((name, cost)) = step(payload, asks) else { return };
        if *action != TapAction::Sent {
            self.steps.push(format!("{at:?} {name} from {from} {action:?}"));
        }
        if let TapAction::Dropped(_, DropReason::Loss) = action {
            self.cost = EXCUSE.min(self.cost + cost);
        }
    }
}

/// The name of a step towards a connection, and after which time it is taken again if it is lost.
/// `asks`: it is the sender's.
fn step(payload: &[u8], asks: bool) -> Option<(&'static str, Duration)> {
    // Answers are repeated sooner.
    let registration = if asks { SRTLA_ASKS } else { AGAIN };
    Some(match payload.first_chunk()? {
        [0x80, 0] => ("handshake", AGAIN),
        [0x92, 0] if payload.len() == srtla::REGISTRATION => ("group wanted", registration),
        [0x92, 1] if payload.len() == srtla::REGISTRATION => ("group", registration),
        [0x92, 2] => ("joined", registration),
        [0x92, 0x11] => ("no group", registration),
        _ => return None,
    })
}

impl Border {
    fn new(kind: Kind, seed: u64) -> Self {
        let mut rng = Rng::from_seed(seed).stream("faults");
        let mut net = Network::new(seed);
        let sender = net.add(kind.sender(Instant::ZERO, &mut rng), SENDER);
        let receiver = net.add(kind.receiver(Instant::ZERO, &mut rng), RECEIVER);
        let mut border = Self {
            kind,
            net,
            rng,
            sender,
            receiver,
            links: Vec::new(),
            down: vec![false; usize::from(kind.sockets())],
            sent: 0,
            last: None,
            came: 0,
            excused: Instant::ZERO,
            anew: false,
            worst: Duration::ZERO,
            worst_own: Duration::ZERO,
            done: String::new(),
            told: String::new(),
            lost: Rc::default(),
        };
        let lost = border.lost.clone();
        border.net.set_tap(move |event| lost.borrow_mut().see(event));
        border.draw_links();
        border
    }

    fn ms(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(least + self.rng.below(most - least))
    }

    /// Other networks, of which each can repair what it loses within the latency.
    fn draw_links(&mut self) {
        self.links.clear();
        for n in 0..self.kind.sockets() {
            let delay = self.ms(2, 60);
            let lossy = self.rng.chance(0.7);
            let loss = if lossy { Loss::Uniform(self.rng.f64() * 0.05) } else { Loss::None };
            let how = ReorderHow::LateBy { mean: Duration::from_millis(15), spread: Duration::from_millis(5) };
            let model = LinkModel {
                loss,
                jitter: Jitter::Uniform(self.ms(0, 10)),
                reorder: Reorder { share: self.rng.f64() * 0.1, how },
                duplicate: self.rng.f64() * 0.02,
                ..LinkModel::wire(20_000_000, delay)
            };
            let [there, back] = [self.net.add_link(model.clone()), self.net.add_link(model)];
            let (ours, theirs) = ((self.sender, n), (self.receiver, self.kind.at(n)));
            let [from, to] = [self.net.address(ours), self.net.address(theirs)];
            self.net.route(ours, to, &[there], theirs, from);
            self.net.route(theirs, from, &[back], ours, to);
            self.links.push([there, back]);
        }
    }

    fn set_down(&mut self, socket: usize, down: bool) {
        self.down[socket] = down;
        for link in self.links[socket] {
            self.net.set_down(link, down);
        }
    }

    fn run(&mut self, duration: Duration, is_sending: bool) {
        let end = self.net.now() + duration;
        let mut buf = Vec::new();
        while self.net.now() < end {
            self.net.run_for(EACH);
            let now = self.net.now();
            if is_sending {
                let mut payload = [0x47; 1316];
                payload[1..9].copy_from_slice(&self.sent.to_be_bytes());
                self.sent += 1;
                self.net.with(self.sender, |node, now| node.push(now, &payload));
            }
            while self.net.with(self.receiver, |node, now| node.deliver(now, &mut buf)) {
                let number = u64::from_be_bytes(buf[1..9].try_into().unwrap());
                assert!(self.last.is_none_or(|last| last < number), "{number} after {:?}", self.last);
                (self.last, self.excused) = (Some(number), self.excused.max(now));
                self.came += 1;
                self.anew = false;
                *self.lost.borrow_mut() = Lost::default();
            }
            for node in [self.sender, self.receiver] {
                while self.net.poll_event(node).is_some() {}
            }
            if !is_sending || self.down.iter().all(|down| *down) {
                self.excused = self.excused.max(now);
                // Nobody recalls a sender of whom a new receiver knows nothing: what it asked went
                // into a dead network, and it asks again when it is its time to.
                let cost = if self.anew { self.kind.question() } else { Duration::ZERO };
                *self.lost.borrow_mut() = Lost { cost, ..Lost::default() };
            }
            if std::env::var_os("BRAIDCAST_BORDER_LOG").is_some() && self.done != self.told {
                self.told.clone_from(&self.done);
                println!("{now:?}: {}", self.done);
            }
            let stall = now.since(self.excused);
            let lost = self.lost.borrow();
            self.worst = self.worst.max(stall);
            self.worst_own = self.worst_own.max(stall.saturating_sub(lost.cost));
            let own = stall.saturating_sub(lost.cost);
            assert!(
                own <= STALL,
                "nothing has come out for {stall:?} at {now:?}, after {}, own {own:?}; {:#?}",
                self.done,
                lost.steps
            );
        }
    }

    /// Packets from anybody, made of what was sent or of nothing.
    fn strangers(&mut self) {
        for _ in 0..100 {
            let mut bytes = vec![0; 4 + self.rng.below(1300) as usize];
            self.rng.fill(&mut bytes);
            let first = [0x80, 0x00, 0x30, 0x90, 0x47][self.rng.below(5) as usize];
            bytes[0] = first;
            let from = SocketAddr::from(([10, 9, 9, self.rng.u32() as u8], 1 + self.rng.below(5) as u16));
            let route = Route::new(SocketId(self.rng.below(2) as u16), from);
            let datagram = Datagram { route, ecn: Ecn::NotEct, payload: &bytes };
            self.net.with(self.receiver, |node, now| node.handle_datagram(now, datagram));
        }
    }

    fn fault(&mut self) {
        let now = self.net.now();
        match self.rng.below(12) {
            0..=3 => {
                // One link of two at times, for less than a tenth of a second to more than any patience.
                let all = self.kind != Kind::Srtla || self.rng.chance(0.5);
                let which = self.rng.below(self.down.len() as u64) as usize;
                let most = if self.rng.chance(0.2) { 9000 } else { 1500 };
                let time = self.ms(20, most);
                self.done = format!("{time:?} without {}", if all { "a network" } else { "one network" });
                let links: Vec<usize> = (0..self.down.len()).filter(|socket| all || *socket == which).collect();
                links.iter().for_each(|socket| self.set_down(*socket, true));
                self.run(time, true);
                links.iter().for_each(|socket| self.set_down(*socket, false));
            }
            4..=6 => {
                self.done = "another network".into();
                self.draw_links();
            }
            7 => {
                // It was away for a while, so that the old connection is silent.
                let away = self.ms(1200, 8000);
                self.done = format!("a sender that was away for {away:?}");
                // What is not there sends nothing and hears nothing.
                (0..self.down.len()).for_each(|socket| self.set_down(socket, true));
                self.run(away, false);
                (0..self.down.len()).for_each(|socket| self.set_down(socket, false));
                let node = self.kind.sender(self.net.now(), &mut self.rng);
                *self.net.node_mut(self.sender) = node;
            }
            8 => {
                (self.done, self.anew) = ("a receiver that began anew".into(), true);
                let node = self.kind.receiver(now, &mut self.rng);
                *self.net.node_mut(self.receiver) = node;
                // Who sends finds out by silence.
                let patience = Duration::from_secs(match self.kind {
                    Kind::Srt => 6,
                    Kind::Srtla => 8,
                    Kind::RistSimple | Kind::RistMain => 0,
                });
                self.excused = now + patience;
            }
            9 => {
                let pause = self.ms(100, 7000);
                self.done = format!("a pause of {pause:?}");
                self.run(pause, false);
            }
            _ => {
                self.done = "strangers".into();
                self.strangers();
            }
        }
    }
}

/// Runs a session; returns the longest stall, what of one is not excused by what was lost, and
/// packets that were sent and that came.
fn session(kind: Kind, seed: u64, duration: Duration) -> (Duration, Duration, u64, u64) {
    let mut border = Border::new(kind, seed);
    while border.net.now().since(Instant::ZERO) < duration {
        let calm = border.ms(500, 6000);
        border.run(calm, true);
        border.fault();
    }
    (border.worst, border.worst_own, border.sent, border.came)
}

#[test]
fn nothing_at_the_border_stalls_a_stream_for_two_seconds() {
    let env = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (hours, first) = (env("BRAIDCAST_BORDER_HOURS"), env("BRAIDCAST_SEED").unwrap_or(1));
    let (sessions, duration) =
        hours.map_or((KINDS.len() as u64, Duration::from_secs(60)), |hours| (2 * hours, HALF_HOUR));
    let only = std::env::var("BRAIDCAST_BORDER_KIND").ok();
    for (seed, kind) in (first..first + sessions).zip(KINDS.into_iter().cycle()) {
        let kind = KINDS.into_iter().find(|kind| only.as_ref() == Some(&format!("{kind:?}"))).unwrap_or(kind);
        let outcome = std::panic::catch_unwind(|| session(kind, seed, duration));
        let Ok((worst, own, sent, came)) = outcome else {
            panic!("{kind:?}: run it again with BRAIDCAST_BORDER_KIND={kind:?} BRAIDCAST_SEED={seed}");
        };
        println!(
            "seed {seed}, {kind:?}: {came} of {sent} packets, longest stall {worst:?}, {own:?} beside what was lost"
        );
        assert!(came * 2 > sent, "{kind:?}, seed {seed}: {came} of {sent}");
    }
}
