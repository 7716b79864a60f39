//! Who has a place: strangers, whose keys are not agreed on yet, and members; and which of two
//! connections with one peer goes.
//!
//! Nothing in clear ends or replaces a protected connection. A newcomer at its peer's address
//! stands beside it. It takes its place once its key handshake has proved that it is the same peer
//! and the older one has had time to send a record, and has not.

use super::{ConnectionId, Endpoint, FlowId};
use crate::conn::{Connection, Handshake};
use crate::seq::Seq;
use braidcast_core::{Admission, Instant, crowded_out};
use braidcast_secure::{Fingerprint, Peer};
use core::time::Duration;
use std::net::IpAddr;
use std::sync::Arc;

/// Whom members are counted for: where keys are in use the key that was proved, else a host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Holder {
    Key(Option<Fingerprint>),
    Host(IpAddr),
}

impl Endpoint {
    /// Among members of keys that have as many, one that sent nothing for this long may have to go.
    const SILENT_MEMBER: Duration = Duration::from_secs(10);

    /// Returns `true` if one more client may be answered: where keys are in use, strangers have
    /// places of their own.
    pub(super) fn takes_clients(&self) -> bool {
        self.options.security.is_some() || self.roster.len() < self.options.max_connections
    }

    /// Makes room for one more stranger from `host`. Returns `true` if there is.
    pub(super) fn make_room_for_stranger(&mut self, now: Instant, host: IpAddr) -> bool {
        match self.strangers.ask(now, host) {
            Admission::Free => true,
            Admission::Full => false,
            Admission::InPlaceOf(other) => {
                self.strangers.leave(other);
                self.turn_out(other);
                true
            }
        }
    }

    fn turn_out(&mut self, id: ConnectionId) {
        if let Some(entry) = self.roster.wake(id) {
            entry.connection.abort();
        }
    }

    /// After the connection has been polled dry, where keys are in use: what follows for others
    /// from what has become of it.
    pub(super) fn tend_places(&mut self, now: Instant, id: ConnectionId) {
        let Some(entry) = self.roster.get_mut(id) else { return };
        let newly_proved = !entry.proved && entry.connection.is_protected();
        entry.proved |= newly_proved;
        let asks_now = entry.connection.take_question(now);
        let (asks_for, asked_by) = (entry.asks_for, entry.asked_by);
        if newly_proved {
            self.replace_older(now, id);
            if self.strangers.leave(id) {
                self.take_in(now, id);
            }
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

    /// The stranger `id` has proved its key, and wants a place among members.
    fn take_in(&mut self, now: Instant, id: ConnectionId) {
        let member = |id: ConnectionId| {
            let entry = self.roster.get(id).filter(|entry| entry.guest && entry.proved && !entry.over)?;
            let key = entry.connection.peer().filter(|peer| peer.authenticated);
            let host = entry.flow.route.remote.ip();
            let holder = key.map_or(Holder::Host(host), |peer| Holder::Key(peer.fingerprint));
            Some((id, holder, entry.connection.heard_at()))
        };
        let members: Vec<_> = self.roster.ids().filter_map(member).collect();
        if members.len() > self.options.max_connections {
            self.turn_out(crowded_out(now, &members, id, Self::SILENT_MEMBER));
        }
    }

    /// The newcomer `id` has proved who it is: older connections of the same peer over its route
    /// have to show that they live.
    fn replace_older(&mut self, now: Instant, id: ConnectionId) {
        let Some((route, peer)) = self.roster.get(id).map(|entry| (entry.flow.route, entry.connection.peer())) else {
            return;
        };
        let is_older = |other: &ConnectionId| {
            *other != id
                && self.roster.get(*other).is_some_and(|entry| {
                    entry.flow.route == route
                        && entry.proved
                        && entry.asks_for.is_none()
                        && is_same(peer, entry.connection.peer())
                })
        };
        let older: Vec<_> = self.roster.ids().filter(is_older).collect();
        for other in older {
            self.roster.wake(other).into_iter().for_each(|entry| entry.connection.succeed(now));
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
        let Some((asks_for, asked_by)) = self.roster.get(id).map(|entry| (entry.asks_for, entry.asked_by)) else {
            return;
        };
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
