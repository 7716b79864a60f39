//! Who has how much of a tunnel: no host takes all of it, and flows stay with the end that they belong to.

use super::flow::Flow;
use super::link::Link;
use super::machine::{LinkId, Tunnel};
use braidcast_core::{Instant, SocketId};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Clients of one host that are connected at a time; one more takes the place of the one that was silent longest.
pub const CLIENTS_PER_HOST: usize = 64;
/// Flows of one host at a time; one more takes the place of the one that was idle longest.
pub const FLOWS_PER_HOST: usize = 512;
/// An end that was silent for this long gets no new flows while there is another: clients ask for a
/// word every two seconds.
const ATTENTIVE: Duration = Duration::from_secs(5);

impl Tunnel {
    /// The end that what `application` sends to the socket `entrance` goes to: the one that its
    /// flow is with, else the end that has been there longest. Who comes later takes nothing away
    /// from it.
    pub(super) fn outlet(&self, now: Instant, entrance: SocketId, application: SocketAddr) -> Option<LinkId> {
        let connected = || self.links.iter().filter(|(_, link)| link.connected);
        let attentive = |link: &Link| now.since(link.heard.0) < ATTENTIVE;
        let own = connected().find(|(_, link)| attentive(link) && link.has_flow_from(entrance, application));
        let first = || connected().find(|(_, link)| attentive(link));
        let last_heard = || connected().max_by_key(|(_, link)| link.heard.0);
        let found = own.or_else(first).or_else(last_heard).map(|(&id, _)| id);
        found.or_else(|| self.dial.as_ref().map(|dial| dial.link))
    }

    /// The client `newcomer` has connected. If that makes too many of its host, or of all, one must
    /// go: of the host that has most, the one that was silent longest.
    pub(super) fn make_room_for_client(&mut self, now: Instant, newcomer: LinkId) {
        let Some(host) = self.links.get(&newcomer).map(host_of).filter(|_| self.dial.is_none()) else { return };
        loop {
            let mut hosts = BTreeMap::new();
            let connected = || self.links.iter().filter(|(_, link)| link.connected);
            connected().for_each(|(_, link)| *hosts.entry(host_of(link)).or_insert(0) += 1);
            let crowded = hosts.get(&host).is_some_and(|&count| count > CLIENTS_PER_HOST);
            if !crowded && connected().count() <= self.settings.clients {
                return;
            }
            let most = hosts.into_iter().max_by_key(|&(_, count)| count).map_or(host, |(host, _)| host);
            let from = if crowded { host } else { most };
            let others = connected().filter(|&(&id, _)| id != newcomer);
            let Some((&id, _)) = others.min_by_key(|(_, link)| (host_of(link) != from, link.heard.0)) else { return };
            self.turn_out(now, id, "too many clients: those that were silent longest must go");
        }
    }

    /// Ends the connection with an end, and forgets its flows.
    pub(super) fn turn_out(&mut self, now: Instant, id: LinkId, why: &str) {
        let Some(link) = self.links.get_mut(&id) else { return };
        link.connected = false;
        let flows = link.take_all();
        if let Some(connection) = link.connection {
            self.endpoint.abort(now, connection, why);
        }
        flows.iter().for_each(|flow| self.free_exit(flow));
    }

    /// A flow of the end `link` is about to begin: where its host has too many, the one that was
    /// idle longest is forgotten.
    pub(super) fn make_room_for_flow(&mut self, link: LinkId) {
        let Some(host) = self.links.get(&link).map(host_of) else { return };
        let of_host = self.links.values().filter(|link| host_of(link) == host);
        if of_host.map(|link| link.flows.len()).sum::<usize>() >= FLOWS_PER_HOST {
            self.forget_idlest(host);
        }
    }

    /// There is no socket for a new flow: the host that has the most flows abandons the one that was idle longest. Its
    /// socket is told of by [`TunnelEvent::FreeSocket`](super::TunnelEvent::FreeSocket). `false` if there is none.
    pub fn give_way(&mut self) -> bool {
        let mut hosts = BTreeMap::new();
        for link in self.links.values() {
            *hosts.entry(host_of(link)).or_insert(0) += link.flows.values().filter(|flow| flow.local.is_some()).count();
        }
        let most = hosts.into_iter().filter(|(_, count)| *count > 0).max_by_key(|(_, count)| *count);
        most.is_some_and(|(host, _)| self.forget_idlest(host))
    }

    /// Forgets that flow of `host` which was idle longest, of those that have a socket. Returns `true` if there
    /// was one.
    fn forget_idlest(&mut self, host: IpAddr) -> bool {
        let all = self.links.iter().filter(|(_, link)| host_of(link) == host);
        let flows = all.flat_map(|(&id, link)| link.flows.iter().map(move |(&flow, it)| (id, flow, it)));
        let idlest = flows.filter(|(.., it)| it.local.is_some()).min_by_key(|(.., it)| it.last_used);
        let Some((link, id)) = idlest.map(|(link, id, _)| (link, id)) else { return false };
        let flow: Option<Flow> = self.links.get_mut(&link).and_then(|link| link.take(id));
        flow.iter().for_each(|flow| self.free_exit(flow));
        flow.is_some()
    }
}

fn host_of(link: &Link) -> IpAddr {
    link.route.remote.ip()
}
