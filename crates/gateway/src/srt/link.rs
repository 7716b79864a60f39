//! A connection that is up: both halves, acknowledgements, and what keeps it alive.

use super::cipher::Cipher;
use super::options::Options;
use super::send::{Send, Sent};
use super::wire::{Ack, CAPACITY_PACKET, Control, ControlKind, Data, KeySlot, LossList, Packet, Rate, write_loss};
use crate::reception::{Clock, RANGES, Receive, Received, Rtt};
use braidcast_core::Instant;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Time between full acknowledgements (draft-sharabayko-srt §3.2.4).
const ACK_INTERVAL: Duration = Duration::from_millis(10);
/// A full acknowledgement that is due within this time goes with what else is due: one wake-up
/// fewer of a hundred in each second, for both ends.
const EARLY: Duration = Duration::from_micros(2500);
/// Packets after which a light acknowledgement goes at once.
const LIGHT_ACK: u64 = 64;
/// Silence of ours after which the other end is told that we are there (§3.2.3).
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// Acknowledgements whose answers are awaited.
const AWAITED: usize = 128;
/// Control packets that wait to leave.
const WAITING: usize = 64;
/// Time between answers to keys, since unwrapping takes a millisecond.
const KEYS_INTERVAL: Duration = Duration::from_millis(100);
/// Body of SHUTDOWN, as libsrt sends it: some programs want one.
pub(super) const SHUTDOWN: [u8; 4] = [0; 4];
/// Payload of a packet at most: what is left of 1500 bytes.
pub(super) const MAX_PAYLOAD: usize = 1456;

/// What is agreed on with the other end.
pub(super) struct Agreed {
    pub(super) peer: SocketAddr,
    pub(super) own_id: u32,
    pub(super) peer_id: u32,
    /// When our timestamps began.
    pub(super) start: Instant,
    pub(super) own_first: u32,
    pub(super) peer_first: u32,
    /// What the other end's clock said when its handshake came.
    pub(super) peer_timestamp: u32,
    pub(super) latency: Duration,
    pub(super) peer_latency: Duration,
    pub(super) window: u32,
    pub(super) cipher: Option<Cipher>,
    pub(super) peer_version: u32,
    pub(super) stream_id: String,
}

/// Why a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The other end said so.
    ByPeer,
    /// Nothing came for as long as options say.
    Silent,
    /// Another caller took its place.
    Replaced,
    /// We were asked to.
    ByUs,
}

/// How a connection goes.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Address of the other end.
    pub peer: SocketAddr,
    /// The stream identifier that the caller gave, or was given.
    pub stream_id: String,
    /// Version of the other end's program: 0x00010501 is 1.5.1.
    pub peer_version: u32,
    /// Payloads are encrypted with keys of as many bytes; 0: they are not.
    pub key_bytes: usize,
    /// Smoothed round trip.
    pub rtt: Duration,
    /// How long what comes in is held.
    pub latency: Duration,
    /// How long the other end holds what goes out.
    pub peer_latency: Duration,
    /// How long a packet may be overtaken before it is asked for.
    pub reordering: Duration,
    /// Packets that wait for their time.
    pub waiting: usize,
    /// What came in.
    pub received: Received,
    /// What went out.
    pub sent: Sent,
    /// Capacity that the other end says it has, bit/s of full packets with their headers, as it says it last; `None`
    /// before. It says so to who sends.
    pub told_capacity: Option<u64>,
}

pub(super) struct Link {
    pub(super) agreed: Agreed,
    rx: Receive<31>,
    tx: Send,
    rtt: Rtt,
    control: VecDeque<Vec<u8>>,
    /// Buffers of control packets that have left.
    spare: Vec<Vec<u8>>,
    pub(super) heard: Instant,
    /// When media last came.
    pub(super) media: Instant,
    spoke: Instant,
    ticked: Instant,
    idle: Duration,
    ended: Option<Ended>,
    // Acknowledgements.
    next_ack: Option<Instant>,
    last_ack: u64,
    ack_number: u32,
    confirmed: bool,
    awaited: VecDeque<(u32, Instant)>,
    light_at: u64,
    // Keys.
    keys_at: Instant,
    last_keys: Vec<u8>,
    keys_sent: Option<Instant>,
    // Rate of what comes in, over a second.
    rate_since: Instant,
    rate_before: (u64, u64),
    /// Packets and bytes each second.
    rate: (u32, u32),
    /// What the path behind us carries, in packets each second.
    capacity: Option<u32>,
    /// The same of the other end, as it says.
    told_capacity: Option<u32>,
    scratch: Vec<u8>,
}

impl Link {
    pub(super) fn new(now: Instant, agreed: Agreed, options: &Options) -> Self {
        let rtt = Rtt::new();
        let clock = Clock::new(now, agreed.peer_timestamp, agreed.latency);
        let limit = options.buffer;
        let rx = Receive::new(now, agreed.peer_first, clock, agreed.latency, options.reordering, limit);
        let tx = Send::new(now, agreed.own_first, agreed.peer_latency, agreed.window, limit);
        Self {
            last_ack: rx.acknowledged(),
            light_at: rx.acknowledged() + LIGHT_ACK,
            agreed,
            rx,
            tx,
            rtt,
            control: VecDeque::new(),
            spare: Vec::new(),
            heard: now,
            media: now,
            spoke: now,
            ticked: now,
            idle: options.idle,
            ended: None,
            next_ack: None,
            ack_number: 0,
            confirmed: true,
            awaited: VecDeque::new(),
            keys_at: Instant::ZERO,
            last_keys: Vec::new(),
            keys_sent: None,
            rate_since: now,
            rate_before: (0, 0),
            rate: (0, 0),
            capacity: None,
            told_capacity: None,
            scratch: Vec::new(),
        }
    }

    /// Our clock, as it stands in packets.
    fn timestamp(&self, at: Instant) -> u32 {
        (at - self.agreed.start).as_micros() as u32
    }

    fn say(&mut self, now: Instant, kind: ControlKind, info: u32, body: &[u8]) {
        if self.control.len() >= WAITING {
            return;
        }
        let mut packet = self.spare.pop().unwrap_or_default();
        Control { kind, info, timestamp: self.timestamp(now), to: self.agreed.peer_id, body }.write(&mut packet);
        self.control.push_back(packet);
    }

    fn say_ack(&mut self, now: Instant, info: u32, ack: &Ack) {
        let mut body = std::mem::take(&mut self.scratch);
        body.clear();
        ack.write(&mut body);
        self.say(now, ControlKind::Ack, info, &body);
        self.scratch = body;
    }

    /// A packet of this connection came at `now`.
    pub(super) fn handle(&mut self, now: Instant, packet: &Packet<'_>) {
        if self.ended.is_some() {
            return;
        }
        self.heard = now;
        match packet {
            Packet::Data(data) => self.handle_data(now, data),
            Packet::Control(control) => self.handle_control(now, control),
        }
    }

    fn handle_data(&mut self, now: Instant, data: &Data<'_>) {
        // Live mode has whole messages only.
        if data.position != 3 || data.payload.is_empty() || data.payload.len() > MAX_PAYLOAD {
            return;
        }
        self.media = now;
        if !self.rx.wants(now, data.sequence, data.repeated) {
            return;
        }
        let mut payload = self.rx.buffer();
        payload.extend_from_slice(data.payload);
        let readable = match &self.agreed.cipher {
            Some(cipher) => cipher.open(data.key, data.sequence, &mut payload),
            None => data.key == KeySlot::Clear,
        };
        if !readable {
            self.rx.counts.undecrypted += 1;
            return;
        }
        self.rx.take(now, data.sequence, data.timestamp, data.repeated, payload);
        self.next_ack.get_or_insert(now + ACK_INTERVAL);
        if self.rx.acknowledged() >= self.light_at {
            self.light_at = self.rx.acknowledged() + LIGHT_ACK;
            self.say_ack(now, 0, &Ack { next: self.rx.acknowledged() as u32, ..Ack::default() });
        }
    }

    fn handle_control(&mut self, now: Instant, control: &Control<'_>) {
        match control.kind {
            ControlKind::Ack => self.handle_ack(now, control),
            ControlKind::Nak => {
                for (first, last) in LossList::new(control.body) {
                    if let Some((first, last)) = self.tx.ask(now, first, last) {
                        let body = [first.to_be_bytes(), last.to_be_bytes()].concat();
                        // Message 0: the range is what counts (§3.2.9).
                        self.say(now, ControlKind::DropRequest, 0, &body);
                    }
                }
            }
            ControlKind::AckAck => self.handle_ack_ack(now, control),
            ControlKind::DropRequest => {
                if let Some((first, rest)) = control.body.split_first_chunk()
                    && let Some((last, _)) = rest.split_first_chunk()
                {
                    let [first, last] = [first, last].map(|word| u32::from_be_bytes(*word) & 0x7fff_ffff);
                    self.rx.abandon(first, last);
                    self.next_ack.get_or_insert(now + ACK_INTERVAL);
                }
            }
            ControlKind::Shutdown => self.ended = Some(Ended::ByPeer),
            ControlKind::User(3) => self.handle_keys(now, control.body),
            ControlKind::User(4) => {
                if let Some(cipher) = &mut self.agreed.cipher {
                    cipher.confirmed(control.body);
                }
            }
            _ => {}
        }
    }

    fn handle_ack(&mut self, now: Instant, control: &Control<'_>) {
        let Ok(ack) = Ack::parse(control.body) else { return };
        if !self.tx.acknowledge(now, ack.next, ack.room) {
            return;
        }
        if control.info != 0 {
            self.say(now, ControlKind::AckAck, control.info, &[]);
        }
        self.told_capacity = ack.rate.map(|rate| rate.capacity).or(self.told_capacity);
        // Who sends learns the round trip from who measures it.
        if let Some((rtt, variance)) = ack.rtt
            && self.rx.counts.packets == 0
        {
            let [rtt, variance] = [rtt, variance].map(|us| Duration::from_micros(us.min(30_000_000).into()));
            self.rtt.told(rtt, variance);
        }
    }

    fn handle_ack_ack(&mut self, now: Instant, control: &Control<'_>) {
        let Some(at) = self.awaited.iter().position(|(number, _)| *number == control.info) else { return };
        let (_, sent) = self.awaited[at];
        self.awaited.drain(..=at);
        self.confirmed |= control.info == self.ack_number;
        self.rtt.sample(now - sent);
        self.rx.sample_clock(now, control.timestamp, Some(&self.rtt));
    }

    fn handle_keys(&mut self, now: Instant, body: &[u8]) {
        let Some(cipher) = &mut self.agreed.cipher else { return };
        if self.last_keys != body {
            if now - self.keys_at < KEYS_INTERVAL || !cipher.renew(body) {
                return;
            }
            self.keys_at = now;
            self.last_keys = body.to_vec();
        }
        self.say(now, ControlKind::User(4), 0, body);
    }

    /// The clock reached `now`.
    pub(super) fn tick(&mut self, now: Instant) {
        self.ticked = now;
        if self.ended.is_some() {
            return;
        }
        if now - self.heard >= self.idle {
            // It may hear us, though we do not hear it.
            return self.close(now, Ended::Silent);
        }
        if self.next_ack.is_some_and(|at| at <= now + EARLY) {
            self.acknowledge(now);
        }
        if self.rx.ask_at().is_some_and(|at| at <= now) {
            let mut body = std::mem::take(&mut self.scratch);
            body.clear();
            self.rx.ask(now, &self.rtt, RANGES, |first, last| write_loss(&mut body, first, last));
            if !body.is_empty() {
                self.say(now, ControlKind::Nak, 0, &body);
            }
            self.scratch = body;
        }
        self.tx.tend(now, &self.rtt);
        if let Some(keys) = self.agreed.cipher.as_ref().and_then(Cipher::announced)
            && self.keys_sent.is_none_or(|at| now - at >= self.rtt.patience())
        {
            let keys = keys.to_vec();
            self.keys_sent = Some(now);
            self.say(now, ControlKind::User(3), 0, &keys);
        }
        if now - self.spoke >= KEEP_ALIVE {
            self.say(now, ControlKind::KeepAlive, 0, &[]);
            self.spoke = now;
        }
    }

    fn acknowledge(&mut self, now: Instant) {
        let next = self.rx.acknowledged();
        self.next_ack = None;
        let overdue = !self.confirmed && self.awaited.back().is_none_or(|(_, sent)| now - *sent >= self.rtt.patience());
        if next == self.last_ack && !overdue {
            if !self.confirmed {
                self.next_ack = Some(now + ACK_INTERVAL);
            }
            return;
        }
        self.measure(now);
        self.last_ack = next;
        self.confirmed = false;
        self.ack_number = self.ack_number.wrapping_add(1).max(1);
        self.light_at = next + LIGHT_ACK;
        let (packets, bytes) = self.rate;
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        let ack = Ack {
            next: next as u32,
            rtt: Some((micros(self.rtt.smoothed), micros(self.rtt.variance))),
            room: Some(self.rx.room() as u32),
            // Nothing measures the capacity of the link itself, so without a word it is what comes.
            rate: Some(Rate { packets, capacity: self.capacity.unwrap_or(packets), bytes }),
        };
        self.say_ack(now, self.ack_number, &ack);
        if self.awaited.len() == AWAITED {
            self.awaited.pop_front();
        }
        self.awaited.push_back((self.ack_number, now));
        self.next_ack = Some(now + ACK_INTERVAL);
    }

    /// Has acknowledgements say that the path behind us carries `bits_per_second`.
    pub(super) fn tell_capacity(&mut self, bits_per_second: u64) {
        let packets = bits_per_second.div_ceil(u64::from(CAPACITY_PACKET) * 8);
        // libsrt takes 1 for "not known".
        self.capacity = Some(u32::try_from(packets).unwrap_or(u32::MAX).max(2));
    }

    fn measure(&mut self, now: Instant) {
        let passed = now - self.rate_since;
        if passed < Duration::from_secs(1) {
            return;
        }
        let (packets, bytes) = (self.rx.counts.packets, self.rx.counts.bytes);
        let per_second = |n: u64| (n as f64 / passed.as_secs_f64()) as u32;
        self.rate = (per_second(packets - self.rate_before.0), per_second(bytes - self.rate_before.1));
        (self.rate_before, self.rate_since) = ((packets, bytes), now);
    }

    /// When to [`tick`](Self::tick), or to fetch a payload.
    pub(super) fn timeout(&self) -> Option<Instant> {
        if self.ended().is_some() {
            return Some(Instant::ZERO);
        }
        // What was due at the last tick waits for who fetches it.
        let due = self.rx.next_due().filter(|due| *due > self.ticked);
        if self.ended.is_some() {
            return due;
        }
        let keys = self
            .agreed
            .cipher
            .as_ref()
            .and_then(Cipher::announced)
            .map(|_| self.keys_sent.map_or(Instant::ZERO, |at| at + self.rtt.patience()));
        Instant::first_of([
            Some(self.heard + self.idle),
            Some(self.spoke + KEEP_ALIVE),
            self.next_ack,
            self.rx.ask_at(),
            due,
            self.tx.tend_at(&self.rtt),
            keys,
        ])
    }

    /// Writes the next packet to send; `false` if there is none.
    pub(super) fn write_next(&mut self, now: Instant, buf: &mut Vec<u8>) -> bool {
        if let Some(mut packet) = self.control.pop_front() {
            buf.extend_from_slice(&packet);
            packet.clear();
            self.spare.push(packet);
        } else if self.ended.is_none()
            && let Some(packet) = self.tx.next(now, self.agreed.cipher.as_mut())
        {
            let data = Data {
                sequence: packet.sequence,
                position: 3,
                in_order: true,
                key: packet.key,
                repeated: packet.repeated,
                message: packet.message,
                timestamp: (packet.pushed - self.agreed.start).as_micros() as u32,
                to: self.agreed.peer_id,
                payload: packet.payload,
            };
            data.write(buf);
        } else {
            return false;
        }
        self.spoke = now;
        true
    }

    /// The next payload that is due; returns when it was.
    pub(super) fn deliver(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Instant> {
        self.rx.deliver(now, buf)
    }

    /// Takes a payload of at most [`MAX_PAYLOAD`] bytes.
    pub(super) fn push(&mut self, now: Instant, payload: &[u8]) {
        self.tx.push(now, payload);
    }

    /// Returns `true` if all that was pushed is acknowledged or dropped.
    pub(super) fn is_drained(&self) -> bool {
        self.tx.is_empty()
    }

    /// Ends it, and says so to the other end.
    pub(super) fn close(&mut self, now: Instant, why: Ended) {
        if self.ended.is_none() {
            self.control.clear();
            self.say(now, ControlKind::Shutdown, 0, &SHUTDOWN);
            self.ended = Some(why);
        }
    }

    /// Why it ended, once all that was to be said is said, and all that came in time is delivered.
    pub(super) fn ended(&self) -> Option<Ended> {
        self.ended.filter(|why| self.control.is_empty() && (*why == Ended::ByUs || self.rx.waiting() == 0))
    }

    pub(super) const fn is_ending(&self) -> bool {
        self.ended.is_some()
    }

    pub(super) fn report(&self) -> Report {
        let Agreed { peer, stream_id, peer_version, latency, peer_latency, cipher, .. } = &self.agreed;
        Report {
            peer: *peer,
            stream_id: stream_id.clone(),
            peer_version: *peer_version,
            key_bytes: cipher.as_ref().map_or(0, |cipher| cipher.length.bytes()),
            rtt: self.rtt.smoothed,
            latency: *latency,
            peer_latency: *peer_latency,
            reordering: self.rx.tolerance(),
            waiting: self.rx.waiting(),
            received: self.rx.counts,
            sent: self.tx.counts,
            told_capacity: self.told_capacity.map(|packets| u64::from(packets) * u64::from(CAPACITY_PACKET) * 8),
        }
    }
}
