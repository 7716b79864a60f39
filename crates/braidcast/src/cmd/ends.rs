//! The local ends of a stream's paths: sockets that dial over networks, or ports where the other end calls.

use super::links::{Change, Links};
use super::paths::Plan;
use crate::args::values::Listen;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::{Instant, Route, SocketId};
use braidcast_driver::{Bind, Carrier, Driver};
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
        for (addr, port) in &listen.0 {
            let bind = Bind { addr: *addr, port: *port, ..Bind::default() };
            let socket =
                driver.bind(&bind).map_err(|e| Failure::new(e.to_string(), format!("choose another {flag}")))?;
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

    /// The interfaces changed: has `apply` tell the session which paths join and leave.
    pub(crate) fn refresh(
        &mut self,
        driver: &mut Driver,
        live: &Live,
        mut apply: impl FnMut(Instant, &Change) -> Result<(), JoinError>,
    ) -> Outcome {
        let Self::Dialed(links) = self else { return Ok(()) };
        for change in links.refresh(driver, live)? {
            let applied = apply(driver.now(), &change);
            match (change, applied) {
                (Change::Join(route), Err(refused)) => {
                    live.warn(format!("{} cannot join: {refused}", links.name(route.socket)));
                }
                (Change::Join(_), Ok(())) => {}
                (Change::Leave(route), _) => driver.unbind(route.socket),
            }
        }
        Ok(())
    }
}

/// Why a session did not begin over the paths that were given.
pub(crate) fn cannot_begin(error: StartError) -> Failure {
    match error {
        StartError::Options(misuse) => misuse.into(),
        other => Failure::new(format!("cannot connect: {other}"), "give fewer paths"),
    }
}
