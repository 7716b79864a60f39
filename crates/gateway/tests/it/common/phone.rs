//! What a phone does that bonds: the sending half of SRTLA. Tests of the program have it too.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_gateway::srt::{Endpoint, Event, Options};
use braidcast_gateway::srtla::Packet;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// What a phone does: SRT inside, and each packet over the next link that answers.
pub(crate) struct Phone {
    pub(crate) inside: Endpoint,
    /// Where each link goes; the first address is also the one that SRT calls.
    to: Vec<SocketAddr>,
    links: Vec<PhoneLink>,
    id: [u8; 256],
    known: bool,
    turn: usize,
    next: Instant,
    out: VecDeque<(usize, Vec<u8>)>,
    /// Data packets that came over each link, by the receiver's word.
    pub(crate) acknowledged: usize,
}

#[derive(Clone, Copy, Default)]
struct PhoneLink {
    up: bool,
    heard: Instant,
}

impl Phone {
    /// `mark` makes its group another one than those of other phones.
    pub(crate) fn new(now: Instant, options: Options, to: Vec<SocketAddr>, mark: u8, rng: Rng) -> Self {
        Self {
            inside: Endpoint::caller(now, to[0], options, rng),
            links: vec![PhoneLink::default(); to.len()],
            to,
            id: [mark; 256],
            known: false,
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
        for link in 0..self.links.len() {
            let PhoneLink { up, heard } = self.links[link];
            if up && now - heard > Duration::from_secs(4) {
                self.links[link].up = false;
            }
            match (self.known, up) {
                (false, _) if link == self.turn % self.links.len() => {
                    self.say(link, &Packet::Register1(&self.id.clone()))
                }
                (true, false) => self.say(link, &Packet::Register2(&self.id.clone())),
                (true, true) => self.say(link, &Packet::KeepAlive(&[0x90, 0, 0, 0, 0, 0, 0, 0, 0, 1])),
                _ => {}
            }
        }
        self.turn += 1;
    }
}

impl Machine for Phone {
    type Event = Event;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let link = usize::from(datagram.route.socket.0);
        self.links[link].heard = now;
        match Packet::parse(datagram.payload) {
            Some(Packet::Register2(id)) if !self.known => {
                (self.id, self.known) = (*id, true);
                self.tick(now);
            }
            Some(Packet::Register3) => self.links[link].up = true,
            Some(Packet::NoGroup) => self.known = false,
            Some(Packet::Ack(acknowledged)) => self.acknowledged += acknowledged.numbers().count(),
            Some(Packet::Srt(_)) => {
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
        // Until a link is up, nothing is lost by waiting: SRT's handshake is repeated.
        let up: Vec<usize> = (0..self.links.len()).filter(|link| self.links[*link].up).collect();
        let link = *up.get(self.turn % up.len().max(1))?;
        self.inside.poll_transmit(now, buf)?;
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
