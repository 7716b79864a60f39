//! A camera, a sender, links, and a receiver that writes down when each byte came out.
#![allow(dead_code, reason = "each test file uses a part of this")]

pub(crate) mod keyed;

use braidcast_core::{Datagram, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_media::ts::PACKET;
use braidcast_media::{Kind, Run, Unit};
use braidcast_sctp::Options;
use braidcast_session::{
    ChannelId, Content, Event, KindReport, RateReport, Receiver, ReceiverOptions, Report, Sender, SenderOptions,
};
use braidcast_sim::testing::{Seed, seed_from_env};
use braidcast_sim::{Duplex, LinkId, LinkModel, Network, NodeId};
use core::time::Duration;
use std::collections::VecDeque;

pub(crate) const PORT: u16 = 9899;

/// Units, and when each is ready to be pushed.
pub(crate) type Units = Vec<(Instant, Unit)>;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Pushes units when they are due and finishes after the last one.
pub(crate) struct Source {
    pub(crate) sender: Sender,
    pub(crate) events: Vec<Event>,
    units: VecDeque<(Instant, Unit)>,
    /// The sender's clock runs ahead of the network's by this much.
    pub(crate) ahead: Duration,
    blocked: bool,
    finished: bool,
    /// Makes more units.
    pub(crate) encoder: Option<Encoder>,
}

/// An encoder that makes of each frame what it may, a little less at times; one frame comes
/// whole when the next one begins.
pub(crate) struct Encoder {
    pub(crate) interval: Duration,
    pub(crate) next: Instant,
    pub(crate) end: Instant,
    /// Bits of each frame, whatever the paths carry.
    pub(crate) fixed: Option<u64>,
    /// Nothing smaller comes out of it, bits.
    pub(crate) smallest: u64,
    pub(crate) made: u64,
    /// Frames that were not encoded.
    pub(crate) skipped: u64,
    pub(crate) bits: u64,
    /// What it was told: when, and what.
    pub(crate) told: Vec<(Instant, RateReport)>,
    packets: u64,
    rng: Rng,
}

impl Encoder {
    /// 25 frames a second for `seconds`.
    pub(crate) fn of(seconds: u64, fixed: Option<u64>) -> Self {
        let next = Instant::from_millis(START);
        Self {
            interval: ms(40),
            next,
            end: next + Duration::from_secs(seconds),
            fixed: fixed.map(|rate| rate / 25),
            smallest: 4_000,
            made: 0,
            skipped: 0,
            bits: 0,
            told: Vec::new(),
            packets: 0,
            rng: Rng::from_seed(7),
        }
    }

    fn encode(&mut self, sender: &Sender, units: &mut VecDeque<(Instant, Unit)>) {
        let at = self.next;
        self.next += self.interval;
        let told = sender.rate_report(at).unwrap();
        self.told.push((at, told));
        let allowed = self.fixed.unwrap_or(told.next_frame_bits);
        if allowed == 0 {
            self.skipped += 1;
            return;
        }
        self.made += 1;
        let bits = ((allowed as f64 * (0.85 + 0.15 * self.rng.f64())) as u64).max(self.smallest);
        let packets = bits.div_ceil(8 * PACKET as u64);
        self.bits += packets * 8 * PACKET as u64;
        let unit = Unit {
            kind: Kind::P,
            reference: true,
            continues: false,
            more: false,
            pid: 256,
            runs: vec![Run { first: self.packets, count: packets as u32, null: false }],
            bytes: (self.packets..self.packets + packets).flat_map(|n| packet_of(Kind::P, n)).collect(),
            first_captured: at,
            last_captured: at,
            pts: None,
            dts: None,
        };
        self.packets += packets;
        units.push_back((at + self.interval, unit));
    }

    /// The mean of what it was told between two times, in ms after the start, Mbit/s.
    pub(crate) fn mean_rate(&self, from: u64, to: u64) -> f64 {
        let within =
            |at: &Instant| (*at >= Instant::from_millis(START + from)) && *at < Instant::from_millis(START + to);
        let rates: Vec<f64> = self.told.iter().filter(|(at, _)| within(at)).map(|(_, told)| told.rate).collect();
        rates.iter().sum::<f64>() / rates.len() as f64 / 1e6
    }
}

/// Takes what comes out of a receiver and writes down when.
pub(crate) struct Sink {
    pub(crate) receiver: Receiver,
    pub(crate) events: Vec<Event>,
    /// Each output: when, and how many bytes.
    pub(crate) outputs: Vec<(Instant, usize)>,
    pub(crate) bytes: Vec<u8>,
    /// Bytes of a reliable stream that are there when it is offered, as on a disk.
    pub(crate) disk: Vec<u8>,
    /// It does not flush.
    pub(crate) stuck: bool,
    pub(crate) buffer: Vec<u8>,
}

/// The only channel of a receiver that takes one stream, or the first of several: what comes out of it is written down.
pub(crate) const CHANNEL: ChannelId = ChannelId(0);

pub(crate) enum Node {
    Source(Box<Source>),
    Sink(Box<Sink>),
}

impl Source {
    pub(crate) fn of(sender: Sender, units: Units) -> Self {
        Self {
            sender,
            events: Vec::new(),
            units: units.into(),
            ahead: Duration::ZERO,
            blocked: false,
            finished: false,
            encoder: None,
        }
    }

    pub(crate) fn after(&mut self, now: Instant) {
        let now = now + self.ahead;
        while let Some(event) = self.sender.poll_event() {
            self.blocked &= event != Event::Room;
            if let Event::Resume { .. } = event {
                self.sender.resume(now, Content::default());
            }
            self.events.push(event);
        }
        while let Some(encoder) = self.encoder.as_mut().filter(|it| it.next <= now && it.next < it.end) {
            encoder.encode(&self.sender, &mut self.units);
        }
        while !self.blocked && self.units.front().is_some_and(|(at, _)| *at + self.ahead <= now) {
            let (at, mut unit) = self.units.pop_front().unwrap();
            unit.first_captured += self.ahead;
            unit.last_captured += self.ahead;
            if let Some(mut unit) = self.sender.push(now, unit) {
                unit.first_captured = unit.first_captured - self.ahead;
                unit.last_captured = unit.last_captured - self.ahead;
                self.units.push_front((at, unit));
                self.blocked = true;
            }
        }
        let over = self.encoder.as_ref().is_none_or(|it| it.next >= it.end);
        if over && self.units.is_empty() && !self.finished {
            self.finished = true;
            self.sender.finish(now);
        }
    }
}

impl Sink {
    pub(crate) const fn of(receiver: Receiver) -> Self {
        Self {
            receiver,
            events: Vec::new(),
            outputs: Vec::new(),
            bytes: Vec::new(),
            disk: Vec::new(),
            stuck: false,
            buffer: Vec::new(),
        }
    }

    pub(crate) fn after(&mut self, now: Instant) {
        while self.receiver.poll_output(now, CHANNEL, &mut self.buffer) {
            self.outputs.push((now, self.buffer.len()));
            self.bytes.extend_from_slice(&self.buffer);
            self.disk.extend_from_slice(&self.buffer);
            self.receiver.written(now, CHANNEL, self.disk.len() as u64);
        }
        // What is due stays due until it is taken, so all of them are asked.
        let others: Vec<_> = self.receiver.channels().map(|(id, _)| id).filter(|id| *id != CHANNEL).collect();
        others.iter().for_each(|id| while self.receiver.poll_output(now, *id, &mut self.buffer) {});
        while let Some((_, event)) = self.receiver.poll_event() {
            match &event {
                Event::Offered(offer) if offer.reliable => {
                    let mut content = Content::default();
                    content.update(&self.disk);
                    self.receiver.accept(now, CHANNEL, content);
                }
                Event::Anew => {
                    let length = self.bytes.len() - self.disk.len().min(self.bytes.len());
                    self.bytes.truncate(length);
                    self.disk.clear();
                }
                Event::Flush if !self.stuck => self.receiver.flushed(now, CHANNEL),
                Event::Ended { complete: true, .. } => self.disk.clear(),
                _ => {}
            }
            self.events.push(event);
        }
    }

    pub(crate) fn report(&self) -> Report {
        self.receiver.report(self.outputs.last().map_or(Instant::ZERO, |(at, _)| *at), CHANNEL)
    }

    pub(crate) fn kind(&self, kind: Kind) -> KindReport {
        self.report().kinds.into_iter().find(|line| line.kind == kind.name()).unwrap()
    }
}

impl Machine for Node {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        match self {
            Self::Source(source) => {
                source.sender.handle_datagram(now + source.ahead, datagram);
                source.after(now);
            }
            Self::Sink(sink) => {
                sink.receiver.handle_datagram(now, datagram);
                sink.after(now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Source(source) => {
                source.sender.handle_timeout(now + source.ahead);
                source.after(now);
            }
            Self::Sink(sink) => {
                sink.receiver.handle_timeout(now);
                sink.after(now);
            }
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        match self {
            Self::Source(source) => source.sender.poll_transmit(now + source.ahead, buf),
            Self::Sink(sink) => sink.receiver.poll_transmit(now, buf),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Source(source) => {
                let machine = source.sender.poll_timeout().map(|at| at - source.ahead);
                let unit = source.units.front().filter(|_| !source.blocked).map(|(at, _)| *at);
                let picture = source.encoder.as_ref().filter(|it| it.next < it.end).map(|it| it.next);
                [machine, unit, picture].into_iter().flatten().min()
            }
            Self::Sink(sink) => sink.receiver.poll_timeout(),
        }
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

/// One sender and one receiver, joined by as many paths as there are links.
pub(crate) struct Scene {
    pub(crate) net: Network<Node>,
    pub(crate) source: NodeId,
    pub(crate) sink: NodeId,
    /// Each path's link there and link back.
    pub(crate) links: Vec<(LinkId, LinkId)>,
    /// Says how to run it again if a test fails.
    _seed: Seed,
}

pub(crate) const SOURCE_ADDRESSES: [&str; 5] =
    ["10.0.0.1:9899", "10.1.0.1:9899", "10.2.0.1:9899", "10.3.0.1:9899", "10.4.0.1:9899"];
pub(crate) const SINK_ADDRESSES: [&str; 5] =
    ["10.0.0.2:9899", "10.1.0.2:9899", "10.2.0.2:9899", "10.3.0.2:9899", "10.4.0.2:9899"];

/// A source that connects at `start` over so many paths.
pub(crate) fn source(start: Instant, rng: &Rng, options: &SenderOptions, units: Units, paths: usize) -> Node {
    source_with(start, rng, options, options.transport(), units, paths)
}

/// The same over SCTP as `sctp` has it.
pub(crate) fn source_with(
    start: Instant,
    rng: &Rng,
    options: &SenderOptions,
    sctp: Options,
    units: Units,
    paths: usize,
) -> Node {
    let routes = routes_to(&SINK_ADDRESSES[..paths]);
    let sender = Sender::with_transport(start, options.clone(), sctp, rng.stream("source"), PORT, &routes).unwrap();
    Node::Source(Box::new(Source::of(sender, units)))
}

/// Routes to these addresses, each from a socket of its own.
fn routes_to(addresses: &[&str]) -> Vec<Route> {
    (0..).zip(addresses).map(|(n, address)| Route::new(SocketId(n), address.parse().unwrap())).collect()
}

/// A receiver that calls the source over so many paths.
pub(crate) fn caller(now: Instant, options: &ReceiverOptions, rng: Rng, paths: usize) -> Receiver {
    Receiver::call(now, options.clone(), rng, PORT, &routes_to(&SOURCE_ADDRESSES[..paths])).unwrap()
}

impl Scene {
    pub(crate) fn new(send: SenderOptions, receive: ReceiverOptions, units: Units, links: &[LinkModel]) -> Self {
        Self::with(send.transport(), send, receive, units, links)
    }

    /// The same with options of SCTP for the source.
    pub(crate) fn with(
        sctp: Options,
        send: SenderOptions,
        receive: ReceiverOptions,
        units: Units,
        links: &[LinkModel],
    ) -> Self {
        Self::seeded(1, sctp, send, receive, units, links)
    }

    /// The same with a seed of its own.
    pub(crate) fn seeded(
        seed: u64,
        sctp: Options,
        send: SenderOptions,
        receive: ReceiverOptions,
        units: Units,
        links: &[LinkModel],
    ) -> Self {
        let seed = seed_from_env(seed);
        let (mut net, rng) = (Network::new(seed.get()), Rng::from_seed(seed.get()));
        let source = net.add(
            source_with(Instant::ZERO, &rng, &send, sctp, units, links.len()),
            SOURCE_ADDRESSES[..links.len()].iter().copied(),
        );
        let receiver = Receiver::new(receive, rng.stream("sink")).unwrap();
        Self::joined(seed, net, source, receiver, links)
    }

    /// The same where the receiver dials, and the source listens.
    pub(crate) fn dialed(send: SenderOptions, receive: &ReceiverOptions, units: Units, links: &[LinkModel]) -> Self {
        let seed = seed_from_env(1);
        let (mut net, rng) = (Network::new(seed.get()), Rng::from_seed(seed.get()));
        let sender = Sender::listen(Instant::ZERO, send, rng.stream("source")).unwrap();
        let source = Node::Source(Box::new(Source::of(sender, units)));
        let source = net.add(source, SOURCE_ADDRESSES[..links.len()].iter().copied());
        let receiver = caller(Instant::ZERO, receive, rng.stream("sink"), links.len());
        Self::joined(seed, net, source, receiver, links)
    }

    fn joined(seed: Seed, mut net: Network<Node>, source: NodeId, receiver: Receiver, links: &[LinkModel]) -> Self {
        let sink = Node::Sink(Box::new(Sink::of(receiver)));
        let sink = net.add(sink, SINK_ADDRESSES[..links.len()].iter().copied());
        let links = links
            .iter()
            .enumerate()
            .map(|(n, model)| net.connect((source, n as u16), (sink, n as u16), Duplex::both(model.clone())))
            .collect();
        Self { net, source, sink, links, _seed: seed }
    }

    pub(crate) fn source(&self) -> &Source {
        match self.net.node(self.source) {
            Node::Source(source) => source,
            Node::Sink(_) => unreachable!("this node is the source"),
        }
    }

    pub(crate) fn sink(&self) -> &Sink {
        match self.net.node(self.sink) {
            Node::Sink(sink) => sink,
            Node::Source(_) => unreachable!("this node is the sink"),
        }
    }

    pub(crate) fn sink_mut(&mut self) -> &mut Sink {
        match self.net.node_mut(self.sink) {
            Node::Sink(sink) => sink,
            Node::Source(_) => unreachable!("this node is the sink"),
        }
    }

    /// All networks up or down.
    pub(crate) fn set_down(&mut self, down: bool) {
        for (there, back) in self.links.clone() {
            self.net.set_down(there, down);
            self.net.set_down(back, down);
        }
    }

    /// Puts `receiver` in the place of the one that was killed; what is on its disk stays.
    pub(crate) fn restart_sink(&mut self, receiver: Receiver) {
        let id = self.sink;
        let sink = self.sink_mut();
        let disk = std::mem::take(&mut sink.disk);
        let (bytes, outputs) = (std::mem::take(&mut sink.bytes), std::mem::take(&mut sink.outputs));
        *sink = Sink { bytes, outputs, disk, ..Sink::of(receiver) };
        self.net.touch(id);
    }

    pub(crate) fn source_mut(&mut self) -> &mut Source {
        match self.net.node_mut(self.source) {
            Node::Source(source) => source,
            Node::Sink(_) => unreachable!("this node is the source"),
        }
    }

    /// Runs until the receiver says that it is over, and that nothing promised is missing.
    pub(crate) fn run_to_end(&mut self, limit: Duration) {
        let sink = self.sink;
        self.net.wait_for(Instant::ZERO + limit, |net| match net.node(sink) {
            Node::Sink(sink) => sink.events.iter().any(|event| matches!(event, Event::Ended { .. })),
            Node::Source(_) => false,
        });
        let complete = self.sink().events.iter().any(|event| matches!(event, Event::Ended { complete: true, .. }));
        let now = self.net.now();
        assert!(complete, "at {now:?}: sink {:?}, source {:?}", self.sink().events, self.source().events);
    }
}

/// When the camera starts: by then the handshake is done, even if its packets get lost at first.
pub(crate) const START: u64 = 3_000;

/// What a camera makes in `seconds`: 25 frames a second in groups of 25 (I B B P B B P …), audio every 24 ms,
/// tables every 100 ms, 1.4 Mbit/s in all. Frames are ready 40 ms after their first packet, as a demultiplexer sees
/// them.
pub(crate) fn camera(seconds: u64) -> Units {
    moving(seconds, camera_frame)
}

/// Frame number `n` of a camera.
const fn camera_frame(n: u64) -> (Kind, u32, u64, u64) {
    match n % 25 {
        0 => (Kind::I, 150, 20, 40),
        k if k % 3 == 1 => (Kind::P, 50, 20, 40),
        _ => (Kind::B, 15, 20, 40),
    }
}

/// What an encoder makes of a film for a live link: groups of 50 frames, the first of which is as
/// large as twenty others, and those next to it small, as the rate is held over a quarter of a
/// second; 1.7 Mbit/s in all. Larger frames take longer to be read.
pub(crate) fn film(seconds: u64) -> Units {
    moving(seconds, |n| match (n % 50, n % 50 < 7 || n % 50 > 46) {
        (0, _) => (Kind::I, 310, 70, 75),
        (k, true) if k % 3 == 1 => (Kind::P, 40, 60, 70),
        (k, false) if k % 3 == 1 => (Kind::P, 75, 60, 70),
        (_, true) => (Kind::B, 2, 5, 10),
        (_, false) => (Kind::B, 8, 5, 10),
    })
}

/// A camera's frames, with audio as muxers gather it that save headers: 18 packets every 220 ms, 120 kbit/s.
pub(crate) fn gathered_audio(seconds: u64) -> Units {
    with_audio(seconds, (220, 18), camera_frame)
}

/// A stream with such frames: what, packets, and how many ms its last packet is behind its first
/// and it is ready after that.
fn moving(seconds: u64, picture: impl Fn(u64) -> (Kind, u32, u64, u64)) -> Units {
    with_audio(seconds, (24, 3), picture)
}

/// The same, with a frame of audio every `every` ms, of `length` packets.
fn with_audio(seconds: u64, (every, length): (u64, u32), picture: impl Fn(u64) -> (Kind, u32, u64, u64)) -> Units {
    let frames = (0..seconds * 25).map(|n| {
        let (kind, packets, span, ready) = picture(n);
        (n * 40, kind, packets, span, ready)
    });
    let sound = (0..seconds * 1000 / every).map(|n| (n * every, Kind::Audio, length, 0, 0));
    let tables = (0..seconds * 10).map(|n| (n * 100, Kind::Tables, 2, 0, 0));
    let mut all: Vec<(u64, Kind, u32, u64, u64)> = frames.chain(sound).chain(tables).collect();
    all.sort_by_key(|(at, kind, ..)| (*at, *kind));
    let mut first = 0;
    let mut units: Units = all
        .into_iter()
        .map(|(at, kind, packets, span, ready)| {
            let captured = Instant::from_millis(START + at);
            let unit = Unit {
                kind,
                reference: kind != Kind::B,
                continues: false,
                more: false,
                pid: 256,
                runs: vec![Run { first, count: packets, null: false }],
                bytes: (first..first + u64::from(packets)).flat_map(|n| packet_of(kind, n)).collect(),
                first_captured: captured,
                last_captured: captured + ms(span),
                pts: None,
                dts: None,
            };
            first += u64::from(packets);
            (captured + ms(ready), unit)
        })
        .collect();
    units.sort_by_key(|(ready, _)| *ready);
    units
}

/// Packet number `index`, which says so.
pub(crate) fn packet(index: u64) -> [u8; PACKET] {
    let mut packet = [0x47; PACKET];
    packet[4..12].copy_from_slice(&index.to_be_bytes());
    packet
}

/// The same with a PID of its kind: frames have one together.
fn packet_of(kind: Kind, index: u64) -> [u8; PACKET] {
    let pid: u16 = match kind {
        Kind::Tables => 0,
        Kind::Audio => 257,
        _ => 256,
    };
    let mut packet = packet(index);
    packet[1..3].copy_from_slice(&pid.to_be_bytes());
    packet
}

/// The numbers of the packets in `bytes`.
pub(crate) fn indexes(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks(PACKET).map(|packet| u64::from_be_bytes(packet[4..12].try_into().unwrap())).collect()
}

/// How long after its capture each packet came out, by its number.
pub(crate) fn delays(sink: &Sink, units: &[(Instant, Unit)]) -> Vec<(u64, Duration)> {
    let mut captured = std::collections::BTreeMap::new();
    for (_, unit) in units {
        let (first, count) = (unit.first_index(), u64::from(unit.runs[0].count));
        for n in 0..count {
            let span = unit.last_captured.since(unit.first_captured);
            captured.insert(first + n, unit.first_captured + span.mul_f64(n as f64 / (count - 1).max(1) as f64));
        }
    }
    let mut delays = Vec::new();
    let mut rest = &sink.bytes[..];
    for (at, length) in &sink.outputs {
        let (output, later) = rest.split_at(*length);
        rest = later;
        delays.extend(indexes(output).into_iter().map(|index| (index, at.since(captured[&index]))));
    }
    delays
}

/// A file of `blocks` of 16 KiB, all there from the start.
pub(crate) fn file(blocks: u64) -> (Vec<u8>, Units) {
    let bytes: Vec<u8> = (0..blocks * 16_384).map(|n| (n * n / 7) as u8).collect();
    let unit = |(n, block): (usize, &[u8])| Unit {
        kind: Kind::Data,
        reference: true,
        continues: false,
        more: false,
        pid: 0,
        runs: vec![Run::one(n as u64, false)],
        bytes: block.to_vec(),
        first_captured: Instant::ZERO,
        last_captured: Instant::ZERO,
        pts: None,
        dts: None,
    };
    let units = bytes.chunks(16_384).enumerate().map(|pair| (Instant::ZERO, unit(pair))).collect();
    (bytes, units)
}
