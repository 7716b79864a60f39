//! Two protected connections with one peer: when the newer takes the place of the older.
//!
//! Nothing in clear ends or replaces a protected connection. A newcomer at its peer's address
//! stands beside it. Once its key handshake has proved that it is the same peer, it is asked in a
//! record if its end has the older one. It takes its place if that says no, and the older one's own
//! peer then sends no record either ([`Doubt`](braidcast_secure::Doubt)).

use super::{ConnectionId, Endpoint, FlowId};
use crate::conn::{Connection, Handshake};
use crate::seq::Seq;
use braidcast_core::Instant;
use braidcast_secure::{Inquiry, Peer};
use std::sync::Arc;

impl Endpoint {
    /// After the connection has been polled dry, where keys are in use: what follows for others
    /// from what has become of it.
    pub(super) fn tend_succession(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self.roster.get_mut(id) else { return };
        let newly_proved = entry.proved.is_none() && entry.connection.is_protected();
        if newly_proved {
            entry.proved = Some(now);
        }
        let (asks_now, looks_around) = (entry.connection.take_question(now), entry.connection.look_around());
        let (asks_for, asked_by) = (entry.asks_for, entry.asked_by);
        if newly_proved {
            let alias = self.connection(id).and_then(Connection::alias);
            alias.into_iter().for_each(|alias| _ = self.by_alias.insert(alias, id));
            self.replace_older(now, id);
            if self.strangers.leave(id) {
                self.take_in(now, id);
            }
        }
        while let Some(inquiry) = self.roster.get_mut(id).and_then(|entry| entry.connection.take_inquiry()) {
            self.handle_inquiry(now, id, inquiry);
        }
        if looks_around {
            self.ask_another(now, id);
        }
        if asks_now {
            self.ask(now, id);
        }
        let is_answered = |it: ConnectionId| !self.connection(it).is_some_and(Connection::is_doubted);
        match (asks_for, asked_by) {
            (Some(other), _) if is_answered(other) => self.turn_out(id),
            (_, Some(other)) if is_answered(id) => self.turn_out(other),
            _ => {}
        }
    }

    /// The newcomer `id` has proved who it is: its end is asked if it has the older connections of
    /// the same peer over its route.
    fn replace_older(&mut self, now: Instant, id: ConnectionId) {
        // What only asks leaves as soon as there is an answer.
        let lasting = self.roster.get(id).is_some_and(|entry| entry.asks_for.is_none());
        for other in self.beside(id) {
            let Some(entry) = self.roster.wake(other).filter(|entry| entry.asks_for.is_none()) else { continue };
            entry.connection.succeed(now, lasting);
            entry.succeeded_by.get_or_insert(id);
            self.inquire(id, other);
        }
    }

    /// A word in clear says that the peer of `id` lost its state. If there is another connection with it that was
    /// proved since `id` heard a record last, that is asked. One that was there before is another program with the same
    /// key, and its "no" says nothing of this one.
    fn ask_another(&mut self, now: Instant, id: ConnectionId) {
        let Some(heard) = self.connection(id).map(Connection::heard_at) else { return };
        let may_know = |it: &ConnectionId| {
            let entry = self.roster.get(*it).filter(|entry| entry.asks_for.is_none());
            entry.and_then(|entry| entry.proved).is_some_and(|proved| proved > heard)
        };
        let Some(other) = self.beside(id).into_iter().find(may_know) else { return };
        self.roster.wake(id).into_iter().for_each(|entry| entry.connection.succeed(now, false));
        self.inquire(other, id);
    }

    /// Asks the peer of `id` if it has the connection `about` as well.
    fn inquire(&mut self, id: ConnectionId, about: ConnectionId) {
        let alias = self.connection(about).and_then(Connection::alias);
        if let (Some(alias), Some(entry)) = (alias, self.roster.wake(id)) {
            entry.connection.inquire(Inquiry::Question(alias));
        }
    }

    /// All others with the peer of `id`, over its route, that have proved it.
    fn beside(&self, id: ConnectionId) -> Vec<ConnectionId> {
        let Some(entry) = self.roster.get(id) else { return Vec::new() };
        let (route, peer) = (entry.flow.route, entry.connection.peer());
        let is_beside = |other: &ConnectionId| {
            let entry = self.roster.get(*other).filter(|entry| *other != id && entry.proved.is_some() && !entry.over);
            entry.is_some_and(|it| it.flow.route == route && is_same(peer, it.connection.peer()))
        };
        self.roster.ids().filter(is_beside).collect()
    }

    /// The peer of `id` asks, or answers, about another connection with it.
    fn handle_inquiry(&mut self, now: Instant, id: ConnectionId, inquiry: Inquiry) {
        let (Inquiry::Question(alias) | Inquiry::Answer(alias, _)) = inquiry;
        let peer = self.connection(id).and_then(Connection::peer);
        let is_of_peer = |other: &ConnectionId| {
            self.connection(*other).is_some_and(|it| !it.is_closed() && is_same(peer, it.peer()))
        };
        let about = self.by_alias.get(&alias).copied().filter(is_of_peer);
        let to_tell = if matches!(inquiry, Inquiry::Question(_)) { Some(id) } else { about };
        let Some(entry) = to_tell.and_then(|it| self.roster.wake(it)) else { return };
        match inquiry {
            Inquiry::Question(_) => entry.connection.inquire(Inquiry::Answer(alias, about.is_some())),
            Inquiry::Answer(_, true) => entry.connection.trust(),
            Inquiry::Answer(_, false) => entry.connection.deny(now),
        }
    }

    /// `id` is over: whom it was to succeed is doubted no more.
    fn release(&mut self, id: ConnectionId) {
        let succeeded = |it: &ConnectionId| self.roster.get(*it).is_some_and(|entry| entry.succeeded_by == Some(id));
        let older: Vec<_> = self.roster.ids().filter(succeeded).collect();
        for other in older {
            if let Some(entry) = self.roster.wake(other) {
                entry.succeeded_by = None;
                entry.connection.trust();
            }
        }
    }

    /// Begins a connection beside `id`, with the same peer, to find out whether that still has its
    /// state.
    fn ask(&mut self, now: Instant, id: ConnectionId) {
        if let Some(before) = self.roster.get_mut(id).and_then(|entry| entry.asked_by.take()) {
            self.turn_out(before);
        }
        let Some((flow, service)) = self.roster.get(id).map(|entry| (entry.flow, entry.connection.service())) else {
            return;
        };
        let FlowId { route, remote_port, .. } = flow;
        let (Some(checksum), Some(flow)) = (self.checksum(route), self.free_flow(route, 0, remote_port)) else {
            return;
        };
        let mut rng = self.rng.fork();
        let iss = Seq::new(rng.u64());
        let handshake = Handshake { route, checksum, local_port: flow.local_port, remote_port, service, iss };
        let connection = Connection::connect(now, Arc::clone(&self.options), rng, handshake);
        let question = self.insert(flow, connection, false);
        self.roster.get_mut(question).into_iter().for_each(|entry| entry.asks_for = Some(id));
        self.roster.get_mut(id).into_iter().for_each(|entry| entry.asked_by = Some(question));
    }

    /// `id` is over.
    pub(super) fn end_question(&mut self, now: Instant, id: ConnectionId) {
        self.strangers.leave(id);
        let Some(entry) = self.roster.get(id) else { return };
        let (asks_for, asked_by, alias) = (entry.asks_for, entry.asked_by, entry.connection.alias());
        if let Some(alias) = alias.filter(|alias| self.by_alias.get(alias) == Some(&id)) {
            self.by_alias.remove(&alias);
        }
        if alias.is_some() && asks_for.is_none() {
            self.release(id);
        }
        asked_by.into_iter().for_each(|question| self.turn_out(question));
        let Some(other) = asks_for.and_then(|other| self.roster.wake(other)) else { return };
        if other.asked_by == Some(id) {
            other.asked_by = None;
            other.connection.ask_again(now);
        }
    }
}

/// Returns `true` if two key handshakes proved the same peer. Where no keys are in use anybody may
/// be there, and who is, is believed.
fn is_same(newer: Option<Peer>, older: Option<Peer>) -> bool {
    let (Some(newer), Some(older)) = (newer, older) else { return false };
    newer.fingerprint == older.fingerprint || (!newer.authenticated && !older.authenticated)
}
