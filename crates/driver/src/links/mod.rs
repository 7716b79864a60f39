//! The sockets of paths over interfaces that come and go.
#![allow(clippy::disallowed_types, reason = "this is where sockets live")]

use crate::bind::{Bind, BindError, Carrier};
use crate::driver::Driver;
use crate::watch::Interfaces;
use braidcast_core::{Route, SocketId};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;

/// What a path leaves through.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Via {
    /// Whatever the routing table says.
    #[default]
    Any,
    /// A local address.
    Addr(IpAddr),
    /// A network interface, by name.
    Device(String),
}

impl Via {
    /// The addresses that it has now; `None` if it is not there.
    pub fn addrs(&self, interfaces: &Interfaces) -> Option<Vec<IpAddr>> {
        match self {
            Self::Any => Some(Vec::new()),
            Self::Addr(addr) => interfaces.iter().any(|(_, addrs)| addrs.contains(addr)).then(|| vec![*addr]),
            Self::Device(name) => interfaces.addrs(name).map(<[IpAddr]>::to_vec),
        }
    }
}

/// An address, or else the name of an interface.
impl FromStr for Via {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.parse().map_or_else(|_| Self::Device(text.to_owned()), Self::Addr))
    }
}

impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any interface"),
            Self::Addr(addr) => write!(f, "{addr}"),
            Self::Device(name) => f.write_str(name),
        }
    }
}

/// A path as it is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Link {
    /// Where it leaves.
    pub via: Via,
    /// Where it leads.
    pub remote: SocketAddr,
    /// What reports call it.
    pub name: String,
}

/// What became of a path when the interfaces changed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LinkChange {
    /// It can be used now: have the machine join with this route.
    Joined {
        /// [`Link::name`].
        name: String,
        /// Its new socket, and where it leads.
        route: Route,
        /// What did not go as asked, for example if it is bound to an address in place of an
        /// interface.
        warning: Option<String>,
    },
    /// It cannot be used any more: have the machine leave this route, then [`Driver::unbind`] its
    /// socket.
    Left {
        /// [`Link::name`].
        name: String,
        /// What it was.
        route: Route,
    },
    /// Its interface or address is there, and its socket cannot be opened. It is tried again with
    /// the next change of the interfaces.
    Failed {
        /// [`Link::name`].
        name: String,
        /// Why, in words.
        why: String,
    },
}

/// Why paths could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinksError {
    /// None of them can be used now.
    #[error("there is no {}; this machine has {available}", missing.join(" and no "))]
    NoneThere {
        /// The interfaces and addresses asked for.
        missing: Vec<String>,
        /// What there is instead.
        available: Interfaces,
    },
    /// A local address cannot send to one of another family.
    #[error("{local} cannot reach {remote}: one is IPv4, the other IPv6")]
    OtherFamily {
        /// The local address asked for.
        local: IpAddr,
        /// Where it was to lead.
        remote: SocketAddr,
    },
    /// The routing table has nothing for this address.
    #[error("no route leads to {remote}: {source}")]
    NoRoute {
        /// Where it was to lead.
        remote: IpAddr,
        /// What the operating system says.
        source: io::Error,
    },
    /// A socket could not be opened.
    #[error("cannot open the path {name}: {source}")]
    Bind {
        /// [`Link::name`].
        name: String,
        /// Why.
        source: BindError,
    },
    /// The interfaces could not be listed.
    #[error("cannot list the network interfaces: {0}")]
    List(io::Error),
    /// Changes of the interfaces could not be watched.
    #[error("cannot watch the interfaces: {0}")]
    Watch(io::Error),
}

/// A path, and its socket if there is one now.
#[derive(Debug)]
struct Slot {
    link: Link,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    route: Route,
    /// What the interface had when the socket was opened.
    addrs: Vec<IpAddr>,
}

/// A socket for each path that was asked for, as long as its interface or address is there.
///
/// After [`Wake::Interfaces`](crate::Wake::Interfaces) call [`refresh`](Self::refresh), and tell
/// the machine which paths join and leave.
#[derive(Debug)]
pub struct Links {
    carrier: Carrier,
    all: Vec<Slot>,
    /// The names of the sockets, also of those that were closed lately; the newest last.
    names: VecDeque<(SocketId, String)>,
}

impl Links {
    /// Names of closed sockets that are kept.
    const MOST_NAMES: usize = 64;

    /// Opens a socket for each path, and watches the interfaces if any path names one. Also returns
    /// what did not go as asked, in words.
    ///
    /// A path whose interface or address is not there is waited for ([`missing`](Self::missing)),
    /// as long as there is another.
    ///
    /// # Errors
    /// [`LinksError`]; no socket stays open then.
    pub fn open(links: Vec<Link>, carrier: Carrier, driver: &mut Driver) -> Result<(Self, Vec<String>), LinksError> {
        if links.iter().any(|link| link.via != Via::Any) {
            driver.watch_interfaces().map_err(LinksError::Watch)?;
        }
        let interfaces = Interfaces::list().map_err(LinksError::List)?;
        if let Some((local, remote)) = links.iter().find_map(|link| match link.via {
            Via::Addr(addr) if addr.is_ipv4() != link.remote.is_ipv4() => Some((addr, link.remote)),
            _ => None,
        }) {
            return Err(LinksError::OtherFamily { local, remote });
        }
        let all = links.into_iter().map(|link| Slot { link, open: None }).collect();
        let mut it = Self { carrier, all, names: VecDeque::new() };
        match it.open_all(driver, interfaces) {
            Ok(warnings) => Ok((it, warnings)),
            Err(error) => {
                it.routes().iter().for_each(|route| driver.unbind(route.socket));
                Err(error)
            }
        }
    }

    /// Opens all that can be opened; what did not go as asked.
    fn open_all(&mut self, driver: &mut Driver, interfaces: Interfaces) -> Result<Vec<String>, LinksError> {
        let mut warnings = Vec::new();
        for place in 0..self.all.len() {
            if let Some(warning) = self.open_one(place, driver, &interfaces)? {
                warnings.extend(warning);
            }
        }
        let missing: Vec<String> = self.missing().map(ToString::to_string).collect();
        if missing.len() == self.all.len() {
            return Err(LinksError::NoneThere { missing, available: interfaces });
        }
        Ok(warnings)
    }

    /// Opens the socket of the path at `place`: `None` if its interface or address is not there,
    /// else what did not go as asked.
    fn open_one(
        &mut self,
        place: usize,
        driver: &mut Driver,
        interfaces: &Interfaces,
    ) -> Result<Option<Option<String>>, LinksError> {
        let Slot { link, open } = &mut self.all[place];
        let Some(addrs) = link.via.addrs(interfaces) else { return Ok(None) };
        let mut remote = link.remote;
        let mut bind = match &link.via {
            Via::Any => Bind::default(),
            Via::Addr(addr) => Bind::to_addr(SocketAddr::new(*addr, 0)),
            Via::Device(name) => Bind::to_device(name, 0),
        };
        if let Carrier::Ip(_) = self.carrier {
            // The protocol's checksum covers the address, so it must be a certain one; there are no
            // ports.
            bind.carrier = self.carrier;
            let fitting = addrs.iter().find(|addr| addr.is_ipv4() == remote.is_ipv4());
            bind.addr = Some(match fitting {
                Some(addr) => *addr,
                None => local_address(remote)?,
            });
            remote.set_port(0);
        }
        match driver.bind(&bind) {
            Ok(socket) => {
                let warning = driver.socket(socket).and_then(|socket| socket.warning()).map(str::to_owned);
                *open = Some(Open { route: Route::new(socket, remote), addrs });
                self.names.retain(|(id, _)| *id != socket);
                self.names.push_back((socket, link.name.clone()));
                if self.names.len() > self.all.len() + Self::MOST_NAMES {
                    self.forget_a_name();
                }
                Ok(Some(warning))
            }
            Err(BindError::NoSuchInterface { .. } | BindError::NoSuchAddress { .. }) => Ok(None),
            Err(source) => Err(LinksError::Bind { name: link.name.clone(), source }),
        }
    }

    /// Forgets the name of the socket that was closed longest ago.
    fn forget_a_name(&mut self) {
        let is_open = |id| self.all.iter().any(|slot| slot.open.as_ref().is_some_and(|it| it.route.socket == id));
        if let Some(place) = self.names.iter().position(|(id, _)| !is_open(*id)) {
            self.names.remove(place);
        }
    }

    /// Adds a path: joined now, or `None` if its interface or address is not there and is waited
    /// for.
    ///
    /// # Errors
    /// [`LinksError`]; it was not added then.
    pub fn add(&mut self, link: Link, driver: &mut Driver) -> Result<Option<LinkChange>, LinksError> {
        if link.via != Via::Any {
            driver.watch_interfaces().map_err(LinksError::Watch)?;
        }
        let interfaces = Interfaces::list().map_err(LinksError::List)?;
        let place = self.all.len();
        self.all.push(Slot { link, open: None });
        match self.open_one(place, driver, &interfaces) {
            Ok(opened) => Ok(opened.and_then(|warning| self.joined(place, warning))),
            Err(error) => {
                self.all.truncate(place);
                Err(error)
            }
        }
    }

    /// Takes the path of this name out; the route that it had, which the machine is to leave.
    pub fn remove(&mut self, name: &str) -> Option<Route> {
        let place = self.all.iter().position(|slot| slot.link.name == name)?;
        self.all.remove(place).open.map(|open| open.route)
    }

    /// Takes the path over `route` out, which the machine did not take; [`Driver::unbind`] its
    /// socket.
    pub fn forget(&mut self, route: Route) {
        self.all.retain(|slot| slot.open.as_ref().is_none_or(|open| open.route != route));
    }

    /// The path at `place`, which has just been opened.
    fn joined(&self, place: usize, warning: Option<String>) -> Option<LinkChange> {
        let Slot { link, open } = &self.all[place];
        let route = open.as_ref()?.route;
        Some(LinkChange::Joined { name: link.name.clone(), route, warning })
    }

    /// The routes that can be used now.
    pub fn routes(&self) -> Vec<Route> {
        self.all.iter().filter_map(|slot| slot.open.as_ref()).map(|open| open.route).collect()
    }

    /// What the paths that cannot be used now wait for.
    pub fn missing(&self) -> impl Iterator<Item = &Via> {
        self.all.iter().filter(|slot| slot.open.is_none()).map(|slot| &slot.link.via)
    }

    /// The name of the path that uses, or used lately, `socket`.
    pub fn name(&self, socket: SocketId) -> Option<&str> {
        self.names.iter().find(|(id, _)| *id == socket).map(|(_, name)| name.as_str())
    }

    /// The interfaces changed: opens sockets if it can, and returns which paths left and joined.
    /// Those that left come first.
    ///
    /// # Errors
    /// [`LinksError::List`]; nothing changed then.
    pub fn refresh(&mut self, driver: &mut Driver) -> Result<Vec<LinkChange>, LinksError> {
        let interfaces = Interfaces::list().map_err(LinksError::List)?;
        let (mut left, mut joined) = (Vec::new(), Vec::new());
        for place in 0..self.all.len() {
            let slot = &mut self.all[place];
            if slot.link.via == Via::Any {
                continue;
            }
            let addrs = slot.link.via.addrs(&interfaces);
            // New addresses beside the old ones need nothing; without the old ones the socket's
            // packets get lost.
            let gone = |open: &Open| !open.addrs.iter().all(|old| addrs.iter().flatten().any(|new| new == old));
            if let Some(open) = slot.open.take_if(|open| gone(open)) {
                left.push(LinkChange::Left { name: slot.link.name.clone(), route: open.route });
            }
            if slot.open.is_some() {
                continue;
            }
            match self.open_one(place, driver, &interfaces) {
                Ok(opened) => joined.extend(opened.and_then(|warning| self.joined(place, warning))),
                // What left must be told all the same.
                Err(error) => {
                    let name = self.all[place].link.name.clone();
                    joined.push(LinkChange::Failed { name, why: error.to_string() });
                }
            }
        }
        left.append(&mut joined);
        Ok(left)
    }
}

/// The local address that packets to `remote` leave from.
///
/// # Errors
/// [`LinksError::NoRoute`].
fn local_address(remote: SocketAddr) -> Result<IpAddr, LinksError> {
    let any: SocketAddr = if remote.is_ipv4() { ([0; 4], 0).into() } else { ([0u16; 8], 0).into() };
    let ask = || {
        let socket = UdpSocket::bind(any)?;
        socket.connect(remote)?;
        socket.local_addr()
    };
    ask().map(|local| local.ip()).map_err(|source| LinksError::NoRoute { remote: remote.ip(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(via: &str, remote: &str) -> Link {
        Link { via: via.parse().unwrap(), remote: remote.parse().unwrap(), name: via.to_owned() }
    }

    fn open(links: Vec<Link>) -> Result<Links, String> {
        let mut driver = Driver::new().unwrap();
        Links::open(links, Carrier::Udp, &mut driver).map(|(links, _)| links).map_err(|e| e.to_string())
    }

    #[test]
    fn what_is_not_there_is_waited_for_as_long_as_there_is_another() {
        let links = open(vec![link("nothere0", "127.0.0.1:9"), link("127.0.0.1", "127.0.0.1:9")]).unwrap();
        assert_eq!(links.missing().collect::<Vec<_>>(), [&Via::Device("nothere0".into())]);
        assert_eq!(links.routes().len(), 1);
        assert_eq!(links.name(links.routes()[0].socket), Some("127.0.0.1"));
        let error = open(vec![link("nothere0", "127.0.0.1:9"), link("nothere1", "127.0.0.1:9")]).unwrap_err();
        assert!(error.starts_with("there is no nothere0 and no nothere1; this machine has "), "{error}");
    }

    #[test]
    fn an_address_does_not_reach_the_other_family() {
        let error = open(vec![link("127.0.0.1", "[::1]:9")]).unwrap_err();
        assert_eq!(error, "127.0.0.1 cannot reach [::1]:9: one is IPv4, the other IPv6");
    }

    #[test]
    fn paths_are_added_and_removed_by_name() {
        let mut driver = Driver::new().unwrap();
        let (mut links, _) = Links::open(vec![link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver).unwrap();
        let added = links.add(link("127.0.0.1", "127.0.0.1:10"), &mut driver).unwrap();
        let Some(LinkChange::Joined { name, route, .. }) = added else { panic!("{added:?}") };
        assert_eq!((name.as_str(), links.routes().len()), ("127.0.0.1", 2));
        assert_eq!(links.add(link("nothere0", "127.0.0.1:9"), &mut driver).unwrap(), None);
        assert_eq!(links.missing().count(), 1);
        assert_eq!(links.remove("127.0.0.1"), Some(route));
        assert_eq!((links.remove("127.0.0.1"), links.remove("nothere0"), links.routes().len()), (None, None, 1));
    }

    #[test]
    fn nothing_changes_while_the_interfaces_stay() {
        let mut driver = Driver::new().unwrap();
        let (mut links, _) =
            Links::open(vec![link("127.0.0.1", "127.0.0.1:9"), link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver)
                .unwrap();
        assert_eq!(links.refresh(&mut driver).unwrap(), []);
    }

    #[test]
    fn what_cannot_be_opened_leaves_no_socket_behind() {
        let mut driver = Driver::new().unwrap();
        let missing = vec![link("nothere0", "127.0.0.1:9")];
        assert!(Links::open(missing, Carrier::Udp, &mut driver).is_err());
        // The right to open raw sockets is not there, or the address of the second path is not: the
        // first one was opened by then.
        let native = Carrier::Ip(253);
        let far = vec![link("127.0.0.1", "127.0.0.1:9"), Link { via: Via::Any, ..link("", "[2001:db8::1]:9") }];
        _ = Links::open(far, native, &mut driver).map(|(links, _)| {
            links.routes().iter().for_each(|route| driver.unbind(route.socket));
        });
        assert_eq!(driver.sockets().count(), 0);
    }

    #[test]
    fn names_of_sockets_are_forgotten_some_time_after_the_sockets() {
        let mut driver = Driver::new().unwrap();
        let (mut links, _) = Links::open(vec![link("lo", "127.0.0.1:9")], Carrier::Udp, &mut driver).unwrap();
        let first = links.routes()[0].socket;
        for n in 0..500 {
            let added = links.add(link("127.0.0.1", "127.0.0.1:10"), &mut driver).unwrap();
            let Some(LinkChange::Joined { route, .. }) = added else { panic!("{added:?}") };
            if n % 2 == 0 {
                links.forget(route)
            } else {
                assert_eq!(links.remove("127.0.0.1"), Some(route))
            }
            driver.unbind(route.socket);
            assert_eq!(links.name(route.socket), Some("127.0.0.1"), "it is told that it left");
        }
        assert!(links.names.len() <= Links::MOST_NAMES + 2, "{}", links.names.len());
        assert_eq!(links.name(first), Some("lo"));
    }
}
