//! Paths of connections that were begun here, over interfaces that come and go and names whose
//! addresses change.

use super::{Socket, close_sockets};
use crate::hub::Hub;
use crate::{CloseReason, ConnectionId, Error};
use braidcast_core::{Dials, Instant, NotJoined, Route};
use braidcast_driver::{LinkChange, Links, LinksError};
use braidcast_sctp::{PathReport, PathState};

impl Socket {
    /// Of several ways of a path, those that are not needed are left once one answers.
    pub(super) fn settle(&mut self) {
        let Self { driver, hub, links, .. } = self;
        for (&id, links) in links.iter_mut().filter(|(_, links)| !links.is_settled() || !links.are_up()) {
            let Ok(Some(association)) = hub.association(id) else { continue };
            let active = |it: &PathReport| it.state == PathState::Active;
            // The newest first: it is the one that the routing table has now.
            let mut answering: Vec<_> = association.paths().filter(active).map(|it| it.route).collect();
            answering.reverse();
            for route in answering.into_iter().filter(|it| links.routes().contains(it)).collect::<Vec<_>>() {
                let left = links.up(route);
                links.carry_out(left, driver, &mut Dialling { hub, id });
            }
        }
    }

    /// Takes the resolver's answers, and tries the next addresses of names.
    pub(super) fn tend(&mut self) {
        let now = self.driver.now();
        let due = |links: &Links| links.next().is_some_and(|next| next <= now);
        for id in self.links.iter().filter(|(_, links)| due(links)).map(|(&id, _)| id).collect::<Vec<_>>() {
            let Some(links) = self.links.get_mut(&id) else { continue };
            let changes = links.tend(&mut self.driver);
            self.change(id, Ok(changes));
            self.end_without_paths(id);
        }
    }

    /// The interfaces or routes have changed.
    pub(super) fn refresh(&mut self) {
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            let Some(links) = self.links.get_mut(&id) else { continue };
            let changes = links.refresh(&mut self.driver);
            self.change(id, changes);
        }
        self.touched = true;
    }

    /// Ends a connection whose names have addresses, and which no path leads to.
    fn end_without_paths(&mut self, id: ConnectionId) {
        let Some(links) = self.links.get(&id).filter(|_| self.hub.is_resolving(id)) else { return };
        if links.routes().is_empty() && links.unresolved().next().is_none() {
            let missing: Vec<String> = links.missing().map(ToString::to_string).collect();
            self.warnings.add([format!("no path can be used: there is no {}", missing.join(" and no "))]);
            self.hub.over(self.driver.now(), id, CloseReason::PathsFailed);
            self.close_ended();
        }
    }

    /// Closes the sockets of connections that are over.
    fn close_ended(&mut self) {
        for id in self.hub.take_ended() {
            self.links.remove(&id).iter().for_each(|links| close_sockets(&mut self.driver, links));
        }
    }

    /// Has the paths of a connection join and leave. What could not be looked at is with the next
    /// change: nothing that there is ends for that.
    fn change(&mut self, id: ConnectionId, changes: Result<Vec<LinkChange>, LinksError>) {
        let Self { driver, hub, links, warnings, .. } = self;
        let changes = changes.unwrap_or_else(|error| {
            warnings.add([error.to_string()]);
            Vec::new()
        });
        let Some(links) = links.get_mut(&id).filter(|_| !changes.is_empty()) else { return };
        self.touched = true;
        for change in links.carry_out(changes, driver, &mut Dialling { hub, id }) {
            match change {
                LinkChange::Unresolved { host, why } if hub.is_resolving(id) && !links.is_asking() => {
                    hub.over(driver.now(), id, CloseReason::Unresolved { host, why });
                }
                other => warnings.add(other.warning()),
            }
        }
        self.close_ended();
    }
}

/// A connection that was begun here.
pub(super) struct Dialling<'a> {
    pub(super) hub: &'a mut Hub,
    pub(super) id: ConnectionId,
}

impl Dialling<'_> {
    /// The same, with what this crate calls the reason.
    pub(super) fn try_join(&mut self, now: Instant, route: Route) -> Result<(), Error> {
        match self.hub.is_resolving(self.id) {
            true => self.hub.begin(now, self.id, &[route]),
            false => self.hub.join(now, self.id, route),
        }
    }
}

impl Dials for Dialling<'_> {
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined> {
        self.try_join(now, route).map_err(|error| NotJoined { why: error.to_string(), is_kept: false })
    }

    fn leave(&mut self, now: Instant, route: Route) {
        // It may be over.
        if let Ok(Some(association)) = self.hub.association_mut(self.id) {
            association.leave(now, route);
        }
    }
}
