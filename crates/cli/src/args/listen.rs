//! The places where a command listens.

use super::values::not_a_port;
#[cfg(target_os = "linux")]
use braidcast_driver::Bind;
use std::net::{IpAddr, SocketAddr};

/// The places to listen at; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Listen(pub(crate) Vec<Place>);

/// Where a socket listens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Place {
    /// `None`: all addresses of this machine, in both families.
    pub(crate) addr: Option<IpAddr>,
    /// 0: the kernel picks one.
    pub(crate) port: u16,
    /// The interface that an IPv6 link-local address belongs to.
    pub(crate) zone: Option<String>,
}

impl Place {
    /// A UDP socket there.
    #[cfg(target_os = "linux")]
    pub(crate) fn bind(&self) -> Bind {
        Bind::default().with(|it| (it.addr, it.port, it.device) = (self.addr, self.port, self.zone.clone()))
    }
}

/// `PORT`, `:PORT`, `ADDR:PORT` or several with commas.
pub(crate) fn listen(text: &str) -> Result<Listen, String> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.strip_prefix(':').unwrap_or(part) {
            digits if digits.bytes().all(|b| b.is_ascii_digit()) && !digits.is_empty() => {
                let port = digits.parse().map_err(|_| not_a_port(digits, 0))?;
                all.push(Place { port, ..Place::default() });
            }
            _ => {
                let zoned = part.split_once('%').and_then(|(addr, rest)| {
                    let (zone, port) = rest.split_once(']')?;
                    Some((format!("{addr}]{port}"), zone.to_owned()))
                });
                let (bare, zone) = zoned.map_or((part.to_owned(), None), |(bare, zone)| (bare, Some(zone)));
                let address: SocketAddr = bare.parse().map_err(|_| {
                    format!("'{part}' is neither PORT nor ADDR:PORT: write 9000, 192.0.2.1:9000 or [2001:db8::1]:9000")
                })?;
                all.push(Place { addr: Some(address.ip()), port: address.port(), zone });
            }
        }
    }
    Ok(Listen(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_port_listens_everywhere_in_both_families() {
        let any = |port| Ok(Listen(vec![Place { port, ..Place::default() }]));
        assert_eq!(listen("9000"), any(9000));
        assert_eq!(listen(":9000"), listen("9000"));
        assert_eq!(listen("127.0.0.1:1,[::1]:2").unwrap().0.len(), 2);
        assert_eq!(listen("0"), any(0));
        let place = &listen("[fe80::1%eth0]:9000").unwrap().0[0];
        assert_eq!((place.addr, place.zone.as_deref()), (Some("fe80::1".parse().unwrap()), Some("eth0")));
        assert!(listen("65536").unwrap_err().contains("0 to 65535"));
        assert!(listen("").is_err());
        assert!(listen("localhost:9000").is_err());
    }
}
