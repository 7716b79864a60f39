use super::link::Ended;
use super::refusal::Refusal;
use std::net::SocketAddr;

/// A connection, by the number of our socket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u32);

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A connection is up.
    Connected(ConnectionId),
    /// It is over; a caller goes on trying.
    Ended(ConnectionId, Ended),
    /// A caller was refused.
    Refused {
        /// Who called.
        peer: SocketAddr,
        /// Why.
        why: Refusal,
        /// The stream that it meant.
        stream_id: String,
    },
    /// The listener refused us; we go on trying.
    RefusedByPeer(Refusal),
    /// Nobody answers; we go on trying.
    NoAnswer,
}
