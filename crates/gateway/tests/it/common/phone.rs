//! What a phone does that bonds: the sending half of SRTLA. Tests of the program have it too.

use braidcast_core::{Datagram, Ecn, Instant, Machine, Rng, Route, SocketId, Transmit};
use braidcast_gateway::srt::{Endpoint, Event, Options};
use braidcast_gateway::srtla::Packet;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Silence after which a link is not sent over.
const SILENT: Duration = Duration::from_secs(4);
/// A link's window in thousandths of a packet: at first, at least, at most. It is as irlserver's srtla_send has it:
/// more for what is acknowledged while the window is full, less for what SRT asks for again.
const WINDOW: (u32, u32, u32) = (20_000, 1_000, 60_000);
const MORE: u32 = 29;
const LESS: u32 = 100;
/// Packets of a link whose numbers are kept.
const OUT: usize = 256;
/// How long the answer to a step of the registration is waited for, before it begins anew.
const STEP: Duration = Duration::from_secs(4);

/// What a link may carry.
struct Window {
    size: u32,
    /// Numbers of data packets that are out.
    out: VecDeque<u32>,
}

impl Window {
    /// How much room there is.
    fn score(&self) -> u32 {
        self.size / (self.out.len() as u32 + 1)
    }

    /// Takes a packet off what is out; `false` if it is not there.
    fn take(&mut self, number: u32) -> bool {
        let at = self.out.iter().position(|it| *it == number);
        at.and_then(|at| self.out.remove(at)).is_some()
    }

    fn grow(&mut self, by: u32) {
        self.size = (self.size + by).min(WINDOW.2);
    }
}

/// What a phone does: SRT inside, and each packet over the next link that answers, or the one with most room in its
/// [window](Self::by_windows). It registers, and it takes links for up and down, as BELABOX's srtla_send.c does.
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
    /// Of each link, if they decide; else links have turns.
    windows: Vec<Window>,
    is_by_windows: bool,
    turn: usize,
    id: [u8; 256],
    /// The link that asked for a group and has no answer yet.
    asking: Option<usize>,
    /// Until then no other group is asked for.
    patient: Instant,
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
            windows: to.iter().map(|_| Window { size: WINDOW.0, out: VecDeque::new() }).collect(),
            is_by_windows: false,
            turn: 0,
            to,
            id: [mark; 256],
            asking: None,
            patient: now,
            next: now,
            out: VecDeque::new(),
            acknowledged: 0,
        }
    }

    /// Shares packets out by what each link has carried.
    #[allow(dead_code, reason = "measurements choose it, tests have turns")]
    pub(crate) fn by_windows(self) -> Self {
        Self { is_by_windows: true, ..self }
    }

    fn say(&mut self, link: usize, packet: &Packet<'_>) {
        let mut bytes = Vec::new();
        packet.write(&mut bytes);
        self.out.push_back((link, bytes));
    }

    /// A data packet came: its link carries what it has.
    fn arrived(&mut self, number: u32) {
        if let Some(window) = self.windows.iter_mut().find(|window| window.out.contains(&number)) {
            let full = window.out.len() as u32 * 1000 > window.size;
            window.take(number);
            window.grow(if full { MORE } else { 0 });
        }
        self.windows.iter_mut().zip(&self.heard).filter(|(_, heard)| heard.is_some()).for_each(|(it, _)| it.grow(1));
    }

    /// What SRT's receiver says of data packets.
    fn overhear(&mut self, packet: &[u8]) {
        let word = |at: usize| packet.get(at..at + 4).map(|word| u32::from_be_bytes(word.try_into().unwrap()));
        match (packet.first_chunk(), word(16)) {
            // ACK: all before this number have come.
            (Some([0x80, 2]), Some(next)) => {
                let came = |number: &u32| next.wrapping_sub(*number) & 0x7fff_ffff < 0x4000_0000 && *number != next;
                self.windows.iter_mut().for_each(|window| window.out.retain(|number| !came(number)));
            }
            // NAK: single numbers, and ranges of two words, of which the first one has its highest bit.
            (Some([0x80, 3]), _) => {
                let mut at = 16;
                while let Some(first) = word(at) {
                    let is_range = first & 0x8000_0000 != 0;
                    let last = if is_range { word(at + 4).unwrap_or(first) } else { first };
                    at += if is_range { 8 } else { 4 };
                    let first = first & 0x7fff_ffff;
                    for number in (first..=last & 0x7fff_ffff).take(1000) {
                        if let Some(window) = self.windows.iter_mut().find(|window| window.out.contains(&number)) {
                            window.take(number);
                            window.size = window.size.saturating_sub(LESS).max(WINDOW.1);
                        }
                    }
                }
            }
            _ => {}
        }
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
            Packet::Register3 => {
                self.joined[link] = true;
                self.windows[link] = Window { size: WINDOW.0, out: VecDeque::new() };
            }
            _ => {}
        }
        // Whatever else comes shows that the link is up.
        if self.joined[link] {
            self.heard[link] = Some(now);
        }
        match packet {
            Packet::Ack(acknowledged) => {
                self.acknowledged += acknowledged.numbers().count();
                acknowledged.numbers().for_each(|number| self.arrived(number));
            }
            Packet::Srt(_) => {
                self.overhear(datagram.payload);
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
        let link = loop {
            self.inside.poll_transmit(now, buf)?;
            match up.iter().max_by_key(|link| self.windows[**link].score()) {
                Some(link) if self.is_by_windows => break *link,
                Some(_) => {
                    self.turn += 1;
                    break up[(self.turn - 1) % up.len()];
                }
                // What has no link is lost.
                None => {}
            }
        };
        if let Some(Packet::Srt(Some(number))) = Packet::parse(buf) {
            let out = &mut self.windows[link].out;
            out.push_back(number);
            if out.len() > OUT {
                out.pop_front();
            }
        }
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
