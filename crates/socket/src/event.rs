use braidcast_core::Route;
use braidcast_sctp::CloseReason;
use std::net::SocketAddr;

/// What a [`Socket`](crate::Socket) reports of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done; data flows.
    Connected,
    /// There are messages to receive where there were none.
    Readable,
    /// There is room again after [`SendError::BufferFull`](braidcast_sctp::SendError::BufferFull).
    Writable,
    /// A path carries data: it joined, or came back.
    PathUp {
        /// Its name, or the address that it leads to.
        name: String,
        /// Where it leads.
        remote: SocketAddr,
    },
    /// A path no longer answers; data goes over the others.
    PathDown {
        /// Its name, or the address that it leads to.
        name: String,
        /// Where it leads.
        remote: SocketAddr,
    },
    /// A message was discarded: too late, or repeated too often.
    Discarded {
        /// [`SendOptions::context`](crate::SendOptions::context).
        context: u64,
    },
    /// The connection is over; nothing follows. What was received before can no longer be read.
    Closed(CloseReason),
}

impl Event {
    /// What `event` is here; `None` for what only the transport's own tools want to know.
    pub(crate) fn of(event: braidcast_sctp::Event, name: impl Fn(Route) -> String) -> Option<Self> {
        use braidcast_sctp::Event as Inner;
        Some(match event {
            Inner::Connected => Self::Connected,
            Inner::Readable => Self::Readable,
            Inner::Writable => Self::Writable,
            Inner::PathUp(_, route) => Self::PathUp { name: name(route), remote: route.remote },
            Inner::PathDown(_, route) | Inner::PathRemoved(_, route) => {
                Self::PathDown { name: name(route), remote: route.remote }
            }
            Inner::Abandoned { context, .. } => Self::Discarded { context },
            Inner::Closed(reason) => Self::Closed(reason),
            _ => return None,
        })
    }
}
