use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, bind, recv, socket_with};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Of `linux/rtnetlink.h`: interfaces, and what decides where packets leave and from which address.
/// `RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV4_RULE | RTMGRP_IPV6_IFADDR |
/// RTMGRP_IPV6_ROUTE`, and the group `RTNLGRP_IPV6_RULE`, which has no such name.
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 1 << (19 - 1);

/// What happened to a network interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum InterfaceChange {
    /// The interface can be used now, or its addresses changed.
    Up {
        /// Its name, for example `wlan0`.
        name: String,
        /// All its addresses, sorted; at least one.
        addrs: Vec<IpAddr>,
    },
    /// The interface vanished, went down or lost its last address.
    Down {
        /// Its name.
        name: String,
    },
}

/// The usable interfaces of this machine: running, with at least one address that reaches beyond the link (an IPv6
/// link-local address does not count and is not listed, nor is one that is still being checked for duplicates and
/// cannot be bound to yet).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Interfaces {
    usable: BTreeMap<String, Vec<IpAddr>>,
    /// Those that have an IPv6 link-local address.
    link_local: BTreeSet<String>,
}

impl Interfaces {
    /// Asks the kernel.
    pub fn list() -> io::Result<Self> {
        let tentative = tentative_addrs(&std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default());
        let mut all = Self::default();
        for interface in if_addrs::get_if_addrs()? {
            let ip = interface.ip();
            if !interface.is_oper_up() || matches!(ip, IpAddr::V6(v6) if tentative.contains(&v6)) {
                continue;
            }
            if matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local()) {
                all.link_local.insert(interface.name);
            } else {
                all.usable.entry(interface.name).or_default().push(ip);
            }
        }
        for addrs in all.usable.values_mut() {
            addrs.sort_unstable();
            addrs.dedup();
        }
        Ok(all)
    }

    /// Returns `true` if the interface `name` runs and has an IPv6 link-local address.
    pub fn has_link_local(&self, name: &str) -> bool {
        self.link_local.contains(name)
    }

    /// The addresses of the interface `name`, sorted (IPv4 first); `None` if there is no such usable interface.
    pub fn addrs(&self, name: &str) -> Option<&[IpAddr]> {
        self.usable.get(name).map(Vec::as_slice)
    }

    /// Names and addresses, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[IpAddr])> {
        self.usable.iter().map(|(name, addrs)| (name.as_str(), addrs.as_slice()))
    }

    /// What has to happen to `self` to become `new`: what went down first, then what came up.
    fn changes_to(&self, new: &Self) -> Vec<InterfaceChange> {
        let down = self.usable.keys().filter(|name| !new.usable.contains_key(*name));
        let up = new.usable.iter().filter(|(name, addrs)| self.usable.get(*name) != Some(addrs));
        down.map(|name| InterfaceChange::Down { name: name.clone() })
            .chain(up.map(|(name, addrs)| InterfaceChange::Up { name: name.clone(), addrs: addrs.clone() }))
            .collect()
    }
}

/// The IPv6 addresses that `/proc/net/if_inet6` (address, index, prefix length, scope, flags, name; all numbers in
/// hexadecimal) marks as tentative (RFC 4862 §5.4).
fn tentative_addrs(table: &str) -> Vec<Ipv6Addr> {
    const IFA_F_OPTIMISTIC: u32 = 0x04;
    const IFA_F_TENTATIVE: u32 = 0x40;
    let tentative = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let addr = u128::from_str_radix(words.next()?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(3)?, 16).ok()?;
        (flags & (IFA_F_TENTATIVE | IFA_F_OPTIMISTIC) == IFA_F_TENTATIVE).then(|| Ipv6Addr::from(addr))
    };
    table.lines().filter_map(tentative).collect()
}

impl fmt::Display for Interfaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, addrs)) in self.usable.iter().enumerate() {
            write!(f, "{}{name} (", if i == 0 { "" } else { ", " })?;
            for (j, addr) in addrs.iter().enumerate() {
                write!(f, "{}{addr}", if j == 0 { "" } else { ", " })?;
            }
            f.write_str(")")?;
        }
        if self.usable.is_empty() { f.write_str("no usable interface") } else { Ok(()) }
    }
}

/// Reports when interfaces appear, vanish, or change their addresses.
///
/// The kernel's netlink messages serve as a doorbell only: whatever they say, the list is asked for anew and
/// compared. So a lost message (the socket's buffer overflowed) or an unknown one cannot leave us with a wrong view.
#[derive(Debug)]
pub(crate) struct Watch {
    doorbell: OwnedFd,
    known: Interfaces,
}

impl Watch {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Protocol 0 is NETLINK_ROUTE.
        let doorbell = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        bind(&doorbell, &SocketAddrNetlink::new(0, GROUPS))?;
        // After the bind, so that no change falls between the two.
        Ok(Self { doorbell, known: Interfaces::list()? })
    }

    pub(crate) fn raw_fd(&self) -> RawFd {
        self.doorbell.as_raw_fd()
    }

    /// Returns what changed about the interfaces since the last call, perhaps nothing: routes changed
    /// then. To be called when the file descriptor became readable.
    pub(crate) fn changes(&mut self) -> io::Result<Vec<InterfaceChange>> {
        let mut message = [0_u8; 64];
        loop {
            match recv(&self.doorbell, &mut message[..], RecvFlags::TRUNC) {
                // NOBUFS: messages were lost, which does not matter here.
                Ok(_) | Err(rustix::io::Errno::NOBUFS | rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let new = Interfaces::list()?;
        let changes = self.known.changes_to(&new);
        self.known = new;
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interfaces(list: &[(&str, &[&str])]) -> Interfaces {
        let addrs = |addrs: &[&str]| addrs.iter().map(|a| a.parse().unwrap()).collect();
        let usable = list.iter().map(|(name, a)| ((*name).to_owned(), addrs(a))).collect();
        Interfaces { usable, ..Interfaces::default() }
    }

    #[test]
    fn changes_name_what_vanished_appeared_or_moved_and_nothing_else() {
        let before = interfaces(&[("eth0", &["192.0.2.1"]), ("lo", &["127.0.0.1"]), ("wlan0", &["192.0.2.9"])]);
        let after = interfaces(&[("eth0", &["192.0.2.2"]), ("lo", &["127.0.0.1"]), ("wwan0", &["2001:db8::1"])]);
        let up = |name: &str, addr: &str| InterfaceChange::Up { name: name.into(), addrs: vec![addr.parse().unwrap()] };
        let down = InterfaceChange::Down { name: "wlan0".into() };
        assert_eq!(before.changes_to(&after), [down, up("eth0", "192.0.2.2"), up("wwan0", "2001:db8::1")]);
        assert_eq!(after.changes_to(&after), []);
    }

    #[test]
    fn tentative_addresses_are_told_by_their_flag() {
        let table = "20010db8000000000000000000000001 02 40 00 40 eth0\n\
                     20010db8000000000000000000000002 02 40 00 80 eth0\n\
                     20010db8000000000000000000000003 02 40 00 44 eth0\nnonsense\n";
        assert_eq!(tentative_addrs(table), ["2001:db8::1".parse::<Ipv6Addr>().unwrap()]);
    }

    #[test]
    fn the_list_reads_like_a_sentence() {
        let list = interfaces(&[("eth0", &["192.0.2.1", "2001:db8::1"]), ("lo", &["127.0.0.1"])]);
        assert_eq!(list.to_string(), "eth0 (192.0.2.1, 2001:db8::1), lo (127.0.0.1)");
        assert_eq!(Interfaces::default().to_string(), "no usable interface");
    }
}
