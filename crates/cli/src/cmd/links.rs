//! The sockets of the paths, in the words of the command line.

use super::paths::Plan;
use super::tables;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::{Dials, Instant, NotJoined, Route, SocketId};
use braidcast_driver::{Carrier, Driver, Interfaces, Link, LinkChange, LinkTrouble, LinksError, Target, Trouble};
use std::collections::BTreeSet;

/// Every path that was asked for, if it can be used now or not.
pub(crate) struct Links {
    links: Box<braidcast_driver::Links>,
    /// What was said of addresses that do not answer.
    said: BTreeSet<(String, String, Trouble)>,
    /// The maximum rates of paths by their names, bits per second.
    limits: Vec<(String, u64)>,
}

impl Links {
    /// Opens a socket for each path. One whose interface or address is not there, or whose other end has a name that
    /// is not resolved, is waited for.
    pub(crate) fn open(plans: Vec<Plan>, carrier: Carrier, driver: &mut Driver, live: &Live) -> Outcome<Self> {
        let limits = limits(&plans);
        let opened = braidcast_driver::Links::open(plans.into_iter().map(link).collect(), carrier, driver);
        Self::opened(opened, limits, live)
    }

    /// The same for measurements, which do not wait: at least one path can be used.
    pub(crate) fn open_now(plans: Vec<Plan>, carrier: Carrier, driver: &mut Driver, live: &Live) -> Outcome<Self> {
        let limits = limits(&plans);
        let opened = braidcast_driver::Links::open_now(plans.into_iter().map(link).collect(), carrier, driver);
        Self::opened(opened, limits, live)
    }

    fn opened(
        opened: Result<(braidcast_driver::Links, Vec<String>), LinksError>,
        limits: Vec<(String, u64)>,
        live: &Live,
    ) -> Outcome<Self> {
        let (links, warnings) = opened.map_err(failure)?;
        warnings.iter().for_each(|warning| live.warn(warning));
        let interfaces = Interfaces::list().map_err(|e| failure(LinksError::List(e)))?;
        let strange = links.of_other_family(&interfaces);
        for (via, needs_ipv4) in &strange {
            let (needed, other) = if *needs_ipv4 { ("IPv4", "IPv6") } else { ("IPv6", "IPv4") };
            live.warn(format!(
                "{via} has no {needed} address, which the other end's address needs (only {other}); it joins when it has one"
            ));
        }
        for via in links.missing().filter(|via| strange.iter().all(|(other, _)| other != via)) {
            live.warn(format!("there is no {via} now; it joins when it appears (this machine has {interfaces})"));
        }
        for host in links.unresolved() {
            live.warn(format!("the address of {host} is not known yet; going on asking for it"));
        }
        Ok(Self { links: Box::new(links), said: BTreeSet::new(), limits })
    }

    /// Says once what the kernel knows of paths over which nobody answers.
    pub(crate) fn tell_troubles(&mut self, driver: &Driver, live: &Live) {
        for LinkTrouble { name, local, remote, trouble } in self.links.troubles(driver) {
            let to = remote.to_string();
            if !self.said.insert((name.to_owned(), to.clone(), trouble)) {
                continue;
            }
            let path = if name == to { to } else { format!("{name} ({to})") };
            let hint = match (trouble, local) {
                (Trouble::NoRoute | Trouble::Unreachable, Some(local)) => tables::lack_now(local, remote.ip())
                    .map_or_else(String::new, |lack| format!(" ({}: `{}`)", lack.what, lack.command)),
                _ => String::new(),
            };
            live.warn(format!("{path}: {trouble}{hint}; going on trying"));
        }
    }

    /// Why nobody can be there, if the kernel knows that of every path.
    pub(crate) fn refusal(&self, driver: &Driver) -> Option<String> {
        let troubles = self.links.troubles(driver);
        let each: Vec<String> = troubles.iter().map(|it| format!("{}: {}", it.remote, it.trouble)).collect();
        (!each.is_empty() && each.len() == self.routes().len()).then(|| each.join("; "))
    }

    /// Each path has one way to the other end at a time.
    pub(crate) fn try_one_by_one(&mut self) {
        self.links.try_one_by_one();
    }

    /// The routes that can be used now.
    pub(crate) fn routes(&self) -> Vec<Route> {
        self.links.routes()
    }

    /// Returns `true` if the other end answers over every path that can be used now.
    pub(crate) fn are_up(&self) -> bool {
        self.links.are_up()
    }

    /// Returns `true` if the path of `route` has another way.
    pub(crate) fn has_another(&self, route: Route) -> bool {
        self.links.has_another(route)
    }

    /// The name of the path that uses, or used, `socket`.
    pub(crate) fn name(&self, socket: SocketId) -> &str {
        self.links.name(socket).unwrap_or("unknown path")
    }

    /// The rate limit of the path of `route`, bits per second.
    pub(crate) fn limit(&self, route: Route) -> Option<u64> {
        let name = self.links.name(route.socket)?;
        self.limits.iter().find(|(limited, _)| limited == name).map(|&(_, limit)| limit)
    }

    /// When [`tend`](Self::tend) has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.links.next()
    }

    /// The interfaces or routes changed: opens and closes sockets, and returns which paths join and leave, for
    /// [`carry_out`](Self::carry_out).
    pub(crate) fn refresh(&mut self, driver: &mut Driver) -> Outcome<Vec<LinkChange>> {
        self.links.refresh(driver).map_err(failure)
    }

    /// The same for what is due: the resolver may have answered, and the next address of a name is tried.
    pub(crate) fn tend(&mut self, driver: &mut Driver) -> Vec<LinkChange> {
        self.links.tend(driver)
    }

    /// The other end answers over `route`; what leaves for that.
    pub(crate) fn up(&mut self, route: Route) -> Vec<LinkChange> {
        self.said.retain(|(_, to, _)| *to != route.remote.to_string());
        self.links.up(route)
    }

    /// Has `machine` join and leave as `changes` say, with the rate limits that were asked for, and says so.
    pub(crate) fn carry_out(
        &mut self,
        changes: Vec<LinkChange>,
        driver: &mut Driver,
        live: &Live,
        machine: &mut impl Dials,
    ) {
        let mut limited = Limited { machine, limits: self.limits_of(&changes) };
        for change in self.links.carry_out(changes, driver, &mut limited) {
            change.warning().iter().for_each(|warning| live.warn(warning));
            change.note().iter().for_each(|note| live.note(note));
        }
    }

    /// The rate limits of what joins.
    fn limits_of(&self, changes: &[LinkChange]) -> Vec<(Route, u64)> {
        let limited = |change: &LinkChange| match change {
            LinkChange::Joined { route, .. } => Some((*route, self.limit(*route)?)),
            _ => None,
        };
        changes.iter().filter_map(limited).collect()
    }

    /// It does not answer over `route` any more.
    pub(crate) fn down(&mut self, now: Instant, route: Route) {
        self.links.down(now, route);
    }

    /// It does not answer at all any more.
    pub(crate) fn all_down(&mut self, now: Instant) {
        self.links.all_down(now);
    }
}

fn limits(plans: &[Plan]) -> Vec<(String, u64)> {
    plans.iter().filter_map(|plan| Some((plan.name.clone(), plan.max?))).collect()
}

fn link(plan: Plan) -> Link {
    Link::new(plan.via, Target::new(&plan.to.host, plan.to.port), plan.name)
}

/// A machine whose paths have the limits that were asked for.
struct Limited<'a, M> {
    machine: &'a mut M,
    limits: Vec<(Route, u64)>,
}

impl<M: Dials> Dials for Limited<'_, M> {
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined> {
        let limit = self.limits.iter().find(|(limited, _)| *limited == route).map(|&(_, limit)| limit);
        self.machine.set_limit(route, limit);
        self.machine.join(now, route)
    }

    fn leave(&mut self, now: Instant, route: Route) {
        self.machine.leave(now, route);
    }
}

/// With what the user can do about it.
fn failure(error: LinksError) -> Failure {
    let hint = match &error {
        LinksError::NoneThere { .. } => {
            "give --via an interface or address that is there, or leave it out to send as the system routes"
        }
        LinksError::Unresolved { .. } => "check the name and the network",
        LinksError::OtherFamily { .. } => "give --via an address of the same kind",
        LinksError::NoRoute { .. } => "give --via a local address",
        LinksError::Bind { .. } => "choose another --via",
        _ => "leave out --via",
    };
    Failure::new(error.to_string(), hint)
}
