//! Other SCTP stacks as machines of the simulator, and one test harness for all.
#![allow(dead_code, unused_imports, reason = "each test file uses a part")]

mod dcsctp;
mod proto;

pub(crate) use dcsctp::Dcsctp;
pub(crate) use proto::Proto;

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_sctp::{AssociationId, CloseReason, Endpoint, Event, Options, Reliability, SendOptions};
use braidcast_sim::link::LinkModel;
use braidcast_sim::{Duplex, Network, NodeId};
use core::time::Duration;
use std::collections::VecDeque;

pub(crate) const PORT: u16 = 5000;
const OURS: &str = "10.0.0.1:9899";
const THEIRS: &str = "10.0.0.2:9899";

/// A message that came, whoever took it. Not every stack reports whether it was unordered.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Message {
    pub(crate) stream: u16,
    pub(crate) ppid: u32,
    pub(crate) payload: Vec<u8>,
}

/// What all stacks report in one way or another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Connected,
    Restarted,
    /// Shut down in peace.
    Closed,
    /// Over for any other reason.
    Failed,
}

/// What a test asks of a stack.
pub(crate) trait Stack: Machine<Event = Told> {
    /// `true` if it reports the end of a shutdown that it began itself.
    const TELLS_ITS_END: bool = true;

    /// `false`: no room now.
    fn send(&mut self, now: Instant, message: &Message, unordered: bool, reliability: Reliability) -> bool;
    fn recv(&mut self, now: Instant) -> Option<Message>;
    fn shutdown(&mut self, now: Instant);
    /// Bytes sent and not acknowledged.
    fn buffered(&self) -> usize;
}

/// Our endpoint with one association.
pub(crate) struct Ours {
    endpoint: Endpoint,
    id: Option<AssociationId>,
    events: VecDeque<Told>,
    pub(crate) abandoned: usize,
}

impl Ours {
    pub(crate) fn listening(options: &Options, seed: u64) -> Self {
        let mut endpoint = Endpoint::new(options.clone(), Rng::from_seed(seed)).unwrap();
        endpoint.listen();
        Self { endpoint, id: None, events: VecDeque::new(), abandoned: 0 }
    }

    pub(crate) fn connecting(now: Instant, options: &Options, seed: u64) -> Self {
        let mut ours = Self::listening(options, seed);
        let route = Route::new(SocketId(0), THEIRS.parse().unwrap());
        ours.id = Some(ours.endpoint.connect(now, PORT, &[route]).unwrap());
        ours
    }

    pub(crate) fn interleaves(&self) -> bool {
        self.id.and_then(|id| self.endpoint.association(id)).is_some_and(|association| association.interleaves())
    }
}

impl Machine for Ours {
    type Event = Told;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.endpoint.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Told> {
        loop {
            let (id, event) = self.endpoint.poll_event()?;
            self.id = Some(id);
            return Some(match event {
                Event::Connected => Told::Connected,
                Event::Restarted => Told::Restarted,
                Event::Closed(CloseReason::Shutdown) => Told::Closed,
                Event::Closed(reason) => {
                    eprintln!("we: {reason}");
                    Told::Failed
                }
                Event::Abandoned { .. } => {
                    self.abandoned += 1;
                    continue;
                }
                _ => continue,
            });
        }
    }
}

impl Stack for Ours {
    fn send(&mut self, now: Instant, message: &Message, unordered: bool, reliability: Reliability) -> bool {
        let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) else { return false };
        let how = SendOptions {
            stream: message.stream,
            ppid: message.ppid,
            unordered,
            reliability,
            ..SendOptions::default()
        };
        association.send(now, &message.payload, how).is_ok()
    }

    fn recv(&mut self, now: Instant) -> Option<Message> {
        let (association, mut payload) = (self.endpoint.association_mut(self.id?)?, Vec::new());
        let received = association.recv(now, &mut payload)?;
        Some(Message { stream: received.stream, ppid: received.ppid, payload })
    }

    fn shutdown(&mut self, now: Instant) {
        if let Some(association) = self.id.and_then(|id| self.endpoint.association_mut(id)) {
            association.shutdown(now);
        }
    }

    fn buffered(&self) -> usize {
        self.id.and_then(|id| self.endpoint.association(id)).map_or(0, |association| association.buffered())
    }
}

/// The network holds machines of one type.
#[allow(clippy::large_enum_variant, reason = "there are two of them")]
pub(crate) enum Either<T> {
    Ours(Ours),
    Theirs(T),
}

macro_rules! both {
    ($self:expr, $it:ident => $action:expr) => {
        match $self {
            Either::Ours($it) => $action,
            Either::Theirs($it) => $action,
        }
    };
}

impl<T: Stack> Machine for Either<T> {
    type Event = Told;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        both!(self, it => it.handle_datagram(now, datagram));
    }

    fn handle_timeout(&mut self, now: Instant) {
        both!(self, it => it.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        both!(self, it => it.poll_transmit(now, buf))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        both!(self, it => it.poll_timeout())
    }

    fn poll_event(&mut self) -> Option<Told> {
        both!(self, it => it.poll_event())
    }
}

impl<T: Stack> Stack for Either<T> {
    fn send(&mut self, now: Instant, message: &Message, unordered: bool, reliability: Reliability) -> bool {
        both!(self, it => it.send(now, message, unordered, reliability))
    }

    fn recv(&mut self, now: Instant) -> Option<Message> {
        both!(self, it => it.recv(now))
    }

    fn shutdown(&mut self, now: Instant) {
        both!(self, it => it.shutdown(now));
    }

    fn buffered(&self) -> usize {
        both!(self, it => it.buffered())
    }
}

/// One path between our endpoint (end 0) and another stack (end 1).
pub(crate) struct Link<T: Stack> {
    pub(crate) net: Network<Either<T>>,
    ends: [NodeId; 2],
    /// What each end was told.
    pub(crate) told: [Vec<Told>; 2],
}

impl<T: Stack> Link<T> {
    pub(crate) fn new(ours: Ours, theirs: T, loss: &str) -> Self {
        let mut net = Network::new(braidcast_sim::testing::seed_from_env(1).get());
        let ends = [net.add(Either::Ours(ours), [OURS]), net.add(Either::Theirs(theirs), [THEIRS])];
        let model = LinkModel { loss: loss.parse().unwrap(), ..LinkModel::wire(20_000_000, Duration::from_millis(10)) };
        net.connect((ends[0], 0), (ends[1], 0), Duplex::both(model));
        Self { net, ends, told: [Vec::new(), Vec::new()] }
    }

    pub(crate) fn with<R>(&mut self, end: usize, action: impl FnOnce(&mut Either<T>, Instant) -> R) -> R {
        self.net.with(self.ends[end], action)
    }

    pub(crate) fn ours(&self) -> &Ours {
        match self.net.node(self.ends[0]) {
            Either::Ours(ours) => ours,
            Either::Theirs(_) => unreachable!("end 0 is ours"),
        }
    }

    pub(crate) fn run(&mut self, ms: u64) {
        self.net.run_for(Duration::from_millis(ms));
        for (end, told) in self.ends.into_iter().zip(&mut self.told) {
            told.extend(core::iter::from_fn(|| self.net.poll_event(end)));
        }
    }

    /// Runs until `done`; panics after `seconds`.
    pub(crate) fn until(&mut self, seconds: u64, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.net.now() + Duration::from_secs(seconds);
        while !done(self) {
            assert!(self.net.now() < end, "{what}: not within {seconds} s; {:?}", self.told);
            self.run(5);
        }
    }

    pub(crate) fn connected(&mut self) {
        self.until(10, "handshake", |link| link.told.iter().all(|told| told.contains(&Told::Connected)));
    }

    pub(crate) fn take(&mut self, end: usize) -> Vec<Message> {
        self.with(end, |stack, now| core::iter::from_fn(|| stack.recv(now)).collect())
    }

    /// Sends `messages` reliably from `from`; they must arrive whole and, if `!unordered`, in order for each stream.
    pub(crate) fn carry(&mut self, from: usize, messages: &[Message], unordered: bool) {
        let (mut sent, mut came) = (0, Vec::new());
        self.until(120, &format!("transfer from end {from}"), |link| {
            while sent < messages.len() {
                let taken =
                    link.with(from, |stack, now| stack.send(now, &messages[sent], unordered, Reliability::Reliable));
                if !taken {
                    break;
                }
                sent += 1;
            }
            came.extend(link.take(1 - from));
            came.len() >= messages.len()
        });
        if unordered {
            let mut expected = messages.to_vec();
            expected.sort();
            came.sort();
            assert!(came == expected, "messages differ");
        } else {
            let streams = messages.iter().map(|message| message.stream).max().unwrap_or(0);
            for stream in 0..=streams {
                let of = |all: &[Message]| all.iter().filter(|it| it.stream == stream).cloned().collect::<Vec<_>>();
                assert!(of(&came) == of(messages), "stream {stream} differs");
            }
        }
    }

    /// Sends messages that are worth little over a bad link, then one that must come. Gives the number that came.
    pub(crate) fn carry_some(&mut self, from: usize, count: usize, reliability: Reliability) -> usize {
        let mut came = Vec::new();
        for at in 0..count {
            let message = message(at, 3000, 2);
            self.with(from, |stack, now| stack.send(now, &message, at % 5 == 4, reliability));
            self.run(10);
            came.extend(self.take(1 - from));
        }
        // Unordered: dcSCTP may leave a stream waiting for a message of which it abandoned what had no TSN yet.
        let last: Vec<Message> = (0..2).map(|stream| message(stream, 500, 2)).collect();
        for message in &last {
            self.until(10, "room", |link| {
                link.with(from, |stack, now| stack.send(now, message, true, Reliability::Reliable))
            });
        }
        self.until(30, &format!("the last message from end {from}"), |link| {
            came.extend(link.take(1 - from));
            last.iter().all(|message| came.contains(message)) && link.with(from, |stack, _| stack.buffered()) == 0
        });
        for message in &came {
            let whole = message.payload == pattern(message.payload.len(), message.payload[0]);
            assert!(whole, "a message came damaged");
        }
        came.len() - last.len()
    }

    pub(crate) fn shut_down(&mut self, from: usize) {
        self.with(from, |stack, now| stack.shutdown(now));
        let ends = if from == 0 || T::TELLS_ITS_END { 2 } else { 1 };
        self.until(20, "shutdown", |link| {
            link.told[..ends].iter().all(|told| matches!(told.last(), Some(Told::Closed | Told::Failed)))
        });
        assert!(self.told[..ends].iter().all(|told| told.last() == Some(&Told::Closed)), "{:?}", self.told);
    }
}

/// Bytes that follow from the first of them.
fn pattern(len: usize, first: u8) -> Vec<u8> {
    (0..len).map(|at| first.wrapping_add((at / 3) as u8)).collect()
}

/// Message number `at`, on one of `streams`. PPID 53 is one that all stacks know ("WebRTC Binary").
pub(crate) fn message(at: usize, len: usize, streams: usize) -> Message {
    Message { stream: (at % streams) as u16, ppid: 53, payload: pattern(len, at as u8) }
}

pub(crate) fn messages(count: usize, len: usize, streams: usize) -> Vec<Message> {
    (0..count).map(|at| message(at, len, streams)).collect()
}

pub(crate) fn options() -> Options {
    Options::live().with(|it| it.local_port = PORT)
}

/// The route back, for stacks that know no addresses.
fn reply(route: Route) -> Transmit {
    Transmit { route, ecn: Ecn::NotEct, segment_size: None }
}
fn to_us() -> Route {
    Route::new(SocketId(0), OURS.parse().unwrap())
}
