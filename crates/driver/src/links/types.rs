use super::Target;
use crate::bind::BindError;
use crate::trouble::Trouble;
use crate::watch::Interfaces;
use braidcast_core::Route;
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
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
#[non_exhaustive]
pub struct Link {
    /// Where it leaves.
    pub via: Via,
    /// Where it leads.
    pub to: Target,
    /// What reports call it.
    pub name: String,
}

impl Link {
    /// One that leaves by `via`, leads to `to`, and is called `name` in reports.
    #[must_use]
    pub const fn new(via: Via, to: Target, name: String) -> Self {
        Self { via, to, name }
    }
}

/// What became of a path when networks changed, a name got another address, or an address did not
/// answer.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LinkChange {
    /// A way to its other end can be used now: have the machine join with this route.
    Joined {
        /// [`Link::name`].
        name: String,
        /// Its new socket, and where it leads.
        route: Route,
        /// What did not go as asked, for example if it is bound to an address in place of an
        /// interface.
        warning: Option<String>,
        /// It is tried beside another way of the same path, or in its place.
        beside: bool,
    },
    /// A way cannot be used any more, or is not needed: have the machine leave this route, then
    /// [`Driver::unbind`](crate::Driver::unbind) its socket.
    Left {
        /// [`Link::name`].
        name: String,
        /// What it was.
        route: Route,
        /// The path goes on by another way.
        beside: bool,
    },
    /// Its interface or address is there, and its socket cannot be opened. It is tried again with
    /// the next change of the interfaces.
    Failed {
        /// [`Link::name`].
        name: String,
        /// Why, in words.
        why: String,
    },
    /// The machine did not take the path ([`Links::carry_out`](crate::Links::carry_out)).
    Refused {
        /// [`Link::name`].
        name: String,
        /// Where it would have led.
        route: Route,
        /// Why, in words.
        why: String,
    },
    /// The name that it leads to has no address that is known, and is asked for again and again.
    Unresolved {
        /// The host.
        host: String,
        /// What the resolver says.
        why: String,
    },
    /// The name that it leads to has other addresses than it had.
    Moved {
        /// The host.
        host: String,
        /// All its addresses now; the ports are 0.
        addrs: Vec<SocketAddr>,
    },
}

impl LinkChange {
    /// What did not go as asked, in words, if anything.
    pub fn warning(&self) -> Option<String> {
        match self {
            Self::Joined { warning, .. } => warning.clone(),
            Self::Failed { why, .. } => Some(why.clone()),
            Self::Refused { name, why, .. } => Some(format!("{name} cannot join: {why}")),
            Self::Unresolved { host, why } => {
                Some(format!("cannot find the address of {host}: {why}; going on trying"))
            }
            Self::Left { .. } | Self::Moved { .. } => None,
        }
    }

    /// What a user may want to know of it else, in words.
    pub fn note(&self) -> Option<String> {
        match self {
            Self::Joined { name, beside: false, .. } => Some(format!("{name} is there and joins")),
            Self::Left { name, beside: false, .. } => Some(format!("{name} is gone")),
            Self::Moved { host, addrs } => {
                let addrs: Vec<String> = addrs.iter().map(|addr| addr.ip().to_string()).collect();
                Some(format!("{host} is at {} now", addrs.join(", ")))
            }
            _ => None,
        }
    }
}

/// What the kernel says of a path over which nobody answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTrouble<'a> {
    /// [`Link::name`].
    pub name: &'a str,
    /// The address of the interface that it was asked to leave through.
    pub local: Option<IpAddr>,
    /// Where it leads.
    pub remote: SocketAddr,
    /// Why nothing gets through.
    pub trouble: Trouble,
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
    /// The name of the other end has no address that is known.
    #[error("cannot find the address of {host}: {why}")]
    Unresolved {
        /// The host.
        host: String,
        /// What the resolver says.
        why: String,
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
