//! All associations of one SCTP port, and the packets that belong to none.

mod accept;
mod stray;

use crate::api::{ConnectError, Event, Options};
use crate::assoc::Association;
use crate::cookie::CookieJar;
use crate::wire::{Packet, chunk::kind};
use braidcast_core::{Datagram, Ecn, Instant, Machine, Misuse, Rng, Route, Transmit};
use slab::Slab;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// Names an association of an [`Endpoint`]; not used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AssociationId {
    key: u32,
    generation: u32,
}

#[derive(Debug)]
struct Entry {
    generation: u32,
    association: Association,
    /// What `timers` holds for it.
    timer: Option<Instant>,
    /// In `busy`.
    is_busy: bool,
    /// Under this tag it stands in `by_tag`.
    tag: u32,
}

/// A machine that speaks SCTP over any number of sockets: a client, a server, or both.
///
/// Call [`connect`](Self::connect) or [`listen`](Self::listen), then drive it as [`Machine`] says. Events carry the association
/// they are about; get at it by [`association_mut`](Self::association_mut). After [`Event::Closed`] has been polled
/// and the last packets have left, the association is gone.
///
/// A packet that belongs to no association costs no memory beyond [`Self::MAX_REPLIES`] answers that wait.
pub struct Endpoint {
    options: Arc<Options>,
    rng: Rng,
    listening: bool,
    cookies: CookieJar,
    associations: Slab<Entry>,
    generation: u32,
    by_tag: HashMap<u32, AssociationId>,
    by_route: HashMap<(Route, u16), AssociationId>,
    timers: BTreeSet<(Instant, AssociationId)>,
    /// Associations that may have something to send or to tell.
    busy: VecDeque<AssociationId>,
    /// Packets that belong to no association, ready to go.
    replies: VecDeque<(Route, Vec<u8>)>,
    events: VecDeque<(AssociationId, Event)>,
}

impl Endpoint {
    /// Answers to packets of no association that wait at most; further ones are dropped, and the peer repeats.
    pub const MAX_REPLIES: usize = 256;

    /// An endpoint that neither listens nor is connected. `rng` must be unguessable outside of experiments: tags, nonces
    /// and the cookie secret are drawn from it.
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
            associations: Slab::new(),
            generation: 0,
            by_tag: HashMap::new(),
            by_route: HashMap::new(),
            timers: BTreeSet::new(),
            busy: VecDeque::new(),
            replies: VecDeque::new(),
            events: VecDeque::new(),
        })
    }

    /// Accepts associations from now on.
    pub const fn listen(&mut self) {
        self.listening = true;
    }

    /// Stops accepting; associations that there are go on.
    pub const fn stop_listening(&mut self) {
        self.listening = false;
    }

    /// Begins an association with the SCTP port `remote_port` at the other end of `routes`. The handshake tries the routes
    /// in turn; once it is done, the others join.
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
        if routes.iter().any(|&route| self.by_route.contains_key(&(route, remote_port))) {
            return Err(ConnectError::AlreadyConnected);
        }
        let rng = self.next_rng();
        let association = Association::connect(now, Arc::clone(&self.options), rng, remote_port, routes);
        Ok(self.insert(association))
    }

    /// The association `id`, unless it is gone.
    pub fn association(&self, id: AssociationId) -> Option<&Association> {
        let entry = self.associations.get(id.key as usize)?;
        (entry.generation == id.generation).then_some(&entry.association)
    }

    /// The association `id`, unless it is gone.
    pub fn association_mut(&mut self, id: AssociationId) -> Option<&mut Association> {
        self.mark_busy(id);
        self.entry(id).map(|entry| &mut entry.association)
    }

    /// All associations, in no particular order of meaning, but always the same.
    pub fn associations(&self) -> impl Iterator<Item = AssociationId> + '_ {
        self.associations.iter().map(|(key, entry)| AssociationId { key: key as u32, generation: entry.generation })
    }

    fn next_rng(&mut self) -> Rng {
        let mut seed = [0; 32];
        self.rng.fill(&mut seed);
        Rng::from_entropy(seed)
    }

    fn insert(&mut self, association: Association) -> AssociationId {
        self.generation = self.generation.wrapping_add(1);
        let generation = self.generation;
        let tag = association.local_tag();
        let entry = Entry { generation, association, timer: None, is_busy: false, tag };
        let key = self.associations.insert(entry) as u32;
        let id = AssociationId { key, generation };
        self.by_tag.insert(tag, id);
        self.settle(id);
        self.set_timer(id);
        id
    }

    fn entry(&mut self, id: AssociationId) -> Option<&mut Entry> {
        self.associations.get_mut(id.key as usize).filter(|entry| entry.generation == id.generation)
    }

    /// Puts the association among those that are polled.
    fn mark_busy(&mut self, id: AssociationId) {
        if let Some(entry) = self.entry(id)
            && !core::mem::replace(&mut entry.is_busy, true)
        {
            self.busy.push_back(id);
        }
    }

    /// After anything happened to the association: brings the indexes up to date. Its timer waits until it has been polled
    /// dry, which [`Machine`] asks for anyway.
    fn settle(&mut self, id: AssociationId) {
        self.mark_busy(id);
        let Some(entry) = self.associations.get_mut(id.key as usize) else { return };
        let port = entry.association.peer_port();
        for (route, added) in entry.association.take_route_changes() {
            if added {
                self.by_route.insert((route, port), id);
            } else if self.by_route.get(&(route, port)) == Some(&id) {
                self.by_route.remove(&(route, port));
            }
        }
        let tag = entry.association.local_tag();
        if tag != entry.tag {
            self.by_tag.remove(&entry.tag);
            self.by_tag.insert(tag, id);
            entry.tag = tag;
        }
    }

    /// Sets the timer of an association anew.
    fn set_timer(&mut self, id: AssociationId) {
        let Some(entry) = self.associations.get_mut(id.key as usize) else { return };
        let timer = entry.association.poll_timeout();
        if timer != entry.timer {
            if let Some(old) = entry.timer {
                self.timers.remove(&(old, id));
            }
            if let Some(new) = timer {
                self.timers.insert((new, id));
            }
            entry.timer = timer;
        }
    }

    /// Takes a closed association out.
    fn remove(&mut self, id: AssociationId) {
        let entry = self.associations.remove(id.key as usize);
        self.by_tag.remove(&entry.tag);
        let port = entry.association.peer_port();
        for path in entry.association.paths() {
            if self.by_route.get(&(path.route, port)) == Some(&id) {
                self.by_route.remove(&(path.route, port));
            }
        }
        if let Some(timer) = entry.timer {
            self.timers.remove(&(timer, id));
        }
    }

    fn reply(&mut self, route: Route, packet: Vec<u8>) {
        if self.replies.len() < Self::MAX_REPLIES {
            self.replies.push_back((route, packet));
        }
    }

    /// Moves the events of `id` to the endpoint's queue.
    fn collect_events(&mut self, id: AssociationId) {
        while let Some(event) = self.entry(id).and_then(|entry| entry.association.poll_event()) {
            self.events.push_back((id, event));
        }
    }
}

impl Machine for Endpoint {
    type Event = (AssociationId, Event);

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Datagram { route, ecn, payload } = datagram;
        let Ok(packet) = Packet::parse(payload) else { return };
        if packet.header.destination_port != self.options.local_port {
            return;
        }
        let tag = packet.header.verification_tag;
        let first = packet.chunks().next().and_then(Result::ok).map(|raw| raw.kind);
        match first {
            Some(kind::INIT) => self.handle_init(now, route, &packet),
            Some(kind::COOKIE_ECHO) => self.handle_cookie_echo(now, route, &packet, payload),
            Some(_) => {
                let port = packet.header.source_port;
                let found = self.by_tag.get(&tag).copied();
                let found = found.filter(|&id| self.association(id).is_some_and(|it| it.peer_port() == port));
                match found.and_then(|id| Some((id, self.entry(id)?))) {
                    Some((id, entry)) => {
                        entry.association.handle_packet(now, route, ecn, &packet, payload);
                        self.settle(id);
                    }
                    None => self.handle_stray(route, &packet),
                }
            }
            None => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, id)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.remove(&(at, id));
            if let Some(entry) = self.entry(id) {
                entry.timer = None;
                entry.association.handle_timeout(now);
            }
            self.mark_busy(id);
            // Its next timer is set once it has been polled, so that a timer in the past cannot keep this loop going.
        }
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        buf.clear();
        if let Some((route, packet)) = self.replies.pop_front() {
            buf.extend_from_slice(&packet);
            return Some(Transmit { route, ecn: Ecn::NotEct, segment_size: None });
        }
        while let Some(&id) = self.busy.front() {
            let transmit = self.entry(id).and_then(|entry| entry.association.poll_transmit(now, buf));
            if transmit.is_some() {
                // Taking turns, so that one association cannot starve the others.
                self.busy.rotate_left(1);
                return transmit;
            }
            self.busy.pop_front();
            if let Some(entry) = self.entry(id) {
                entry.is_busy = false;
                let closed = entry.association.is_closed();
                self.collect_events(id);
                self.settle_idle(id);
                if closed {
                    self.remove(id);
                }
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, _)| at)
    }

    fn poll_event(&mut self) -> Option<Self::Event> {
        if self.events.is_empty() {
            for at in 0..self.busy.len() {
                if let Some(&id) = self.busy.get(at) {
                    self.collect_events(id);
                }
            }
        }
        self.events.pop_front()
    }
}

impl Endpoint {
    /// [`settle`](Self::settle) for an association that has just been polled dry.
    fn settle_idle(&mut self, id: AssociationId) {
        self.settle(id);
        self.set_timer(id);
        if let Some(entry) = self.entry(id) {
            entry.is_busy = false;
        }
        if self.busy.back() == Some(&id) {
            self.busy.pop_back();
        }
    }
}
