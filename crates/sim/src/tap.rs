use crate::link::{DropReason, LinkAction};
use crate::topology::LinkId;
use braidcast_core::{Ecn, Instant};
use std::net::SocketAddr;

/// What happened to a datagram.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TapAction {
    /// A machine sent it.
    Sent,
    /// It reached its machine.
    Delivered,
    /// A link dropped it. Seen when the link is next polled, which may be a little later than the drop.
    Dropped(LinkId, DropReason),
    /// No route leads to its destination.
    Unroutable,
}

/// A datagram as the tap sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TapEvent<'a> {
    /// When.
    pub at: Instant,
    /// What happened to it.
    pub action: TapAction,
    /// Its source address: the sender's own, except that `Delivered` has the one that the receiver sees.
    pub from: SocketAddr,
    /// Its destination: the one that the sender used, except that `Delivered` has the receiver's own.
    pub to: SocketAddr,
    /// How it is marked.
    pub ecn: Ecn,
    /// The bytes above UDP, or above IP if the port is 0.
    pub payload: &'a [u8],
}

/// A datagram at a link, as the link tap sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkTapEvent<'a> {
    /// When.
    pub at: Instant,
    /// At which link.
    pub link: LinkId,
    /// What happened to it.
    pub action: LinkAction,
    /// The sender's own address.
    pub from: SocketAddr,
    /// The address that the sender sent it to.
    pub to: SocketAddr,
    /// How it is marked now.
    pub ecn: Ecn,
    /// Its bytes on the wire, headers and the link's overhead included.
    pub len: usize,
    /// Packets in the link's queue after this, the one being sent included.
    pub queue_packets: usize,
    /// Their bytes on the wire.
    pub queue_bytes: usize,
    /// The bytes above UDP, or above IP if the port is 0.
    pub payload: &'a [u8],
}
