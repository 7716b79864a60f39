//! Who has a place: strangers, who have proved an address and no key yet, and members. Strangers
//! have places of their own, and no member gives way to one.

use super::{AssociationId, Endpoint};
use braidcast_core::{Holder, Instant, crowded_out};
use braidcast_secure::Fingerprint;
use core::time::Duration;
use std::collections::HashMap;
use std::net::IpAddr;

impl Endpoint {
    /// Without keys, a peer that sent nothing for this long may have to go when others come.
    const SILENT: Duration = Duration::from_millis(250);

    /// Makes room for one more stranger from `host`. Returns whether there is.
    pub(super) fn make_room_for_stranger(&mut self, now: Instant, host: IpAddr) -> bool {
        let Ok(goes) = self.strangers.make_room(now, host) else { return false };
        goes.into_iter().for_each(|other| self.turn_out(now, other));
        true
    }

    /// The stranger `id` has proved its key, and wants a place among members. If there are as many
    /// as there may be, the holder with most places loses its idlest to one that has fewer; or else
    /// `id` has to go.
    pub(super) fn take_in(&mut self, now: Instant, id: AssociationId) {
        let members = self.roster.ids().filter(|&it| it == id || self.is_member(it));
        let members: Vec<_> = members.filter_map(|it| Some((it, self.holder(it)?, self.heard_at(it)?))).collect();
        if members.len() <= self.options.limits.max_associations {
            return;
        }
        let goes = crowded_out(now, &members, id);
        self.turn_out(now, goes);
    }

    /// Associations that are not closed.
    pub(super) fn count_alive(&self) -> usize {
        let alive = |&id: &AssociationId| self.association(id).is_some_and(|it| !it.is_closed());
        self.roster.ids().filter(alive).count()
    }

    fn is_member(&self, id: AssociationId) -> bool {
        self.roster.get(id).is_some_and(|entry| entry.proved && entry.guest.is_some() && !entry.association.is_closed())
    }

    fn heard_at(&self, id: AssociationId) -> Option<Instant> {
        self.roster.get(id)?.guest.map(|(_, heard)| heard)
    }

    fn holder(&self, id: AssociationId) -> Option<Holder<Option<Fingerprint>>> {
        let entry = self.roster.get(id)?;
        let peer = entry.association.standing().map(|it| it.peer).filter(|peer| peer.authenticated);
        let (host, _) = entry.guest?;
        Some(Holder::of(peer.map(|peer| peer.fingerprint), host))
    }

    fn turn_out(&mut self, now: Instant, id: AssociationId) {
        if let Some(entry) = self.roster.get_mut(id).filter(|entry| !entry.association.is_closed()) {
            entry.association.abort(now, "others ask for its place");
        }
        self.settle(id);
    }

    /// Without keys: there are as many associations as there may be, and `newcomer` asks for one
    /// more. Of the hosts that have most, the one that was silent longest must go, so that one host
    /// cannot take all; one that just spoke only for a host that has far fewer. Returns whether one
    /// went.
    pub(super) fn turn_out_idlest(&mut self, now: Instant, newcomer: IpAddr) -> bool {
        // Nobody has a key.
        let whole = |host| Holder::<()>::of(None, host);
        let guests = || {
            let alive = |id| self.roster.get(id).filter(|entry| !entry.association.is_closed());
            let guest = move |id| alive(id).and_then(|entry| entry.guest);
            self.roster.ids().filter_map(move |id| guest(id).map(|(host, heard)| (id, whole(host), heard)))
        };
        let mut hosts = HashMap::new();
        guests().for_each(|(_, host, _)| *hosts.entry(host).or_insert(0_usize) += 1);
        let count = |host: &Holder<()>| hosts.get(host).copied().unwrap_or_default();
        let of_newcomer = count(&whole(newcomer));
        let Some(most) = hosts.values().copied().max() else { return false };
        let crowds = guests().filter(|(_, host, _)| count(host) == most);
        let Some((id, _, heard)) = crowds.min_by_key(|(id, _, heard)| (*heard, *id)) else { return false };
        if most <= of_newcomer + 1 && now.since(heard) < Self::SILENT {
            return false;
        }
        self.turn_out(now, id);
        true
    }
}
