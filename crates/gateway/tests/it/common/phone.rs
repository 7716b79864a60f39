//! What a phone does that bonds: the sending half of SRTLA. Tests of the program have it too.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_gateway::srt::{Endpoint, Event, Options};
use braidcast_gateway::srtla::Packet;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Silence after which a link is not sent over.
const SILENT: Duration = Duration::from_secs(4);
/// How long the answer to a step of the registration is waited for, before it begins anew.
const STEP: Duration = Duration::from_secs(4);

/// What a phone does: SRT inside, and each packet over the next link that answers. It registers, and it takes links for
/// up and down, as BELABOX's srtla_send.c does.
///
/// That one has new ports when it begins anew. Ours may have those of an older phone, and must not take what is sent to
/// that one for its own: a link is up only after it has joined.
pub(crate) struct Phone {
    pub(crate) inside: Endpoint,
    /// Where each link goes; the first address is also the one that SRT calls.
    to: Vec<SocketAddr>,
    /// When each link was heard last; none if it is down.
    heard: Vec<Option<Instant>>,
    joined: Vec<bool>,
    id: [u8; 256],
    /// The link that asked for a group and has no answer yet.
    asking: Option<usize>,
    /// Until then no other group is asked for.
    patient: Instant,
    turn: usize,
    next: Instant,
    out: VecDeque<(usize, Vec<u8>)>,
    /// Data packets that came over each link, by the receiver's word.
    pub(crate) acknowledged: usize,
}

impl Phone {
    /// `mark` makes its group another one than those of other phones.
    pub(crate) fn new(now: Instant, options: Options, to: Vec<SocketAddr>, mark: u8, rng: Rng) -> Self {
        Self {
            inside: Endpoint::caller(now, to[0], options, rng),
            heard: vec![None; to.len()],
            joined: vec![false; to.len()],
            to,
            id: [mark; 256],
            asking: None,
            patient: now,
            turn: 0,
            next: now,
            out: VecDeque::new(),
            acknowledged: 0,
        }
    }

    fn say(&mut self, link: usize, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        packet.write(&mut bytes);
        self.out.push_back((link, bytes));
    }

    /// Each second: registers what is down, and says that it is there on what is up.
    fn tick(&mut self, now: Instant) {
        self.next = now + Duration::from_secs(1);
        if self.patient <= now {
            self.asking = None;
        }
        for link in 0..self.heard.len() {
            self.heard[link] = self.heard[link].filter(|heard| now - *heard <= SILENT);
            match (self.heard[link], self.asking) {
                (Some(_), _) => self.say(link, &Packet::KeepAlive(&[0x90, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
                (None, None) => self.say(link, &Packet::Register2(&self.id.clone())),
                (None, Some(asking)) if asking == link => self.say(link, &Packet::Register1(&self.id.clone())),
                (None, Some(_)) => {}
            }
        }
    }
}

impl Machine for Phone {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let link = usize::from(datagram.route.socket.0);
        let Some(packet) = Packet::parse(datagram.payload) else { return };
        match packet {
            Packet::NoGroup => {
                if self.heard.iter().all(Option::is_none) && self.asking.is_none() && self.patient <= now {
                    (self.asking, self.patient) = (Some(link), now + STEP);
                    self.say(link, &Packet::Register1(&self.id.clone()));
                }
                return;
            }
            Packet::Register2(id) => {
                if self.asking == Some(link) {
                    (self.id, self.asking, self.patient) = (*id, None, now + STEP);
                    self.joined.fill(false);
                    (0..self.to.len()).for_each(|link| self.say(link, &Packet::Register2(id)));
                }
                return;
            }
            Packet::Register3 => self.joined[link] = true,
            _ => {}
        }
        // Whatever else comes shows that the link is up.
        if self.joined[link] {
            self.heard[link] = Some(now);
        }
        match packet {
            Packet::Ack(acknowledged) => self.acknowledged += acknowledged.numbers().count(),
            Packet::Srt(_) => {
                let route = Route::new(SocketId(0), self.to[0]);
                self.inside.handle_datagram(now, Datagram { route, ..datagram });
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if self.next <= now {
            self.tick(now);
        }
        self.inside.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let to = |link: usize| Transmit {
            route: Route::new(SocketId(link as u16), self.to[link]),
            ecn: Ecn::NotEct,
            segment_size: None,
        };
        if let Some((link, bytes)) = self.out.pop_front() {
            buf.clear();
            buf.extend_from_slice(&bytes);
            return Some(to(link));
        }
        let up: Vec<usize> = (0..self.heard.len()).filter(|link| self.heard[*link].is_some()).collect();
        loop {
            self.inside.poll_transmit(now, buf)?;
            if !up.is_empty() {
                break;
            }
            // What has no link is lost.
        }
        let link = up[self.turn % up.len()];
        self.turn += 1;
        // SHUTDOWN (draft-sharabayko-srt §3.2.7) is said once; where a network loses it, the test has another end.
        if buf.starts_with(&[0x80, 5]) {
            self.out.extend(up.iter().filter(|it| **it != link).map(|other| (*other, buf.clone())));
        }
        Some(to(link))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Instant::first_of([Some(self.next), self.inside.poll_timeout()])
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.inside.poll_event()
    }
}
