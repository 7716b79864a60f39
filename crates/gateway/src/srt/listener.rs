//! The end that is called: cookies, admission, and its connections (draft-sharabayko-srt §4.3.1).

use super::cipher::Cipher;
use super::event::{ConnectionId, Event};
use super::link::{Agreed, Ended, Link, SHUTDOWN};
use super::options::{Direction, Options};
use super::refusal::Refusal;
use super::secret::Passphrase;
use super::stream_id::StreamId;
use super::wire::{
    Control, ControlKind, Extension, ExtensionKind, Handshake, HandshakeType, Hello, HelloFlags, KeyMaterial, MAGIC,
    Packet,
};
use super::{FLAGS, MTU, VERSION, WINDOW};
use crate::srtla::Bonds;
use braidcast_core::{Allowance, Instant, Rng};
use core::time::Duration;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The first version whose handshakes have version 5.
const FIRST_VERSION: u32 = 0x01_03_00;
/// How long a cookie is good, and the one before it (§4.3.1.1.2).
const MINUTE: u64 = 60_000_000_000;
/// Answers to strangers that wait to leave.
const ANSWERS: usize = 256;
/// Keys are unwrapped for callers at most so often each second: it takes a millisecond.
const UNWRAPS: u64 = 20;
/// Connections that we ended and remember. Who goes on sending is told: a SHUTDOWN may be lost, and silence is not seen
/// by both ends at the same time.
const GONE: usize = 64;
/// Time between two such words to one of them.
const GONE_INTERVAL: Duration = Duration::from_millis(100);
/// A sender that was silent for this long makes room for who calls anew.
const SILENT: Duration = Duration::from_secs(1);

/// The address of a caller as its handshake is told. A caller over several links calls a program beside it, which sends
/// over them: libsrt warns if it is told an address of the other family.
fn seen_at(from: SocketAddr) -> [u8; 16] {
    let ip = if Bonds::is_alias(from) { Ipv4Addr::LOCALHOST.into() } else { from.ip() };
    Handshake::address_of(ip)
}

struct Accepted {
    link: Link,
    /// Body of our answer, which may be lost.
    answer: Vec<u8>,
}

/// A connection that we ended.
struct Gone {
    peer: SocketAddr,
    own_id: u32,
    peer_id: u32,
    start: Instant,
    /// When it is next told that it ended.
    tell_at: Instant,
}

pub(super) struct Listener {
    options: Options,
    direction: Direction,
    rng: Rng,
    id: u32,
    secret: [u8; 20],
    start: Instant,
    links: Vec<Accepted>,
    gone: VecDeque<Gone>,
    answers: VecDeque<(SocketAddr, Vec<u8>)>,
    unwraps: Allowance,
    turn: usize,
    closed: bool,
}

/// What a caller asks for, as far as it is right.
struct Asked<'a> {
    handshake: &'a Handshake,
    hello: Hello,
    stream_id: StreamId,
    keys: Option<(KeyMaterial, &'a Extension)>,
}

impl Listener {
    pub(super) fn new(now: Instant, direction: Direction, options: Options, mut rng: Rng) -> Self {
        let mut secret = [0; 20];
        rng.fill(&mut secret);
        let id = rng.u32() >> 2 | 1;
        Self {
            options,
            direction,
            rng,
            id,
            secret,
            start: now,
            links: Vec::new(),
            gone: VecDeque::new(),
            answers: VecDeque::new(),
            unwraps: Allowance::by_time(UNWRAPS, UNWRAPS),
            turn: 0,
            closed: false,
        }
    }

    /// A number that only who gets what is sent to `peer` knows.
    fn cookie(&self, peer: SocketAddr, minute: u64) -> u32 {
        let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(&self.secret) else { return 0 };
        match peer.ip() {
            IpAddr::V4(ip) => mac.update(&ip.octets()),
            IpAddr::V6(ip) => mac.update(&ip.octets()),
        }
        mac.update(&peer.port().to_be_bytes());
        mac.update(&minute.to_be_bytes());
        mac.finalize().into_bytes().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    pub(super) fn handle(&mut self, now: Instant, from: SocketAddr, packet: &Packet<'_>, events: &mut VecDeque<Event>) {
        let to = match packet {
            Packet::Data(data) => data.to,
            Packet::Control(control) => control.to,
        };
        if to != 0 {
            if let Some(it) =
                self.links.iter_mut().find(|it| it.link.agreed.own_id == to && it.link.agreed.peer == from)
            {
                it.link.handle(now, packet);
            } else {
                self.tell_gone(now, from, to);
            }
        } else if let Packet::Control(control) = packet
            && control.kind == ControlKind::Handshake
            && !self.closed
            && let Ok(handshake) = Handshake::parse(control.body)
        {
            match handshake.kind {
                HandshakeType::Induction => self.induce(now, from, handshake),
                HandshakeType::Conclusion => self.conclude(now, from, control.timestamp, &handshake, events),
                _ => {}
            }
        }
    }

    /// Who sends to a connection that we ended has not heard of its end.
    fn tell_gone(&mut self, now: Instant, from: SocketAddr, id: u32) {
        let Some(it) = self.gone.iter_mut().find(|it| it.own_id == id && it.peer == from) else { return };
        if now < it.tell_at {
            return;
        }
        it.tell_at = now + GONE_INTERVAL;
        let (start, to) = (it.start, it.peer_id);
        self.say(now, start, from, to, ControlKind::Shutdown, &SHUTDOWN);
    }

    fn answer(&mut self, now: Instant, start: Instant, peer: SocketAddr, to: u32, body: &[u8]) {
        self.say(now, start, peer, to, ControlKind::Handshake, body);
    }

    fn say(&mut self, now: Instant, start: Instant, peer: SocketAddr, to: u32, kind: ControlKind, body: &[u8]) {
        if self.answers.len() >= ANSWERS {
            return;
        }
        let timestamp = (now - start).as_micros() as u32;
        let mut packet = Vec::with_capacity(16 + body.len());
        Control { kind, info: 0, timestamp, to, body }.write(&mut packet);
        self.answers.push_back((peer, packet));
    }

    /// Answers with a cookie, and remembers nothing.
    fn induce(&mut self, now: Instant, from: SocketAddr, mut handshake: Handshake) {
        let to = handshake.socket;
        handshake.version = 5;
        // Who sends decides on the length of keys (§4.3).
        let sends = self.direction == Direction::Send && self.options.passphrase.is_some();
        handshake.encryption = if sends { (self.options.key_length.bytes() / 8) as u16 } else { 0 };
        handshake.flags = MAGIC;
        handshake.socket = self.id;
        handshake.cookie = self.cookie(from, now.as_nanos() / MINUTE);
        handshake.address = seen_at(from);
        handshake.extensions.clear();
        let mut body = Vec::new();
        handshake.write(&mut body);
        self.answer(now, self.start, from, to, &body);
    }

    fn conclude(
        &mut self,
        now: Instant,
        from: SocketAddr,
        timestamp: u32,
        handshake: &Handshake,
        events: &mut VecDeque<Event>,
    ) {
        let minute = now.as_nanos() / MINUTE;
        let good = |minute| self.cookie(from, minute) == handshake.cookie;
        if !good(minute) && !minute.checked_sub(1).is_some_and(good) {
            // A caller whose listener began anew would wait for 3 s. Nothing is kept, and the
            // answer is no longer than the question, so who forges addresses gains nothing; nor is
            // it an event, of which strangers could make many.
            return self.refuse(now, from, handshake, Refusal::COOKIE);
        }
        if let Some(it) = self.links.iter().find(|it| {
            it.link.agreed.peer == from && it.link.agreed.peer_id == handshake.socket && !it.link.is_ending()
        }) {
            let (body, start) = (it.answer.clone(), it.link.agreed.start);
            return self.answer(now, start, from, handshake.socket, &body);
        }
        let stream_id = handshake.extension(ExtensionKind::StreamId).map(Extension::to_text).unwrap_or_default();
        let refusal = match self.look_at(handshake, &stream_id) {
            Ok(asked) => match self.admit(now, from, timestamp, asked, events) {
                // Not answered: it will ask again.
                Ok(()) => return,
                Err(refusal) => refusal,
            },
            Err(refusal) => refusal,
        };
        self.refuse(now, from, handshake, refusal);
        events.push_back(Event::Refused { peer: from, why: refusal, stream_id });
    }

    /// Reads what a caller asks for; an error is what is wrong with it, whoever it is.
    fn look_at<'a>(&self, handshake: &'a Handshake, stream_id: &str) -> Result<Asked<'a>, Refusal> {
        if handshake.version != 5 {
            return Err(Refusal::VERSION);
        }
        let request = handshake.extension(ExtensionKind::Request).ok_or(Refusal::ROGUE)?;
        let hello = Hello::parse(&request.content).map_err(|_| Refusal::ROGUE)?;
        if hello.version < FIRST_VERSION {
            return Err(Refusal::VERSION);
        }
        if hello.flags.has(HelloFlags::STREAM) {
            return Err(Refusal::MESSAGE_API);
        }
        if handshake.extension(ExtensionKind::Congestion).is_some_and(|it| it.to_text() != "live") {
            return Err(Refusal::CONGESTION);
        }
        if handshake.extension(ExtensionKind::Filter).is_some_and(|it| !it.to_text().is_empty()) {
            return Err(Refusal::FILTER);
        }
        if handshake.extension(ExtensionKind::Group).is_some() {
            return Err(Refusal::GROUP);
        }
        let stream_id = StreamId::parse(stream_id);
        if self.options.stream_id.as_ref().is_some_and(|wanted| !stream_id.is(wanted)) {
            return Err(Refusal::FORBIDDEN);
        }
        let is_known = |names: &Vec<String>| stream_id.name().is_some_and(|name| names.iter().any(|it| it == name));
        if self.options.names.as_ref().is_some_and(|names| !is_known(names)) {
            return Err(Refusal::FORBIDDEN);
        }
        let other_way = match self.direction {
            Direction::Receive => "request",
            Direction::Send => "publish",
        };
        if stream_id.mode.as_deref() == Some(other_way)
            || stream_id.kind.as_deref().is_some_and(|kind| kind != "stream")
        {
            return Err(Refusal::BAD_MODE);
        }
        let keys = match handshake.extension(ExtensionKind::KeyRequest) {
            Some(extension) => Some((KeyMaterial::parse(&extension.content).map_err(|_| Refusal::ROGUE)?, extension)),
            None => None,
        };
        let secret = self.options.secret_of(&stream_id).map_err(|()| Refusal::FORBIDDEN)?;
        if keys.is_some() != secret.is_some() {
            return Err(Refusal::UNSECURE);
        }
        Ok(Asked { handshake, hello, stream_id, keys })
    }

    fn admit(
        &mut self,
        now: Instant,
        from: SocketAddr,
        timestamp: u32,
        asked: Asked<'_>,
        events: &mut VecDeque<Event>,
    ) -> Result<(), Refusal> {
        let Asked { handshake, hello, stream_id, keys } = asked;
        let mut cipher = None;
        if let (Ok(Some(passphrase)), Some((material, _))) = (self.options.secret_of(&stream_id), &keys) {
            if !self.unwraps.take(now, 1) {
                return Ok(());
            }
            let made = Cipher::of_listener(passphrase, material, self.options.key_refresh, &mut self.rng);
            cipher = Some(made.ok_or(Refusal::BAD_SECRET)?);
        }
        self.make_room(now)?;
        let latency = self.options.latency.max(Duration::from_millis(hello.send_latency.into()));
        let peer_latency = self.options.peer_latency.max(Duration::from_millis(hello.receive_latency.into()));
        let own_id = self.new_id();
        let mut answer = Handshake { socket: own_id, extensions: Vec::new(), ..handshake.clone() };
        answer.flags = 1;
        (answer.mtu, answer.window) = (MTU.min(handshake.mtu), WINDOW);
        answer.address = seen_at(from);
        let response = Hello {
            version: VERSION,
            flags: FLAGS,
            receive_latency: Options::millis(latency),
            send_latency: Options::millis(peer_latency),
        };
        answer.extensions.push(response.extension(ExtensionKind::Response));
        if let Some((_, extension)) = keys {
            answer.flags |= 2;
            answer.extensions.push(Extension { kind: ExtensionKind::KeyResponse, content: extension.content.clone() });
        }
        let mut body = Vec::new();
        answer.write(&mut body);
        let agreed = Agreed {
            peer: from,
            own_id,
            peer_id: handshake.socket,
            start: now,
            // Both directions begin with the caller's number, as in libsrt.
            own_first: handshake.first_sequence,
            peer_first: handshake.first_sequence,
            peer_timestamp: timestamp,
            latency,
            peer_latency,
            window: handshake.window,
            cipher,
            peer_version: hello.version,
            stream_id: stream_id.text,
        };
        self.answer(now, now, from, handshake.socket, &body);
        self.links.push(Accepted { link: Link::new(now, agreed, &self.options), answer: body });
        events.push_back(Event::Connected(ConnectionId(own_id)));
        Ok(())
    }

    /// Room for one more: who sends and was silent goes, as it may be the same one that calls again.
    fn make_room(&mut self, now: Instant) -> Result<(), Refusal> {
        if self.links.iter().filter(|it| !it.link.is_ending()).count() < self.options.connections {
            return Ok(());
        }
        if self.direction == Direction::Send {
            return Err(Refusal::RESOURCE);
        }
        let silent =
            |it: &&mut Accepted| !it.link.is_ending() && now - it.link.media >= SILENT && now - it.link.heard >= SILENT;
        let it = self.links.iter_mut().filter(silent).min_by_key(|it| it.link.heard).ok_or(Refusal::CONFLICT)?;
        it.link.close(now, Ended::Replaced);
        Ok(())
    }

    fn new_id(&mut self) -> u32 {
        loop {
            let id = self.rng.u32() >> 2 | 1;
            if id != self.id && self.links.iter().all(|it| it.link.agreed.own_id != id) {
                return id;
            }
        }
    }

    fn refuse(&mut self, now: Instant, from: SocketAddr, handshake: &Handshake, refusal: Refusal) {
        let no = Handshake {
            version: 5,
            flags: 0,
            kind: HandshakeType::Refusal(refusal.0),
            socket: self.id,
            extensions: Vec::new(),
            ..handshake.clone()
        };
        let mut body = Vec::new();
        no.write(&mut body);
        self.answer(now, self.start, from, handshake.socket, &body);
    }

    pub(super) fn tick(&mut self, now: Instant, events: &mut VecDeque<Event>) {
        self.links.iter_mut().for_each(|it| it.link.tick(now));
        self.links.retain(|it| {
            let Some(why) = it.link.ended() else { return true };
            let Agreed { peer, own_id, peer_id, start, .. } = it.link.agreed;
            events.push_back(Event::Ended(ConnectionId(own_id), why));
            if why != Ended::ByPeer {
                if self.gone.len() == GONE {
                    self.gone.pop_front();
                }
                self.gone.push_back(Gone { peer, own_id, peer_id, start, tell_at: now });
            }
            false
        });
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        self.links.iter().filter_map(|it| it.link.timeout()).min()
    }

    pub(super) fn write_next(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some((peer, packet)) = self.answers.pop_front() {
            buf.extend_from_slice(&packet);
            return Some(peer);
        }
        // In turn, so that none is served before all others.
        for _ in 0..self.links.len() {
            self.turn = (self.turn + 1) % self.links.len();
            let link = &mut self.links[self.turn].link;
            if link.write_next(now, buf) {
                return Some(link.agreed.peer);
            }
        }
        None
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &Link> {
        self.links.iter().map(|it| &it.link)
    }

    pub(super) fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.links.iter_mut().map(|it| &mut it.link)
    }

    /// Takes another list of passphrases. Who came by one that is no longer its own goes.
    pub(super) fn set_keys(&mut self, now: Instant, keys: Vec<(String, Passphrase)>) {
        let mut after = self.options.clone();
        after.keys = Some(keys);
        let before = std::mem::replace(&mut self.options, after);
        for it in &mut self.links {
            let stream = StreamId::parse(&it.link.agreed.stream_id);
            if self.options.secret_of(&stream) != before.secret_of(&stream) {
                it.link.close(now, Ended::ByUs);
            }
        }
    }

    pub(super) fn close(&mut self, now: Instant) {
        self.closed = true;
        self.links_mut().for_each(|link| link.close(now, Ended::ByUs));
    }
}
