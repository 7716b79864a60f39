//! All associations of one SCTP port, and the packets that belong to none.

mod accept;
mod places;
mod stray;
mod succession;

use crate::api::{CloseReason, ConnectError, Event, Options};
use crate::assoc::Association;
use crate::cookie::CookieJar;
use crate::wire::{Packet, chunk::kind};
use braidcast_core::{
    Datagram, Heard, Instant, Key, Lobby, Machine, Member, Misuse, Rng, Roster, Route, Strangers, Transmit, Turn,
};
use braidcast_secure::{Alias, Insecure};
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

/// Names an association of an [`Endpoint`]; not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId(Key);

impl From<Key> for AssociationId {
    fn from(key: Key) -> Self {
        Self(key)
    }
}

impl From<AssociationId> for Key {
    fn from(AssociationId(key): AssociationId) -> Self {
        key
    }
}

#[derive(Debug)]
struct Entry {
    association: Association,
    /// Under this tag it stands in `by_tag`.
    tag: u32,
    /// Of one that a peer opened: where that is, and when it was heard last. Those we opened give
    /// way to nobody.
    guest: Option<(IpAddr, Instant)>,
    /// The application has been told that it is over.
    told: bool,
    /// Its peer proved by the key handshake who it is.
    proved: bool,
    /// Finds out for this association whether its peer still has its state; nobody is told of it.
    asks_for: Option<AssociationId>,
    /// The one that finds out for it.
    asked_by: Option<AssociationId>,
    /// A newcomer proved to be the same peer; this one stays as long as its peer is heard.
    succeeded_by: Option<AssociationId>,
}

impl Entry {
    fn new(association: Association, guest: Option<(IpAddr, Instant)>) -> Self {
        let tag = association.local_tag();
        Self { association, tag, guest, proved: false, told: false, asks_for: None, asked_by: None, succeeded_by: None }
    }
}

impl Member for Entry {
    type Id = AssociationId;
    type Event = Event;

    fn handle_timeout(&mut self, now: Instant) {
        self.association.handle_timeout(now);
    }

    fn handle_late_wake(&mut self, now: Instant, late: Duration) {
        self.association.handle_late_wake(now, late);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.association.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.association.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Event> {
        let event = self.association.poll_event();
        if self.asks_for.is_some() {
            while self.association.poll_event().is_some() {}
            return None;
        }
        event
    }
}

/// A machine that speaks SCTP over any number of sockets: a client, a server, or both.
///
/// Call [`connect`](Self::connect) or [`listen`](Self::listen), then drive it as [`Machine`] says.
/// Events carry the association they are about; get at it by
/// [`association_mut`](Self::association_mut). After [`Event::Closed`] has been polled and the last
/// packets have left, the association is gone: with what nobody took out of it, so take that upon
/// [`Event::Readable`], or upon [`Event::Closed`] at the latest.
///
/// A packet that belongs to no association costs no memory beyond [`Self::MAX_REPLIES`] answers
/// that wait, and INITs in a [`Lobby`]: they are answered within its rate, once the associations
/// have sent what they have. Nothing is answered with more than [`Route::longest_answer`].
pub struct Endpoint {
    options: Arc<Options>,
    rng: Rng,
    listening: bool,
    cookies: CookieJar,
    roster: Roster<Entry>,
    /// INITs that wait until the associations have sent what they have.
    lobby: Lobby,
    /// Who has proved no key yet, where keys are in use.
    strangers: Strangers<AssociationId>,
    /// What the last datagram was.
    heard: Heard,
    by_tag: HashMap<u32, AssociationId>,
    /// Those between a route and a port of the peer's; with security several may stand beside each
    /// other.
    by_route: HashMap<(Route, u16), Vec<AssociationId>>,
    /// Protected ones, by what both ends call them.
    by_alias: HashMap<Alias, AssociationId>,
    /// Who was turned away before there was an association, and why.
    turned_away: VecDeque<(Route, CloseReason)>,
}

impl Endpoint {
    /// Answers to packets of no association that wait at most; further ones are dropped, and the
    /// peer repeats.
    pub const MAX_REPLIES: usize = Roster::<Entry>::MAX_REPLIES;

    /// What waits for [`poll_turned_away`](Self::poll_turned_away) at most.
    pub const MAX_TURNED_AWAY: usize = 8;

    /// An endpoint that neither listens nor is connected. `rng` must be unguessable outside of
    /// experiments: tags, nonces and the cookie secret are drawn from it.
    ///
    /// # Errors
    /// [`Misuse`], as [`Options::check`] has it.
    pub fn new(options: Options, rng: Rng) -> Result<Self, Misuse> {
        options.check()?;
        Ok(Self {
            options: Arc::new(options),
            cookies: CookieJar::new(rng.stream("cookies")),
            rng,
            listening: false,
            roster: Roster::default(),
            lobby: Lobby::default(),
            strangers: Strangers::default(),
            heard: Heard::Nothing,
            by_tag: HashMap::new(),
            by_route: HashMap::new(),
            by_alias: HashMap::new(),
            turned_away: VecDeque::new(),
        })
    }

    /// What it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Accepts associations from now on.
    pub const fn listen(&mut self) {
        self.listening = true;
    }

    /// Stops accepting; associations that there are go on.
    pub const fn stop_listening(&mut self) {
        self.listening = false;
    }

    /// Begins an association with the SCTP port `remote_port` at the other end of `routes`. The
    /// handshake tries the routes in turn; once it is done, the others join.
    ///
    /// # Errors
    /// [`ConnectError`]; nothing was begun then.
    pub fn connect(&mut self, now: Instant, remote_port: u16, routes: &[Route]) -> Result<AssociationId, ConnectError> {
        let limit = self.options.paths.max_paths;
        if routes.is_empty() {
            return Err(ConnectError::NoRoute);
        }
        if routes.len() > limit {
            return Err(ConnectError::TooManyRoutes { given: routes.len(), limit });
        }
        if remote_port == 0 {
            return Err(ConnectError::PortZero);
        }
        let is_in_use = |id: &AssociationId| {
            self.roster.get(*id).is_some_and(|entry| entry.asks_for.is_none() && !entry.association.is_closed())
        };
        if routes.iter().any(|&route| self.at(route, remote_port).iter().any(is_in_use)) {
            return Err(ConnectError::AlreadyConnected);
        }
        let rng = self.rng.fork();
        let association = Association::connect(now, Arc::clone(&self.options), rng, remote_port, routes);
        Ok(self.insert(Entry::new(association, None)))
    }

    /// Returns the associations between `route` and the peer's `port`, oldest first.
    fn at(&self, route: Route, port: u16) -> &[AssociationId] {
        self.by_route.get(&(route, port)).map_or(&[], Vec::as_slice)
    }

    /// Who asked for an association that could not be protected as this end or theirs wants it, and
    /// why it was refused; the oldest first. Anybody can send such packets: of more than
    /// [`Self::MAX_TURNED_AWAY`] that wait, the later ones are forgotten.
    pub fn poll_turned_away(&mut self) -> Option<(Route, CloseReason)> {
        self.turned_away.pop_front()
    }

    fn turn_away(&mut self, route: Route, why: Insecure) {
        if self.turned_away.len() < Self::MAX_TURNED_AWAY {
            self.turned_away.push_back((route, CloseReason::Insecure(why)));
        }
    }

    /// The association `id`, unless it is gone.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        self.roster.get(id).map(|entry| &entry.association)
    }

    /// The association `id`, unless it is gone.
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.roster.wake(id).map(|entry| &mut entry.association)
    }

    /// All associations, in no particular order of meaning, but always the same.
    pub fn associations(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.roster.ids().filter(|id| self.roster.get(*id).is_some_and(|entry| entry.asks_for.is_none()))
    }

    fn insert(&mut self, entry: Entry) -> AssociationId {
        let tag = entry.tag;
        let id = self.roster.insert(entry);
        self.by_tag.insert(tag, id);
        self.index(id);
        self.roster.set_timer(id);
        id
    }

    /// After anything happened to the association: has it polled, and brings the indexes up to
    /// date. Its timer waits until it has been polled dry, which [`Machine`] asks for anyway.
    fn settle(&mut self, id: AssociationId) {
        self.roster.wake(id);
        self.index(id);
    }

    /// Brings the indexes up to date.
    fn index(&mut self, id: AssociationId) {
        let Some(entry) = self.roster.get_mut(id) else { return };
        let port = entry.association.peer_port();
        for (route, added) in entry.association.take_route_changes() {
            if added {
                let there = self.by_route.entry((route, port)).or_default();
                if !there.contains(&id) {
                    there.push(id);
                }
            } else {
                forget(&mut self.by_route, (route, port), id);
            }
        }
        let tag = entry.association.local_tag();
        if tag != entry.tag {
            self.by_tag.remove(&entry.tag);
            self.by_tag.insert(tag, id);
            entry.tag = tag;
        }
    }

    /// Returns `true` if a packet for us begins with an INIT, told by looking at three fields.
    fn may_be_init(&self, packet: &[u8]) -> bool {
        let [to, tag] = [packet.get(2..4), packet.get(4..8)];
        to == Some(&self.options.local_port.to_be_bytes())
            && tag == Some(&[0; 4])
            && packet.get(12) == Some(&kind::INIT)
    }

    /// Answers the INIT that has waited longest. Returns `true` if there was one.
    fn receive_stranger(&mut self, now: Instant) -> bool {
        let Some((route, bytes)) = self.lobby.take() else { return false };
        if let Ok(packet) = Packet::parse(&bytes) {
            self.handle_init(now, route, &packet, bytes.len());
        }
        self.lobby.recycle(bytes);
        true
    }

    /// Associations that there may be, with those that are closed and wait to be read: an application
    /// that never polls its events does not fill the memory.
    fn most_closed(&self) -> usize {
        self.options.limits.max_associations.saturating_mul(2).max(16)
    }

    /// The association has been polled dry. If it is closed, no packet finds it any more. It goes at
    /// once if there is nothing to read, else when the application knows.
    fn rest(&mut self, now: Instant, id: AssociationId) {
        self.index(id);
        if self.options.security.is_some() {
            self.tend_succession(now, id);
        }
        self.roster.set_timer(id);
        let Some(entry) = self.roster.get(id).filter(|entry| entry.association.is_closed()) else { return };
        let (tag, port, told) = (entry.tag, entry.association.peer_port(), entry.told || entry.asks_for.is_some());
        let (readable, questions) = (entry.association.is_readable(), (entry.asks_for, entry.asked_by));
        let (lasting, alias) = (entry.proved && entry.asks_for.is_none(), entry.association.alias());
        let routes: Vec<Route> = entry.association.paths().map(|path| path.route).collect();
        if self.by_tag.get(&tag) == Some(&id) {
            self.by_tag.remove(&tag);
        }
        routes.into_iter().for_each(|route| forget(&mut self.by_route, (route, port), id));
        if let Some(alias) = alias.filter(|alias| self.by_alias.get(alias) == Some(&id)) {
            self.by_alias.remove(&alias);
        }
        self.strangers.leave(id);
        self.end_question(now, id, questions);
        if lasting {
            self.release(id);
        }
        let unread = readable && self.roster.len() < self.most_closed();
        if told || !unread {
            self.roster.remove(id);
        }
    }
}

/// `id` is not at this place any more.
fn forget(by_route: &mut HashMap<(Route, u16), Vec<AssociationId>>, place: (Route, u16), id: AssociationId) {
    if let Some(there) = by_route.get_mut(&place) {
        there.retain(|it| *it != id);
        if there.is_empty() {
            by_route.remove(&place);
        }
    }
}

impl Machine for Endpoint {
    type Event = (AssociationId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.roster.notice_late_wake(now);
        let Datagram { route, ecn, payload } = datagram;
        self.heard = Heard::Nothing;
        if self.may_be_init(payload) {
            self.heard = if self.listening { Heard::Stranger } else { Heard::Nothing };
            return self.lobby.enter(now, route, payload);
        }
        let Ok(packet) = Packet::parse(payload) else { return };
        if packet.header.destination_port != self.options.local_port {
            return;
        }
        let tag = packet.header.verification_tag;
        if tag == 0 {
            return; // Only INIT may have it (RFC 9260 §8.5.1 A).
        }
        let first = packet.chunks().next().and_then(Result::ok).map(|raw| raw.kind);
        match first {
            Some(kind::COOKIE_ECHO) => self.handle_cookie_echo(now, route, &packet, payload),
            Some(_) => {
                let port = packet.header.source_port;
                let found = self.by_tag.get(&tag).copied();
                let found = found.filter(|&id| self.association(id).is_some_and(|it| it.peer_port() == port));
                match found.and_then(|id| Some((id, self.roster.get_mut(id)?))) {
                    Some((id, entry)) => {
                        self.heard = Heard::Peer;
                        entry.guest.iter_mut().for_each(|(_, heard)| *heard = now);
                        entry.association.handle_packet(now, route, ecn, &packet, payload);
                        self.settle(id);
                    }
                    None => self.handle_stray(now, route, &packet),
                }
            }
            None => {}
        }
    }

    fn heard(&self) -> Heard {
        self.heard
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.roster.notice_late_wake(now);
        self.roster.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        loop {
            match self.roster.poll_transmit(now, buf) {
                Turn::Packet(transmit) => {
                    if self.lobby.wait() {
                        self.receive_stranger(now);
                    }
                    return Some(transmit);
                }
                Turn::Dry(id) => self.rest(now, id),
                Turn::Over if self.receive_stranger(now) => {}
                Turn::Over => return None,
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.roster.poll_timeout()
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        let (id, event) = self.roster.poll_event()?;
        if let Event::Closed(_) = event
            && let Some(entry) = self.roster.wake(id)
        {
            entry.told = true;
        }
        Some((id, event))
    }
}
