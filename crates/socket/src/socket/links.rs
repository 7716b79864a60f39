//! Paths of connections that were begun here, over interfaces that come and go and names whose
//! addresses change.

use super::{Socket, close_sockets};
use crate::{CloseReason, ConnectionId, Error};
use braidcast_driver::{LinkChange, Links};
use braidcast_sctp::{PathReport, PathState};

impl Socket {
    /// Of several ways of a path, those that are not needed are left once one answers.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        let Self { driver, hub, links, .. } = self;
        for (&connection, links) in links.iter_mut().filter(|(_, links)| !links.is_settled() || !links.are_up()) {
            let Some(association) = hub.association_mut(connection)? else { continue };
            let active = |it: &PathReport| it.state == PathState::Active;
            // The newest first: it is the one that the routing table has now.
            let mut answering: Vec<_> = association.paths().filter(active).map(|it| it.route).collect();
            answering.reverse();
            for route in answering.into_iter().filter(|it| links.routes().contains(it)).collect::<Vec<_>>() {
                for change in links.up(route) {
                    if let LinkChange::Left { route, .. } = change {
                        association.leave(driver.now(), route);
                        driver.unbind(route.socket);
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the resolver's answers, and tries the next addresses of names.
    pub(super) fn tend(&mut self) -> Result<(), Error> {
        let now = self.driver.now();
        let due = |links: &Links| links.next().is_some_and(|next| next <= now);
        for id in self.links.iter().filter(|(_, links)| due(links)).map(|(&id, _)| id).collect::<Vec<_>>() {
            let Some(links) = self.links.get_mut(&id) else { continue };
            let changes = links.tend(&mut self.driver)?;
            self.change(id, changes)?;
            self.end_without_paths(id);
        }
        Ok(())
    }

    /// The interfaces or routes have changed.
    pub(super) fn refresh(&mut self) -> Result<(), Error> {
        for id in self.links.keys().copied().collect::<Vec<_>>() {
            let Some(links) = self.links.get_mut(&id) else { continue };
            let changes = links.refresh(&mut self.driver)?;
            self.change(id, changes)?;
        }
        self.touched = true;
        Ok(())
    }

    /// Ends a connection whose names have addresses, and which no path leads to.
    fn end_without_paths(&mut self, id: ConnectionId) {
        let Some(links) = self.links.get(&id).filter(|_| self.hub.is_resolving(id)) else { return };
        if links.routes().is_empty() && links.unresolved().next().is_none() {
            let missing: Vec<String> = links.missing().map(ToString::to_string).collect();
            self.warnings.push(format!("no path can be used: there is no {}", missing.join(" and no ")));
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

    /// Has the paths of a connection join and leave.
    fn change(&mut self, id: ConnectionId, changes: Vec<LinkChange>) -> Result<(), Error> {
        let now = self.driver.now();
        for change in changes {
            match change {
                LinkChange::Joined { route, warning, .. } => {
                    self.warnings.extend(warning);
                    let joined = match self.hub.is_resolving(id) {
                        true => self.hub.begin(now, id, &[route]),
                        false => self.hub.join(now, id, route),
                    };
                    if let Err(error) = joined {
                        self.warnings.push(format!("the path to {} cannot join: {error}", route.remote));
                        self.links.get_mut(&id).into_iter().for_each(|links| links.forget(route));
                        self.driver.unbind(route.socket);
                    }
                }
                LinkChange::Left { route, .. } => {
                    if let Some(association) = self.hub.association_mut(id)? {
                        association.leave(now, route);
                    }
                    self.driver.unbind(route.socket);
                }
                LinkChange::Failed { why, .. } => self.warnings.push(why),
                LinkChange::Unresolved { host, why } if self.hub.is_resolving(id) => {
                    self.hub.over(now, id, CloseReason::Unresolved { host, why });
                }
                LinkChange::Unresolved { host, why } => {
                    self.warnings.push(format!("cannot find the address of {host}: {why}"));
                }
                _ => {}
            }
            self.touched = true;
        }
        self.close_ended();
        Ok(())
    }
}
