//! Help for tests that run on the simulator: seeds from outside, digests of runs, and two tiny machines.

pub use crate::seed::{SEED_VARIABLE, Seed, cases, seed_from_env};

use crate::net::Network;
use crate::tap::TapEvent;
use braidcast_core::{Datagram, Ecn, Instant, Machine, Route, SocketId, Transmit};
use core::time::Duration;
use std::cell::Cell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

/// A running digest of everything that the network's tap sees: the same seed must give the same value.
///
/// It takes the place of the network's tap. The value is the same on every machine (FNV-1a, 64 bit).
pub fn digest<M: Machine>(net: &mut Network<M>) -> Rc<Cell<u64>> {
    let value = Rc::new(Cell::new(0xcbf2_9ce4_8422_2325));
    let shared = value.clone();
    net.set_tap(move |event| shared.set(mix(shared.get(), event)));
    value
}

fn mix(hash: u64, event: &TapEvent<'_>) -> u64 {
    let bytes =
        |hash: u64, bytes: &[u8]| bytes.iter().fold(hash, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3));
    let head = format!("{:?} {:?} {} {} {:?} ", event.at, event.action, event.from, event.to, event.ecn);
    bytes(bytes(hash, head.as_bytes()), event.payload)
}

/// A machine that sends numbered datagrams to its remotes in turn at a fixed interval, or answers what it gets
/// with the same bytes.
///
/// Its events are the datagrams that it got: where from, how many bytes and which number.
#[derive(Debug)]
pub struct Pinger {
    remotes: Vec<SocketAddr>,
    interval: Duration,
    size: usize,
    burst: u64,
    next: Option<Instant>,
    sent: u64,
    credit: u64,
    echo: bool,
    received: u64,
    waiting: VecDeque<(Route, Vec<u8>)>,
    events: VecDeque<(Route, usize, u64)>,
}

impl Pinger {
    /// Sends a datagram every `interval` from time zero on, to each of `remotes` in turn, to the first from socket 0
    /// and so on.
    ///
    /// # Panics
    /// If a remote is not an IP address with a port.
    pub fn to<'a>(remotes: impl IntoIterator<Item = &'a str>, interval: Duration) -> Self {
        let remotes = remotes.into_iter().map(crate::topology::parse_address).collect();
        Self { remotes, interval, next: Some(Instant::ZERO), ..Self::answering() }
    }

    /// Sends nothing but answers.
    pub fn answering() -> Self {
        Self {
            remotes: Vec::new(),
            interval: Duration::ZERO,
            size: 100,
            burst: 1,
            next: None,
            sent: 0,
            credit: 0,
            echo: true,
            received: 0,
            waiting: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Takes what it gets and answers nothing.
    #[must_use]
    pub fn silent(self) -> Self {
        Self { echo: false, ..self }
    }

    /// Sends datagrams of `size` bytes, at least 8, instead of 100.
    #[must_use]
    pub fn sized(self, size: usize) -> Self {
        Self { size: size.max(8), ..self }
    }

    /// Sends `burst` datagrams at a time, as one segmented transmit, instead of one.
    #[must_use]
    pub fn bursts(self, burst: u64) -> Self {
        Self { burst, ..self }
    }

    /// Datagrams got.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Datagrams sent on its own account.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Sends no more from now on.
    pub fn stop(&mut self) {
        self.next = None;
    }
}

impl Machine for Pinger {
    type Event = (Route, usize, u64);

    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        self.received += 1;
        let number = datagram.payload.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        self.events.push_back((datagram.route, datagram.payload.len(), number));
        if self.echo && self.remotes.is_empty() {
            self.waiting.push_back((datagram.route, datagram.payload.to_vec()));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(next) = self.next.filter(|next| *next <= now) {
            self.credit += self.burst;
            self.next = Some(next + self.interval);
            if self.interval.is_zero() {
                break;
            }
        }
    }

    fn poll_transmit(&mut self, _: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        if let Some((route, payload)) = self.waiting.pop_front() {
            buf.extend_from_slice(&payload);
            return Some(Transmit { route, ecn: Ecn::NotEct, segment_size: None });
        }
        if self.credit == 0 || self.remotes.is_empty() {
            return None;
        }
        let socket = (self.sent / self.burst) as usize % self.remotes.len();
        let count = self.credit.min(self.burst);
        for _ in 0..count {
            buf.extend_from_slice(&self.sent.to_be_bytes());
            buf.resize(buf.len() + self.size - 8, 0);
            self.sent += 1;
        }
        self.credit -= count;
        let route = Route::new(SocketId(socket as u16), self.remotes[socket]);
        Some(Transmit { route, ecn: Ecn::Ect0, segment_size: (count > 1).then_some(self.size) })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        self.events.pop_front()
    }
}
