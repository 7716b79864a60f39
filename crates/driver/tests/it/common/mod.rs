//! Small machines that the tests run on real sockets.
#![allow(dead_code, reason = "each test binary uses the part that it needs")]

use braidcast_core::{Datagram, Ecn, Instant, Machine, Route, SocketId, Transmit};
use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

/// Returns `true` if this machine has an IPv6 loopback address; containers often have none.
pub(crate) fn has_ipv6() -> bool {
    let has = socket2::Socket::new(socket2::Domain::IPV6, socket2::Type::DGRAM, None)
        .and_then(|socket| socket.bind(&SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 0)).into()))
        .is_ok();
    if !has {
        skipped("the part that needs IPv6");
    }
    has
}

/// Says so past the test harness, which keeps what passing tests print to itself.
pub(crate) fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// Sends everything back where it came from, whole bursts at once.
#[derive(Default)]
pub(crate) struct Echo {
    pub(crate) queue: VecDeque<(Route, Ecn, Vec<u8>)>,
    pub(crate) echoed: u64,
    /// What came last, by socket.
    pub(crate) last: BTreeMap<SocketId, (Route, Ecn, usize)>,
}

impl Machine for Echo {
    type Event = ();

    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        self.queue.push_back((datagram.route, datagram.ecn, datagram.payload.to_vec()));
        self.last.insert(datagram.route.socket, (datagram.route, datagram.ecn, datagram.payload.len()));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let (route, ecn, payload) = self.queue.pop_front()?;
        buf.extend_from_slice(&payload);
        self.echoed += 1;
        while let Some((r, e, next)) = self.queue.front()
            && (*r, *e, next.len()) == (route, ecn, payload.len())
            && buf.len() + payload.len() < 60_000
        {
            buf.extend_from_slice(next);
            self.queue.pop_front();
            self.echoed += 1;
        }
        Some(Transmit { route, ecn, segment_size: Some(payload.len()) })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

/// Sends numbered datagrams with at most `window` of them unanswered, in batches of ten, and notes the answers.
pub(crate) struct Client {
    pub(crate) route: Route,
    pub(crate) total: u32,
    pub(crate) window: u32,
    pub(crate) len: usize,
    pub(crate) sent: u32,
    pub(crate) answers: Vec<(u32, Instant, Ecn)>,
    pub(crate) sent_at: Vec<Instant>,
    /// A request without an answer for this long counts as lost, so that lost ones do not fill the
    /// window.
    pub(crate) patience: Duration,
    last: Instant,
    given_up: u32,
}

impl Client {
    pub(crate) fn new(socket: SocketId, remote: SocketAddr, total: u32) -> Self {
        Self {
            route: Route::new(socket, remote),
            total,
            window: 100,
            len: 1_000,
            sent: 0,
            answers: Vec::new(),
            sent_at: Vec::new(),
            patience: Duration::from_millis(300),
            last: Instant::ZERO,
            given_up: 0,
        }
    }

    fn outstanding(&self) -> u32 {
        self.sent.saturating_sub(self.answers.len() as u32 + self.given_up)
    }

    pub(crate) fn done(&self) -> bool {
        self.sent == self.total && self.outstanding() == 0
    }
}

impl Machine for Client {
    type Event = ();

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        assert_eq!(datagram.payload.len(), self.len);
        let number = u32::from_be_bytes(datagram.payload[..4].try_into().unwrap());
        self.answers.push((number, now, datagram.ecn));
        self.last = now;
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_some_and(|at| at <= now) {
            self.given_up += self.outstanding();
            self.last = now;
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let room = (self.window - self.outstanding().min(self.window)).min(self.total - self.sent).min(10);
        if room == 0 || (room < 10 && self.sent + room != self.total) {
            return None;
        }
        for _ in 0..room {
            let start = buf.len();
            buf.extend_from_slice(&self.sent.to_be_bytes());
            buf.resize(start + self.len, 0x5a);
            self.sent += 1;
            self.sent_at.push(now);
        }
        self.last = now;
        Some(Transmit { route: self.route, ecn: Ecn::Ect0, segment_size: Some(self.len) })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.outstanding() > 0).then(|| self.last + self.patience)
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

/// Does nothing at all.
pub(crate) struct Idle;

impl Machine for Idle {
    type Event = ();

    fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

/// Counts a timer that runs out every `period`, and how late each one was.
pub(crate) struct Metronome {
    pub(crate) period: Duration,
    pub(crate) next: Instant,
    pub(crate) lateness: Vec<Duration>,
}

impl Machine for Metronome {
    type Event = ();

    fn handle_datagram(&mut self, _: Instant, _: Datagram<'_>) {}

    fn handle_timeout(&mut self, now: Instant) {
        while self.next <= now {
            self.lateness.push(now - self.next);
            self.next += self.period;
        }
    }

    fn poll_transmit(&mut self, _: Instant, _: &mut Vec<u8>) -> Option<Transmit> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.next)
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}
