//! Who has a place: strangers, whose keys are not agreed on yet, and members.

use super::{ConnectionId, Endpoint};
use braidcast_core::{Holder, Instant, crowded_out};
use std::net::IpAddr;

impl Endpoint {
    /// Returns `true` if one more client may be answered: where keys are in use, strangers have
    /// places of their own.
    pub(super) fn takes_clients(&self) -> bool {
        self.options.security.is_some() || self.roster.len() < self.options.max_connections
    }

    /// Makes room for one more stranger from `host`. Returns `true` if there is.
    pub(super) fn make_room_for_stranger(&mut self, now: Instant, host: IpAddr) -> bool {
        let Ok(goes) = self.strangers.make_room(now, host) else { return false };
        goes.into_iter().for_each(|other| self.turn_out(other));
        true
    }

    pub(super) fn turn_out(&mut self, id: ConnectionId) {
        // One that is over and waits to be read has nothing to say. Woken, it would come to rest here again, for
        // ever.
        if self.roster.get(id).is_some_and(|entry| !entry.over)
            && let Some(entry) = self.roster.wake(id)
        {
            entry.connection.abort();
        }
    }

    /// The stranger `id` has proved its key, and wants a place among members.
    pub(super) fn take_in(&mut self, now: Instant, id: ConnectionId) {
        let member = |id: ConnectionId| {
            let entry = self.roster.get(id).filter(|entry| entry.guest && entry.proved.is_some() && !entry.over)?;
            let key = entry.connection.peer().filter(|peer| peer.authenticated);
            let host = entry.flow.route.remote.ip();
            let holder = Holder::of(key.map(|peer| peer.fingerprint), host);
            Some((id, holder, entry.connection.heard_at()))
        };
        let members: Vec<_> = self.roster.ids().filter_map(member).collect();
        if members.len() > self.options.max_connections {
            self.turn_out(crowded_out(now, &members, id));
        }
    }
}
