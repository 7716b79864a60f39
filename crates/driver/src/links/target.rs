use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Where a path leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// An address.
    Addr(SocketAddr),
    /// A host's name and a UDP port. The name is asked for again when its addresses do not answer.
    Name(String, u16),
}

impl Target {
    /// The port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Addr(addr) => addr.port(),
            Self::Name(_, port) => *port,
        }
    }

    /// `host`, which may be an address, and a port.
    pub fn new(host: &str, port: u16) -> Self {
        match host.parse::<IpAddr>() {
            Ok(ip) => Self::Addr(SocketAddr::new(ip, port)),
            Err(_) => Self::Name(host.to_owned(), port),
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(addr: SocketAddr) -> Self {
        Self::Addr(addr)
    }
}

/// `HOST:PORT`; IPv6 addresses stand in brackets.
impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(addr) = text.parse() {
            return Ok(Self::Addr(addr));
        }
        let parts = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
        match parts {
            Some((host, port)) if !host.is_empty() && !host.contains(':') => Ok(Self::new(host, port)),
            Some((host, port)) if host.starts_with('[') && host.ends_with(']') => {
                Ok(Self::new(&host[1..host.len() - 1], port))
            }
            _ => Err(format!("'{text}' is not HOST:PORT, for example home.example:9000 or [2001:db8::1]:9000")),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addr(addr) => addr.fmt(f),
            Self::Name(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Name(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        let read = |text: &str| text.parse::<Target>().unwrap();
        assert_eq!(read("192.0.2.1:9"), Target::Addr("192.0.2.1:9".parse().unwrap()));
        assert_eq!(read("[2001:db8::1]:9"), Target::Addr("[2001:db8::1]:9".parse().unwrap()));
        assert_eq!(read("home.example:9"), Target::Name("home.example".into(), 9));
        // The zone's name becomes a number once its interface is there.
        assert_eq!(read("[fe80::1%eth0]:9").to_string(), "[fe80::1%eth0]:9");
        assert!("2001:db8::1:9".parse::<Target>().is_err() && "home.example".parse::<Target>().is_err());
    }
}
