//! The sockets of paths over interfaces that come and go, to hosts whose addresses change.

mod names;
mod slot;
mod source;
mod target;
mod types;

pub use source::ask as source_address;
pub use target::Target;
pub use types::{Link, LinkChange, LinkTrouble, LinksError, Via};

use crate::bind::{Bind, BindError, Carrier};
use crate::driver::Driver;
use crate::watch::Interfaces;
use braidcast_core::{Dials, Instant, Route, SocketId};
use names::Names;
use slot::{Open, Slot};
use source::Local;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// Names that the resolver answers within this time are known when [`Links::open`] returns.
const FIRST_ANSWER: Duration = Duration::from_secs(1);
/// The system's resolver has stopped trying by then.
const ANY_ANSWER: Duration = Duration::from_secs(60);

/// Sockets for each path that was asked for, as long as its interface or address is there.
///
/// A path may have several ways to its other end: the addresses of a name, in both families, are
/// tried one after another, each a quarter of a second after the one before (RFC 8305), until one
/// answers; and when the routing table moves to another network or address, the new way is opened
/// beside the old one, which stays until the new one answers.
///
/// After [`Wake::Interfaces`](crate::Wake::Interfaces) call [`refresh`](Self::refresh), at
/// [`next`](Self::next) [`tend`](Self::tend), and [have the machine know](Self::carry_out) which
/// routes join and leave. Say which routes answer ([`up`](Self::up)) and which do not any more
/// ([`down`](Self::down)).
#[derive(Debug)]
pub struct Links {
    carrier: Carrier,
    all: Vec<Slot>,
    host_names: Names,
    /// Each path has one way at a time.
    one_by_one: bool,
    /// What the resolver said last of names that it does not know.
    unresolved: Option<(String, String)>,
    /// The names of the sockets, also of those that were closed lately; the newest last.
    names: VecDeque<(SocketId, String)>,
}

impl Links {
    /// Names of closed sockets that are kept.
    const MOST_NAMES: usize = 64;

    /// Opens a socket for each path that can be used now, and watches the interfaces and routes. Also
    /// returns what did not go as asked, in words.
    ///
    /// A path whose interface or address is not there is waited for ([`missing`](Self::missing)), and
    /// so is the address of a name; this call itself waits for it up to a second.
    ///
    /// # Errors
    /// [`LinksError`]; no socket stays open then.
    pub fn open(links: Vec<Link>, carrier: Carrier, driver: &mut Driver) -> Result<(Self, Vec<String>), LinksError> {
        Self::open_within(links, carrier, driver, FIRST_ANSWER)
    }

    /// The same for programs that do not wait for networks: it waits for the resolver, and fails if no
    /// path can be used now.
    ///
    /// # Errors
    /// [`LinksError`]; no socket stays open then.
    pub fn open_now(
        links: Vec<Link>,
        carrier: Carrier,
        driver: &mut Driver,
    ) -> Result<(Self, Vec<String>), LinksError> {
        let (it, warnings) = Self::open_within(links, carrier, driver, ANY_ANSWER)?;
        it.check_any().map(|()| (it, warnings))
    }

    /// The same for event loops: waits for nothing. If no path can be used now, there is a name that
    /// is asked for; [`tend`](Self::tend) takes the answer.
    ///
    /// # Errors
    /// [`LinksError`]; no socket stays open then.
    pub fn begin(links: Vec<Link>, carrier: Carrier, driver: &mut Driver) -> Result<(Self, Vec<String>), LinksError> {
        let (it, warnings) = Self::open_within(links, carrier, driver, Duration::ZERO)?;
        if it.host_names.is_asking() { Ok((it, warnings)) } else { it.check_any().map(|()| (it, warnings)) }
    }

    fn open_within(
        links: Vec<Link>,
        carrier: Carrier,
        driver: &mut Driver,
        wait: Duration,
    ) -> Result<(Self, Vec<String>), LinksError> {
        driver.watch_interfaces().map_err(LinksError::Watch)?;
        let interfaces = Interfaces::list().map_err(LinksError::List)?;
        links.iter().try_for_each(check_family)?;
        let mut all = Vec::with_capacity(links.len());
        for link in links {
            all.push(Slot::new(named_apart(link, &all), false));
        }
        let host_names = Names::new();
        let mut it = Self { carrier, all, host_names, one_by_one: false, unresolved: None, names: VecDeque::new() };
        match it.open_all(driver, &interfaces, wait) {
            Ok(warnings) => Ok((it, warnings)),
            Err(error) => {
                it.routes().iter().for_each(|route| driver.unbind(route.socket));
                Err(error)
            }
        }
    }

    /// Each path has one way at a time from now on: the next address is tried in place of the one
    /// before. For protocols that know one path.
    pub fn try_one_by_one(&mut self) {
        self.one_by_one = true;
        self.all.iter_mut().for_each(Slot::try_one_by_one);
    }

    /// Opens all that can be opened; what did not go as asked.
    fn open_all(
        &mut self,
        driver: &mut Driver,
        interfaces: &Interfaces,
        wait: Duration,
    ) -> Result<Vec<String>, LinksError> {
        let began = driver.now();
        self.ask_names(began);
        while self.host_names.is_asking() && driver.now().since(began) < wait {
            self.host_names.wait(wait.saturating_sub(driver.now().since(began)));
            self.take_answers(driver.now());
        }
        // Who does not wait gets every answer in its turn, the quickest too.
        if !wait.is_zero() {
            self.take_answers(driver.now());
        }
        let mut warnings = Vec::new();
        for place in 0..self.all.len() {
            for change in self.try_next(place, driver, interfaces)? {
                match change {
                    LinkChange::Joined { warning, .. } => warnings.extend(warning),
                    LinkChange::Left { route, .. } => driver.unbind(route.socket),
                    _ => {}
                }
            }
        }
        Ok(warnings)
    }

    /// # Errors
    /// [`LinksError::NoneThere`], [`LinksError::Unresolved`]: no path can be used now.
    fn check_any(&self) -> Result<(), LinksError> {
        if self.all.iter().any(|slot| !slot.open.is_empty()) {
            return Ok(());
        }
        if let Some((host, why)) = self.unresolved.clone() {
            return Err(LinksError::Unresolved { host, why });
        }
        let available = Interfaces::list().map_err(LinksError::List)?;
        Err(LinksError::NoneThere { missing: self.missing().map(ToString::to_string).collect(), available })
    }

    /// Asks for the names of paths that no address of theirs answers for.
    fn ask_names(&mut self, now: Instant) {
        for slot in self.all.iter().filter(|slot| !slot.is_up()) {
            if let Some(host) = slot.host() {
                self.host_names.ask(now, host);
            }
        }
    }

    /// What the resolver has said meanwhile.
    fn take_answers(&mut self, now: Instant) -> Vec<LinkChange> {
        self.host_names.tend(now);
        let mut changes = Vec::new();
        while let Some((host, answer)) = self.host_names.take(now) {
            let slots = self.all.iter_mut().filter(|slot| slot.host() == Some(&host));
            match answer {
                Ok(found) if !found.is_empty() => {
                    let addrs = names::in_turn(found);
                    let mut moved = false;
                    for slot in slots {
                        // While an address answers, nothing moves.
                        let is_missed = slot.is_known() && !slot.is_up();
                        moved |= slot.resolved(now, &addrs) && is_missed;
                        slot.said = false;
                    }
                    self.unresolved.take_if(|(name, _)| *name == host);
                    if moved {
                        changes.push(LinkChange::Moved { host, addrs });
                    }
                }
                none => {
                    let why = none.map_or_else(|error| error.to_string(), |_| "it has none".to_owned());
                    let mut new = false;
                    slots.filter(|slot| !slot.is_known()).for_each(|slot| {
                        new |= !std::mem::replace(&mut slot.said, true);
                    });
                    self.unresolved = Some((host.clone(), why.clone()));
                    if new {
                        changes.push(LinkChange::Unresolved { host, why });
                    }
                }
            }
        }
        changes
    }

    /// Tries the next way of the path at `place`, if it is due.
    fn try_next(
        &mut self,
        place: usize,
        driver: &mut Driver,
        interfaces: &Interfaces,
    ) -> Result<Vec<LinkChange>, LinksError> {
        let slot = &mut self.all[place];
        let Some((remote, local, gone)) = slot.step(driver.now(), interfaces) else { return Ok(Vec::new()) };
        let beside = gone.is_some() || !slot.open.is_empty();
        let name = slot.link.name.clone();
        let left = gone.map(|open| LinkChange::Left { name, route: open.route, beside: true });
        let joined = self.open_one(place, driver, remote, local, beside)?;
        Ok(left.into_iter().chain(joined).collect())
    }

    /// Opens a way of the path at `place`; `None` if its interface or address is gone by now.
    fn open_one(
        &mut self,
        place: usize,
        driver: &mut Driver,
        mut remote: SocketAddr,
        local: Local,
        beside: bool,
    ) -> Result<Option<LinkChange>, LinksError> {
        let link = &self.all[place].link;
        let mut bind = match (&link.via, local) {
            (Via::Any, _) => Bind::default(),
            (Via::Addr(addr), _) => Bind::to_addr(SocketAddr::new(*addr, 0)),
            // With its address, which rules choose a table by; the kernel may know no route by the
            // interface alone.
            (Via::Device(name), Local::From(addr)) => Bind { addr: Some(addr), ..Bind::to_device(name, 0) },
            (Via::Device(name), _) => Bind::to_device(name, 0),
        };
        if let Carrier::Ip(_) = self.carrier {
            // The protocol's checksum covers the address, so it must be a certain one; there are no
            // ports.
            bind.carrier = self.carrier;
            bind.addr = Some(match local.addr() {
                Some(addr) => addr,
                None => {
                    source::ask(None, remote).map_err(|source| LinksError::NoRoute { remote: remote.ip(), source })?
                }
            });
            remote.set_port(0);
        }
        match driver.bind(&bind) {
            Ok(socket) => {
                if let Some(it) = driver.socket_mut(socket) {
                    it.dial();
                }
                let warning = driver.socket(socket).and_then(|socket| socket.warning()).map(str::to_owned);
                let (name, route) = (link.name.clone(), Route::new(socket, remote));
                self.all[place].open.push(Open { route, local: local.addr(), up: false });
                self.names.retain(|(id, _)| *id != socket);
                self.names.push_back((socket, name.clone()));
                if self.names.len() > self.all.len() + Self::MOST_NAMES {
                    self.forget_a_name();
                }
                Ok(Some(LinkChange::Joined { name, route, warning, beside }))
            }
            Err(BindError::NoSuchInterface { .. } | BindError::NoSuchAddress { .. }) => Ok(None),
            Err(source) => Err(LinksError::Bind { name: link.name.clone(), source }),
        }
    }

    /// Forgets the name of the socket that was closed longest ago.
    fn forget_a_name(&mut self) {
        let is_open = |id| self.all.iter().any(|slot| slot.open.iter().any(|it| it.route.socket == id));
        if let Some(place) = self.names.iter().position(|(id, _)| !is_open(*id)) {
            self.names.remove(place);
        }
    }

    /// Adds a path: joined now, or `None` if its interface or address is not there, or its name not
    /// resolved, and is waited for.
    ///
    /// # Errors
    /// [`LinksError`]; it was not added then.
    pub fn add(&mut self, link: Link, driver: &mut Driver) -> Result<Option<LinkChange>, LinksError> {
        check_family(&link)?;
        let interfaces = Interfaces::list().map_err(LinksError::List)?;
        let place = self.all.len();
        self.all.push(Slot::new(named_apart(link, &self.all), self.one_by_one));
        self.ask_names(driver.now());
        match self.try_next(place, driver, &interfaces) {
            Ok(changes) => Ok(changes.into_iter().next()),
            Err(error) => {
                self.all.truncate(place);
                Err(error)
            }
        }
    }

    /// Takes the path of this name out; the routes that it had, which the machine is to leave. `None`
    /// if there is no such path.
    pub fn remove(&mut self, name: &str) -> Option<Vec<Route>> {
        let place = self.all.iter().position(|slot| slot.link.name == name)?;
        let slot = self.all.remove(place);
        self.host_names.retain(|host| self.all.iter().any(|slot| slot.host() == Some(host)));
        Some(slot.open.into_iter().map(|open| open.route).collect())
    }

    /// Takes the way over `route` out, which the machine did not take, and its path if that has no
    /// other; [`Driver::unbind`] its socket.
    pub fn forget(&mut self, route: Route) {
        self.all.retain_mut(|slot| {
            let had_any = !slot.open.is_empty();
            slot.open.retain(|open| open.route != route);
            !had_any || !slot.open.is_empty()
        });
        self.host_names.retain(|host| self.all.iter().any(|slot| slot.host() == Some(host)));
    }

    /// Has `machine` join and leave as `changes` say, and closes the sockets of what left, and of
    /// what it did not take and does not keep. Returns what happened: of a path that was not taken
    /// [`LinkChange::Refused`].
    pub fn carry_out(
        &mut self,
        changes: Vec<LinkChange>,
        driver: &mut Driver,
        machine: &mut impl Dials,
    ) -> Vec<LinkChange> {
        let now = driver.now();
        let happened = changes.into_iter().map(|change| match change {
            LinkChange::Joined { ref name, route, .. } => match machine.join(now, route) {
                Ok(()) => change,
                Err(refused) => {
                    if !refused.is_kept {
                        self.forget(route);
                        driver.unbind(route.socket);
                    }
                    LinkChange::Refused { name: name.clone(), route, why: refused.why }
                }
            },
            LinkChange::Left { route, .. } => {
                machine.leave(now, route);
                driver.unbind(route.socket);
                change
            }
            other => other,
        });
        happened.collect()
    }

    /// The routes that can be used now.
    pub fn routes(&self) -> Vec<Route> {
        self.all.iter().flat_map(|slot| &slot.open).map(|open| open.route).collect()
    }

    /// Returns `true` if the other end answers over every path that can be used now.
    pub fn are_up(&self) -> bool {
        self.all.iter().all(|slot| slot.open.is_empty() || slot.is_up())
    }

    /// Returns `true` if another way of the path that `route` belongs, or belonged, to is open.
    pub fn has_another(&self, route: Route) -> bool {
        let name = self.name(route.socket);
        let mut slots = self.all.iter().filter(|slot| Some(slot.link.name.as_str()) == name);
        slots.any(|slot| slot.open.iter().any(|open| open.route != route))
    }

    /// What the paths wait for that cannot be used now, though their addresses are known.
    pub fn missing(&self) -> impl Iterator<Item = &Via> {
        self.waiting().map(|slot| &slot.link.via)
    }

    fn waiting(&self) -> impl Iterator<Item = &Slot> {
        self.all.iter().filter(|slot| slot.open.is_empty() && slot.is_known())
    }

    /// The interfaces and addresses among them that are there and lack an address of the family that
    /// is needed, and that family: IPv4 if `true`.
    pub fn of_other_family(&self, interfaces: &Interfaces) -> Vec<(&Via, bool)> {
        let lacks = |slot: &&Slot| slot.link.via.addrs(interfaces).is_some();
        self.waiting().filter(lacks).map(|slot| (&slot.link.via, slot.needs_ipv4())).collect()
    }

    /// What the kernel says of paths over which nobody answers.
    pub fn troubles(&self, driver: &Driver) -> Vec<LinkTrouble<'_>> {
        let mut all = Vec::new();
        for slot in self.all.iter().filter(|slot| !slot.is_up()) {
            for open in &slot.open {
                let Some(trouble) = driver.socket(open.route.socket).and_then(|it| it.trouble()) else { continue };
                let local = open.local.filter(|_| matches!(slot.link.via, Via::Device(_)));
                all.push(LinkTrouble { name: &slot.link.name, local, remote: open.route.remote, trouble });
            }
        }
        all
    }

    /// Returns `true` if the resolver has been asked for a name and has not answered yet.
    pub fn is_asking(&self) -> bool {
        self.host_names.is_asking()
    }

    /// The hosts whose addresses are not known yet.
    pub fn unresolved(&self) -> impl Iterator<Item = &str> {
        self.all.iter().filter(|slot| !slot.is_known()).filter_map(Slot::host)
    }

    /// The name of the path that uses, or used lately, `socket`.
    pub fn name(&self, socket: SocketId) -> Option<&str> {
        self.names.iter().find(|(id, _)| *id == socket).map(|(_, name)| name.as_str())
    }

    /// The other end answers over `route`: returns the other ways of the path, which left.
    pub fn up(&mut self, route: Route) -> Vec<LinkChange> {
        let mut left = Vec::new();
        for slot in &mut self.all {
            let others = slot.up(route);
            let name = &slot.link.name;
            left.extend(others.iter().map(|it| LinkChange::Left { name: name.clone(), route: it.route, beside: true }));
        }
        for slot in self.all.iter().filter(|slot| slot.is_up()) {
            let is_wanted = self.all.iter().any(|it| it.host() == slot.host() && !it.is_up());
            if let Some(host) = slot.host().filter(|_| !is_wanted) {
                self.host_names.settle(host);
            }
        }
        left
    }

    /// The other end does not answer over `route` any more: asks for its name again, and tries its
    /// other addresses.
    pub fn down(&mut self, now: Instant, route: Route) {
        let mut any = false;
        self.all.iter_mut().for_each(|slot| any |= slot.down(now, route));
        if any {
            self.ask_names(now);
        }
    }

    /// The other end does not answer over any route.
    pub fn all_down(&mut self, now: Instant) {
        self.routes().into_iter().for_each(|route| self.down(now, route));
    }

    /// Returns `true` if no path has several ways open, or is to try another one.
    pub fn is_settled(&self) -> bool {
        self.all.iter().all(|slot| slot.open.len() <= 1 && slot.due.is_none())
    }

    /// When [`tend`](Self::tend) has something to do.
    pub fn next(&self) -> Option<Instant> {
        self.all.iter().filter_map(|slot| slot.due).chain(self.host_names.next()).min()
    }

    /// Does what is due: takes the resolver's answers, and tries the next addresses. If the interfaces
    /// cannot be listed, that is done a second later.
    pub fn tend(&mut self, driver: &mut Driver) -> Vec<LinkChange> {
        let now = driver.now();
        if self.next().is_none_or(|next| next > now) {
            return Vec::new();
        }
        let mut changes = self.take_answers(now);
        if self.all.iter().any(|slot| slot.is_due(now)) {
            match Interfaces::list().map_err(LinksError::List) {
                Ok(interfaces) => {
                    let places = 0..self.all.len();
                    changes.extend(places.flat_map(|place| self.try_or_tell(place, driver, &interfaces)));
                }
                Err(error) => {
                    for slot in self.all.iter_mut().filter(|slot| slot.is_due(now)) {
                        slot.due = Some(now + FIRST_ANSWER);
                        changes.push(LinkChange::Failed { name: slot.link.name.clone(), why: error.to_string() });
                    }
                }
            }
        }
        changes
    }

    /// Tries the next way of the path at `place`, if it is due; what cannot be opened is told.
    fn try_or_tell(&mut self, place: usize, driver: &mut Driver, interfaces: &Interfaces) -> Vec<LinkChange> {
        self.try_next(place, driver, interfaces).unwrap_or_else(|error| {
            let name = self.all[place].link.name.clone();
            vec![LinkChange::Failed { name, why: error.to_string() }]
        })
    }

    /// The interfaces or routes changed: opens sockets if it can, and returns which ways left and
    /// joined. Those that left come first.
    ///
    /// # Errors
    /// [`LinksError::List`]; nothing changed then.
    pub fn refresh(&mut self, driver: &mut Driver) -> Result<Vec<LinkChange>, LinksError> {
        let interfaces = Interfaces::list().map_err(LinksError::List)?;
        let now = driver.now();
        let (mut left, mut joined) = (Vec::new(), Vec::new());
        for place in 0..self.all.len() {
            let slot = &mut self.all[place];
            let name = slot.link.name.clone();
            let mut gone = Vec::new();
            let mut moved = None;
            for mut open in std::mem::take(&mut slot.open) {
                let local = slot.local(open.route.remote, &interfaces);
                let is_gone = match (&slot.link.via, open.local) {
                    (Via::Any, _) => false,
                    (via, Some(addr)) => !via.addrs(&interfaces).is_some_and(|all| all.contains(&addr)),
                    (_, None) => local.is_none(),
                };
                if is_gone {
                    gone.push(open.route);
                    continue;
                }
                // Without a route nothing moves: the old one may come back.
                match local {
                    Some(Local::From(addr)) if open.local.is_none() => open.local = Some(addr),
                    Some(new @ Local::From(addr)) if open.local != Some(addr) => {
                        moved = Some((open.route.remote, addr, new));
                    }
                    _ => {}
                }
                slot.open.push(open);
            }
            if let Some((remote, addr, new)) = moved
                && !slot.open.iter().any(|it| it.local == Some(addr) && it.route.remote == remote)
            {
                if self.one_by_one || slot.open.len() > 2 {
                    gone.push(slot.open.remove(0).route);
                }
                match self.open_one(place, driver, remote, new, true) {
                    Ok(opened) => joined.extend(opened),
                    Err(error) => joined.push(LinkChange::Failed { name: name.clone(), why: error.to_string() }),
                }
            } else if !slot.is_up() {
                // Other addresses may be reached now.
                slot.due = slot.is_known().then_some(now);
                joined.extend(self.try_or_tell(place, driver, &interfaces));
            }
            let beside = !self.all[place].open.is_empty();
            left.extend(gone.into_iter().map(|route| LinkChange::Left { name: name.clone(), route, beside }));
        }
        self.ask_names(now);
        left.append(&mut joined);
        Ok(left)
    }
}

/// Returns `link` with a name of its own beside those that are there: a second path over `lo` is `lo 2`.
fn named_apart(mut link: Link, beside: &[Slot]) -> Link {
    let is_taken = |name: &str| beside.iter().any(|slot| slot.link.name == name);
    if is_taken(&link.name) {
        let mut numbered = (2_usize..).map(|n| format!("{} {n}", link.name));
        link.name = numbered.find(|name| !is_taken(name)).expect("there are more numbers than paths");
    }
    link
}

/// # Errors
/// [`LinksError::OtherFamily`].
fn check_family(link: &Link) -> Result<(), LinksError> {
    match (&link.via, &link.to) {
        (Via::Addr(local), Target::Addr(remote)) if local.is_ipv4() != remote.is_ipv4() => {
            Err(LinksError::OtherFamily { local: *local, remote: *remote })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
