//! Clients that are known by their keys, and what each may reach.

use super::class::Class;
use super::link::Link;
use super::machine::{LinkId, Tunnel};
use braidcast_core::Instant;
use braidcast_sctp::Fingerprint;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// What a client with a known key may do.
#[derive(Clone, PartialEq, Debug)]
pub struct Permit {
    /// What it is called.
    pub name: String,
    /// Targets of its flows, in place of what all others reach: those of its n-th --listen to the
    /// n-th of these. `None`: as for all others.
    pub forwards: Option<Vec<(SocketAddr, Class)>>,
}

impl Tunnel {
    /// Only these clients are let in from now on. Who is no longer among them, or may reach
    /// something else now, loses its connection.
    pub fn set_permits(&mut self, now: Instant, permits: BTreeMap<Fingerprint, Permit>) {
        self.permits = Some(permits);
        let has_to_go = |link: &Link| link.connection.is_some_and(|id| self.permit(id) != link.permit.as_ref());
        let gone: Vec<LinkId> = self.links.iter().filter(|(_, link)| has_to_go(link)).map(|(&id, _)| id).collect();
        gone.into_iter().for_each(|id| self.turn_out(now, id, "this key may reach something else now, or nothing"));
    }

    /// What the client at the other end of a connection may do; `None` where nobody is asked, and
    /// of who is not in the list.
    pub(super) fn permit(&self, id: super::carrier::ConnectionId) -> Option<&Permit> {
        let peer = self.endpoint.standing(id)?.peer;
        self.permits.as_ref()?.get(&peer.listed.filter(|_| peer.authenticated)?)
    }

    /// Where flows of an end's n-th --listen go.
    pub(super) fn forward(&self, link: LinkId, port: u8) -> Option<(SocketAddr, Class)> {
        let permit = self.links.get(&link).and_then(|link| link.permit.as_ref());
        let own = permit.and_then(|permit| permit.forwards.as_deref());
        own.unwrap_or(&self.forwards).get(usize::from(port)).copied()
    }

    /// Takes over what the client that has connected may do. `false`: it may not be here. Flows of
    /// who was there before are forgotten.
    pub(super) fn admit(&mut self, id: super::carrier::ConnectionId, link_id: LinkId) -> bool {
        if self.permits.is_none() {
            return true;
        }
        let permit = self.permit(id).cloned();
        let Some(link) = self.links.get_mut(&link_id) else { return false };
        let admitted = permit.is_some();
        if link.permit != permit {
            link.permit = permit;
            let flows = link.take_all();
            flows.iter().for_each(|flow| self.free_exit(flow));
        }
        admitted
    }
}
