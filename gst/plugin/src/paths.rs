//! The local ends of a session's paths: sockets that dial, which come and go with networks, or ports
//! where the other end calls. Either element has either kind.

use crate::failure::Failure;
use braidcast_core::{Dials, Instant, Route, SocketId};
use braidcast_driver::{Bind, Carrier, Driver, Link, LinkChange, Links};
use gst::ResourceError as Code;
use gstreamer as gst;

/// The networks that this end calls over, or the ports at which it is called.
#[derive(Clone)]
pub(crate) enum Ends {
    Dial(Vec<Link>),
    Listen(Vec<Bind>),
}

/// What happened to paths, in words.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) notes: Vec<String>,
    /// What did not go as asked.
    pub(crate) troubles: Vec<String>,
}

/// Sockets that are open.
pub(crate) struct Paths {
    /// Of who dials.
    links: Option<Links>,
    /// What they were made of.
    wanted: Vec<Link>,
    code: Code,
}

impl Paths {
    /// Opens what `ends` says; `code` and `properties` are for errors.
    pub(crate) fn open(
        ends: Ends,
        driver: &mut Driver,
        code: Code,
        properties: &str,
    ) -> Result<(Self, Words), Failure> {
        let mut words = Words::default();
        match ends {
            Ends::Listen(binds) => {
                for bind in &binds {
                    let bound = driver.bind(bind);
                    let how = format!("set {properties} to another port");
                    bound.map_err(|error| Failure::new(code, error.to_string(), how))?;
                }
                Ok((Self { links: None, wanted: Vec::new(), code }, words))
            }
            Ends::Dial(wanted) => {
                let opened = Links::open_now(wanted.clone(), Carrier::Udp, driver);
                let how = format!("look at the properties {properties}");
                let (links, warnings) = opened.map_err(|error| Failure::new(code, error.to_string(), how))?;
                let missing = links.missing().map(|via| format!("there is no {via} now; it joins when it appears"));
                words.notes.extend(warnings.into_iter().chain(missing));
                Ok((Self { links: Some(links), wanted, code }, words))
            }
        }
    }

    /// The routes that can be dialled over now.
    pub(crate) fn routes(&self) -> Vec<Route> {
        self.links.as_ref().map_or_else(Vec::new, Links::routes)
    }

    /// What the path over `route` is called.
    pub(crate) fn name(&self, route: Route) -> String {
        self.name_of(route.socket).unwrap_or_else(|| route.remote.to_string())
    }

    /// The name of the path that `socket` dials over.
    pub(crate) fn name_of(&self, socket: SocketId) -> Option<String> {
        self.links.as_ref()?.name(socket).map(str::to_owned)
    }

    /// Returns `true` if the path of `route` goes on by another way.
    pub(crate) fn has_another(&self, route: Route) -> bool {
        self.links.as_ref().is_some_and(|links| links.has_another(route))
    }

    /// When [`tend`](Self::tend) has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.links.as_ref().and_then(Links::next)
    }

    /// Has paths join and leave by what is due.
    pub(crate) fn tend(&mut self, driver: &mut Driver, session: &mut impl Dials) -> Words {
        let changes = self.links.as_mut().map_or_else(Vec::new, |links| links.tend(driver));
        self.apply(driver, session, changes)
    }

    /// The same after interfaces came or went.
    pub(crate) fn refresh(&mut self, driver: &mut Driver, session: &mut impl Dials) -> Result<Words, Failure> {
        let Some(links) = &mut self.links else { return Ok(Words::default()) };
        let how = "look at this machine's network interfaces";
        let changes = links.refresh(driver).map_err(|error| Failure::new(self.code, error.to_string(), how))?;
        Ok(self.apply(driver, session, changes))
    }

    /// Of several ways of a path, those that are not needed are left once one answers.
    pub(crate) fn up(&mut self, driver: &mut Driver, session: &mut impl Dials, route: Route) -> Words {
        let changes = self.links.as_mut().map_or_else(Vec::new, |links| links.up(route));
        self.apply(driver, session, changes)
    }

    /// A path does not answer any more, or none does.
    pub(crate) fn down(&mut self, now: Instant, route: Option<Route>) {
        match (&mut self.links, route) {
            (Some(links), Some(route)) => links.down(now, route),
            (Some(links), None) => links.all_down(now),
            (None, _) => {}
        }
    }

    /// Other paths from now on. New ones join before the others leave, so that there is always one.
    pub(crate) fn change(&mut self, driver: &mut Driver, session: &mut impl Dials, wanted: Vec<Link>) -> Words {
        let mut words = Words::default();
        let gone: Vec<Link> = self.wanted.extract_if(.., |old| !wanted.contains(old)).collect();
        let new = wanted.into_iter().filter(|link| !self.wanted.contains(link)).collect::<Vec<_>>();
        // A path that goes elsewhere under its old name cannot be there beside the old one.
        let (first, last): (Vec<_>, Vec<_>) =
            gone.into_iter().partition(|old| new.iter().any(|link| link.name == old.name));
        self.remove(driver, session, first);
        for link in new {
            let Some(links) = &mut self.links else { break };
            let (name, added) = (link.name.clone(), links.add(link.clone(), driver));
            match added {
                Ok(change) => {
                    self.wanted.push(link);
                    words.add(self.apply(driver, session, change.into_iter().collect()));
                }
                Err(error) => words.troubles.push(format!("{name} cannot be a path: {error}")),
            }
        }
        self.remove(driver, session, last);
        words
    }

    fn remove(&mut self, driver: &mut Driver, session: &mut impl Dials, gone: Vec<Link>) {
        let Some(links) = &mut self.links else { return };
        for route in gone.iter().filter_map(|link| links.remove(&link.name)).flatten() {
            session.leave(driver.now(), route);
            driver.unbind(route.socket);
        }
    }

    fn apply(&mut self, driver: &mut Driver, session: &mut impl Dials, changes: Vec<LinkChange>) -> Words {
        let Some(links) = &mut self.links else { return Words::default() };
        let happened = links.carry_out(changes, driver, session);
        let notes = happened.iter().flat_map(|change| [change.note(), change.warning()]).flatten().collect();
        Words { notes, troubles: Vec::new() }
    }
}

impl Words {
    fn add(&mut self, more: Self) {
        self.notes.extend(more.notes);
        self.troubles.extend(more.troubles);
    }
}
