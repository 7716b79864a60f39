//! The receiving end: one stream at a time, whoever sends it and over how many addresses.

use super::endpoint::{Outbox, Report};
use super::tunnel::{OVERHEAD, Opened, Refusal, Shape, Tunnel};
use super::wire::nulls;
use super::wire::rtcp::{Block, Composer, Item, Items};
use super::{AGAIN, ECHOES, LONGEST_ECHO, NAME, Options, Profile, REPORTS, stamp};
use crate::reception::{Clock, RANGES, Receive, Rtt};
use crate::rtp::Packet;
use crate::srt::Sent;
use braidcast_core::{Allowance, Datagram, Instant, Rng, Route, Unwrapper};
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};

/// Addresses that reports go to.
const PEERS: usize = 16;
/// A sender that is silent for this long makes room for another one: it is most likely the same one that came back.
const SILENT: Duration = Duration::from_secs(1);
/// What may be sent to an address at once: a second of requests.
const MOST_CREDIT: u64 = 1 << 16;
/// Bytes of each range in a request.
const RANGE: usize = 4;
/// Time between samples of the sender's clock.
const SAMPLES: Duration = Duration::from_millis(10);
/// The longest payload: an IP packet of 1500 bytes.
const LONGEST: usize = 1500;
/// Characters of a sender's name that are kept.
const NAME_KEPT: usize = 64;

/// Who sends reports, and gets ours.
struct Peer {
    route: Route,
    /// `None`: the simple profile.
    shape: Option<Shape>,
    source: u32,
    heard: Instant,
}

impl Peer {
    /// Bytes of the tunnel in front of what is sent to it.
    fn overhead(&self) -> usize {
        self.shape.map_or(0, |_| OVERHEAD)
    }
}

/// What a peer has to do with the stream; the higher one is kept.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Nothing.
    Other,
    /// It knows the stream's source.
    Claims,
    /// Media came from its host too.
    Carries,
}

/// Bytes that may still be sent to an address. Whoever sends in the name of a victim has little sent there, over
/// whatever ports and peers: the IP address alone counts.
struct Credit {
    ip: IpAddr,
    bytes: Allowance,
}

/// A stream that comes in.
struct Flow {
    id: u32,
    source: u32,
    remote: SocketAddr,
    /// Hosts that brought media of it, at most [`PEERS`]. Who only claims to belong to the stream gives way to them.
    carriers: Vec<IpAddr>,
    rx: Receive<16>,
    ticks: Unwrapper<32>,
    rtt: Rtt,
    is_measured: bool,
    profile: Profile,
    key_bytes: usize,
    name: String,
    heard: Instant,
    /// When something came that had not come before.
    fresh: Instant,
    sampled: Instant,
    /// The last sender report, and when it came.
    reported: Option<(u64, Instant)>,
    /// What came and what was expected up to the last report of ours.
    before: (u64, u64),
    report_at: Instant,
    echo_at: Instant,
    /// Which of several peers is asked for what is missing.
    turn: usize,
}

pub(super) struct Receiver {
    tunnel: Tunnel,
    rest: Rest,
}

/// All but the tunnel, out of which payloads are borrowed.
struct Rest {
    options: Options,
    /// Our source. It is not the sender's, as it is with librist: GStreamer takes that for a collision.
    own: u32,
    peers: Vec<Peer>,
    /// Of each address of these.
    credits: Vec<Credit>,
    flow: Option<Flow>,
    flows: u32,
    ticked: Instant,
    undecrypted: u64,
}

impl Receiver {
    pub(super) fn new(now: Instant, options: Options, mut rng: Rng) -> Self {
        let tunnel = Tunnel::new(options.secret.clone(), options.key_length, rng.fork());
        let options = Options { buffer: options.buffer.clamp(16, 1 << 15), ..options };
        let own = rng.u32() & !AGAIN;
        let rest = Rest {
            options,
            own,
            peers: Vec::new(),
            credits: Vec::new(),
            flow: None,
            flows: 0,
            ticked: now,
            undecrypted: 0,
        };
        Self { tunnel, rest }
    }

    pub(super) fn handle(&mut self, now: Instant, datagram: Datagram<'_>, out: &mut Outbox) {
        let Self { tunnel, rest } = self;
        let (route, bytes) = (datagram.route, datagram.payload);
        let in_clear = bytes.first().is_some_and(|byte| byte >> 6 == 2);
        if in_clear || route.socket.0 == 1 {
            if tunnel.is_secret() {
                out.refuse(now, route.remote, Refusal::Clear);
            } else if route.socket.0 == 1 {
                rest.hear(now, route, None, bytes, tunnel, out);
            } else {
                rest.take(now, route, None, bytes, out);
            }
            return;
        }
        let is_peer = rest.peers.iter().any(|peer| peer.route == route);
        // What is read is borrowed from the tunnel, into which the answer goes.
        let (shape, payload) = match tunnel.open(now, bytes, is_peer) {
            Opened::Media(shape, payload) => (shape, payload),
            Opened::KeepAlive | Opened::Nothing => return,
            Opened::Refused(why) => {
                rest.undecrypted += u64::from(why == Refusal::WrongSecret);
                out.refuse(now, route.remote, why);
                return;
            }
        };
        if Items::are_whole(payload) {
            let payload = payload.to_vec();
            rest.hear(now, route, Some(shape), &payload, tunnel, out);
        } else {
            rest.take(now, route, Some(shape), payload, out);
        }
    }

    pub(super) fn tick(&mut self, now: Instant, out: &mut Outbox) {
        let Self { tunnel, rest } = self;
        rest.ticked = now;
        rest.peers.retain(|peer| now.since(peer.heard) < rest.options.idle);
        rest.credits.retain(|credit| rest.peers.iter().any(|peer| peer.route.remote.ip() == credit.ip));
        if let Some(flow) =
            rest.flow.take_if(|flow| now.since(flow.heard) >= rest.options.idle && flow.rx.waiting() == 0)
        {
            out.went(flow.id);
        }
        rest.ask(now, tunnel, out);
        rest.report_on(now, tunnel, out);
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        let Rest { options, peers, flow, ticked, .. } = &self.rest;
        let flow = flow.as_ref()?;
        let due = flow.rx.next_due();
        let idle = due.is_none().then(|| flow.heard + options.idle);
        let has_peer = peers.iter().any(|peer| peer.source == flow.source);
        let report = has_peer.then_some(flow.report_at);
        // What was due at the last tick waits for who fetches it.
        Instant::first_of([flow.rx.ask_at().filter(|_| has_peer), due.filter(|due| due > ticked), idle, report])
    }

    pub(super) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<(u32, Instant)> {
        let flow = self.rest.flow.as_mut()?;
        Some((flow.id, flow.rx.deliver(now, buf)?))
    }

    pub(super) fn report(&self) -> Option<Report> {
        let Rest { options, peers, flow, undecrypted, .. } = &self.rest;
        let flow = flow.as_ref()?;
        let mut received = flow.rx.counts;
        received.undecrypted = *undecrypted;
        let mut remotes: Vec<_> =
            peers.iter().filter(|peer| peer.source == flow.source).map(|peer| peer.route.remote).collect();
        if remotes.is_empty() {
            remotes.push(flow.remote);
        }
        Some(Report {
            stream: flow.id,
            name: flow.name.clone(),
            remotes,
            profile: flow.profile,
            key_bytes: flow.key_bytes,
            latency: options.latency,
            rtt: flow.rtt.smoothed,
            reordering: flow.rx.tolerance(),
            received,
            sent: Sent::default(),
        })
    }
}

impl Rest {
    /// Takes RTP.
    fn take(&mut self, now: Instant, route: Route, shape: Option<Shape>, bytes: &[u8], out: &mut Outbox) {
        let remote = route.remote;
        let Some(Packet { header, payload }) = Packet::parse(bytes) else { return };
        let (source, again) = (header.source & !AGAIN, header.source & AGAIN == AGAIN);
        if self.is_busy_with_another(now, source) {
            out.refuse(now, remote, Refusal::Busy);
            return;
        }
        let nulls = nulls::left_out(bytes);
        let is_ts = payload.len().is_multiple_of(188)
            && payload.len() <= LONGEST
            && payload.first().is_none_or(|byte| *byte == 0x47);
        if !header.may_be_ts() || !is_ts || (payload.is_empty() && nulls == 0) {
            out.refuse(now, remote, Refusal::NotTs);
            return;
        }
        let is_over = |flow: &mut Flow| flow.source != source || (!again && flow.began_anew(now, header.sequence));
        if let Some(other) = self.flow.take_if(is_over) {
            out.replaced(other.id);
        }
        let Self { flow, flows, options, .. } = self;
        let flow = flow.get_or_insert_with(|| {
            *flows += 1;
            out.came(*flows);
            Flow::new(now, *flows, source, remote, (header.sequence, header.timestamp), options)
        });
        flow.heard = now;
        earn(&mut self.credits, route, bytes.len());
        (flow.profile, flow.key_bytes) = match shape {
            None => (Profile::Simple, 0),
            Some(shape) => (Profile::Main, shape.key.map_or(0, |length| length.bytes())),
        };
        if !flow.rx.wants(now, header.sequence.into(), again) {
            return;
        }
        flow.fresh = now;
        flow.came_from(remote.ip());
        let mut buffer = flow.rx.buffer();
        if nulls == 0 {
            buffer.extend_from_slice(payload);
        } else if !nulls::put_back(payload, nulls, &mut buffer) {
            return;
        }
        let timestamp = flow.micros(header.timestamp, again);
        flow.rx.take(now, header.sequence.into(), timestamp, again, buffer);
        if !again && now.since(flow.sampled) >= SAMPLES {
            flow.sampled = now;
            // Some senders answer no question for the round trip.
            flow.rx.sample_clock(now, timestamp, Some(&flow.rtt).filter(|_| flow.is_measured));
        }
    }

    fn is_busy_with_another(&self, now: Instant, source: u32) -> bool {
        let Some(flow) = &self.flow else { return false };
        // What waits for its time is not thrown away for a stranger.
        flow.source != source && (now.since(flow.heard) < SILENT || flow.rx.waiting() > 0)
    }

    /// Takes RTCP, and answers it.
    fn hear(
        &mut self,
        now: Instant,
        route: Route,
        shape: Option<Shape>,
        bytes: &[u8],
        tunnel: &mut Tunnel,
        out: &mut Outbox,
    ) {
        let (mut source, mut reported, mut echo, mut name, mut echoed) = (None, None, None, None, None);
        for item in Items::new(bytes) {
            match item {
                Item::SenderReport { source: of, ntp } => {
                    source = source.or(Some(of & !AGAIN));
                    // Behind the report of another one it says nothing.
                    reported = reported.or(Some(ntp).filter(|_| source == Some(of & !AGAIN)));
                }
                Item::ReceiverReport { source: of } => source = source.or(Some(of & !AGAIN)),
                Item::Name { name: bytes, .. } => name = Some(bytes),
                Item::EchoRequest { source, stamp } => echo = Some((source, stamp)),
                Item::EchoAnswer { stamp, delay } => echoed = Some((stamp, delay)),
                Item::Missing(_) | Item::Other(_) => {}
            }
        }
        // RTCP begins with a report (RFC 3550 §6.1).
        let Some(source) = source else { return };
        if self.is_busy_with_another(now, source) {
            out.refuse(now, route.remote, Refusal::Busy);
            return;
        }
        self.remember(now, route, shape, source);
        earn(&mut self.credits, route, bytes.len());
        let mut is_ours = false;
        if let Some(flow) = self.flow.as_mut().filter(|flow| flow.source == source) {
            is_ours = true;
            flow.reported = reported.map(|ntp| (ntp, now)).or(flow.reported);
            if let Some((stamp, delay)) = echoed {
                flow.echoed(now, stamp, delay);
            }
            if let Some(name) = name {
                flow.name = String::from_utf8_lossy(name).chars().take(NAME_KEPT).collect();
            }
        }
        // A stream's peers have their reports by the clock; whoever comes new is waiting for one.
        if echo.is_none() && is_ours {
            return;
        }
        let mut answer = Vec::new();
        let mut to = Composer::new(self.own, &mut answer);
        to.receiver_report(None);
        to.name(NAME);
        if let Some((source, stamp)) = echo {
            to.echo_answer(source, stamp);
        }
        if answer.len() <= route.longest_answer(bytes.len()) && spend(now, &mut self.credits, route, answer.len()) {
            out.send_sealed(route, shape, &answer, tunnel);
        }
    }

    fn remember(&mut self, now: Instant, route: Route, shape: Option<Shape>, source: u32) {
        if let Some(peer) = self.peers.iter_mut().find(|peer| peer.route == route) {
            (peer.shape, peer.source, peer.heard) = (shape, source, now);
            return;
        }
        if self.peers.len() >= PEERS {
            // Whoever sends the stream is kept; of the others who was heard longest ago goes. Who knows its source may
            // claim to send it, so a host that brought media takes the place of one that did not.
            let rank = |route, source| self.flow.as_ref().map_or(Rank::Other, |flow| flow.rank(route, source));
            let own = rank(route, source);
            let peers = self.peers.iter().map(|peer| (rank(peer.route, peer.source), peer.heard)).enumerate();
            let lower = peers.filter(|(_, (its, heard))| {
                *its < own.max(Rank::Claims) || (*its == own && now.since(*heard) >= SILENT)
            });
            let Some((at, _)) = lower.min_by_key(|(_, it)| *it) else { return };
            let gone = self.peers.remove(at).route.remote.ip();
            if self.peers.iter().all(|peer| peer.route.remote.ip() != gone) {
                self.credits.retain(|credit| credit.ip != gone);
            }
        }
        let ip = route.remote.ip();
        if self.credits.iter().all(|credit| credit.ip != ip) {
            self.credits.push(Credit { ip, bytes: Allowance::by_merit(MOST_CREDIT) });
        }
        self.peers.push(Peer { route, shape, source, heard: now });
    }

    /// Asks for what is missing.
    fn ask(&mut self, now: Instant, tunnel: &mut Tunnel, out: &mut Outbox) {
        let own = self.own;
        let Self { flow: Some(flow), peers, credits, .. } = self else { return };
        let peers = peers.iter().filter(|peer| peer.source == flow.source);
        let newest = peers.clone().map(|peer| peer.heard).max().unwrap_or(now);
        // An address that is gone is not asked in its turn.
        let mut peers: Vec<_> = peers.filter(|peer| newest.since(peer.heard) < SILENT).collect();
        // Nor is who brought nothing, if others did.
        if peers.iter().any(|peer| flow.carries(peer.route)) {
            peers.retain(|peer| flow.carries(peer.route));
        }
        if peers.is_empty() || flow.rx.ask_at().is_none_or(|at| at > now) {
            return;
        }
        // What nobody can be sent is not asked for, so that it is not waited for either.
        let turn = flow.turn.wrapping_add(1);
        let turns = (0..peers.len()).map(|n| peers[(turn + n) % peers.len()]);
        let least = request(own, flow.source, &[(0, 0)]).len();
        let affordable = |peer: &Peer| {
            let rest = left(now, credits, peer.route).checked_sub(least + peer.overhead())?;
            Some((1 + rest / RANGE).min(RANGES))
        };
        let Some((peer, most)) = turns.into_iter().find_map(|peer| Some((peer, affordable(peer)?))) else {
            return flow.rx.ask_later(now);
        };
        let mut ranges = Vec::new();
        let missing = |first: u32, last: u32| ranges.push((first as u16, (last as u16).wrapping_sub(first as u16)));
        flow.rx.ask(now, &flow.rtt, most, missing);
        if ranges.is_empty() {
            return;
        }
        flow.turn = turn;
        let request = request(own, flow.source, &ranges);
        if spend(now, credits, peer.route, request.len() + peer.overhead()) {
            out.send_sealed(peer.route, peer.shape, &request, tunnel);
        }
    }

    /// Sends reports, and asks for the round trip.
    fn report_on(&mut self, now: Instant, tunnel: &mut Tunnel, out: &mut Outbox) {
        let own = self.own;
        let Self { flow: Some(flow), peers, credits, .. } = self else { return };
        if now < flow.report_at {
            return;
        }
        flow.report_at = now + REPORTS;
        let asks = now >= flow.echo_at;
        if asks {
            flow.echo_at = now + if flow.is_measured { ECHOES } else { REPORTS };
        }
        let mut report = Vec::new();
        let block = flow.block(now);
        let mut to = Composer::new(own, &mut report);
        to.receiver_report(Some(&block));
        to.name(NAME);
        if asks {
            to.echo_request(stamp(now));
        }
        for peer in peers.iter().filter(|peer| peer.source == flow.source) {
            if spend(now, credits, peer.route, report.len() + peer.overhead()) {
                out.send_sealed(peer.route, peer.shape, &report, tunnel);
            }
        }
    }
}

/// What asks `source` for these packets again.
fn request(own: u32, source: u32, ranges: &[(u16, u16)]) -> Vec<u8> {
    let mut request = Vec::new();
    let mut to = Composer::new(own, &mut request);
    to.receiver_report(None);
    to.name(NAME);
    to.missing(source, ranges);
    request
}

/// The longest datagram that may go there.
fn left(now: Instant, credits: &[Credit], route: Route) -> usize {
    let credit = credits.iter().find(|credit| credit.ip == route.remote.ip());
    credit.map_or(0, |credit| (credit.bytes.left(now) as usize).saturating_sub(route.headers()))
}

/// A datagram of `len` bytes came over `route`.
fn earn(credits: &mut [Credit], route: Route, len: usize) {
    if let Some(credit) = credits.iter_mut().find(|credit| credit.ip == route.remote.ip()) {
        credit.bytes.earn(route.merit(len) as u64);
    }
}

/// Returns `true` if one of `len` bytes may go there; it is counted then.
fn spend(now: Instant, credits: &mut [Credit], route: Route, len: usize) -> bool {
    let credit = credits.iter_mut().find(|credit| credit.ip == route.remote.ip());
    credit.is_some_and(|credit| credit.bytes.take(now, (len + route.headers()) as u64))
}

impl Flow {
    fn new(
        now: Instant,
        id: u32,
        source: u32,
        remote: SocketAddr,
        (sequence, timestamp): (u16, u32),
        options: &Options,
    ) -> Self {
        let mut flow = Self {
            id,
            source,
            remote,
            carriers: Vec::new(),
            rx: Self::receive(now, sequence, 0, options),
            ticks: Unwrapper::new(timestamp.into()),
            rtt: Rtt::new(),
            is_measured: false,
            profile: Profile::Simple,
            key_bytes: 0,
            name: String::new(),
            heard: now,
            fresh: now,
            sampled: now,
            reported: None,
            before: (0, 0),
            report_at: now,
            echo_at: now,
            turn: 0,
        };
        let first = flow.micros(timestamp, false);
        flow.rx = Self::receive(now, sequence, first, options);
        flow
    }

    fn receive(now: Instant, sequence: u16, timestamp: u32, options: &Options) -> Receive<16> {
        let clock = Clock::new(now, timestamp, options.latency);
        Receive::new(now, sequence.into(), clock, options.latency, options.reordering, options.buffer)
    }

    /// Something new came from that host.
    fn came_from(&mut self, ip: IpAddr) {
        if self.carriers.len() < PEERS && !self.carriers.contains(&ip) {
            self.carriers.push(ip);
        }
    }

    fn carries(&self, route: Route) -> bool {
        self.carriers.contains(&route.remote.ip())
    }

    fn rank(&self, route: Route, source: u32) -> Rank {
        match (self.source == source, self.carries(route)) {
            (false, _) => Rank::Other,
            (true, false) => Rank::Claims,
            (true, true) => Rank::Carries,
        }
    }

    /// Microseconds of what is in units of 1/90,000 s, both from 0 again and again.
    fn micros(&mut self, timestamp: u32, again: bool) -> u32 {
        let ticks = if again { self.ticks.peek(timestamp.into()) } else { self.ticks.unwrap(timestamp.into()) };
        (u128::from(ticks) * 100 / 9) as u32
    }

    /// Returns `true` if a packet of this number, which nobody waits for any more, says that its sender began anew.
    fn began_anew(&self, now: Instant, sequence: u16) -> bool {
        // Copies of what was played may come late too, but hardly alone for a second.
        self.rx.waiting() == 0 && now.since(self.fresh) >= SILENT && self.rx.is_behind(sequence.into())
    }

    fn echoed(&mut self, now: Instant, stamp: u64, delay: Duration) {
        let (asked, now) = (stamp, super::stamp(now));
        let passed = Duration::from_nanos(((u128::from(now.wrapping_sub(asked)) * 1_000_000_000) >> 32) as u64);
        if passed < LONGEST_ECHO && delay <= passed {
            self.rtt.sample(passed - delay);
            self.is_measured = true;
        }
    }

    fn block(&mut self, now: Instant) -> Block {
        let counts = self.rx.counts;
        let expected = counts.packets + counts.missing - counts.recovered.min(counts.missing);
        let (came, was_expected) = std::mem::replace(&mut self.before, (counts.packets, expected));
        let lately = expected.saturating_sub(was_expected);
        let lost = lately.saturating_sub(counts.packets - came);
        Block {
            source: self.source,
            fraction: (lost * 256).checked_div(lately).unwrap_or(0).min(255) as u8,
            lost: expected.saturating_sub(counts.packets).min(0x7f_ffff) as u32,
            highest: (self.rx.highest() as u32).wrapping_sub(1 << 16),
            last_report: self.reported.map_or((0, 0), |(ntp, came)| {
                ((ntp >> 16) as u32, (now.since(came).as_micros() * 65_536 / 1_000_000) as u32)
            }),
        }
    }
}
