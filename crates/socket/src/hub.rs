//! What a [`Socket`](crate::Socket) knows of its connections, without I/O.

use crate::event::{Told, told};
use crate::{CloseReason, ConnectionId, Error, Event, Peer, Received, Refused, SendOptions};
use braidcast_core::{Instant, Machine, Reason, Rng, Route};
use braidcast_sctp::{Association, AssociationId, Endpoint, JoinError, Options, Priority, Reliability, SendError};
use std::collections::{BTreeMap, VecDeque};

/// A connection, from when it is begun or accepted until the application has been told that it is
/// over.
#[derive(Debug)]
struct Connection {
    /// `None` as long as nothing is known of where it leads.
    association: Option<AssociationId>,
    life: Life,
    /// Who is there, once that is connected.
    peer: Option<Peer>,
    /// An [`Event::Readable`] waits to be handed out.
    readable: bool,
    /// Contexts of messages of which it is not known whether they arrived, once it ends.
    unsettled: Vec<u64>,
    /// The priorities of streams that have had another one than the usual.
    priorities: BTreeMap<u16, i8>,
}

#[derive(Debug)]
enum Life {
    /// Begun here, and no address of the other end is known yet. `wants_room`: the application
    /// wanted to send something.
    Resolving {
        wants_room: bool,
    },
    /// Begun here, and not connected yet. What is told of its paths waits for that.
    Opening(Vec<Event>),
    Open,
    /// The association is gone. The end is told once nothing is left to read.
    Over {
        unread: VecDeque<(Received, Vec<u8>)>,
        end: Option<Event>,
    },
}

/// The connections of an endpoint. State goes when the application is told that it goes, not when
/// the endpoint knows.
pub(crate) struct Hub {
    pub(crate) endpoint: Endpoint,
    /// The SCTP port of both ends.
    port: u16,
    connections: BTreeMap<ConnectionId, Connection>,
    by_association: BTreeMap<AssociationId, ConnectionId>,
    /// Who has not shown yet that it may connect, and what is told of its paths.
    strangers: BTreeMap<AssociationId, Vec<Event>>,
    events: VecDeque<(ConnectionId, Event)>,
    refused: VecDeque<Refused>,
    /// Connections whose associations ended since they were last asked for.
    ended: Vec<ConnectionId>,
    /// Routes that no longer answer since they were last asked for.
    downs: Vec<(ConnectionId, Route)>,
    /// What the endpoint reports at once; kept for its room.
    batch: Vec<(AssociationId, braidcast_sctp::Event)>,
    /// The last connection's number.
    last: u64,
}

impl Hub {
    /// Connections that are over and wait to be read, at most: beyond that the messages of the
    /// oldest are lost. As many as a peer may open.
    const MOST_UNREAD: usize = 1024;
    /// Refusals that wait to be asked for, at most.
    const MOST_REFUSED: usize = 8;
    /// Events of paths that are kept of each stranger.
    const MOST_OF_A_STRANGER: usize = 16;

    pub(crate) fn new(options: Options, rng: Rng) -> Result<Self, Error> {
        let port = options.local_port;
        Ok(Self {
            endpoint: Endpoint::new(options, rng)?,
            port,
            connections: BTreeMap::new(),
            by_association: BTreeMap::new(),
            strangers: BTreeMap::new(),
            events: VecDeque::new(),
            refused: VecDeque::new(),
            ended: Vec::new(),
            downs: Vec::new(),
            batch: Vec::new(),
            last: 0,
        })
    }

    pub(crate) fn connect(&mut self, now: Instant, routes: &[Route]) -> Result<ConnectionId, Error> {
        let association = self.endpoint.connect(now, self.port, routes)?;
        Ok(self.insert(Some(association), Life::Opening(Vec::new())))
    }

    /// A connection that is begun once a route is known ([`begin`](Self::begin)).
    pub(crate) fn resolve(&mut self) -> ConnectionId {
        self.insert(None, Life::Resolving { wants_room: false })
    }

    /// Returns `true` if no route of `id` is known yet.
    pub(crate) fn is_resolving(&self, id: ConnectionId) -> bool {
        matches!(self.connections.get(&id), Some(Connection { life: Life::Resolving { .. }, .. }))
    }

    /// Begins what [`resolve`](Self::resolve) has made.
    pub(crate) fn begin(&mut self, now: Instant, id: ConnectionId, routes: &[Route]) -> Result<(), Error> {
        let Some(entry) = self.connections.get_mut(&id) else { return Ok(()) };
        let Life::Resolving { wants_room } = entry.life else { return Ok(()) };
        let association = self.endpoint.connect(now, self.port, routes)?;
        entry.association = Some(association);
        entry.life = Life::Opening(Vec::new());
        self.by_association.insert(association, id);
        if wants_room {
            self.events.push_back((id, Event::Writable));
        }
        Ok(())
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self, id: ConnectionId) -> Result<Option<Peer>, Error> {
        Ok(self.connections.get(&id).ok_or(Error::NoConnection(id))?.peer)
    }

    /// Checks that `id` is a connection whose end the application has not been told.
    pub(crate) fn check(&self, id: ConnectionId) -> Result<(), Error> {
        self.connections.contains_key(&id).then_some(()).ok_or(Error::NoConnection(id))
    }

    /// The association of `id`; `None` where it is over.
    pub(crate) fn association(&self, id: ConnectionId) -> Result<Option<&Association>, Error> {
        let entry = self.connections.get(&id).ok_or(Error::NoConnection(id))?;
        let alive = !matches!(entry.life, Life::Over { .. });
        Ok(entry.association.and_then(|it| self.endpoint.association(it)).filter(|_| alive))
    }

    /// The same, to be changed.
    pub(crate) fn association_mut(&mut self, id: ConnectionId) -> Result<Option<&mut Association>, Error> {
        let entry = self.connections.get(&id).ok_or(Error::NoConnection(id))?;
        let alive = !matches!(entry.life, Life::Over { .. });
        Ok(entry.association.and_then(|it| self.endpoint.association_mut(it)).filter(|_| alive))
    }

    pub(crate) fn join(&mut self, now: Instant, id: ConnectionId, route: Route) -> Result<(), Error> {
        self.association_mut(id)?.ok_or(JoinError::Closing)?.join(now, route)?;
        Ok(())
    }

    pub(crate) fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: &[u8],
        options: &SendOptions,
    ) -> Result<(), Error> {
        let how = braidcast_sctp::SendOptions {
            stream: options.stream,
            ppid: options.ppid,
            unordered: options.unordered,
            deadline: options.deadline.map(|deadline| now + deadline),
            reliability: options.max_retransmissions.map_or(Reliability::Reliable, Reliability::Retransmissions),
            context: options.context,
            report: options.report,
            ..braidcast_sctp::SendOptions::default()
        };
        let entry = self.connections.get_mut(&id).ok_or(Error::NoConnection(id))?;
        if let Life::Resolving { wants_room } = &mut entry.life {
            *wants_room = true;
            return Err(SendError::BufferFull { needed: message.len(), free: 0, limit: 0 }.into());
        }
        let association = entry.association.and_then(|it| self.endpoint.association_mut(it));
        let association = association.ok_or(SendError::Closing)?;
        association.send(now, message, how)?;
        // Only now: the transport has checked the stream.
        let known = entry.priorities.get(&options.stream).copied().unwrap_or_default();
        if options.priority != known {
            entry.priorities.insert(options.stream, options.priority);
            association.set_priority(options.stream, rank(options.priority));
        }
        Ok(())
    }

    /// Takes the next message of `id` into `buf`. Nothing comes from a connection that is over and
    /// told.
    pub(crate) fn recv(
        &mut self,
        now: Instant,
        id: ConnectionId,
        buf: &mut Vec<u8>,
    ) -> Result<Option<Received>, Error> {
        let Some(entry) = self.connections.get_mut(&id) else {
            return if (1..=self.last).contains(&id.0) { Ok(None) } else { Err(Error::NoConnection(id)) };
        };
        let Life::Over { unread, .. } = &mut entry.life else {
            let association = entry.association.and_then(|it| self.endpoint.association_mut(it));
            return Ok(association.and_then(|it| recv(it, now, buf)));
        };
        let received = unread.pop_front().map(|(received, message)| {
            *buf = message;
            received
        });
        let more = !unread.is_empty();
        if more && !std::mem::replace(&mut entry.readable, true) {
            self.events.push_back((id, Event::Readable));
        }
        self.tell_end(id);
        Ok(received)
    }

    pub(crate) fn shutdown(&mut self, now: Instant, id: ConnectionId) -> Result<(), Error> {
        if self.is_resolving(id) {
            self.over(now, id, CloseReason::Shutdown);
        } else if let Some(association) = self.association_mut(id)? {
            association.shutdown(now);
        }
        Ok(())
    }

    /// Ends `id` at once; what was not read is lost.
    pub(crate) fn abort(&mut self, now: Instant, id: ConnectionId, reason: impl Into<Reason>) -> Result<(), Error> {
        if self.is_resolving(id) {
            self.over(now, id, CloseReason::Aborted);
            return Ok(());
        }
        let entry = self.connections.get_mut(&id).ok_or(Error::NoConnection(id))?;
        if let Life::Over { unread, .. } = &mut entry.life {
            unread.clear();
            self.tell_end(id);
        } else if let Some(association) = entry.association.and_then(|it| self.endpoint.association_mut(it)) {
            let mut nobody = Vec::new();
            while association.recv(now, &mut nobody).is_some() {}
            association.abort(now, reason);
        }
        Ok(())
    }

    /// The connections that the application has not been told the end of, oldest first.
    pub(crate) fn connections(&self) -> impl Iterator<Item = ConnectionId> {
        self.connections.keys().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub(crate) fn next_event(&mut self) -> Option<(ConnectionId, Event)> {
        loop {
            let (id, event) = self.events.pop_front()?;
            match &event {
                Event::Readable => {
                    let Some(entry) = self.connections.get_mut(&id) else { continue };
                    entry.readable = false;
                    if matches!(&entry.life, Life::Over { unread, .. } if unread.is_empty()) {
                        continue; // It was read meanwhile.
                    }
                }
                Event::Closed { .. } => _ = self.connections.remove(&id),
                _ => {}
            }
            return Some((id, event));
        }
    }

    pub(crate) fn next_refused(&mut self) -> Option<Refused> {
        self.refused.pop_front()
    }

    /// Connections whose associations ended since the last call: their sockets can be closed.
    pub(crate) fn take_ended(&mut self) -> Vec<ConnectionId> {
        std::mem::take(&mut self.ended)
    }

    /// Routes that no longer answer since the last call.
    pub(crate) fn take_downs(&mut self) -> Vec<(ConnectionId, Route)> {
        std::mem::take(&mut self.downs)
    }

    /// Collects what the endpoint reports. `name`: what the path of a connection over a route is
    /// called.
    pub(crate) fn collect(&mut self, now: Instant, name: impl Fn(ConnectionId, Route) -> String) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.extend(std::iter::from_fn(|| self.endpoint.poll_event()));
        restarts_first(&mut batch);
        for (association, event) in batch.drain(..) {
            match self.by_association.get(&association).copied() {
                Some(id) => match told(self.note(id, event), |route| name(id, route)) {
                    Told::Event(event) => self.happened(id, event),
                    Told::Unsettled(contexts) => self.unsettled(id, contexts),
                    Told::Over(reason) => self.over(now, id, reason),
                    Told::Nothing => {}
                },
                None => self.of_a_stranger(association, event),
            }
        }
        self.batch = batch;
        while let Some((route, why)) = self.endpoint.poll_turned_away() {
            self.refuse(Refused { remote: route.remote, why: CloseReason::from(why) });
        }
    }

    /// Keeps what `event` says besides what the application is told.
    fn note(&mut self, id: ConnectionId, event: braidcast_sctp::Event) -> braidcast_sctp::Event {
        match event {
            braidcast_sctp::Event::PathDown(_, route) => self.downs.push((id, route)),
            braidcast_sctp::Event::Connected => self.meet(id),
            _ => {}
        }
        event
    }

    /// Notes who is at the other end of `id`.
    fn meet(&mut self, id: ConnectionId) {
        let Some(entry) = self.connections.get_mut(&id) else { return };
        let association = entry.association.and_then(|it| self.endpoint.association(it));
        let peer = association.and_then(Association::standing).map(|it| it.peer);
        entry.peer = peer.map(|it| Peer { fingerprint: it.fingerprint, authenticated: it.authenticated });
    }

    fn happened(&mut self, id: ConnectionId, event: Event) {
        let Some(entry) = self.connections.get_mut(&id) else { return };
        match (&mut entry.life, event) {
            (Life::Opening(held), Event::Connected) => {
                let held = std::mem::take(held);
                entry.life = Life::Open;
                self.events.extend(std::iter::once(Event::Connected).chain(held).map(|event| (id, event)));
            }
            (Life::Opening(held), event @ (Event::PathUp { .. } | Event::PathDown { .. })) => held.push(event),
            (_, Event::Readable) if std::mem::replace(&mut entry.readable, true) => {}
            (_, event) => self.events.push_back((id, event)),
        }
    }

    fn unsettled(&mut self, id: ConnectionId, contexts: Vec<u64>) {
        if let Some(entry) = self.connections.get_mut(&id) {
            entry.unsettled = contexts;
        }
    }

    /// `id` is over, and its association goes: what it received is kept until it is read.
    pub(crate) fn over(&mut self, now: Instant, id: ConnectionId, reason: CloseReason) {
        let Some(entry) = self.connections.get_mut(&id) else { return };
        let mut unread = VecDeque::new();
        if let Some(association) = entry.association {
            self.by_association.remove(&association);
        }
        if let Some(association) = entry.association.and_then(|it| self.endpoint.association_mut(it)) {
            let mut message = Vec::new();
            while let Some(received) = recv(association, now, &mut message) {
                unread.push_back((received, std::mem::take(&mut message)));
            }
        }
        let unsettled = std::mem::take(&mut entry.unsettled);
        entry.life = Life::Over { unread, end: Some(Event::Closed { reason, unsettled }) };
        self.ended.push(id);
        self.tell_end(id);
        self.forget_unread();
    }

    /// Reports that `id` is over, if it is, and nothing is left to read.
    fn tell_end(&mut self, id: ConnectionId) {
        let Some(Connection { life: Life::Over { unread, end }, .. }) = self.connections.get_mut(&id) else { return };
        if let Some(end) = end.take_if(|_| unread.is_empty()) {
            self.events.push_back((id, end));
        }
    }

    /// Drops the messages of connections that nobody reads, if there are too many.
    fn forget_unread(&mut self) {
        let waits = |(id, it): (&ConnectionId, &Connection)| {
            matches!(&it.life, Life::Over { unread, .. } if !unread.is_empty()).then_some(*id)
        };
        let waiting: Vec<_> = self.connections.iter().filter_map(waits).collect();
        for id in waiting.iter().take(waiting.len().saturating_sub(Self::MOST_UNREAD)) {
            if let Some(Connection { life: Life::Over { unread, .. }, .. }) = self.connections.get_mut(id) {
                unread.clear();
            }
            self.tell_end(*id);
        }
    }

    fn of_a_stranger(&mut self, association: AssociationId, event: braidcast_sctp::Event) {
        match told(event, |route| route.remote.to_string()) {
            Told::Event(Event::Connected) => {
                let held = self.strangers.remove(&association).unwrap_or_default();
                let id = self.insert(Some(association), Life::Open);
                self.meet(id);
                self.events.extend(std::iter::once(Event::Connected).chain(held).map(|event| (id, event)));
            }
            Told::Event(event @ (Event::PathUp { .. } | Event::PathDown { .. })) => {
                let held = self.strangers.entry(association).or_default();
                if held.len() < Self::MOST_OF_A_STRANGER {
                    held.push(event);
                }
            }
            Told::Over(why) => {
                // The association is gone; its path was told when it began.
                let held = self.strangers.remove(&association).unwrap_or_default();
                let remote = held.into_iter().find_map(|event| match event {
                    Event::PathUp { remote, .. } => Some(remote),
                    _ => None,
                });
                remote.into_iter().for_each(|remote| self.refuse(Refused { remote, why: why.clone() }));
            }
            Told::Event(_) | Told::Unsettled(_) | Told::Nothing => {}
        }
    }

    fn refuse(&mut self, refused: Refused) {
        if self.refused.len() < Self::MOST_REFUSED {
            self.refused.push_back(refused);
        }
    }

    fn insert(&mut self, association: Option<AssociationId>, life: Life) -> ConnectionId {
        self.last += 1;
        let id = ConnectionId(self.last);
        let (unsettled, priorities) = (Vec::new(), BTreeMap::new());
        let connection = Connection { association, life, peer: None, readable: false, unsettled, priorities };
        self.connections.insert(id, connection);
        self.by_association.extend(association.map(|it| (it, id)));
        id
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("connections", &self.connections).finish_non_exhaustive()
    }
}

/// Has a restart of the other end stand before what it cost: a message that is reliable is discarded for no
/// other reason, so that has to be known first.
fn restarts_first(batch: &mut [(AssociationId, braidcast_sctp::Event)]) {
    use braidcast_sctp::Event as Inner;
    for at in 0..batch.len() {
        let (restarted, Inner::Restarted) = batch[at] else { continue };
        let costs = |(id, event): &(AssociationId, Inner)| {
            *id != restarted || matches!(event, Inner::Abandoned { .. } | Inner::PathDown(..) | Inner::PathRemoved(..))
        };
        let first = batch[..at].iter().rposition(|it| !costs(it)).map_or(0, |before| before + 1);
        batch[first..=at].rotate_right(1);
    }
}

/// The rank of a stream of this priority, whose usual value is 0 here and 4 there.
fn rank(priority: i8) -> Priority {
    Priority::new((4 - i16::from(priority)).clamp(0, 7) as u8)
}

fn recv(association: &mut Association, now: Instant, buf: &mut Vec<u8>) -> Option<Received> {
    let it = association.recv(now, buf)?;
    Some(Received { stream: it.stream, unordered: it.unordered, ppid: it.ppid, timing: it.timing })
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod priority;
