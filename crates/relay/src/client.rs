//! One socket's place at a relay: asked for, kept, and asked for again when the relay has forgotten.

use crate::straight::{Came, Straight, may_be_tried};
use crate::wire::{Control, Header, Leg, Observed, Place, Proof, Reason, Registration, Tag, signed};
use braidcast_core::{Instant, Rng};
use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// A question is asked again after this long, the first [`EAGER`] times, unless the relay is farther away.
const AGAIN: Duration = Duration::from_millis(250);
/// Ten seconds.
const EAGER: u32 = 40;
/// And after this long from then on.
const PATIENT: Duration = Duration::from_secs(2);
/// After an answer that time does not change.
const REFUSED: Duration = Duration::from_secs(10);
/// A relay over which nothing goes is asked this often. NATs forget after 30 s, some of them.
const IDLE: Duration = Duration::from_secs(10);
/// While a stream goes, a relay that is silent is asked this often whether it is there.
const WATCHFUL: Duration = Duration::from_millis(250);
/// A stream goes until this long after its last packet.
const ACTIVE: Duration = Duration::from_secs(30);
/// A place is asked for with the same cookie for this long; relays take one for 10 s at least.
const COOKIE: Duration = Duration::from_secs(8);
/// Questions without an answer after which a place is asked for anew.
const UNANSWERED: u32 = 4;
/// Packets that wait for a place, at most: the newest.
const MOST_WAITING: usize = 64;

/// Signs for relays that have a list.
pub trait Signer: Send + Sync {
    /// The public key, and the signature of `message` by it; `None` if that failed.
    fn sign(&self, message: &[u8]) -> Option<Proof>;
}

/// What a place is asked for with.
#[derive(Clone)]
pub struct Credentials {
    /// Which side of which circuit.
    pub place: Place,
    /// When this program began, in ms since 1970.
    pub epoch: u64,
    /// See [`Registration::hidden`].
    pub hidden: bool,
    /// The key, for an owner.
    pub signer: Option<Arc<dyn Signer>>,
}

impl core::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Credentials").field("side", &self.place.side()).finish_non_exhaustive()
    }
}

/// What became of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClientEvent {
    /// Packets go through now; the relay sees this end there.
    Registered(Observed),
    /// The relay has forgotten this end, or does not answer; it is asked again.
    Lost,
    /// The relay said no; it is asked again.
    Refused(Reason),
    /// The other end's packets come straight from this address.
    Straight(SocketAddr),
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// A cookie is asked for.
    Asking { nonce: u64 },
    /// A place is, since then.
    Registering { nonce: u64, since: Instant },
    /// It was refused.
    Waiting,
    /// It is there; questions since the relay was heard, and the last one's nonce.
    Member { unanswered: u32, nonce: u64 },
}

/// A place at a relay. Machines above see it through [`Legs`](crate::Legs).
#[derive(Debug)]
pub struct Client {
    relay: SocketAddr,
    credentials: Credentials,
    leg: Leg,
    member: u64,
    state: State,
    tag: Option<Tag>,
    /// Questions so far since the last place was lost.
    tries: u32,
    /// When to ask next.
    next: Instant,
    /// The question for a place, to be asked again as it is.
    question: Vec<u8>,
    /// From the question for a place to its answer, the last time.
    rtt: Duration,
    /// When the relay was heard last.
    heard: Instant,
    /// When a packet went or came last.
    active: Option<Instant>,
    out: VecDeque<Vec<u8>>,
    /// Packets without a header that wait for a place, and to where.
    waiting: VecDeque<(Leg, Vec<u8>)>,
    events: VecDeque<ClientEvent>,
    /// It was said that it is refused.
    said: Option<Reason>,
    straight: Straight,
    rng: Rng,
}

impl Client {
    /// Asks `relay` for the place at `leg`, at once.
    pub fn new(now: Instant, relay: SocketAddr, credentials: Credentials, leg: Leg, mut rng: Rng) -> Self {
        let member = rng.u64();
        let straight = Straight::new(credentials.place.circuit());
        let mut it = Self {
            relay,
            credentials,
            leg,
            member,
            state: State::Waiting,
            tag: None,
            tries: 0,
            next: now,
            question: Vec::new(),
            rtt: Duration::ZERO,
            heard: now,
            active: None,
            out: VecDeque::new(),
            waiting: VecDeque::new(),
            events: VecDeque::new(),
            said: None,
            straight,
            rng,
        };
        it.ask(now);
        it
    }

    /// Returns `true` if packets go through.
    pub const fn is_member(&self) -> bool {
        self.tag.is_some()
    }

    /// A cookie, from the beginning. The question is the same until it is answered: the answer to an earlier one is as
    /// good, and where the round trip takes longer than the pause there is no other.
    fn ask(&mut self, now: Instant) {
        let nonce = if let State::Asking { nonce } = self.state { nonce } else { self.rng.u64() };
        self.state = State::Asking { nonce };
        self.tries += 1;
        self.next = now + if self.tries < EAGER { AGAIN } else { PATIENT };
        self.send(&Control::Hello { nonce });
    }

    fn send(&mut self, message: &Control) {
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        self.out.push_back(bytes);
    }

    fn register(&mut self, now: Instant, cookie: [u8; 16]) {
        let nonce = self.rng.u64();
        let Credentials { place, epoch, hidden, signer } = &self.credentials;
        let message = signed(&cookie, nonce, place.circuit());
        let proof = signer.as_ref().and_then(|signer| signer.sign(&message));
        let (leg, member) = (self.leg, self.member);
        let registration = Registration { place: *place, leg, epoch: *epoch, member, hidden: *hidden, proof };
        self.state = State::Registering { nonce, since: now };
        self.next = now + AGAIN;
        self.question.clear();
        Control::Register { nonce, cookie, registration }.write(&mut self.question);
        self.out.push_back(self.question.clone());
    }

    /// How long an answer is waited for before the question is asked again.
    fn patience(&self) -> Duration {
        AGAIN.max(self.rtt * 3 / 2)
    }

    fn lost(&mut self, now: Instant) {
        if self.tag.take().is_some() {
            self.events.push_back(ClientEvent::Lost);
        }
        self.tries = 0;
        self.ask(now);
    }

    /// Takes what came from the relay. Returns a packet for the machine above, and whose it is.
    pub fn handle<'a>(&mut self, now: Instant, datagram: &'a [u8]) -> Option<(Leg, &'a [u8])> {
        if let Some((header, packet)) = Header::read(datagram) {
            let is_ours = Some(header.tag) == self.tag;
            if is_ours {
                self.is_heard(now);
                self.active = Some(now);
            }
            return is_ours.then_some((header.leg, packet));
        }
        match (Control::read(datagram), self.state) {
            (Ok(Control::Challenge { nonce, cookie }), State::Asking { nonce: asked }) if nonce == asked => {
                self.register(now, cookie);
            }
            (Ok(Control::Registered { nonce, tag, observed, .. }), State::Registering { nonce: asked, since })
                if nonce == asked =>
            {
                self.rtt = now.since(since);
                self.tag = Some(tag);
                self.state = State::Member { unanswered: 0, nonce: 0 };
                (self.heard, self.tries, self.said) = (now, 0, None);
                self.events.push_back(ClientEvent::Registered(observed));
                while let Some((leg, packet)) = self.waiting.pop_front() {
                    self.out.push_back([&Header { tag, leg }.bytes()[..], &packet].concat());
                }
            }
            (Ok(Control::Refused { nonce, reason }), State::Registering { nonce: asked, .. }) if nonce == asked => {
                self.refused(now, reason);
            }
            (Ok(Control::Kept { nonce }), State::Member { nonce: asked, .. }) if nonce == asked => self.is_heard(now),
            (Ok(Control::Unknown { tag }), State::Member { .. }) if Some(tag) == self.tag => self.lost(now),
            (Ok(Control::Peer { tag, observed, .. }), _)
                if Some(tag) == self.tag && may_be_tried(observed.0, self.relay) =>
            {
                self.straight.try_at(now, observed.0);
            }
            _ => {}
        }
        None
    }

    fn is_heard(&mut self, now: Instant) {
        self.heard = now;
        if let State::Member { unanswered, .. } = &mut self.state {
            *unanswered = 0;
        }
    }

    fn refused(&mut self, now: Instant, reason: Reason) {
        self.state = State::Waiting;
        let eager = reason == Reason::NoCircuit && self.tries < EAGER;
        let wait = match reason {
            Reason::NoCircuit if eager => AGAIN,
            // Of these there may be fewer soon.
            Reason::NoCircuit | Reason::Full | Reason::OverQuota => PATIENT,
            _ => REFUSED,
        };
        self.next = now + wait;
        if self.said != Some(reason) {
            self.said = Some(reason);
            self.events.push_back(ClientEvent::Refused(reason));
        }
    }

    /// How long the relay may be silent before it is asked whether it is there.
    fn pause(&self, now: Instant) -> Duration {
        if self.active.is_some_and(|at| now.since(at) < ACTIVE) { WATCHFUL } else { IDLE }
    }

    /// Takes what came from elsewhere than the relay. Returns a packet for the machine above, if it came from
    /// the other end.
    pub fn handle_straight<'a>(&mut self, from: SocketAddr, datagram: &'a [u8]) -> Option<&'a [u8]> {
        match self.straight.handle(from, datagram) {
            Came::Packet => Some(datagram),
            Came::Proof => {
                self.events.push_back(ClientEvent::Straight(from));
                None
            }
            Came::Nothing => None,
        }
    }

    /// The other end does not answer at this address any more.
    pub fn forget_straight(&mut self, addr: SocketAddr) {
        self.straight.forget(addr);
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.straight.handle_timeout(now);
        if now < self.next_question(now) {
            return;
        }
        match (self.state, self.tag) {
            (State::Member { unanswered, .. }, Some(tag)) if unanswered < UNANSWERED => {
                let nonce = self.rng.u64();
                self.state = State::Member { unanswered: unanswered + 1, nonce };
                self.next = now + self.patience();
                self.send(&Control::Keep { nonce, tag });
            }
            (State::Member { .. }, _) => self.lost(now),
            (State::Registering { since, .. }, _) if now.since(since) < COOKIE => {
                self.next = now + AGAIN;
                self.out.push_back(self.question.clone());
            }
            _ => self.ask(now),
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next(&self, now: Instant) -> Instant {
        let question = self.next_question(now);
        self.straight.next().map_or(question, |at| at.min(question))
    }

    fn next_question(&self, now: Instant) -> Instant {
        match self.state {
            State::Member { unanswered: 0, .. } => self.heard + self.pause(now),
            _ => self.next,
        }
    }

    /// Puts headers before the datagrams of `bytes`, each `segment` long, to `leg` of the other side.
    /// Returns `false` if there is no place yet: they wait, or make room for newer ones.
    pub fn wrap(&mut self, now: Instant, leg: Leg, bytes: &mut Vec<u8>, segment: usize, spare: &mut Vec<u8>) -> bool {
        self.active = Some(now);
        let segment = segment.max(1);
        let Some(tag) = self.tag else {
            for packet in bytes.chunks(segment) {
                if self.waiting.len() >= MOST_WAITING {
                    self.waiting.pop_front();
                }
                self.waiting.push_back((leg, packet.to_vec()));
            }
            return false;
        };
        let header = Header { tag, leg }.bytes();
        spare.clear();
        for packet in bytes.chunks(segment) {
            spare.extend_from_slice(&header);
            spare.extend_from_slice(packet);
        }
        std::mem::swap(bytes, spare);
        true
    }

    /// Asks for the place again, which another socket of this end may have taken meanwhile.
    pub fn renew(&mut self, now: Instant) {
        if self.tag.is_some() {
            self.ask(now);
        }
    }

    /// Leaves the place; the last message is in [`poll`](Self::poll).
    pub fn leave(&mut self) {
        if let Some(tag) = self.tag.take() {
            self.send(&Control::Leave { tag });
        }
    }

    /// What goes to the relay next.
    pub fn poll(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// What goes past the relay next, and to where.
    pub fn poll_straight(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.straight.poll()
    }

    /// What happened, oldest first.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }
}
