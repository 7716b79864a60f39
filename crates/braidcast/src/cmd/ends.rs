//! The local ends of a stream's paths: sockets that dial over networks, or ports where the other end calls.

use super::links::{Change, Links};
use super::paths::Plan;
use crate::args::values::Listen;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::{Instant, Route, SocketId};
use braidcast_driver::{Carrier, Driver};
use braidcast_sctp::JoinError;
use braidcast_session::{PathReport, StartError};

/// Who dials and who sends are two separate choices: either end has either kind.
pub(crate) enum Ends {
    Dialed(Links),
    Called,
}

impl Ends {
    /// Opens a socket for each path that this end dials over.
    pub(crate) fn dial(plans: Vec<Plan>, driver: &mut Driver, live: &Live) -> Outcome<Self> {
        Links::open(plans, Carrier::Udp, driver, live).map(Self::Dialed)
    }

    /// Opens the ports where this end is called, and returns their addresses. `flag`: what named them.
    pub(crate) fn listen(listen: &Listen, flag: &str, driver: &mut Driver) -> Outcome<(Self, Vec<String>)> {
        let mut locals = Vec::new();
        for place in &listen.0 {
            let socket = driver
                .bind(&place.bind())
                .map_err(|e| Failure::new(e.to_string(), format!("choose another {flag}")))?;
            locals.extend(driver.socket(socket).map(|socket| socket.local_addr().to_string()));
        }
        Ok((Self::Called, locals))
    }

    /// Returns `true` if the other end dials.
    pub(crate) const fn is_called(&self) -> bool {
        matches!(self, Self::Called)
    }

    /// The routes that can be used now; none where the other end dials.
    pub(crate) fn routes(&self) -> Vec<Route> {
        match self {
            Self::Dialed(links) => links.routes(),
            Self::Called => Vec::new(),
        }
    }

    /// The rate limit of the path of `route`, bits per second.
    pub(crate) fn limit(&self, route: Route) -> Option<u64> {
        match self {
            Self::Dialed(links) => links.limit(route),
            Self::Called => None,
        }
    }

    /// The name of a path, for sentences.
    pub(crate) fn name(&self, route: Route) -> String {
        match self {
            Self::Dialed(links) => links.name(route.socket).to_owned(),
            Self::Called => format!("path from {}", route.remote),
        }
    }

    /// The name of a path, for tables.
    pub(crate) fn path_name(&self, path: &PathReport) -> String {
        match self {
            Self::Dialed(links) => links.name(SocketId(path.socket)).to_owned(),
            Self::Called => path.remote.clone(),
        }
    }

    /// Returns `true` if the other end answers over every path that can be used now, as far as is
    /// known here.
    pub(crate) fn are_up(&self) -> bool {
        match self {
            Self::Dialed(links) => links.are_up(),
            Self::Called => false,
        }
    }

    /// Returns `true` if the path of `route` goes on by another way.
    pub(crate) fn has_another(&self, route: Route) -> bool {
        matches!(self, Self::Dialed(links) if links.has_another(route))
    }

    /// Says once what the kernel knows of paths over which nobody answers.
    pub(crate) fn tell_troubles(&mut self, driver: &Driver, live: &Live) {
        if let Self::Dialed(links) = self {
            links.tell_troubles(driver, live);
        }
    }

    /// Why nobody can be there, if the kernel knows that of every path.
    pub(crate) fn refusal(&self, driver: &Driver) -> Option<String> {
        match self {
            Self::Dialed(links) => links.refusal(driver),
            Self::Called => None,
        }
    }

    /// When [`tend`](Self::tend) has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self {
            Self::Dialed(links) => links.next(),
            Self::Called => None,
        }
    }

    /// The other end does not answer over `route` any more.
    pub(crate) fn down(&mut self, now: Instant, route: Route) {
        if let Self::Dialed(links) = self {
            links.down(now, route);
        }
    }

    /// It does not answer at all any more.
    pub(crate) fn all_down(&mut self, now: Instant) {
        if let Self::Dialed(links) = self {
            links.all_down(now);
        }
    }

    /// The interfaces or routes changed: has `apply` tell the session which paths join and leave.
    pub(crate) fn refresh(&mut self, driver: &mut Driver, live: &Live, apply: impl Apply) -> Outcome {
        let Self::Dialed(links) = self else { return Ok(()) };
        let changes = links.refresh(driver, live)?;
        carry_out(links, changes, driver, live, apply);
        Ok(())
    }

    /// The same for what is due.
    pub(crate) fn tend(&mut self, driver: &mut Driver, live: &Live, apply: impl Apply) -> Outcome {
        let Self::Dialed(links) = self else { return Ok(()) };
        let changes = links.tend(driver, live)?;
        carry_out(links, changes, driver, live, apply);
        Ok(())
    }

    /// The same for what is not needed any more, as the other end answers over `route`.
    pub(crate) fn up(&mut self, route: Route, driver: &mut Driver, live: &Live, apply: impl Apply) {
        let Self::Dialed(links) = self else { return };
        let changes = links.up(route, live);
        carry_out(links, changes, driver, live, apply);
    }
}

/// What has a session know of a change, and of the maximum rate of a path that joins, bits per second.
pub(crate) trait Apply: FnMut(Instant, &Change, Option<u64>) -> Result<(), JoinError> {}

impl<F: FnMut(Instant, &Change, Option<u64>) -> Result<(), JoinError>> Apply for F {}

fn carry_out(links: &Links, changes: Vec<Change>, driver: &mut Driver, live: &Live, mut apply: impl Apply) {
    for change in changes {
        let limit = match change {
            Change::Join(route) => links.limit(route),
            Change::Leave(_) => None,
        };
        let applied = apply(driver.now(), &change, limit);
        match (change, applied) {
            (Change::Join(route), Err(refused)) => {
                live.warn(format!("{} cannot join: {refused}", links.name(route.socket)));
            }
            (Change::Join(_), Ok(())) => {}
            (Change::Leave(route), _) => driver.unbind(route.socket),
        }
    }
}

/// Why a session did not begin over the paths that were given.
pub(crate) fn cannot_begin(error: StartError) -> Failure {
    match error {
        StartError::Options(misuse) => misuse.into(),
        other => Failure::new(format!("cannot connect: {other}"), "give fewer paths"),
    }
}
