//! Interfaces, routes and rules as the kernel has them, for people to read and for what is missing in them.

use crate::netlink::{attributes, dump, number, text};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Of `linux/rtnetlink.h`.
const RTM_GETLINK: u16 = 18;
const RTM_GETROUTE: u16 = 26;
const RTM_GETRULE: u16 = 34;
/// Bytes of `struct ifinfomsg`, and of `struct rtmsg` and `struct fib_rule_hdr`.
const LINK_HEADER: usize = 16;
const ROUTE_HEADER: usize = 12;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const RTN_UNICAST: u8 = 1;
/// `RTM_F_CLONED`: what the kernel noted of one destination.
const CLONED: u32 = 0x200;
/// `FR_ACT_TO_TBL`, and the flag `FIB_RULE_INVERT`.
const TO_TABLE: u8 = 1;
const INVERT: u32 = 0x2;

/// All addresses whose first bits are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Its first address.
    pub first: IpAddr,
    /// Bits that count, 0 to 32 or 128.
    pub bits: u8,
}

impl Range {
    /// Returns `true` if `addr` is in it.
    pub fn contains(&self, addr: IpAddr) -> bool {
        let same = |first: u128, addr: u128, width: u8| {
            let shift = u32::from(width.saturating_sub(self.bits));
            first.checked_shr(shift).unwrap_or(0) == addr.checked_shr(shift).unwrap_or(0)
        };
        match (self.first, addr) {
            (IpAddr::V4(first), IpAddr::V4(addr)) => same(first.to_bits().into(), addr.to_bits().into(), 32),
            (IpAddr::V6(first), IpAddr::V6(addr)) => same(first.to_bits(), addr.to_bits(), 128),
            _ => false,
        }
    }
}

/// A route to other machines.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TableRoute {
    /// The table that it is in: 254 is the main one.
    pub table: u32,
    /// Where it leads.
    pub to: Range,
    /// The interface that it takes.
    pub device: String,
    /// The router there; `None` if the addresses are on the link itself.
    pub gateway: Option<IpAddr>,
    /// Of several the one with the lowest is taken.
    pub metric: u32,
}

/// What chooses a table.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TableRule {
    /// `true` if it is about IPv4.
    pub is_ipv4: bool,
    /// Rules are asked from the lowest on.
    pub priority: u32,
    /// Local addresses that packets leave from; `None`: all.
    pub from: Option<Range>,
    /// Addresses that packets go to; `None`: all.
    pub to: Option<Range>,
    /// The mark that packets need to have, by `fwmark` of ip-rule(8).
    pub mark: Option<u32>,
    /// The interface that they are bound to; `None`: all.
    pub bound_to: Option<String>,
    /// The table.
    pub table: u32,
}

/// An interface, up or not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[non_exhaustive]
pub struct LinkState {
    /// Its name.
    pub name: String,
    /// The longest IP packet that it sends, bytes.
    pub mtu: u32,
}

/// The tables.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Routing {
    /// The interfaces, in the kernel's order.
    pub links: Vec<LinkState>,
    /// Routes of all tables but those of this machine's own addresses.
    pub routes: Vec<TableRoute>,
    /// Rules, by priority.
    pub rules: Vec<TableRule>,
}

/// Why no route leads from an interface to an address.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Missing {
    /// No table has a route there over the interface.
    Route {
        /// A router that other routes over the interface have.
        gateway: Option<IpAddr>,
    },
    /// A table has it, and no rule leads there from the address.
    Rule {
        /// The table.
        table: u32,
        /// The mark of packets that a rule leads there.
        mark: Option<u32>,
    },
}

impl Routing {
    /// Asks the kernel.
    ///
    /// # Errors
    /// The kernel's.
    pub fn list() -> io::Result<Self> {
        let mut names = BTreeMap::new();
        let mut it = Self::default();
        dump(RTM_GETLINK, LINK_HEADER, |body| {
            if let Some((index, link)) = link(body) {
                names.insert(index, link.name.clone());
                it.links.push(link);
            }
        })?;
        dump(RTM_GETROUTE, ROUTE_HEADER, |body| it.routes.extend(route(body, &names)))?;
        dump(RTM_GETRULE, ROUTE_HEADER, |body| it.rules.extend(rule(body)))?;
        it.rules.sort_by_key(|rule| rule.priority);
        Ok(it)
    }

    /// The default routes, of any table and both families.
    pub fn defaults(&self) -> impl Iterator<Item = &TableRoute> {
        self.routes.iter().filter(|route| route.to.bits == 0)
    }

    /// What is missing for packets from `local`, bound to `device`, to `remote`; `None` if a route leads there.
    pub fn missing(&self, device: &str, local: IpAddr, remote: IpAddr) -> Option<Missing> {
        let over: Vec<&TableRoute> = self.routes.iter().filter(|it| it.device == device).collect();
        let fits: Vec<&TableRoute> = over.iter().copied().filter(|it| it.to.contains(remote)).collect();
        let Some(best) = fits.iter().max_by_key(|it| it.to.bits) else {
            let gateway = over.iter().filter_map(|it| it.gateway).find(|it| it.is_ipv4() == remote.is_ipv4());
            return Some(Missing::Route { gateway });
        };
        let all = |range: &Option<Range>, addr| range.is_none_or(|range| range.contains(addr));
        let rules = self.rules.iter().filter(|it| it.is_ipv4 == remote.is_ipv4());
        let applies = |it: &&TableRule| {
            let bound = it.bound_to.as_ref().is_none_or(|name| name == device);
            it.mark.is_none() && bound && all(&it.from, local) && all(&it.to, remote)
        };
        if rules.clone().filter(applies).any(|rule| fits.iter().any(|route| route.table == rule.table)) {
            return None;
        }
        let mark = rules.filter(|rule| rule.table == best.table).find_map(|rule| rule.mark);
        Some(Missing::Rule { table: best.table, mark })
    }
}

fn link(body: &[u8]) -> Option<(u32, LinkState)> {
    const IFLA_IFNAME: u16 = 3;
    const IFLA_MTU: u16 = 4;
    let (mut name, mut mtu) = (None, 0);
    for (kind, value) in attributes(body, LINK_HEADER) {
        match kind {
            IFLA_IFNAME => name = Some(text(value)),
            IFLA_MTU => mtu = number(value, 0)?,
            _ => {}
        }
    }
    Some((number(body, 4)?, LinkState { name: name?, mtu }))
}

fn route(body: &[u8], names: &BTreeMap<u32, String>) -> Option<TableRoute> {
    const RTA_DST: u16 = 1;
    const RTA_OIF: u16 = 4;
    const RTA_GATEWAY: u16 = 5;
    const RTA_PRIORITY: u16 = 6;
    const RTA_TABLE: u16 = 15;
    const RTA_VIA: u16 = 18;
    let [family, bits, _, _, table, _, _, kind, ..] = *body else { return None };
    if kind != RTN_UNICAST || number(body, 8)? & CLONED != 0 {
        return None;
    }
    let (mut to, mut device, mut gateway, mut metric, mut table) = (any(family)?, None, None, 0, u32::from(table));
    for (kind, value) in attributes(body, ROUTE_HEADER) {
        match kind {
            RTA_DST => to = address(value)?,
            RTA_OIF => device = names.get(&number(value, 0)?),
            RTA_GATEWAY => gateway = address(value),
            // An address of the other family, behind two bytes that say which.
            RTA_VIA => gateway = address(value.get(2..)?),
            RTA_PRIORITY => metric = number(value, 0)?,
            RTA_TABLE => table = number(value, 0)?,
            _ => {}
        }
    }
    Some(TableRoute { table, to: Range { first: to, bits }, device: device?.clone(), gateway, metric })
}

fn rule(body: &[u8]) -> Option<TableRule> {
    const FRA_DST: u16 = 1;
    const FRA_SRC: u16 = 2;
    const FRA_IIFNAME: u16 = 3;
    const FRA_PRIORITY: u16 = 6;
    const FRA_FWMARK: u16 = 10;
    const FRA_TABLE: u16 = 15;
    const FRA_OIFNAME: u16 = 17;
    let [family, to_bits, from_bits, _, table, _, _, action, ..] = *body else { return None };
    any(family)?;
    if action != TO_TABLE || number(body, 8)? & INVERT != 0 {
        return None;
    }
    let table = u32::from(table);
    let is_ipv4 = family == AF_INET;
    let mut it = TableRule { is_ipv4, priority: 0, from: None, to: None, mark: None, bound_to: None, table };
    for (kind, value) in attributes(body, ROUTE_HEADER) {
        match kind {
            FRA_DST => it.to = Some(Range { first: address(value)?, bits: to_bits }),
            FRA_SRC => it.from = Some(Range { first: address(value)?, bits: from_bits }),
            // What comes in over an interface is not this machine's own.
            FRA_IIFNAME => return None,
            FRA_PRIORITY => it.priority = number(value, 0)?,
            FRA_FWMARK => it.mark = Some(number(value, 0)?).filter(|mark| *mark != 0),
            FRA_TABLE => it.table = number(value, 0)?,
            FRA_OIFNAME => it.bound_to = Some(text(value)),
            _ => {}
        }
    }
    Some(it)
}

/// The first address of a family; `None` if it is neither IPv4 nor IPv6.
fn any(family: u8) -> Option<IpAddr> {
    match family {
        AF_INET => Some(Ipv4Addr::UNSPECIFIED.into()),
        AF_INET6 => Some(Ipv6Addr::UNSPECIFIED.into()),
        _ => None,
    }
}

fn address(value: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(value).ok().map(IpAddr::from);
    v4().or_else(|| <[u8; 16]>::try_from(value).ok().map(IpAddr::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Range {
        let (first, bits) = text.split_once('/').unwrap();
        Range { first: first.parse().unwrap(), bits: bits.parse().unwrap() }
    }

    fn through(device: &str, to: &str, gateway: Option<&str>, table: u32) -> TableRoute {
        let gateway = gateway.map(|it| it.parse().unwrap());
        TableRoute { table, to: range(to), device: device.into(), gateway, metric: 0 }
    }

    fn to_table(priority: u32, from: Option<&str>, mark: Option<u32>, table: u32) -> TableRule {
        TableRule { is_ipv4: true, priority, from: from.map(range), to: None, mark, bound_to: None, table }
    }

    #[test]
    fn a_range_has_the_addresses_that_begin_alike() {
        assert!(range("0.0.0.0/0").contains("192.0.2.1".parse().unwrap()));
        assert!(range("192.0.2.0/24").contains("192.0.2.255".parse().unwrap()));
        assert!(!range("192.0.2.0/24").contains("192.0.3.0".parse().unwrap()));
        assert!(!range("0.0.0.0/0").contains("::1".parse().unwrap()));
        assert!(range("::/0").contains("2001:db8::1".parse().unwrap()));
        assert!(!range("fe80::/10").contains("2001:db8::1".parse().unwrap()));
    }

    #[test]
    fn the_rule_that_a_table_of_its_own_needs_is_found() {
        let (local, remote) = ("10.8.0.2".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let mut tables = Routing {
            routes: vec![
                through("eth0", "0.0.0.0/0", Some("10.0.0.1"), 254),
                through("wwan0", "10.8.0.0/24", None, 254),
                through("wwan0", "0.0.0.0/0", Some("10.8.0.1"), 17),
            ],
            rules: vec![to_table(32766, None, None, 254)],
            ..Routing::default()
        };
        assert_eq!(tables.missing("wwan0", local, remote), Some(Missing::Rule { table: 17, mark: None }));
        tables.rules.insert(0, to_table(100, None, Some(3), 17));
        assert_eq!(tables.missing("wwan0", local, remote), Some(Missing::Rule { table: 17, mark: Some(3) }));
        tables.rules.insert(0, to_table(99, Some("10.8.0.2/32"), None, 17));
        assert_eq!(tables.missing("wwan0", local, remote), None);
        assert_eq!(tables.missing("wwan0", local, "10.8.0.9".parse().unwrap()), None, "on the link");
        tables.routes.pop();
        assert_eq!(tables.missing("wwan0", local, remote), Some(Missing::Route { gateway: None }));
        assert_eq!(tables.missing("eth0", "10.0.0.2".parse().unwrap(), remote), None);
    }

    #[test]
    fn this_machine_has_a_loopback_interface_and_rules() {
        let tables = Routing::list().unwrap();
        assert!(tables.links.iter().any(|link| link.name == "lo" && link.mtu >= 1280), "{:?}", tables.links);
        assert!(tables.rules.iter().any(|rule| rule.is_ipv4 && rule.table == 254), "{:?}", tables.rules);
    }
}
