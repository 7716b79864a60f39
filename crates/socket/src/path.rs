use crate::Error;
use braidcast_driver::{Link, Target, Via};
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

pub use braidcast_sctp::PathState;

/// A path of a connection: where it leads, and through what.
///
/// As text it is `HOST:PORT` or `HOST:PORT@VIA`:
///
/// ```
/// use braidcast_socket::Path;
///
/// let path: Path = "home.example:9000@wlan0".parse()?;
/// assert_eq!(path, Path::to_host("home.example", 9000).through("wlan0"));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Path {
    /// An address that the other end is bound to, or the name of its host and a port. All addresses
    /// of a name are tried, IPv4 and IPv6 (RFC 8305).
    pub remote: Target,
    /// The local interface or address that it leaves through. One that is not there now is waited
    /// for, and joins when it appears.
    pub via: Via,
}

impl Path {
    /// To `remote`, as the routing table has it.
    #[must_use]
    pub const fn to(remote: SocketAddr) -> Self {
        Self { remote: Target::Addr(remote), via: Via::Any }
    }

    /// To a host by its name, or by an address in text.
    #[must_use]
    pub fn to_host(host: &str, port: u16) -> Self {
        Self { remote: Target::new(host, port), via: Via::Any }
    }

    /// To `remote` through an interface, for example `wlan0`, or from a local address.
    #[must_use]
    pub fn via(remote: SocketAddr, via: &str) -> Self {
        Self::to(remote).through(via)
    }

    /// The same through an interface, or from a local address.
    #[must_use]
    pub fn through(self, via: &str) -> Self {
        let Ok(via) = via.parse::<Via>();
        Self { via, ..self }
    }

    /// As the event loop opens it ([`Links`](braidcast_driver::Links)), for who runs a protocol by itself.
    ///
    /// # Errors
    /// [`Error::Nowhere`].
    pub fn link(&self) -> Result<Link, Error> {
        let unspecified = matches!(&self.remote, Target::Addr(addr) if addr.ip().is_unspecified());
        if unspecified || self.remote.port() == 0 {
            return Err(Error::Nowhere(self.remote.clone()));
        }
        let name = match &self.via {
            Via::Any => self.remote.to_string(),
            via => via.to_string(),
        };
        Ok(Link::new(self.via.clone(), self.remote.clone(), name))
    }
}

/// `HOST:PORT`, and `@` with an interface or local address if it leaves through that.
impl FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('@') {
            Some((_, "")) => Err(format!("'{text}' names nothing to leave through behind @, for example @wlan0")),
            Some((remote, via)) => Ok(Self { remote: remote.parse()?, via: Via::Any }.through(via)),
            None => Ok(Self { remote: text.parse()?, via: Via::Any }),
        }
    }
}

/// As it is read.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.via {
            Via::Any => self.remote.fmt(f),
            via => write!(f, "{}@{via}", self.remote),
        }
    }
}

/// A path of a connection as it is now.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathReport {
    /// The interface or address it leaves through, or else the address that it leads to. If others of
    /// its connection have the same, the second has a 2 behind it.
    pub name: String,
    /// Where it leads.
    pub remote: SocketAddr,
    /// How it is doing.
    pub state: PathState,
    /// Smoothed round-trip time; `None` before the first measurement.
    pub rtt: Option<Duration>,
    /// What it could carry, in bits per second of data; `None` before anything was acknowledged.
    pub capacity: Option<u64>,
    /// Bytes sent in packets, without the headers below them.
    pub sent_bytes: u64,
    /// Bytes received in packets, without the headers below them.
    pub received_bytes: u64,
    /// Parts of messages sent over it that were lost.
    pub lost_chunks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_can_be_read_is_shown_so_that_it_is_read_again(text in r"[\[\]a-z0-9.:@%]{0,20}|.{0,30}") {
            if let Ok(path) = text.parse::<Path>() {
                prop_assert_eq!(path.to_string().parse::<Path>(), Ok(path));
            }
        }
    }

    #[test]
    fn paths_are_read_as_they_are_shown() {
        for text in ["192.0.2.1:9000", "home.example:9@wlan0", "[2001:db8::1]:9000@192.0.2.7", "[fe80::1%eth0]:9@eth0"]
        {
            assert_eq!(text.parse::<Path>().unwrap().to_string(), text);
        }
        for wrong in ["", "home.example", "home.example:9@", "@wlan0", "2001:db8::1:9"] {
            assert!(wrong.parse::<Path>().is_err(), "{wrong}");
        }
    }
}
