//! One stream to many: what a receiver takes goes on to receivers that dial.

mod beside;
mod client;
mod feed;
mod order;
mod pieces;

use crate::farewell::Farewell;
use crate::options::SenderOptions;
use crate::receiver::ChannelId;
use crate::redundancy::Redundancy;
use crate::report::Report;
use crate::wire::{Message, PPID};
pub use beside::Beside;
use braidcast_core::{Datagram, Heard, Instant, Machine, Misuse, PathId, Reason, Rng, Route, Transmit};
use braidcast_sctp::{Association, AssociationId, CloseReason, Endpoint, Event as Sctp, Fingerprint};
use client::Client;
pub use client::ClientId;
use core::time::Duration;
use feed::Feed;
pub use order::Entitled;
pub use pieces::Pieces;
use std::collections::{BTreeMap, VecDeque};

/// How often the clock is told and the paths are measured.
const TICK: Duration = Duration::from_millis(200);
/// An association that has not asked for a stream by now is no receiver's.
const NO_ASK: Duration = Duration::from_secs(3);

/// How to serve.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerOptions {
    /// How each receiver is sent to. [`latency`](SenderOptions::latency) is the time from the output of the
    /// server's own receiver to that of the other one, unless that asks for another one. What a live
    /// session has no use for is not heeded: [`reliable`](SenderOptions::reliable), names, sizes and rates.
    pub sending: SenderOptions,
    /// Longest latency that a receiver may ask for. Default: 60 s.
    pub longest: Duration,
    /// Receivers at a time. Default: 64.
    pub clients: usize,
    /// Only receivers with these keys, or names of certificates, are served. Needs
    /// [`security`](SenderOptions::security) that lets in who has one of them. Default: `None`, keys say nothing
    /// of streams.
    pub permits: Option<BTreeMap<Fingerprint, Entitled>>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            sending: SenderOptions { skip_tsns: true, ..SenderOptions::default() },
            longest: Duration::from_secs(60),
            clients: 64,
            permits: None,
        }
    }
}

/// What a server reports to the layer above it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum ServerEvent {
    /// A receiver has asked for a stream, and is served.
    Joined(ClientId),
    /// One that was served is gone.
    Left {
        /// Which.
        client: ClientId,
        /// What it was served.
        name: String,
        /// Its first address.
        remote: String,
        /// Why.
        reason: CloseReason,
        /// How it went.
        report: Box<Report>,
    },
    /// A receiver, or somebody else who called, was turned away.
    Refused {
        /// Its first address.
        remote: String,
        /// What it asked for; may be empty.
        name: String,
        /// What it was told.
        why: Farewell,
    },
    /// Somebody called with whom no secure connection came about.
    Insecure(CloseReason),
    /// A path of a receiver can be used.
    PathUp(ClientId, PathId, Route),
    /// A path of a receiver does not answer any more.
    PathDown(ClientId, PathId, Route),
}

/// Serves what a [`Receiver`](crate::Receiver) takes to receivers that [call](crate::Receiver::call):
/// each has an association of its own, with its paths, latency, repairs and figures.
///
/// A unit goes on as it comes, before it is due, in the message that it came in: it is neither cut
/// nor packed anew. It is due there a latency after it is due here, so what is left of the latency here
/// helps there too. A receiver that comes begins with a frame that needs no other, the program tables before
/// it; one that comes back goes on.
///
/// Memory: for each stream 6 MiB, for each client [`SenderOptions::buffer`] twice over as the association's
/// queue and window, and its receive buffer. A client that is too slow loses frames of its own queue.
pub struct Server {
    options: ServerOptions,
    endpoint: Endpoint,
    feeds: BTreeMap<ChannelId, Feed>,
    clients: Vec<Client>,
    next_client: u64,
    next_tick: Instant,
    finishing: bool,
    rng: Rng,
    now: Instant,
    malformed: u64,
    message: Vec<u8>,
    events: VecDeque<ServerEvent>,
}

impl Server {
    /// A server that waits for receivers.
    ///
    /// # Errors
    /// [`Misuse`]: the options cannot work.
    pub fn new(options: ServerOptions, rng: Rng) -> Result<Self, Misuse> {
        let mut transport = options.sending.transport();
        transport.limits.max_associations = options.clients;
        // Receivers say little.
        transport.limits.receive_buffer = transport.limits.max_message;
        let own = rng.stream("serve");
        let mut endpoint = Endpoint::new(transport, rng)?;
        endpoint.listen();
        Ok(Self {
            options,
            endpoint,
            feeds: BTreeMap::new(),
            clients: Vec::new(),
            next_client: 0,
            next_tick: Instant::ZERO,
            finishing: false,
            rng: own,
            now: Instant::ZERO,
            malformed: 0,
            message: Vec::new(),
            events: VecDeque::new(),
        })
    }

    /// The streams that there are, by the names of a receiver's channels. Clients of one that is gone are told that
    /// it is over.
    pub fn set_streams<'a>(&mut self, now: Instant, streams: impl Iterator<Item = (ChannelId, &'a str)>) {
        let streams: BTreeMap<ChannelId, &str> = streams.collect();
        self.feeds.retain(|id, _| streams.contains_key(id));
        for (id, name) in streams {
            self.feeds.entry(id).or_insert_with(|| Feed::new(name, &mut self.rng));
        }
        for client in &self.clients {
            if client.order.as_ref().is_some_and(|order| !self.feeds.contains_key(&order.channel))
                && let Some(association) = self.endpoint.association_mut(client.id)
            {
                association.abort(now, Farewell::Over);
            }
        }
        self.pump(now);
    }

    /// What a sender calls its stream, where the receiver takes any: a receiver may ask for it by that.
    pub fn set_title(&mut self, channel: ChannelId, title: &str) {
        if let Some(feed) = self.feeds.get_mut(&channel) {
            title.clone_into(&mut feed.title);
        }
    }

    /// Hands on what a receiver [took](crate::Receiver::take_pieces).
    pub fn push(&mut self, now: Instant, pieces: &Pieces) {
        self.now = self.now.max(now);
        let extras = self.clients.iter().filter_map(|client| client.order.as_ref()).map(|order| order.extra);
        let longest = extras.fold(self.options.sending.latency, Duration::max);
        self.feeds.values_mut().for_each(|feed| feed.forget(now, longest));
        for (piece, message) in pieces.iter() {
            let Some(feed) = self.feeds.get_mut(&piece.channel) else { continue };
            if !feed.take(now, piece, message) {
                self.malformed += 1;
                continue;
            }
            let entry = feed.recent.back().is_some_and(feed::Sent::is_entry);
            for client in &mut self.clients {
                let Some(order) = client.order.as_ref().filter(|order| order.channel == piece.channel) else {
                    continue;
                };
                let (begun, asked_at) = (order.has_begun(), order.asked_at());
                let Some(association) = self.endpoint.association_mut(client.id) else { continue };
                if begun {
                    client.follow(now, association, feed);
                } else if entry || feed.begins_anywhere(now) || feed.began_after(asked_at) {
                    client.begin(now, association, feed, &mut self.message);
                }
            }
        }
        self.pump(now);
    }

    /// All streams have ended: each client gets what is under way, and the end.
    pub fn finish(&mut self, now: Instant) {
        if core::mem::replace(&mut self.finishing, true) {
            return;
        }
        self.endpoint.stop_listening();
        for client in &self.clients {
            let Some(association) = self.endpoint.association_mut(client.id) else { continue };
            match client.order.as_ref().and_then(|order| self.feeds.get(&order.channel)) {
                Some(feed) => {
                    client.tell_clock(now, association, feed, true, &mut self.message);
                    association.shutdown(now);
                }
                None => association.abort(now, Farewell::Over),
            }
        }
        self.pump(now);
    }

    /// Ends all of it at once; `why` is told to the receivers.
    pub fn abort(&mut self, now: Instant, why: Farewell) {
        self.finishing = true;
        self.endpoint.stop_listening();
        for client in &self.clients {
            if let Some(association) = self.endpoint.association_mut(client.id) {
                association.abort(now, why);
            }
        }
        self.pump(now);
    }

    /// Receivers that are served now.
    pub fn clients(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.clients.iter().filter(|client| client.order.is_some()).map(|client| client.number)
    }

    /// Returns `true` if nobody is connected.
    pub const fn is_idle(&self) -> bool {
        self.clients.is_empty()
    }

    /// What a client is served; empty if there is one stream that has no name.
    pub fn name(&self, client: ClientId) -> &str {
        self.find(client).map_or("", |it| self.name_of(it))
    }

    /// The first address of a client.
    pub fn remote(&self, client: ClientId) -> String {
        self.find(client).map_or_else(String::new, |it| self.remote_of(it.id))
    }

    /// The key that a client proved, if it is one that this end knows.
    pub fn key(&self, client: ClientId) -> Option<Fingerprint> {
        self.listed(self.find(client)?.id)
    }

    /// What was done for a client so far, as a [`Sender`](crate::Sender) has it.
    pub fn report(&self, now: Instant, client: ClientId) -> Report {
        self.find(client).map_or_else(Report::default, |it| it.report(now, self.endpoint.association(it.id)))
    }

    /// Messages that made no sense, of receivers and of the stream.
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    fn find(&self, client: ClientId) -> Option<&Client> {
        self.clients.iter().find(|it| it.number == client)
    }

    fn name_of(&self, client: &Client) -> &str {
        let feed = client.order.as_ref().and_then(|order| self.feeds.get(&order.channel));
        feed.map_or("", |feed| if feed.name.is_empty() { &feed.title } else { &feed.name })
    }

    fn remote_of(&self, id: AssociationId) -> String {
        let path = self.endpoint.association(id).and_then(|it| it.paths().next());
        path.map_or_else(String::new, |path| path.route.remote.to_string())
    }

    /// The key by which the peer of an association was let in, if it is one that this end knows.
    fn listed(&self, id: AssociationId) -> Option<Fingerprint> {
        let peer = self.endpoint.association(id).and_then(Association::standing)?.peer;
        peer.listed.filter(|_| peer.authenticated)
    }

    /// Brings everything up to date after any call.
    fn pump(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.take_events(now);
        self.read(now);
        if !self.clients.is_empty() && now >= self.next_tick {
            self.next_tick = now + TICK;
            self.tick(now);
        }
    }

    fn take_events(&mut self, now: Instant) {
        while let Some((id, event)) = self.endpoint.poll_event() {
            match event {
                Sctp::Connected => self.came(now, id),
                Sctp::Restarted => {
                    self.left(now, id, CloseReason::PeerRestarted);
                    self.came(now, id);
                }
                Sctp::Closed(reason) => self.left(now, id, reason),
                Sctp::Abandoned { ppid: PPID, context, sent, why, .. } => {
                    if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
                        client.abandoned(context, sent, why);
                    }
                }
                Sctp::PathUp(path, route) => {
                    let client = self.clients.iter().find(|client| client.id == id);
                    self.events.extend(client.map(|it| ServerEvent::PathUp(it.number, path, route)));
                }
                Sctp::PathDown(path, route) => {
                    let client = self.clients.iter().find(|client| client.id == id);
                    self.events.extend(client.map(|it| ServerEvent::PathDown(it.number, path, route)));
                }
                _ => {}
            }
        }
        while let Some((_, reason)) = self.endpoint.poll_turned_away() {
            self.events.push_back(ServerEvent::Insecure(reason));
        }
    }

    fn came(&mut self, now: Instant, id: AssociationId) {
        let Some(association) = self.endpoint.association_mut(id) else { return };
        if self.finishing {
            association.abort(now, Farewell::Over);
            return;
        }
        self.next_client += 1;
        self.clients.push(Client::new(now, ClientId(self.next_client), id, association));
    }

    fn left(&mut self, now: Instant, id: AssociationId, reason: CloseReason) {
        let Some(place) = self.clients.iter().position(|client| client.id == id) else {
            if matches!(reason, CloseReason::Insecure(_)) {
                self.events.push_back(ServerEvent::Insecure(reason));
            }
            return;
        };
        let remote = self.remote_of(id);
        let name = self.name_of(&self.clients[place]).to_owned();
        let mut client = self.clients.remove(place);
        if client.order.is_some() {
            if let Some(association) = self.endpoint.association_mut(id) {
                client.measure(now, association);
            }
            let report = Box::new(client.report(now, None));
            self.events.push_back(ServerEvent::Left { client: client.number, name, remote, reason, report });
        }
    }

    /// Reads what receivers say.
    fn read(&mut self, now: Instant) {
        let mut buf = core::mem::take(&mut self.message);
        let mut place = 0;
        while place < self.clients.len() {
            let id = self.clients[place].id;
            let mut refused = false;
            while !refused
                && let Some(association) = self.endpoint.association_mut(id)
                && association.recv(now, &mut buf).is_some()
            {
                let asked = self.clients[place].order.is_some();
                match Message::parse(&buf) {
                    Ok(Message::Feedback(feedback)) if asked => self.clients[place].hear(now, &feedback),
                    Ok(Message::Ask(ask)) if !asked => refused = !self.asked(now, place, &ask),
                    Ok(Message::Hello(_)) if !asked => {
                        self.refuse(now, place, "", Farewell::NoAsk, None);
                        refused = true;
                    }
                    _ => self.malformed += 1,
                }
            }
            place += usize::from(!refused);
        }
        self.message = buf;
    }

    fn tick(&mut self, now: Instant) {
        let mut place = 0;
        while place < self.clients.len() {
            let client = &mut self.clients[place];
            let Some(association) = self.endpoint.association_mut(client.id) else {
                place += 1;
                continue;
            };
            let Some(order) = &client.order else {
                let late = now.since(client.since) >= NO_ASK;
                if late {
                    self.refuse(now, place, "", Farewell::NoAsk, None);
                }
                place += usize::from(!late);
                continue;
            };
            if let Some(feed) = self.feeds.get_mut(&order.channel) {
                if !order.has_begun() {
                    client.begin(now, association, feed, &mut self.message);
                }
                if !self.finishing {
                    client.tell_clock(now, association, feed, false, &mut self.message);
                }
            }
            client.measure(now, association);
            place += 1;
        }
    }

    /// Sends away who is at `place` among the clients; `names`: what it may have instead.
    fn refuse(&mut self, now: Instant, place: usize, name: &str, why: Farewell, names: Option<String>) {
        let client = self.clients.remove(place);
        let remote = self.remote_of(client.id);
        if let Some(association) = self.endpoint.association_mut(client.id) {
            let names = names.map_or_else(String::new, |names| format!("; there is {names}"));
            association.abort(now, Reason::new(why as u32, format!("{why}{names}")));
        }
        self.events.push_back(ServerEvent::Refused { remote, name: name.into(), why });
    }

    /// Returns `true` if what paths lose is made up for.
    fn is_redundant(&self) -> bool {
        self.options.sending.redundancy == Redundancy::Auto
    }
}

impl Machine for Server {
    type Event = ServerEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.endpoint.handle_datagram(now, datagram);
        self.pump(now);
    }

    fn heard(&self) -> Heard {
        self.endpoint.heard()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.pump(now);
    }

    fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.endpoint.poll_transmit(now, buf)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let tick = (!self.clients.is_empty()).then_some(self.next_tick);
        Instant::first_of([self.endpoint.poll_timeout(), tick])
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.take_events(self.now);
        self.events.pop_front()
    }
}
