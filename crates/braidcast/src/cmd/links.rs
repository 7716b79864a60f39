//! The sockets of the paths, in the words of the command line.

use super::paths::Plan;
use super::resolve::resolve;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::{Route, SocketId};
use braidcast_driver::{Carrier, Driver, Interfaces, Link, LinkChange, LinksError, Via};
use std::net::{IpAddr, SocketAddr};

/// Every path that was asked for, whether it can be used now or not.
pub(crate) struct Links(braidcast_driver::Links);

/// What became of a path when the interfaces changed.
pub(crate) enum Change {
    /// It can be used now.
    Join(Route),
    /// It cannot be used any more.
    Leave(Route),
}

impl Links {
    /// Opens a socket for each path. One whose interface or address is not there is waited for, as long as there
    /// is another; if there is none, that is an error.
    pub(crate) fn open(plans: Vec<Plan>, carrier: Carrier, driver: &mut Driver, live: &Live) -> Outcome<Self> {
        let interfaces = Interfaces::list().map_err(|e| failure(LinksError::List(e)))?;
        let link = |plan: Plan| {
            let remote = remote_for(&plan, &interfaces)?;
            Ok(Link { via: plan.via, remote, name: plan.name })
        };
        let links = plans.into_iter().map(link).collect::<Outcome<Vec<_>>>()?;
        let (links, warnings) = braidcast_driver::Links::open(links, carrier, driver).map_err(failure)?;
        warnings.iter().for_each(|warning| live.warn(warning));
        for via in links.missing() {
            live.warn(format!("there is no {via} now; it joins when it appears (this machine has {interfaces})"));
        }
        Ok(Self(links))
    }

    /// The routes that can be used now.
    pub(crate) fn routes(&self) -> Vec<Route> {
        self.0.routes()
    }

    /// The name of the path that uses, or used, `socket`.
    pub(crate) fn name(&self, socket: SocketId) -> &str {
        self.0.name(socket).unwrap_or("unknown path")
    }

    /// The interfaces changed: opens and closes sockets, and says which paths join and leave. Those that leave come
    /// first. Close their sockets with [`Driver::unbind`] once the machine knows.
    pub(crate) fn refresh(&mut self, driver: &mut Driver, live: &Live) -> Outcome<Vec<Change>> {
        let said = |change| match change {
            LinkChange::Joined { name, route, warning } => {
                warning.iter().for_each(|warning| live.warn(warning));
                live.note(format!("{name} is there and joins"));
                Some(Change::Join(route))
            }
            LinkChange::Left { name, route } => {
                live.note(format!("{name} is gone"));
                Some(Change::Leave(route))
            }
            LinkChange::Failed { why, .. } => {
                live.warn(why);
                None
            }
            _ => None,
        };
        Ok(self.0.refresh(driver).map_err(failure)?.into_iter().filter_map(said).collect())
    }
}

/// With what the user can do about it.
fn failure(error: LinksError) -> Failure {
    let hint = match &error {
        LinksError::NoneThere { .. } => {
            "give --via an interface or address that is there, or leave it out to send as the system routes"
        }
        LinksError::OtherFamily { .. } => "give --via an address of the same kind",
        LinksError::NoRoute { .. } => "give --via a local address",
        LinksError::Bind { .. } => "choose another --via",
        _ => "leave out --via",
    };
    Failure::new(error.to_string(), hint)
}

/// The remote address of a path, of a family that its interface or address has.
fn remote_for(plan: &Plan, interfaces: &Interfaces) -> Outcome<SocketAddr> {
    let local: Vec<IpAddr> = match &plan.via {
        Via::Addr(addr) => vec![*addr],
        via => via.addrs(interfaces).unwrap_or_default(),
    };
    resolve(&plan.to, |to| local.iter().any(|addr| addr.is_ipv4() == to.is_ipv4()))
}
