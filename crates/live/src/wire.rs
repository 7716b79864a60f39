//! Sockets of a session: paths that it dials over, or addresses that it is called at.

use crate::Error;
use braidcast_core::{Dials, Instant, Route};
use braidcast_driver::{Bind, Carrier, Driver, LinkChange, Links};
use braidcast_socket::Path;
use std::net::SocketAddr;

/// The sockets, and the loop that they are in.
pub(crate) struct Wire {
    pub(crate) driver: Driver,
    /// Of who dials.
    links: Option<Links>,
}

impl Wire {
    /// Opens a socket for each path that is there; the others are waited for. Also returns what did
    /// not go as asked, in words.
    ///
    /// # Errors
    /// [`Error::Setup`], [`Error::Io`].
    pub(crate) fn dial(paths: &[Path]) -> Result<(Self, Vec<String>), Error> {
        let mut driver = Driver::new()?;
        if paths.is_empty() {
            return Err(braidcast_socket::Error::from(braidcast_sctp::ConnectError::NoRoute).into());
        }
        let all = paths.iter().map(Path::link).collect::<Result<_, _>>()?;
        let opened = Links::begin(all, Carrier::Udp, &mut driver).map_err(braidcast_socket::Error::from);
        let (links, warnings) = opened?;
        Ok((Self { driver, links: Some(links) }, warnings))
    }

    /// Opens these addresses to be called at. Also returns them with their ports.
    ///
    /// # Errors
    /// [`Error::NoAddress`], [`Error::Setup`], [`Error::Io`].
    pub(crate) fn listen(addrs: &[SocketAddr]) -> Result<(Self, Vec<SocketAddr>), Error> {
        let mut driver = Driver::new()?;
        if addrs.is_empty() {
            return Err(Error::NoAddress);
        }
        let mut bound = Vec::new();
        for addr in addrs {
            let id = driver.bind(&Bind::to_addr(*addr)).map_err(braidcast_socket::Error::from)?;
            bound.push(driver.socket(id).map_or(*addr, |socket| socket.local_addr()));
        }
        Ok((Self { driver, links: None }, bound))
    }

    /// The routes that can be dialled over now.
    pub(crate) fn routes(&self) -> Vec<Route> {
        self.links.as_ref().map_or_else(Vec::new, Links::routes)
    }

    /// What the path over `route` is called.
    pub(crate) fn name(&self, route: Route) -> String {
        let known = self.links.as_ref().and_then(|links| links.name(route.socket));
        known.map_or_else(|| route.remote.to_string(), str::to_owned)
    }

    /// When [`tend`](Self::tend) has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.links.as_ref().and_then(Links::next)
    }

    /// Has paths join and leave by what the resolver says, or the `changed` interfaces. Returns what
    /// did not go as asked.
    pub(crate) fn tend(&mut self, machine: &mut impl Dials, changed: bool) -> Vec<String> {
        let Some(links) = &mut self.links else { return Vec::new() };
        let changes = if changed { links.refresh(&mut self.driver) } else { Ok(links.tend(&mut self.driver)) };
        match changes {
            Ok(changes) => self.apply(machine, changes),
            // It is looked at again with the next change.
            Err(error) => vec![error.to_string()],
        }
    }

    /// Of several ways of a path, those that are not needed are left once one answers.
    pub(crate) fn up(&mut self, machine: &mut impl Dials, route: Route) -> Vec<String> {
        let Some(links) = &mut self.links else { return Vec::new() };
        let changes = links.up(route);
        self.apply(machine, changes)
    }

    /// A path does not answer any more, or none does.
    pub(crate) fn down(&mut self, route: Option<Route>) {
        let now = self.driver.now();
        match (&mut self.links, route) {
            (Some(links), Some(route)) => links.down(now, route),
            (Some(links), None) => links.all_down(now),
            (None, _) => {}
        }
    }

    fn apply(&mut self, machine: &mut impl Dials, changes: Vec<LinkChange>) -> Vec<String> {
        let Some(links) = &mut self.links else { return Vec::new() };
        links.carry_out(changes, &mut self.driver, machine).iter().filter_map(LinkChange::warning).collect()
    }
}
