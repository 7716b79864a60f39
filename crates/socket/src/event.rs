use crate::CloseReason;
use braidcast_core::Route;
use std::net::SocketAddr;

/// What a [`Socket`](crate::Socket) reports of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done and the other end's key accepted; data flows. The first event of a
    /// connection, unless it ends before that.
    Connected,
    /// There are messages to receive where there were none, or still are after some were received.
    /// A program may receive one for each such event, or all that there are.
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
    /// A message that was sent with [`SendOptions::report`](crate::SendOptions::report) was
    /// acknowledged: the program at the other end can read it, or has.
    Delivered {
        /// [`SendOptions::context`](crate::SendOptions::context).
        context: u64,
    },
    /// The other end lost its state and began anew: another process may be there. Messages that
    /// were in flight are [discarded](Self::Discarded).
    Restarted,
    /// The connection is over, and all that was received before has been read; nothing follows.
    Closed {
        /// Why.
        reason: CloseReason,
        /// Messages of which it is not known whether they arrived, by their
        /// [`SendOptions::context`](crate::SendOptions::context), in the order in which they were
        /// sent. All others were acknowledged by the other end, or [discarded](Self::Discarded).
        unsettled: Vec<u64>,
    },
}

/// Who asked for a connection and did not get one, as it has another key or none. Anybody can ask,
/// from any address.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Refused {
    /// Where it is.
    pub remote: SocketAddr,
    /// Why it was refused.
    pub why: CloseReason,
}

/// What an event of the transport is here.
pub(crate) enum Told {
    Event(Event),
    /// These messages were not settled; the end follows.
    Unsettled(Vec<u64>),
    Over(CloseReason),
    /// What only the transport's own tools want to know.
    Nothing,
}

/// Translates `event`. `name`: what the path over a route is called.
pub(crate) fn told(event: braidcast_sctp::Event, name: impl Fn(Route) -> String) -> Told {
    use braidcast_sctp::Event as Inner;
    Told::Event(match event {
        Inner::Connected => Event::Connected,
        Inner::Readable => Event::Readable,
        Inner::Writable => Event::Writable,
        Inner::PathUp(_, route) => Event::PathUp { name: name(route), remote: route.remote },
        Inner::PathDown(_, route) | Inner::PathRemoved(_, route) => {
            Event::PathDown { name: name(route), remote: route.remote }
        }
        Inner::Abandoned { context, .. } => Event::Discarded { context },
        Inner::Delivered { context } => Event::Delivered { context },
        Inner::Restarted => Event::Restarted,
        Inner::Unsettled(contexts) => return Told::Unsettled(contexts),
        Inner::Closed(reason) => return Told::Over(CloseReason::from(reason)),
        _ => return Told::Nothing,
    })
}
