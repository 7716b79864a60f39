use super::carrier::Farewell;
use super::header::FlowId;
use super::machine::LinkId;
use braidcast_core::{Route, SocketId};
use std::net::SocketAddr;
use std::time::Duration;

/// What a tunnel asks its owner to do, or to show.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum TunnelEvent {
    /// The handshake with an end is done.
    Connected(LinkId),
    /// The connection is over; a client makes another one by itself.
    Disconnected(LinkId, Farewell),
    /// Somebody could not be connected with, as protection was not to be agreed on.
    TurnedAway(Farewell),
    /// A new flow needs a socket towards this address; answer with [`Tunnel::give_socket`](super::Tunnel::give_socket).
    WantSocket(LinkId, FlowId, SocketAddr),
    /// A flow was forgotten; its socket is free.
    FreeSocket(SocketId),
    /// The first datagram that was too long, and the limit.
    TooLong(usize, usize),
    /// The other end has more --listen than we have --forward; said once.
    NoForward(u8),
    /// The one-way delay to this end is longer than the lifetime of a flow's datagrams, which comes
    /// second: nearly all of them are discarded. Said once.
    TooFar(LinkId, Duration, Duration),
    /// Congestion control allows less than the lowest useful rate, or no longer.
    BelowMinimum(LinkId, bool),
    /// No more calls fit to this end: that of the application at this address is not carried.
    CallRefused(LinkId, SocketAddr),
    /// One of several paths to this end, or the only one, carries data now, or answers no longer.
    Path(LinkId, Route, bool),
}
