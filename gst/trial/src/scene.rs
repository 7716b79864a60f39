//! Encoder, sender, simulated links and receiver.

use crate::coder::Coder;
use crate::rule::Rule;
use crate::shown::is_key;
use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_media::ts::{PACKET, sham_packet};
use braidcast_media::{Kind, Run, Unit};
use braidcast_rate::Verdict;
use braidcast_session::{ChannelId, Event, LogEntry, RateLimits, Receiver, ReceiverOptions, Sender, SenderOptions};
use braidcast_sim::{Duplex, LinkModel, Network, NodeId};
use core::time::Duration;

const PORT: u16 = 9899;
/// When the camera begins: the handshake is done by then, and the sender has seen its paths.
pub(crate) const START: u64 = 3_000;
/// The video's PID.
const PID: u16 = 256;
/// Bytes of PES and adaptation fields in the first packet of a frame.
const HEAD: usize = 26;

/// A video frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// `true` if it was encoded.
    pub(crate) made: bool,
    pub(crate) allowed: u64,
    /// The rate that the encoder was set to when it was made.
    pub(crate) set: u64,
    /// Of the transport stream.
    pub(crate) bytes: usize,
    pub(crate) coded: Vec<u8>,
    /// From capture to arrival, if it came.
    pub(crate) delay: Option<Duration>,
    /// It came on time, as the receiver reckons.
    pub(crate) on_time: bool,
    /// It was handed out, on time or a little late.
    pub(crate) used: bool,
}

pub(crate) struct Source<'a> {
    sender: Sender,
    coder: Box<dyn Coder + 'a>,
    rule: Rule,
    interval: Duration,
    pub(crate) pictures: Vec<Picture>,
    count: usize,
    next: Instant,
    set: u64,
    packets: u64,
    /// Encoded and multiplexed bytes.
    sums: (u64, u64),
    /// One that is whole when the next begins.
    unit: Option<(Instant, Unit)>,
    finished: bool,
    failure: Option<String>,
}

pub(crate) struct Sink {
    receiver: Receiver,
    buffer: Vec<u8>,
    ended: bool,
    came: Vec<LogEntry>,
}

pub(crate) enum Node<'a> {
    Source(Box<Source<'a>>),
    Sink(Box<Sink>),
}

impl Source<'_> {
    fn after(&mut self, now: Instant) {
        while self.sender.poll_event().is_some() {}
        self.rule.look(now, &self.sender);
        if let Some((_, unit)) = self.unit.take_if(|(at, _)| *at <= now) {
            // A live session gives nothing back.
            let _ = self.sender.push(now, unit);
        }
        while self.next <= now && self.pictures.len() < self.count {
            self.take(self.next);
            self.next += self.interval;
        }
        if self.pictures.len() == self.count && self.unit.is_none() && !self.finished {
            self.finished = true;
            self.sender.finish(now);
        }
    }

    /// The camera has a frame.
    fn take(&mut self, at: Instant) {
        let n = self.pictures.len();
        let (verdict, allowed) = self.rule.next(at, &self.sender);
        let mut picture = Picture { allowed, set: self.set, ..Picture::default() };
        if let Verdict::Encode(rate) = verdict {
            match self.coder.encode(n, rate) {
                Ok(coded) => {
                    self.set = rate.unwrap_or(self.set);
                    let packets = (coded.len() + HEAD).div_ceil(PACKET - 4);
                    picture = Picture {
                        made: true,
                        allowed,
                        set: self.set,
                        bytes: packets * PACKET,
                        coded,
                        ..Picture::default()
                    };
                    self.send(at, packets, picture.coded.len() + HEAD, is_key(&picture.coded));
                    self.sums = (self.sums.0 + picture.coded.len() as u64, self.sums.1 + picture.bytes as u64);
                    self.rule.measure(self.sums.0, self.sums.1);
                }
                Err(why) => self.failure = Some(why),
            }
        }
        self.pictures.push(picture);
    }

    /// Sends `packets` packets that hold `held` bytes.
    fn send(&mut self, at: Instant, packets: usize, held: usize, is_key: bool) {
        let first = self.packets;
        self.packets += packets as u64;
        let left = packets * (PACKET - 4) - held;
        // Links carry sizes; the content of frames stays here.
        let packet = |n| sham_packet(PID, n == first, n as u8, if n + 1 == self.packets { left } else { 0 });
        let unit = Unit {
            kind: if is_key { Kind::I } else { Kind::P },
            reference: true,
            continues: false,
            more: false,
            pid: PID,
            runs: vec![Run { first, count: packets as u32, null: false }],
            bytes: (first..self.packets).flat_map(packet).collect(),
            first_captured: at,
            last_captured: at,
            pts: None,
            dts: None,
        };
        self.unit = Some((at + self.interval, unit));
    }

    fn due(&self) -> Option<Instant> {
        let picture = (self.pictures.len() < self.count).then_some(self.next);
        [self.sender.poll_timeout(), picture, self.unit.as_ref().map(|(at, _)| *at), self.rule.due()]
            .into_iter()
            .flatten()
            .min()
    }
}

impl Sink {
    fn after(&mut self, now: Instant) {
        while self.receiver.poll_output(now, ChannelId(0), &mut self.buffer) {
            self.receiver.written(now, ChannelId(0), 0);
        }
        self.came.extend(self.receiver.take_log());
        while let Some((_, event)) = self.receiver.poll_event() {
            self.ended |= matches!(event, Event::Ended { .. });
        }
    }
}

impl Machine for Node<'_> {
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
            Self::Source(it) => it.due(),
            Self::Sink(it) => it.receiver.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

/// How to run.
pub(crate) struct Setup<'a> {
    pub(crate) seed: u64,
    pub(crate) latency: Duration,
    pub(crate) limits: RateLimits,
    pub(crate) fps: i32,
    pub(crate) count: usize,
    pub(crate) coder: Box<dyn Coder + 'a>,
    pub(crate) rule: Rule,
    pub(crate) first_rate: u64,
    /// The way there; back there is the same delay and no limit.
    pub(crate) links: Vec<LinkModel>,
}

/// Runs to the end. Returns what became of each frame.
pub(crate) fn run(setup: Setup<'_>) -> Result<Vec<Picture>, String> {
    let (mut net, rng) = (Network::new(setup.seed), Rng::from_seed(setup.seed));
    let address = |n: usize, end: usize| format!("10.{n}.0.{end}:{PORT}");
    let options = SenderOptions::default().with(|it| {
        it.latency = setup.latency;
        it.encoder = setup.limits;
    });
    let there = |n: usize| address(n, 2).parse().map_err(|e| format!("{e}"));
    let routes = (0..setup.links.len())
        .map(|n| there(n).map(|remote| Route::new(SocketId(n as u16), remote)))
        .collect::<Result<Vec<Route>, String>>()?;
    let sender = Sender::new(Instant::ZERO, options, rng.stream("source"), PORT, &routes).map_err(|e| e.to_string())?;
    let source = Source {
        sender,
        coder: setup.coder,
        rule: setup.rule,
        interval: Duration::from_secs(1) / setup.fps as u32,
        pictures: Vec::new(),
        count: setup.count,
        next: Instant::from_millis(START),
        set: setup.first_rate,
        packets: 0,
        sums: (0, 0),
        unit: None,
        finished: false,
        failure: None,
    };
    let receiver = Receiver::new(ReceiverOptions::default().with(|it| it.log = true), rng.stream("sink"))
        .map_err(|e| format!("{e:?}"))?;
    let sink = Sink { receiver, buffer: Vec::new(), ended: false, came: Vec::new() };
    let addresses = |end: usize| (0..setup.links.len()).map(|n| address(n, end)).collect::<Vec<_>>();
    let source = net.add(Node::Source(Box::new(source)), addresses(1).iter().map(String::as_str));
    let sink = net.add(Node::Sink(Box::new(sink)), addresses(2).iter().map(String::as_str));
    for (n, model) in setup.links.iter().enumerate() {
        let back = LinkModel { delay: model.delay, ..LinkModel::default() };
        net.connect((source, n as u16), (sink, n as u16), Duplex::new(model.clone(), back));
    }
    let seconds = setup.count as u64 / setup.fps as u64 + 20;
    net.wait_for(Instant::from_millis(START + seconds * 1000), |net| match net.node(sink) {
        Node::Sink(it) => it.ended,
        Node::Source(_) => false,
    });
    collect(&mut net, source, sink)
}

fn collect(net: &mut Network<Node<'_>>, source: NodeId, sink: NodeId) -> Result<Vec<Picture>, String> {
    let came = match net.node_mut(sink) {
        Node::Sink(it) => std::mem::take(&mut it.came),
        Node::Source(_) => Vec::new(),
    };
    let Node::Source(it) = net.node_mut(source) else { return Err("the source is no source".into()) };
    if let Some(why) = it.failure.take() {
        return Err(why);
    }
    let mut pictures = std::mem::take(&mut it.pictures);
    // Units are counted by the sender as they come in: those that were made, in their order.
    let made: Vec<usize> = (0..pictures.len()).filter(|n| pictures[*n].made).collect();
    for entry in came {
        if let Some(n) = made.get(entry.sequence as usize) {
            let captured = Instant::from_millis(START) + it.interval * *n as u32;
            let picture = &mut pictures[*n];
            picture.delay = Some(entry.arrived.since(captured));
            (picture.on_time, picture.used) = (entry.on_time, entry.used);
        }
    }
    Ok(pictures)
}
