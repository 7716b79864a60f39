//! `--cert`, `--cert-key` and `--ca`: certificates of a PKI in place of keys.

use super::key::warn_if_open;
use crate::args::SharedArgs;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_secure::Insecurity;
use braidcast_secure::identity::Identity;
use braidcast_secure::x509::{Authority, Chain, X509Error};
use std::fs;
use std::path::Path;
use zeroize::Zeroizing;

/// What this end shows, and what it takes.
pub(super) struct Certificates {
    pub(super) identity: Identity,
    pub(super) authority: Authority,
}

impl Certificates {
    /// From the files that the flags name; `None` without them.
    pub(super) fn read(args: &SharedArgs, live: &Live) -> Outcome<Option<Self>> {
        let (Some(cert), Some(key), Some(ca)) = (&args.cert, &args.cert_key, &args.ca) else { return Ok(None) };
        let chain = Chain::from_pem(&content("--cert", cert)?).map_err(|error| refused("--cert", cert, &error))?;
        let authority = Authority::from_pem(&content("--ca", ca)?).map_err(|error| refused("--ca", ca, &error))?;
        let secret = content("--cert-key", key)?;
        warn_if_open(key, live);
        let identity = Identity::certified_by(chain, &secret).map_err(|error| refused("--cert-key", key, &error))?;
        Ok(Some(Self { identity, authority }))
    }

    /// For an end that connects to HOST:PORT, by any of `names`.
    pub(super) fn of_hosts(self, names: &[String]) -> Outcome<Self> {
        let hosts: Vec<_> = names.iter().map(|name| host(name).to_owned()).collect();
        let authority = self.authority.of_hosts(&hosts).map_err(|host| {
            Failure::usage(format!("no certificate can be for '{host}'"), "connect to a DNS name or an IP address")
        })?;
        Ok(Self { authority, ..self })
    }
}

/// What to do about a refusal.
pub(super) const fn about(why: Option<Insecurity>) -> &'static str {
    match why {
        Some(Insecurity::Clock) => "set the clocks of both ends, or renew the certificate",
        Some(Insecurity::WrongHost) => "connect to a host that the certificate is for, or have one made for this host",
        _ => "give both ends --cert, --cert-key and --ca, with certificates of an authority that the other end knows",
    }
}

/// Of HOST:PORT, without the brackets of an IPv6 address.
fn host(name: &str) -> &str {
    let host = name.rsplit_once(':').map_or(name, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn content(flag: &str, path: &Path) -> Outcome<Zeroizing<Vec<u8>>> {
    fs::read(path).map(Zeroizing::new).map_err(|error| {
        Failure::usage(format!("cannot read {flag} {}: {error}", path.display()), "give the name of a file in PEM form")
    })
}

fn refused(flag: &str, path: &Path, error: &X509Error) -> Failure {
    Failure::usage(
        format!("{flag} {}: {error}", path.display()),
        "openssl x509 and openssl pkey show what is in such files",
    )
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn a_host_stands_before_its_port() {
        assert_eq!(["home.example:9000", "[::1]:9000", "10.0.0.1:1"].map(host), ["home.example", "::1", "10.0.0.1"]);
    }
}
