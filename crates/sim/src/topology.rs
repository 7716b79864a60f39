use crate::link::LinkModel;
use std::net::SocketAddr;

/// A node of a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(crate) usize);

/// One direction of a link of a network.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub(crate) usize);

/// A node and one of its interfaces, numbered from 0 in the order of its addresses; the machine knows it as
/// the [`SocketId`](braidcast_core::SocketId) of that number.
pub type Interface = (NodeId, u16);

/// A link in both directions, perhaps with a NAT at its first end.
#[derive(Clone, Debug)]
pub struct Duplex {
    pub(crate) there: LinkModel,
    pub(crate) back: LinkModel,
    pub(crate) nat: Option<SocketAddr>,
}

impl Duplex {
    /// One model from the first end to the second, another for the reverse direction.
    pub const fn new(there: LinkModel, back: LinkModel) -> Self {
        Self { there, back, nat: None }
    }

    /// The same model in each direction.
    pub fn both(model: LinkModel) -> Self {
        Self { there: model.clone(), back: model, nat: None }
    }

    /// Puts the first end behind a NAT: the second sees it at `address` and reaches it there alone.
    ///
    /// # Panics
    /// If `address` is not an IP address with a port.
    #[must_use]
    pub fn behind_nat(self, address: &str) -> Self {
        Self { nat: Some(parse_address(address)), ..self }
    }
}

/// The address in `text`, which stands in the source of a test or experiment.
pub(crate) fn parse_address(text: &str) -> SocketAddr {
    match text.parse() {
        Ok(address) => address,
        Err(_) => panic!("`{text}` is not an address with a port, for example 10.0.0.1:9899 or [fd00::1]:9899"),
    }
}

/// The bytes that IP and UDP add to a datagram towards `remote`; native IP (port 0) has no UDP.
pub(crate) const fn header_bytes(remote: SocketAddr) -> usize {
    let ip = if remote.is_ipv4() { 20 } else { 40 };
    if remote.port() == 0 { ip } else { ip + 8 }
}
