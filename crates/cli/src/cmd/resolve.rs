//! Names of hosts.

use crate::args::values::Remote;
use crate::failure::{Failure, Outcome};
use std::net::{SocketAddr, ToSocketAddrs};

/// Asks the resolver for the address of `remote`: the first one that `fits`, or the first of all.
pub(crate) fn resolve(remote: &Remote, fits: impl Fn(&SocketAddr) -> bool) -> Outcome<SocketAddr> {
    let all: Vec<SocketAddr> = (remote.host.as_str(), remote.port)
        .to_socket_addrs()
        .map_err(|e| {
            Failure::new(format!("cannot find the address of {}: {e}", remote.host), "check the name and the network")
        })?
        .collect();
    all.iter()
        .find(|a| fits(a))
        .or(all.first())
        .copied()
        .ok_or_else(|| Failure::new(format!("{} has no address", remote.host), "check the name"))
}
