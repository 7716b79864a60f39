//! Two endpoints with a connection, and what is in flight between them.

mod sealed;

use crate::tap;
use arbitrary::{Result, Unstructured};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId};
use braidcast_dccp::wire::{Builder, Checksum, Header, Kind, Packet, Reset, ResetCode, ServiceCode};
use braidcast_dccp::{
    Ccid, Connection, ConnectionId, Endpoint, FeedbackRate, Options, ReorderOptions, SendOptions, State, TfrcOptions,
    Variant,
};
use core::time::Duration;
use sealed::Spy;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Maximum number of packets in flight to one end; what comes on top is lost.
const ON_THE_WAY: usize = 256;
/// Transmits, or timers at one instant, after which a loop counts as endless.
const ENDLESS: usize = 5_000;
const PORT: u16 = 7;
const SERVICE: ServiceCode = ServiceCode(1);

struct End {
    endpoint: Endpoint,
    id: Option<ConnectionId>,
    inbox: VecDeque<(Ecn, Vec<u8>)>,
    /// The last number sent.
    last: u64,
    got: BTreeSet<Vec<u8>>,
}

struct World {
    now: Instant,
    ends: [End; 2],
    forged: bool,
    next: u32,
    spy: Option<Spy>,
    buf: Vec<u8>,
}

fn route(end: usize) -> Route {
    Route::new(SocketId(0), SocketAddr::from(([10, 0, 0, 2 - end as u8], 6511)))
}

impl End {
    fn summary(&self) -> String {
        format!("{:?}", self.id.and_then(|id| self.endpoint.connection(id)))
    }
}

impl World {
    fn new(settings: u8, congestion: u8, protected: bool) -> Self {
        let tfrc = TfrcOptions {
            ccid4: Variant::ALL[usize::from(congestion >> 2 & 3)].1,
            feedback: (congestion & 64 != 0).then_some(FeedbackRate::Dynamic),
            faster_restart: congestion & 128 != 0,
            ask_loss_event_rate: congestion & 16 != 0,
            ..TfrcOptions::default()
        };
        let max_delay = Duration::from_millis(50);
        let ccids = match congestion & 3 {
            // The bits of CCID 4's variant are free here.
            0 => match congestion >> 2 & 3 {
                0 => vec![Ccid::Two],
                1 => vec![Ccid::Cubic],
                2 => vec![Ccid::Cubic, Ccid::Two],
                _ => vec![Ccid::Two, Ccid::Cubic],
            },
            1 => vec![Ccid::Three],
            2 => vec![Ccid::Four],
            _ => vec![Ccid::Four, Ccid::Two],
        };
        let options = Options {
            ccids,
            tfrc,
            reorder: (congestion & 32 != 0).then_some(ReorderOptions::new(max_delay)),
            short_seqnos: settings & 1 != 0,
            ndp_count: settings & 2 != 0,
            data_checksum: settings & 4 != 0 && !protected,
            security: protected.then(tap::security),
            ecn_nonce: settings & 8 != 0,
            half_open: usize::from(settings >> 4 & 1),
            base_packet: 600,
            first_packet: (settings & 4 != 0).then_some(600),
            sequence_window: if settings & 32 != 0 { 40 } else { 1000 },
            server_holds_time_wait: settings & 64 != 0,
            receive_buffer: if settings & 128 != 0 { 2000 } else { 1 << 20 },
            ..Options::default()
        };
        let mut ends = ["client", "server"].map(|name| End {
            endpoint: Endpoint::new(options.clone(), Rng::from_seed(1).stream(name)).expect("options that work"),
            id: None,
            inbox: VecDeque::new(),
            last: 0,
            got: BTreeSet::new(),
        });
        ends[1].endpoint.listen(PORT, SERVICE).expect("a port");
        let now = Instant::from_millis(1);
        ends[0].id = ends[0].endpoint.connect(now, route(0), 9, PORT, SERVICE).ok();
        let spy = protected.then(Spy::default);
        Self { now, ends, forged: false, next: 0, spy, buf: Vec::new() }
    }

    /// Polls both ends dry.
    fn settle(&mut self) {
        for at in 0..2 {
            let mut turns = 0;
            while let Some(transmit) = self.ends[at].endpoint.poll_transmit(self.now, &mut self.buf) {
                turns += 1;
                assert!(turns < ENDLESS, "transmits without end");
                for bytes in transmit.datagrams(&self.buf) {
                    let packet = Packet::parse(bytes, Checksum::Udp).expect("what is sent is well-formed");
                    let opened = self.spy.as_mut().is_none_or(|spy| spy.see(at, &packet));
                    assert!(opened || self.forged, "a record that the keys do not open");
                    if !packet.header.short {
                        self.ends[at].last = packet.header.seq;
                    }
                    let inbox = &mut self.ends[1 - at].inbox;
                    if inbox.len() < ON_THE_WAY {
                        inbox.push_back((transmit.ecn, bytes.to_vec()));
                    }
                }
            }
            let end = &mut self.ends[at];
            while end.endpoint.poll_event().is_some() {}
            end.id = end.endpoint.connections().last();
        }
        for at in 0..2 {
            self.receive(at);
        }
    }

    fn receive(&mut self, at: usize) {
        let forged = self.forged;
        let end = &mut self.ends[at];
        let Some(connection) = end.id.and_then(|id| end.endpoint.connection_mut(id)) else { return };
        let mut message = Vec::new();
        while connection.recv(&mut message) {
            assert!(end.got.insert(message.clone()) || forged, "delivered twice");
        }
    }

    fn advance(&mut self, by: Duration) {
        self.now += by;
        for at in 0..2 {
            let mut turns = 0;
            while self.ends[at].endpoint.poll_timeout().is_some_and(|due| due <= self.now) {
                turns += 1;
                assert!(turns < ENDLESS, "a timer that is always due at {:?}: {}", self.now, self.ends[at].summary());
                self.ends[at].endpoint.handle_timeout(self.now);
                self.settle();
            }
        }
    }

    /// Time passes with each timer in time, as an end that wakes late every time waits for answers for ever.
    fn wait(&mut self, by: Duration) {
        let end = self.now + by;
        while self.due().is_some_and(|due| due <= end) {
            self.next_timer();
        }
        self.advance(end - self.now);
    }

    fn due(&self) -> Option<Instant> {
        self.ends.iter().filter_map(|end| end.endpoint.poll_timeout()).min()
    }

    fn next_timer(&mut self) {
        self.advance(self.due().map_or(Duration::ZERO, |due| due - self.now));
    }

    fn hand(&mut self, at: usize, ecn: Ecn, payload: &[u8]) {
        self.ends[at].endpoint.handle_datagram(self.now, Datagram { route: route(at), ecn, payload });
        self.settle();
    }

    fn deliver(&mut self, at: usize, index: usize, keep: bool) {
        let len = self.ends[at].inbox.len();
        if len == 0 {
            return;
        }
        let index = index % len;
        let packet = if keep { self.ends[at].inbox.get(index).cloned() } else { self.ends[at].inbox.remove(index) };
        if let Some((ecn, bytes)) = packet {
            self.hand(at, ecn, &bytes);
        }
    }

    fn connection(&mut self, at: usize, action: impl FnOnce(&mut Connection, Instant)) {
        let end = &mut self.ends[at];
        if let Some(connection) = end.id.and_then(|id| end.endpoint.connection_mut(id)) {
            action(connection, self.now);
        }
    }

    fn send(&mut self, at: usize, len: usize) {
        let mut message = self.next.to_be_bytes().to_vec();
        message.resize(4 + len % 1300, 7);
        self.next += 1;
        self.connection(at, |connection, now| _ = connection.send(now, &message, SendOptions::default()));
    }

    /// A packet with numbers near the right ones.
    fn forge(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        self.forged = true;
        let at = usize::from(input.arbitrary::<bool>()?);
        let near = |base: u64, by: i16| base.wrapping_add_signed(i64::from(by)) & ((1 << 48) - 1);
        let (seq, ack) =
            (near(self.ends[1 - at].last, input.arbitrary()?), near(self.ends[at].last, input.arbitrary()?));
        let reset = Reset::new(ResetCode(input.arbitrary()?));
        let kind = match input.arbitrary::<u8>()? % 10 {
            0 => Kind::Request { service: SERVICE },
            1 => Kind::Response { ack, service: SERVICE },
            2 => Kind::Data,
            3 => Kind::Ack { ack },
            4 => Kind::DataAck { ack },
            5 => Kind::CloseReq { ack },
            6 => Kind::Close { ack },
            7 => Kind::Reset { ack, reset },
            8 => Kind::Sync { ack },
            _ => Kind::SyncAck { ack },
        };
        let (source_port, destination_port) = if at == 1 { (9, PORT) } else { (PORT, 9) };
        let header =
            Header { source_port, destination_port, ccval: ack as u8 & 15, coverage: 0, short: false, seq, kind };
        let len = usize::from(input.arbitrary::<u8>()?).min(input.len());
        let options = input.bytes(len)?;
        let mut bytes = Vec::new();
        let mut builder = Builder::begin(&mut bytes, &header);
        builder.options().bytes(options);
        builder.finish(&[1, 2, 3], Checksum::Udp);
        if let Some(spy) = &mut self.spy {
            spy.forge(1 - at, &mut bytes, input)?;
        }
        self.hand(at, if seq % 3 == 0 { Ecn::Ce } else { Ecn::Ect0 }, &bytes);
        Ok(())
    }

    /// Nothing was forged: what is open must still work.
    fn finish(&mut self) {
        let open = |end: &End| {
            let connection = end.id.and_then(|id| end.endpoint.connection(id));
            connection.is_some_and(|it| it.state() == State::Open)
        };
        if !self.ends.iter().all(open) {
            return;
        }
        self.ends.iter_mut().for_each(|end| end.inbox.clear());
        let before = self.ends[1].got.len();
        for round in 0..400 {
            self.send(0, 10);
            self.settle();
            while self.ends.iter().any(|end| !end.inbox.is_empty()) {
                self.deliver(0, 0, false);
                self.deliver(1, 0, false);
            }
            if self.ends[1].got.len() > before || !self.ends.iter().all(open) {
                return;
            }
            self.wait(Duration::from_secs(if round < 20 { 1 } else { 64 }));
        }
        panic!("an open connection carries nothing any more: {} {}", self.ends[0].summary(), self.ends[1].summary());
    }
}

/// Any sequence of calls; `Err` only when the input is used up.
pub(crate) fn run(input: &mut Unstructured<'_>, protected: bool) -> Result<()> {
    let mut world = World::new(input.arbitrary()?, input.arbitrary()?, protected);
    world.settle();
    for _ in 0..400 {
        if input.is_empty() || step(&mut world, input).is_err() {
            break;
        }
        world.settle();
    }
    if !world.forged {
        world.finish();
    }
    Ok(())
}

fn step(world: &mut World, input: &mut Unstructured<'_>) -> Result<()> {
    let op: u8 = input.arbitrary()?;
    let at = usize::from(op >> 7);
    match op & 31 {
        0 | 1 => world.advance(Duration::from_millis(u64::from(input.arbitrary::<u8>()?))),
        2 => world.advance(Duration::from_millis(u64::from(input.arbitrary::<u16>()?))),
        3 | 4 => world.next_timer(),
        5..=9 => {
            let len = usize::from(input.arbitrary::<u16>()?);
            world.send(at, len);
        }
        10..=15 => {
            for _ in 0..8 {
                world.deliver(at, 0, false);
            }
        }
        16 | 17 => world.deliver(at, usize::from(input.arbitrary::<u8>()?), false),
        18 => world.deliver(at, usize::from(input.arbitrary::<u8>()?), true),
        19 => _ = world.ends[at].inbox.pop_front(),
        20 => world.ends[at].inbox.clear(),
        21 if input.ratio(1, 8)? => world.connection(at, |connection, now| connection.close(now)),
        22 if input.ratio(1, 8)? => world.connection(at, |connection, _| connection.abort()),
        23 => world.connection(at, |connection, _| connection.set_slow_receiver(op & 32 != 0)),
        24 => {
            if let Some((ecn, _)) = world.ends[at].inbox.front_mut() {
                *ecn = Ecn::Ce;
            }
        }
        25 | 26 => world.forge(input)?,
        27 => {
            world.forged = true;
            let (index, flip) = (usize::from(input.arbitrary::<u16>()?), input.arbitrary::<u8>()?);
            if let Some((ecn, mut bytes)) = world.ends[at].inbox.pop_front() {
                let index = index % bytes.len();
                bytes[index] ^= flip;
                world.hand(at, ecn, &bytes);
            }
        }
        _ => {}
    }
    Ok(())
}
