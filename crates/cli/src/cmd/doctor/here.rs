//! This machine: its interfaces, routes and rules, and what names lead to.

use super::finding::Finding;
use crate::args::values::Remote;
use crate::cmd::tables;
use braidcast_driver::{Interfaces, Routing};
use serde::Serialize;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long the system's resolver may take; it stops trying after half a minute.
const ANSWER: Duration = Duration::from_secs(5);

/// A network interface.
#[derive(Serialize)]
pub(super) struct Interface {
    pub(super) name: String,
    /// The longest IP packet that it sends, bytes.
    pub(super) mtu: u32,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) defaults: Vec<Default>,
}

/// A default route.
#[derive(Serialize)]
pub(super) struct Default {
    /// "IPv4" or "IPv6".
    pub(super) family: &'static str,
    /// Null if all addresses are on the link itself.
    pub(super) gateway: Option<IpAddr>,
    pub(super) metric: u32,
    /// 254 is the main one.
    pub(super) table: u32,
}

/// What the resolver says.
#[derive(Serialize)]
pub(super) struct Name {
    pub(super) host: String,
    pub(super) addresses: Vec<IpAddr>,
    /// Null if it has addresses.
    pub(super) trouble: Option<String>,
}

/// This machine.
pub(super) struct Here {
    pub(super) interfaces: Vec<Interface>,
    usable: Interfaces,
    routing: Routing,
}

impl Here {
    /// Asks the kernel.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn look() -> std::io::Result<Self> {
        let (usable, routing) = (Interfaces::list()?, Routing::list()?);
        let interfaces = routing.links.iter().filter(|link| link.name != "lo").map(|link| Interface {
            name: link.name.clone(),
            mtu: link.mtu,
            addresses: usable.addrs(&link.name).unwrap_or_default().to_vec(),
            defaults: routing
                .defaults()
                .filter(|route| route.device == link.name)
                .map(|route| Default {
                    family: family(route.to.first),
                    gateway: route.gateway,
                    metric: route.metric,
                    table: route.table,
                })
                .collect(),
        });
        Ok(Self { interfaces: interfaces.collect(), usable, routing })
    }

    /// What is wrong with it whoever the other end is.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let has_address = self.interfaces.iter().any(|it| !it.addresses.is_empty());
        if !has_address {
            let what = "this machine is in no network: no interface that is up has an address";
            return vec![Finding::bad(what, "`ip -br addr` lists the interfaces; connect one")];
        }
        if self.routing.defaults().next().is_none() {
            let what = "there is no default route: only this machine's own networks can be reached";
            return vec![Finding::bad(
                what,
                "connect to a network that has a router, or add one: ip route add default via ROUTER",
            )];
        }
        let bare = self.interfaces.iter().filter(|it| !it.addresses.is_empty() && it.defaults.is_empty());
        bare.map(|it| {
            Finding::doubtful(
                format!("{} has an address and no default route: nothing beyond it is reached over it", it.name),
                format!("if it leads to the internet: ip route add default via ROUTER dev {} metric 1000", it.name),
            )
        })
        .collect()
    }

    /// Returns `true` if it is in a network that leads further.
    pub(super) fn is_connected(&self) -> bool {
        self.interfaces.iter().any(|it| !it.addresses.is_empty() && !it.defaults.is_empty())
    }

    /// The address that packets leave `device` from, if it has one of that family.
    pub(super) fn address(&self, device: &str, remote: SocketAddr) -> Option<IpAddr> {
        let all = self.usable.addrs(device)?;
        all.iter().copied().find(|addr| addr.is_ipv4() == remote.is_ipv4())
    }

    /// The interface that has an address.
    pub(super) fn device_of(&self, addr: IpAddr) -> Option<&str> {
        self.usable.iter().find(|(_, addrs)| addrs.contains(&addr)).map(|(name, _)| name)
    }

    /// Returns `true` if `device` is there and up.
    pub(super) fn has(&self, device: &str) -> bool {
        self.usable.addrs(device).is_some()
    }

    /// What the tables lack for packets that leave `device` for `remote`, and the command that adds it.
    pub(super) fn missing(&self, device: &str, local: IpAddr, remote: IpAddr) -> Option<Finding> {
        // A link-local address needs none.
        let is_beyond = !matches!(remote, IpAddr::V6(v6) if v6.is_unicast_link_local());
        let lack = tables::lack(&self.routing, device, local, remote).filter(|_| is_beyond)?;
        Some(Finding::bad(lack.what, lack.command))
    }
}

/// "IPv4" or "IPv6".
pub(super) const fn family(addr: IpAddr) -> &'static str {
    if addr.is_ipv4() { "IPv4" } else { "IPv6" }
}

/// Asks the resolver for a name, in a thread of its own: it may take longer than anybody waits.
pub(super) fn resolve(remote: &Remote) -> Name {
    let (send, answer) = channel();
    let asked = (remote.host.clone(), remote.port);
    std::thread::spawn(move || {
        // Nobody may wait any more.
        let _ = send.send((asked.0.as_str(), asked.1).to_socket_addrs().map(Iterator::collect::<Vec<_>>));
    });
    let mut name = Name { host: remote.host.clone(), addresses: Vec::new(), trouble: None };
    match answer.recv_timeout(ANSWER) {
        Ok(Ok(all)) => {
            for addr in all {
                if !name.addresses.contains(&addr.ip()) {
                    name.addresses.push(addr.ip());
                }
            }
            name.trouble = name.addresses.is_empty().then(|| "it has no address".into());
        }
        Ok(Err(error)) => name.trouble = Some(error.to_string()),
        Err(_) => name.trouble = Some(format!("no answer in {} s", ANSWER.as_secs())),
    }
    name
}
