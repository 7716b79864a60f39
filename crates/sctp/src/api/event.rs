use super::{CloseReason, ReconfigurationResult, StreamChange, StreamRequest};
use braidcast_core::{PathId, Route};

/// What an association reports to the layer above it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done; data flows.
    Connected,
    /// A path can carry data: it joined, or came back.
    PathUp(PathId, Route),
    /// A path stopped answering; data goes over the others.
    PathDown(PathId, Route),
    /// A path loses packets of [`PathOptions::base_mtu`](crate::PathOptions::base_mtu) bytes while
    /// smaller ones get through: those are sent from now on.
    PathNarrow(PathId, Route),
    /// Data goes over this path from now on, as it is better than the others
    /// ([`PathOptions::selection`](crate::PathOptions::selection)), or as the one before it failed
    /// ([`PathOptions::switchover`](crate::PathOptions::switchover)).
    PathSelected(PathId, Route),
    /// A path left, or could not join.
    PathRemoved(PathId, Route),
    /// [`recv`](crate::Association::recv) has messages where it had none, or has more of them after
    /// it was called.
    Readable,
    /// There is room to send again after [`SendError::BufferFull`](crate::SendError).
    Writable,
    /// A message was abandoned: too late, or repeated too often.
    Abandoned {
        /// The stream it was sent on.
        stream: u16,
        /// Its payload protocol identifier.
        ppid: u32,
        /// What [`SendOptions::context`](crate::SendOptions) said.
        context: u64,
        /// `true` if a part of it was sent.
        sent: bool,
        /// Why the queue discarded it ([`Options::queue`](crate::Options)); `None` if that had let
        /// it go, or there is none.
        why: Option<braidcast_queue::Why>,
    },
    /// All of a message that was sent with [`SendOptions::report`](crate::SendOptions) was
    /// acknowledged: the application at the other end can read it, or has.
    Delivered {
        /// What [`SendOptions::context`](crate::SendOptions) said.
        context: u64,
    },
    /// Streams begin anew, or there are more of them (RFC 6525): we or the peer wanted it.
    StreamsChanged(StreamChange),
    /// The peer did not do what we asked for ([`reconfigure`](crate::Association::reconfigure)).
    StreamsRefused(StreamRequest, ReconfigurationResult),
    /// The peer lost its state and started over; messages in flight may be lost or repeated (RFC
    /// 9260 §5.2.4).
    Restarted,
    /// The association is about to end, and these messages are neither acknowledged nor abandoned:
    /// whether they arrived is not known. Their [`SendOptions::context`](crate::SendOptions)s, in
    /// the order in which they were sent.
    Unsettled(Vec<u64>),
    /// The association is over; nothing follows. Messages that came before can be taken until the
    /// endpoint is driven again.
    Closed(CloseReason),
}
