//! The local ends of a stream's paths: sockets that dial over networks, or ports where the other end calls.

use super::links::Links;
use super::paths::Plan;
use super::through::Through;
use crate::args::values::Listen;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::{Dials, Instant, Machine, NotJoined, Route, SocketId};
use braidcast_driver::{Carrier, Driver, LinkChange, Wake};
use braidcast_relay::{ClientEvent, leg_of};
use braidcast_session::{PathReport, StartError};
use std::io;

/// Who dials and who sends are two separate choices: either end has either kind.
pub(crate) struct Ends {
    /// Sockets that dial, the other end or a relay.
    links: Option<Links>,
    /// The other end dials, here or to a relay.
    called: bool,
    through: Option<Through>,
}

impl Ends {
    /// These sockets, over which this end dials.
    pub(crate) const fn over(links: Links) -> Self {
        Self { links: Some(links), called: false, through: None }
    }

    /// Opens a socket for each path that this end dials over.
    pub(crate) fn dial(plans: Vec<Plan>, driver: &mut Driver, live: &Live) -> Outcome<Self> {
        Ok(Self::over(Links::open(plans, Carrier::Udp, driver, live)?))
    }

    /// The same for measurements, which do not wait for networks: at least one path can be used.
    pub(crate) fn dial_now(plans: Vec<Plan>, carrier: Carrier, driver: &mut Driver, live: &Live) -> Outcome<Self> {
        Ok(Self::over(Links::open_now(plans, carrier, driver, live)?))
    }

    /// Sockets of which some, or all, lead to relays. If it `is_called`, the other end joins it there.
    pub(crate) fn meet(links: Links, mut through: Through, is_called: bool, now: Instant) -> Self {
        for route in links.routes() {
            through.join(now, route, links.name(route.socket));
        }
        Self { links: Some(links), called: is_called, through: Some(through) }
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
        Ok((Self { links: None, called: true, through: None }, locals))
    }

    /// Returns `true` if the other end dials.
    pub(crate) const fn is_called(&self) -> bool {
        self.called
    }

    /// The routes that can be used now; none where the other end dials.
    pub(crate) fn routes(&self) -> Vec<Route> {
        let links = self.links.iter().filter(|_| !self.called);
        links.flat_map(Links::routes).map(|route| self.inside(route)).collect()
    }

    /// A route of a socket as the session knows it.
    fn inside(&self, route: Route) -> Route {
        self.through.as_ref().map_or(route, |through| through.inside(route))
    }

    /// A route of the session as its socket has it.
    fn outside(&self, route: Route) -> Route {
        self.through.as_ref().map_or(route, |through| through.outside(route))
    }

    /// The sockets that are open now.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = SocketId> + '_ {
        self.links.iter().flat_map(Links::routes).map(|route| route.socket)
    }

    /// Each path has one way to the other end at a time.
    pub(crate) fn try_one_by_one(&mut self) {
        self.links.iter_mut().for_each(Links::try_one_by_one);
    }

    /// The rate limit of the path of `route`, bits per second.
    pub(crate) fn limit(&self, route: Route) -> Option<u64> {
        self.links.as_ref()?.limit(route)
    }

    /// The name of a path, for sentences.
    pub(crate) fn name(&self, route: Route) -> String {
        match (&self.links, leg_of(route.remote)) {
            (Some(links), leg) if !self.called => self.straight_or_not(links, route.socket, leg.is_some()),
            (Some(links), Some(leg)) => format!("path {} by {}", leg.0, links.name(route.socket)),
            _ => format!("path from {}", route.remote),
        }
    }

    /// The name of a path, for tables.
    pub(crate) fn path_name(&self, path: &PathReport) -> String {
        let leg = path.remote.parse().ok().and_then(leg_of);
        match (&self.links, leg) {
            (Some(links), leg) if !self.called => self.straight_or_not(links, SocketId(path.socket), leg.is_some()),
            (Some(links), Some(leg)) => format!("{} by {}", leg.0, links.name(SocketId(path.socket))),
            _ => path.remote.clone(),
        }
    }

    /// The name of a path, as short as it goes.
    pub(crate) fn path_label(&self, route: Route) -> String {
        match (&self.links, leg_of(route.remote)) {
            (Some(_), _) if !self.called => self.name(route),
            (Some(links), Some(leg)) => format!("{} by {}", leg.0, links.name(route.socket)),
            _ => route.remote.to_string(),
        }
    }

    /// The name of a path that this end dials, and that it goes past a relay, if it does.
    fn straight_or_not(&self, links: &Links, socket: SocketId, by_relay: bool) -> String {
        let name = links.name(socket);
        let has_relay = self.through.as_ref().is_some_and(|through| through.has(name));
        format!("{name}{}", if has_relay && !by_relay { " straight" } else { "" })
    }

    /// Returns `true` if the other end answers over every path that can be used now, as far as is
    /// known here.
    pub(crate) fn are_up(&self) -> bool {
        !self.called && self.links.as_ref().is_some_and(Links::are_up)
    }

    /// Returns `true` if the path of `route` goes on by another way.
    pub(crate) fn has_another(&self, route: Route) -> bool {
        // One past the relay takes the place of the one by it, and the other way round.
        let by_relay = self.through.as_ref().is_some_and(|through| through.legs.relay(route.socket).is_some());
        !self.called && (by_relay || self.links.as_ref().is_some_and(|links| links.has_another(route)))
    }

    /// Says once what the kernel knows of paths over which nobody answers.
    pub(crate) fn tell_troubles(&mut self, driver: &Driver, live: &Live) {
        if let Some(links) = &mut self.links {
            links.tell_troubles(driver, live);
        }
    }

    /// Why nobody can be there, if the kernel knows that of every path.
    pub(crate) fn refusal(&self, driver: &Driver) -> Option<String> {
        self.links.as_ref()?.refusal(driver)
    }

    /// When [`tend`](Self::tend) has something to do.
    pub(crate) fn next(&self) -> Option<Instant> {
        let again = self.through.as_ref().and_then(Through::next);
        self.links.as_ref()?.next().into_iter().chain(again).min()
    }

    /// The other end does not answer over `route` any more.
    pub(crate) fn down(&mut self, now: Instant, route: Route) {
        self.through.iter_mut().for_each(|through| through.down(route));
        let route = self.outside(route);
        if let Some(links) = self.links.as_mut().filter(|_| !self.called) {
            links.down(now, route);
        }
    }

    /// It does not answer at all any more.
    pub(crate) fn all_down(&mut self, now: Instant) {
        self.through.iter_mut().for_each(Through::all_down);
        if let Some(links) = self.links.as_mut().filter(|_| !self.called) {
            links.all_down(now);
        }
    }

    /// The interfaces or routes changed: has `session` know which paths join and leave.
    pub(crate) fn refresh(&mut self, driver: &mut Driver, live: &Live, session: &mut impl Dials) -> Outcome {
        let Some(links) = &mut self.links else { return Ok(()) };
        let changes = links.refresh(driver)?;
        self.carry_out(changes, driver, live, session);
        Ok(())
    }

    /// The same for what is due, and for what relays say.
    pub(crate) fn tend(&mut self, driver: &mut Driver, live: &Live, session: &mut impl Dials) -> Outcome {
        let Some(links) = &mut self.links else { return Ok(()) };
        let changes = links.tend(driver);
        self.carry_out(changes, driver, live, session);
        while let Some((links, event)) =
            self.links.as_mut().zip(self.through.as_mut().and_then(|through| through.legs.poll_event()))
        {
            let name = links.name(event.route.socket).to_owned();
            if let Some(through) = &mut self.through {
                through.say(&name, &event, live);
            }
            if let ClientEvent::Straight(addr) = event.what {
                self.try_straight(driver.now(), Route::new(event.route.socket, addr), session);
                continue;
            }
            // To who is called the relay's answer is what shows that a way is good.
            let changes = match event.what {
                ClientEvent::Registered(_) if self.called => links.up(event.route),
                ClientEvent::Lost if self.called => {
                    links.down(driver.now(), event.route);
                    Vec::new()
                }
                _ => Vec::new(),
            };
            // Another address of the same relay was tried too, and may have taken the place.
            if let Some(through) = self.through.as_mut().filter(|_| !changes.is_empty()) {
                through.legs.renew(driver.now(), event.route.socket);
            }
            self.carry_out(changes, driver, live, session);
        }
        if let Some(through) = self.through.as_mut().filter(|_| !self.called) {
            let now = driver.now();
            for (by_relay, past) in through.take_back(now) {
                // Neither can be refused: the session had both.
                let _ = join(session, now, by_relay, self.links.as_ref());
                session.leave(now, past);
            }
            through.try_again(now);
        }
        Ok(())
    }

    /// The other end was heard straight from there: the session of who dials tries that.
    fn try_straight(&mut self, now: Instant, route: Route, session: &mut impl Dials) {
        let Some(through) = self.through.as_mut().filter(|_| !self.called) else { return };
        if let Some(route) = through.heard(route.socket, route.remote)
            && join(session, now, route, self.links.as_ref()).is_err()
        {
            // No more paths fit: it stays with the relay.
            through.leave_straight(route.socket);
        }
    }

    /// The same for what is not needed any more, as the other end answers over `route`.
    pub(crate) fn up(&mut self, route: Route, driver: &mut Driver, live: &Live, session: &mut impl Dials) {
        if let Some(through) = self.through.as_mut().filter(|_| !self.called) {
            if let Some(by_relay) = through.up(route) {
                session.leave(driver.now(), by_relay);
            }
            if let Some(past) = through.by_relay_up(route)
                && join(session, driver.now(), past, self.links.as_ref()).is_err()
            {
                through.leave_straight(past.socket);
            }
        }
        let route = self.outside(route);
        let Some(links) = self.links.as_mut().filter(|_| !self.called) else { return };
        let changes = links.up(route);
        self.carry_out(changes, driver, live, session);
    }

    /// [`Driver::drive`], by way of relays.
    pub(crate) fn drive<M: Machine>(
        &mut self,
        driver: &mut Driver,
        machine: &mut M,
        until: Option<Instant>,
    ) -> io::Result<Wake> {
        match &mut self.through {
            Some(through) => driver.drive(&mut through.legs.over(machine), until),
            None => driver.drive(machine, until),
        }
    }

    /// Sends the last packets. If that fails, the other end and the relay find out by themselves.
    pub(crate) fn say_goodbye<M: Machine>(&mut self, driver: &mut Driver, machine: &mut M) {
        let now = driver.now();
        let _ = self.drive(driver, machine, Some(now));
        if let Some(through) = &mut self.through {
            through.legs.remove_all();
            let _ = driver.drive(&mut through.legs.over(machine), Some(now));
        }
    }

    fn carry_out(&mut self, changes: Vec<LinkChange>, driver: &mut Driver, live: &Live, session: &mut impl Dials) {
        let Self { links: Some(links), called, through } = self else { return };
        for change in &changes {
            if let (LinkChange::Joined { name, route, .. }, Some(through)) = (change, &mut *through) {
                through.join(driver.now(), *route, name);
            }
        }
        let mut ways = Ways { through: through.as_mut(), called: *called, session };
        links.carry_out(changes, driver, live, &mut ways);
    }
}

/// A session as the sockets of its paths see it: by way of relays, and without paths if it is called.
struct Ways<'a, S> {
    through: Option<&'a mut Through>,
    called: bool,
    session: &'a mut S,
}

impl<S: Dials> Ways<'_, S> {
    fn inside(&self, route: Route) -> Route {
        self.through.as_ref().map_or(route, |through| through.inside(route))
    }
}

impl<S: Dials> Dials for Ways<'_, S> {
    fn join(&mut self, now: Instant, route: Route) -> Result<(), NotJoined> {
        let route = self.inside(route);
        if self.called { Ok(()) } else { self.session.join(now, route) }
    }

    fn leave(&mut self, now: Instant, route: Route) {
        if !self.called {
            let route = self.inside(route);
            self.session.leave(now, route);
        }
        let past = self.through.as_mut().and_then(|through| through.leave(route.socket));
        if let Some(past) = past.filter(|_| !self.called) {
            self.session.leave(now, past);
        }
    }

    fn set_limit(&mut self, route: Route, limit: Option<u64>) {
        if !self.called {
            let route = self.inside(route);
            self.session.set_limit(route, limit);
        }
    }
}

/// Has `session` join with the rate limit of the path.
fn join(session: &mut impl Dials, now: Instant, route: Route, links: Option<&Links>) -> Result<(), NotJoined> {
    session.set_limit(route, links.and_then(|links| links.limit(route)));
    session.join(now, route)
}

/// Why a session did not begin over the paths that were given.
pub(crate) fn cannot_begin(error: StartError) -> Failure {
    match error {
        StartError::Options(misuse) => misuse.into(),
        other => Failure::new(format!("cannot connect: {other}"), "give fewer paths"),
    }
}
