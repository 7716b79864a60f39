use braidcast_driver::{Link, Via};
use std::net::SocketAddr;
use std::time::Duration;

pub use braidcast_sctp::PathState;

/// A path of a connection: where it leads, and through what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Path {
    /// An address that the other end is bound to.
    pub remote: SocketAddr,
    /// The local interface or address that it leaves through. One that is not there now is waited
    /// for, and joins when it appears.
    pub via: Via,
}

impl Path {
    /// To `remote`, as the routing table has it.
    pub const fn to(remote: SocketAddr) -> Self {
        Self { remote, via: Via::Any }
    }

    /// To `remote` through an interface, for example `wlan0`, or from a local address.
    pub fn via(remote: SocketAddr, via: &str) -> Self {
        let Ok(via) = via.parse::<Via>();
        Self { remote, via }
    }

    pub(crate) fn link(&self) -> Link {
        let name = match &self.via {
            Via::Any => self.remote.to_string(),
            via => via.to_string(),
        };
        Link { via: self.via.clone(), to: self.remote.into(), name }
    }
}

/// A path of a connection as it is now.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PathReport {
    /// The interface or address it leaves through, or else the address that it leads to.
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
