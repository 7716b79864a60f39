//! The end that calls: handshake, and calling again (draft-sharabayko-srt §4.3.1).

use super::cipher::Cipher;
use super::event::{ConnectionId, Event};
use super::link::{Agreed, Ended, Link};
use super::options::Options;
use super::refusal::Refusal;
use super::wire::{Control, ControlKind, Extension, ExtensionKind, Handshake, HandshakeType, Hello, MAGIC, Packet};
use super::{FLAGS, MTU, VERSION, WINDOW, first_number};
use braidcast_core::{Instant, Rng};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A handshake that is not answered is sent again so soon.
const REPEAT: Duration = Duration::from_millis(250);
/// A handshake that is not answered within this begins anew.
const PATIENCE: Duration = Duration::from_secs(3);
/// Time until the next try. A connection that was up for this long is followed by a call at once.
const PAUSE: Duration = Duration::from_secs(1);

/// What a try to connect knows.
struct Try {
    id: u32,
    began: Instant,
    repeat_at: Instant,
    /// Body of what is sent.
    body: Vec<u8>,
    first: u32,
    /// In the second phase: our keys, and the message that brings them.
    concluding: Option<(Option<Cipher>, Vec<u8>)>,
}

enum State {
    Paused(Instant),
    Trying(Box<Try>),
    Up(Box<Link>),
    Closed,
}

pub(super) struct Caller {
    options: Options,
    peer: SocketAddr,
    rng: Rng,
    state: State,
    waiting: VecDeque<Vec<u8>>,
    silent_said: bool,
}

impl Caller {
    pub(super) fn new(now: Instant, peer: SocketAddr, options: Options, rng: Rng) -> Self {
        let waiting = VecDeque::new();
        Self { options, peer, rng, state: State::Paused(now), waiting, silent_said: false }
    }

    fn begin(&mut self, now: Instant) {
        let id = self.rng.u32() >> 2 | 1;
        let first = first_number(&mut self.rng);
        // Version 4 and extension field 2: what UDT's listeners look at (§4.3.1.1).
        let mut hello = self.handshake(4, HandshakeType::Induction, id, first);
        hello.flags = 2;
        let mut body = Vec::new();
        hello.write(&mut body);
        self.state = State::Trying(Box::new(Try { id, began: now, repeat_at: now, body, first, concluding: None }));
        self.repeat(now);
    }

    fn handshake(&self, version: u32, kind: HandshakeType, socket: u32, first: u32) -> Handshake {
        Handshake {
            version,
            encryption: 0,
            flags: 0,
            first_sequence: first,
            mtu: MTU,
            window: WINDOW,
            kind,
            socket,
            cookie: 0,
            address: Handshake::address_of(self.peer.ip()),
            extensions: Vec::new(),
        }
    }

    /// Sends the handshake, again.
    fn repeat(&mut self, now: Instant) {
        let State::Trying(it) = &mut self.state else { return };
        it.repeat_at = now + REPEAT;
        let timestamp = (now - it.began).as_micros() as u32;
        let mut packet = Vec::with_capacity(16 + it.body.len());
        Control { kind: ControlKind::Handshake, info: 0, timestamp, to: 0, body: &it.body }.write(&mut packet);
        self.waiting.push_back(packet);
    }

    pub(super) fn handle(&mut self, now: Instant, from: SocketAddr, packet: &Packet<'_>, events: &mut VecDeque<Event>) {
        if from != self.peer {
            return;
        }
        match &mut self.state {
            State::Up(link) => {
                let to = match packet {
                    Packet::Data(data) => data.to,
                    Packet::Control(control) => control.to,
                };
                if to == link.agreed.own_id {
                    link.handle(now, packet);
                }
            }
            State::Trying(it) => {
                if let Packet::Control(control) = packet
                    && control.kind == ControlKind::Handshake
                    && control.to == it.id
                    && let Ok(handshake) = Handshake::parse(control.body)
                {
                    self.answered(now, control.timestamp, handshake, events);
                }
            }
            State::Paused(_) | State::Closed => {}
        }
    }

    fn answered(&mut self, now: Instant, timestamp: u32, handshake: Handshake, events: &mut VecDeque<Event>) {
        let State::Trying(it) = &self.state else { return };
        let concluding = it.concluding.is_some();
        let outcome = match handshake.kind {
            HandshakeType::Induction if !concluding => self.conclude(now, &handshake),
            HandshakeType::Conclusion if concluding => self.connected(now, timestamp, &handshake, events),
            HandshakeType::Refusal(code) => Err(Refusal(code)),
            _ => Ok(()),
        };
        if let Err(refusal) = outcome {
            // Another cookie is to be had at once.
            let pause = if refusal == Refusal::COOKIE { REPEAT } else { PAUSE };
            self.state = State::Paused(now + pause);
            events.push_back(Event::RefusedByPeer(refusal));
        }
    }

    /// A cookie has come: the second phase.
    fn conclude(&mut self, now: Instant, induction: &Handshake) -> Result<(), Refusal> {
        if induction.version < 5 {
            return Err(Refusal::VERSION);
        }
        if induction.flags != MAGIC {
            return Err(Refusal::ROGUE);
        }
        let State::Trying(it) = &self.state else { return Ok(()) };
        let (id, first) = (it.id, it.first);
        let mut handshake = self.handshake(5, HandshakeType::Conclusion, id, first);
        handshake.cookie = induction.cookie;
        let Options { latency, peer_latency, passphrase, key_length, key_refresh, stream_id, .. } = &self.options;
        let hello = Hello {
            version: VERSION,
            flags: FLAGS,
            receive_latency: Options::millis(*latency),
            send_latency: Options::millis(*peer_latency),
        };
        handshake.flags = 1;
        handshake.extensions.push(hello.extension(ExtensionKind::Request));
        let (mut cipher, mut keys) = (None, Vec::new());
        if let Some(passphrase) = passphrase {
            let (made, message) = Cipher::of_caller(passphrase, *key_length, *key_refresh, &mut self.rng);
            handshake.encryption = (key_length.bytes() / 8) as u16;
            handshake.flags |= 2;
            handshake.extensions.push(Extension { kind: ExtensionKind::KeyRequest, content: message.clone() });
            (cipher, keys) = (Some(made), message);
        }
        if let Some(stream_id) = stream_id {
            handshake.flags |= 4;
            handshake.extensions.push(Extension::text(ExtensionKind::StreamId, stream_id));
        }
        let mut body = Vec::new();
        handshake.write(&mut body);
        if let State::Trying(it) = &mut self.state {
            it.body = body;
            it.concluding = Some((cipher, keys));
        }
        self.repeat(now);
        Ok(())
    }

    fn connected(
        &mut self,
        now: Instant,
        timestamp: u32,
        answer: &Handshake,
        events: &mut VecDeque<Event>,
    ) -> Result<(), Refusal> {
        let hello = answer.extension(ExtensionKind::Response).and_then(|it| Hello::parse(&it.content).ok());
        let hello = hello.filter(|_| answer.version == 5).ok_or(Refusal::VERSION)?;
        let keys = answer.extension(ExtensionKind::KeyResponse).map(|it| &it.content[..]);
        let State::Trying(it) = &mut self.state else { return Ok(()) };
        let Some((cipher, sent)) = it.concluding.take() else { return Ok(()) };
        match (&cipher, keys) {
            (Some(_), Some(keys)) if keys == sent => {}
            // One word: what is the matter with our keys (§3.2.1.2).
            (Some(_), Some([0, 0, 0, 4])) => return Err(Refusal::BAD_SECRET),
            (Some(_), _) => return Err(Refusal::UNSECURE),
            (None, _) => {}
        }
        let agreed = Agreed {
            peer: self.peer,
            own_id: it.id,
            peer_id: answer.socket,
            start: it.began,
            own_first: it.first,
            peer_first: answer.first_sequence,
            peer_timestamp: timestamp,
            latency: self.options.latency.max(Duration::from_millis(hello.send_latency.into())),
            peer_latency: self.options.peer_latency.max(Duration::from_millis(hello.receive_latency.into())),
            window: answer.window,
            cipher,
            peer_version: hello.version,
            stream_id: self.options.stream_id.clone().unwrap_or_default(),
        };
        events.push_back(Event::Connected(ConnectionId(agreed.own_id)));
        self.silent_said = false;
        self.state = State::Up(Box::new(Link::new(now, agreed, &self.options)));
        Ok(())
    }

    pub(super) fn tick(&mut self, now: Instant, events: &mut VecDeque<Event>) {
        match &mut self.state {
            State::Paused(until) if *until <= now => self.begin(now),
            State::Trying(it) if now - it.began >= PATIENCE => {
                if !std::mem::replace(&mut self.silent_said, true) {
                    events.push_back(Event::NoAnswer);
                }
                self.begin(now);
            }
            State::Trying(it) if it.repeat_at <= now => self.repeat(now),
            State::Up(link) => link.tick(now),
            _ => {}
        }
        self.look_at_end(now, events);
    }

    fn look_at_end(&mut self, now: Instant, events: &mut VecDeque<Event>) {
        if let State::Up(link) = &self.state
            && let Some(why) = link.ended()
        {
            events.push_back(Event::Ended(ConnectionId(link.agreed.own_id), why));
            let next = now.max(link.agreed.start + PAUSE);
            self.state = if why == Ended::ByUs { State::Closed } else { State::Paused(next) };
        }
    }

    pub(super) fn timeout(&self) -> Option<Instant> {
        match &self.state {
            State::Paused(until) => Some(*until),
            State::Trying(it) => Some(it.repeat_at.min(it.began + PATIENCE)),
            State::Up(link) => link.timeout(),
            State::Closed => None,
        }
    }

    pub(super) fn write_next(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some(packet) = self.waiting.pop_front() {
            buf.extend_from_slice(&packet);
            return Some(self.peer);
        }
        match &mut self.state {
            State::Up(link) => link.write_next(now, buf).then_some(self.peer),
            _ => None,
        }
    }

    pub(super) fn link(&self) -> Option<&Link> {
        if let State::Up(link) = &self.state { Some(link) } else { None }
    }

    pub(super) fn link_mut(&mut self) -> Option<&mut Link> {
        if let State::Up(link) = &mut self.state { Some(link) } else { None }
    }

    pub(super) fn close(&mut self, now: Instant) {
        match &mut self.state {
            State::Up(link) => link.close(now, Ended::ByUs),
            state => *state = State::Closed,
        }
    }
}
