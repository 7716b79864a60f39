//! The sockets of the paths: opened at the start, and again when an interface that vanished comes back.

use super::dccp::local_address;
use super::paths::{Plan, Via, resolve};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_core::{Route, SocketId};
use braidcast_driver::{Bind, BindError, Carrier, Driver, Interfaces};
use std::net::{IpAddr, SocketAddr};

/// Every path that was asked for, whether it can be used now or not.
pub(crate) struct Links {
    carrier: Carrier,
    all: Vec<Link>,
    /// The names of all sockets there ever were.
    names: Vec<(SocketId, String)>,
}

struct Link {
    plan: Plan,
    remote: SocketAddr,
    open: Option<Open>,
}

struct Open {
    route: Route,
    /// What the interface had when the socket was opened.
    addrs: Vec<IpAddr>,
}

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
        let interfaces = list()?;
        let mut links = Self { carrier, all: Vec::new(), names: Vec::new() };
        let mut watch = false;
        for plan in plans {
            watch |= plan.via != Via::Any;
            let remote = remote_for(&plan, &interfaces)?;
            links.all.push(Link { plan, remote, open: None });
        }
        let mut missing = Vec::new();
        for i in 0..links.all.len() {
            let via = links.all[i].plan.via.clone();
            if addrs_of(&via, &interfaces).is_none() || !links.open_one(i, driver, &interfaces, live)? {
                missing.push(via.to_string());
            }
        }
        if missing.len() == links.all.len() {
            return Err(Failure::new(
                format!("there is no {}; this machine has {interfaces}", missing.join(" and no ")),
                "give --via an interface or address that is there, or leave it out to send as the system routes",
            ));
        }
        for via in &missing {
            live.warn(format!("there is no {via} now; it joins when it appears (this machine has {interfaces})"));
        }
        if watch {
            driver
                .watch_interfaces()
                .map_err(|e| Failure::new(format!("cannot watch the interfaces: {e}"), "leave out --via"))?;
        }
        Ok(links)
    }

    /// Opens the socket of path `i`; `false` if its interface vanished meanwhile.
    fn open_one(&mut self, i: usize, driver: &mut Driver, interfaces: &Interfaces, live: &Live) -> Outcome<bool> {
        let link = &mut self.all[i];
        let mut remote = link.remote;
        let mut bind = match &link.plan.via {
            Via::Any => Bind::default(),
            Via::Addr(addr) => Bind::to_addr(SocketAddr::new(*addr, 0)),
            Via::Device(name) => Bind::to_device(name, 0),
        };
        if let Carrier::Ip(_) = self.carrier {
            // The protocol's checksum covers the address, so it must be a certain one; there are no ports.
            bind.carrier = self.carrier;
            bind.addr = match addrs_of(&link.plan.via, interfaces)
                .unwrap_or_default()
                .into_iter()
                .find(|addr| addr.is_ipv4() == remote.is_ipv4())
            {
                Some(addr) => Some(addr),
                None => Some(local_address(remote)?),
            };
            remote.set_port(0);
        }
        match driver.bind(&bind) {
            Ok(socket) => {
                if let Some(warning) = driver.socket(socket).and_then(|socket| socket.warning()) {
                    live.warn(warning);
                }
                let addrs = addrs_of(&link.plan.via, interfaces).unwrap_or_default();
                link.open = Some(Open { route: Route::new(socket, remote), addrs });
                self.names.push((socket, link.plan.name.clone()));
                Ok(true)
            }
            Err(BindError::NoSuchInterface { .. } | BindError::NoSuchAddress { .. }) => Ok(false),
            Err(e) => {
                Err(Failure::new(format!("cannot open the path {}: {e}", link.plan.name), "choose another --via"))
            }
        }
    }

    /// The routes that can be used now.
    pub(crate) fn routes(&self) -> Vec<Route> {
        self.all.iter().filter_map(|link| link.open.as_ref()).map(|open| open.route).collect()
    }

    /// The name of the path that uses, or used, `socket`.
    pub(crate) fn name(&self, socket: SocketId) -> &str {
        self.names.iter().find(|(id, _)| *id == socket).map_or("unknown path", |(_, name)| name)
    }

    /// The interfaces changed: opens and closes sockets, and says which paths join and leave. Those that leave come
    /// first. Close their sockets with [`Driver::unbind`] once the machine knows.
    pub(crate) fn refresh(&mut self, driver: &mut Driver, live: &Live) -> Outcome<Vec<Change>> {
        let interfaces = list()?;
        let (mut leave, mut join) = (Vec::new(), Vec::new());
        for i in 0..self.all.len() {
            let link = &mut self.all[i];
            if link.plan.via == Via::Any {
                continue;
            }
            let addrs = addrs_of(&link.plan.via, &interfaces);
            // New addresses beside the old ones need nothing; without the old ones the socket's packets get lost.
            let gone = |open: &Open| !open.addrs.iter().all(|old| addrs.iter().flatten().any(|new| new == old));
            if let Some(open) = link.open.take_if(|open| gone(open)) {
                live.note(format!("{} is gone", link.plan.name));
                leave.push(Change::Leave(open.route));
            }
            if link.open.is_none() && addrs.is_some() && self.open_one(i, driver, &interfaces, live)? {
                live.note(format!("{} is there and joins", self.all[i].plan.name));
                join.extend(self.all[i].open.as_ref().map(|open| Change::Join(open.route)));
            }
        }
        Ok(leave.into_iter().chain(join).collect())
    }
}

fn list() -> Outcome<Interfaces> {
    Interfaces::list().map_err(|e| Failure::new(format!("cannot list the network interfaces: {e}"), "leave out --via"))
}

/// The addresses that `via` has now; `None` if it is not there.
fn addrs_of(via: &Via, interfaces: &Interfaces) -> Option<Vec<IpAddr>> {
    match via {
        Via::Any => Some(Vec::new()),
        Via::Addr(addr) => interfaces.iter().any(|(_, addrs)| addrs.contains(addr)).then(|| vec![*addr]),
        Via::Device(name) => interfaces.addrs(name).map(<[IpAddr]>::to_vec),
    }
}

/// The remote address of a path, of a family that its interface or address has.
fn remote_for(plan: &Plan, interfaces: &Interfaces) -> Outcome<SocketAddr> {
    let local: Vec<IpAddr> = match &plan.via {
        Via::Addr(addr) => vec![*addr],
        via => addrs_of(via, interfaces).unwrap_or_default(),
    };
    let remote = resolve(&plan.to, |to| local.iter().any(|addr| addr.is_ipv4() == to.is_ipv4()))?;
    if let Via::Addr(addr) = plan.via
        && addr.is_ipv4() != remote.is_ipv4()
    {
        return Err(Failure::new(
            format!("{addr} cannot reach {remote}: one is IPv4, the other IPv6"),
            "give --via an address of the same kind",
        ));
    }
    Ok(remote)
}
