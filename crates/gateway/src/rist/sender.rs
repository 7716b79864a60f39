//! The sending end: what was sent and may be asked for again.

use super::endpoint::{CONTROL, MEDIA, Outbox, Report};
use super::tunnel::{Opened, Shape, Tunnel};
use super::wire::rtcp::{self, Composer, Item, Items};
use super::{AGAIN, ECHOES, LONGEST_ECHO, NAME, Options, Profile, REPORTS, stamp};
use crate::reception::{Received, Rtt};
use crate::rtp::{HEADER, Header};
use crate::srt::Sent;
use braidcast_core::{Datagram, Instant, Rng, Route};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Payload of a packet: seven packets of transport stream, as everyone sends it.
const PAYLOAD: usize = 7 * 188;
/// Virtual ports of the main profile, as librist has them: media goes to 1968 and RTCP to 1969.
const PORTS: [(u16, u16); 2] = [(0x8001, 1968), (0x8000, 1969)];
/// Version of the tunnel's header that is spoken; in clear, librist 0.2 writes 0.
const VERSION: u8 = 1;
/// Times that a packet is sent again at most.
const MOST: u8 = 20;
/// Time between two copies of a packet at least.
const LEAST: Duration = Duration::from_millis(5);

/// A packet that may be asked for again.
struct Kept {
    pushed: Instant,
    copied: Instant,
    copies: u8,
    packet: Vec<u8>,
}

pub(super) struct Sender {
    options: Options,
    peer: SocketAddr,
    tunnel: Tunnel,
    source: u32,
    /// Number of the next packet.
    next: u64,
    kept: VecDeque<Kept>,
    /// When who takes the stream was heard last; `None`: not within the idle time.
    heard: Option<Instant>,
    connections: u32,
    rtt: Rtt,
    report_at: Instant,
    echo_at: Instant,
    counts: Sent,
    scratch: Vec<u8>,
}

impl Sender {
    pub(super) fn new(now: Instant, peer: SocketAddr, options: Options, mut rng: Rng) -> Self {
        let profile = if options.secret.is_some() { Profile::Main } else { options.profile };
        Self {
            tunnel: Tunnel::new(options.secret.clone(), options.key_length, rng.fork()),
            options: Options { profile, buffer: options.buffer.clamp(16, 1 << 15), ..options },
            peer,
            source: rng.u32() & !AGAIN,
            next: u64::from(rng.u32() as u16) + (1 << 16),
            kept: VecDeque::new(),
            heard: None,
            connections: 0,
            rtt: Rtt::new(),
            report_at: now,
            echo_at: now,
            counts: Sent::default(),
            scratch: Vec::new(),
        }
    }

    fn shape(&self, is_control: bool) -> Option<Shape> {
        let key = self.options.secret.as_ref().map(|_| self.options.key_length);
        let version = if key.is_some() { VERSION } else { 0 };
        let shape = Shape { ports: PORTS[usize::from(is_control)], version, key };
        (self.options.profile == Profile::Main).then_some(shape)
    }

    fn route(&self, is_control: bool) -> Route {
        match (self.options.profile, is_control) {
            (Profile::Simple, true) => {
                let port = self.peer.port().wrapping_add(1);
                Route::new(CONTROL, SocketAddr::new(self.peer.ip(), port))
            }
            _ => Route::new(MEDIA, self.peer),
        }
    }

    fn write(&mut self, is_control: bool, payload: &[u8], out: &mut Outbox) {
        let (route, shape) = (self.route(is_control), self.shape(is_control).map(Shape::reversed));
        out.send_sealed(route, shape, payload, &mut self.tunnel);
    }

    pub(super) fn push(&mut self, now: Instant, bytes: &[u8], out: &mut Outbox) {
        self.forget(now);
        for payload in bytes.chunks(PAYLOAD) {
            if self.options.profile == Profile::Main && self.heard.is_none() {
                self.counts.dropped += 1;
                continue;
            }
            let mut packet = Vec::with_capacity(HEADER + payload.len());
            Header::of_ts(self.next as u16, timestamp(now), self.source).write(&mut packet);
            packet.extend_from_slice(payload);
            self.next += 1;
            self.counts.packets += 1;
            self.counts.bytes += payload.len() as u64;
            self.write(false, &packet, out);
            if self.kept.len() >= self.options.buffer {
                self.kept.pop_front();
            }
            self.kept.push_back(Kept { pushed: now, copied: now, copies: 0, packet });
        }
    }

    /// Leaves out what would come too late.
    fn forget(&mut self, now: Instant) {
        while self.kept.front().is_some_and(|kept| now.since(kept.pushed) > self.options.latency) {
            self.kept.pop_front();
        }
    }

    pub(super) fn handle(&mut self, now: Instant, datagram: Datagram<'_>, out: &mut Outbox) {
        // Only who is called is heeded.
        if datagram.route.remote.ip() != self.peer.ip() {
            return;
        }
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        match self.options.profile {
            Profile::Simple if datagram.route.socket == CONTROL => bytes.extend_from_slice(datagram.payload),
            Profile::Simple => {}
            Profile::Main => match self.tunnel.open(now, datagram.payload, true) {
                Opened::Media(_, payload) => bytes.extend_from_slice(payload),
                Opened::Refused(why) => out.refuse(now, datagram.route.remote, why),
                Opened::KeepAlive | Opened::Nothing => {}
            },
        }
        if Items::are_whole(&bytes) {
            self.hear(now, &bytes, out);
        }
        self.scratch = bytes;
    }

    fn hear(&mut self, now: Instant, bytes: &[u8], out: &mut Outbox) {
        if self.heard.replace(now).is_none() {
            self.connections += 1;
            out.came(self.connections);
        }
        let mut left = rtcp::MOST;
        for item in Items::new(bytes) {
            match item {
                Item::Missing(missing) => {
                    for number in missing.numbers().take(left) {
                        left -= 1;
                        self.repeat(now, number, out);
                    }
                }
                Item::EchoRequest { source, stamp } => {
                    let mut answer = Vec::new();
                    let mut to = Composer::new(self.source, &mut answer);
                    to.receiver_report(None);
                    to.name(NAME);
                    to.echo_answer(source, stamp);
                    self.write(true, &answer, out);
                }
                Item::EchoAnswer { stamp, delay } => {
                    let passed = super::stamp(now).wrapping_sub(stamp);
                    let passed = Duration::from_nanos(((u128::from(passed) * 1_000_000_000) >> 32) as u64);
                    if passed < LONGEST_ECHO && delay <= passed {
                        self.rtt.sample(passed - delay);
                    }
                }
                _ => {}
            }
        }
    }

    /// Sends a packet again.
    fn repeat(&mut self, now: Instant, number: u16, out: &mut Outbox) {
        self.counts.asked += 1;
        let back = u64::from((self.next as u16).wrapping_sub(number));
        let at = (self.kept.len() as u64).checked_sub(back).filter(|_| back > 0);
        let wait = (self.rtt.smoothed / 2).max(LEAST);
        let Some(kept) = at.and_then(|at| self.kept.get_mut(at as usize)) else {
            self.counts.dropped += 1;
            return;
        };
        // A copy that is still in flight is not asked for again by who waits a round trip.
        if out.is_full() || kept.copies >= MOST || (kept.copies > 0 && now.since(kept.copied) < wait) {
            return;
        }
        (kept.copies, kept.copied) = (kept.copies + 1, now);
        let mut packet = kept.packet.clone();
        packet[HEADER - 1] |= AGAIN as u8;
        self.counts.repeated += 1;
        self.write(false, &packet, out);
    }

    pub(super) fn tick(&mut self, now: Instant, out: &mut Outbox) {
        self.forget(now);
        if self.heard.take_if(|heard| now.since(*heard) >= self.options.idle).is_some() {
            out.went(self.connections);
        }
        if now < self.report_at {
            return;
        }
        self.report_at = now + REPORTS;
        let mut report = Vec::new();
        let mut to = Composer::new(self.source, &mut report);
        to.sender_report(stamp(now), timestamp(now), self.counts.packets as u32, self.counts.bytes as u32);
        to.name(NAME);
        if now >= self.echo_at {
            self.echo_at = now + ECHOES;
            to.echo_request(stamp(now));
        }
        self.write(true, &report, out);
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        let heard = self.heard.map(|heard| heard + self.options.idle);
        Instant::first_of([Some(self.report_at), heard])
    }

    pub(super) fn report(&self) -> Option<Report> {
        self.heard.map(|_| Report {
            stream: self.connections,
            name: String::new(),
            remotes: vec![self.peer],
            profile: self.options.profile,
            key_bytes: self.options.secret.as_ref().map_or(0, |_| self.options.key_length.bytes()),
            latency: self.options.latency,
            rtt: self.rtt.smoothed,
            reordering: Duration::ZERO,
            received: Received::default(),
            sent: self.counts,
        })
    }
}

/// The media's clock.
fn timestamp(now: Instant) -> u32 {
    (u128::from(now.as_nanos()) * 90_000 / 1_000_000_000) as u32
}
