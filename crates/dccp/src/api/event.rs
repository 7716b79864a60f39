use crate::wire::{Reset, ResetCode};
use braidcast_core::Route;
use braidcast_queue::Why;
use braidcast_secure::Insecure;
use core::fmt;

/// What a connection reports to the layer above it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is done, that of keys too where there is one; data flows.
    Connected,
    /// [`recv`](crate::Connection::recv) has messages where it had none.
    Readable,
    /// The peer is at another address now, as its newest record came from there. Everything goes over this route.
    Moved(Route),
    /// The path carries longer messages than before, or shorter ones only:
    /// [`max_payload`](crate::Connection::max_payload) is this now.
    MaxPayload(usize),
    /// A message with this [`context`](crate::SendOptions) will not be sent: what the queue says of
    /// it, or nothing if it became too long for the path while it waited.
    Discarded {
        /// What the application called it.
        context: u64,
        /// The reason.
        why: Option<Why>,
    },
    /// There is room to send again after [`SendError::QueueFull`](crate::SendError).
    Writable,
    /// The connection is over; nothing follows.
    Closed(CloseReason),
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Closed as either end asked, and the other agreed.
    Closed,
    /// [`abort`](crate::Connection::abort) was called.
    Aborted,
    /// The handshake got no answer, or [`close`](crate::Connection::close).
    NoAnswer,
    /// The peer reset the connection, perhaps with a text.
    Reset(Reset, String),
    /// No protection: the peer has none, is somebody else, or does not want us.
    Insecure(Insecure),
    /// The peer broke the protocol, and was told so.
    Violation(Reset),
}

impl CloseReason {
    /// Bytes of a text that the peer is told or believed at most.
    pub(crate) const MAX_TEXT: usize = 200;

    /// Why it would not be secure, if that is the reason.
    pub const fn insecure(&self) -> Option<&Insecure> {
        if let Self::Insecure(insecure) = self { Some(insecure) } else { None }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Aborted => f.write_str("aborted at this end"),
            Self::NoAnswer => f.write_str("the peer did not answer; is it running, and reachable at this address?"),
            Self::Reset(reset, text) => {
                match reset.code {
                    ResetCode::CONNECTION_REFUSED => f.write_str("refused: nobody listens at this port"),
                    ResetCode::BAD_SERVICE_CODE => f.write_str("refused: the port is for another service code"),
                    ResetCode::TOO_BUSY => f.write_str("refused: the server is too busy, try later"),
                    _ => write!(f, "reset by the peer: {reset}"),
                }?;
                if text.is_empty() { Ok(()) } else { write!(f, " ({text})") }
            }
            Self::Insecure(why) => write!(f, "no secure connection: {why}"),
            Self::Violation(reset) => write!(f, "the peer broke the protocol: {reset}"),
        }
    }
}
