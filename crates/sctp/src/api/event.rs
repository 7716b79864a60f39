use super::{ReconfigurationResult, StreamChange, StreamRequest};
use crate::wire::Cause;
use braidcast_core::{PathId, Route, words};
use braidcast_secure::sentence;
use core::fmt;

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

/// Why an association ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Shut down after everything was delivered.
    Shutdown,
    /// [`abort`](crate::Association::abort) was called.
    Aborted,
    /// The peer aborted, with this cause.
    AbortedByPeer(String),
    /// The handshake got no answer.
    NoAnswer,
    /// No path answered any more.
    PathsFailed,
    /// No protection: the peer has none, is somebody else, or does not want us.
    Insecure(String),
    /// The peer broke the protocol.
    Violation(String),
}

impl CloseReason {
    /// Bytes of a text that the peer is told at most: it fits a packet of any path, with what else
    /// an ABORT needs.
    pub const MAX_TEXT: usize = 256;

    /// The beginning of `text` that the peer is told, of whole characters.
    pub(crate) fn cut(text: &str) -> &[u8] {
        let end = (0..=text.len().min(Self::MAX_TEXT)).rfind(|&at| text.is_char_boundary(at));
        &text.as_bytes()[..end.unwrap_or_default()]
    }

    pub(crate) fn by_peer(causes: crate::wire::Causes<'_>) -> Self {
        let first = causes.iter().flatten().find_map(|raw| Cause::parse(raw).ok());
        if let Some(cause @ Cause::NoProtection { .. }) = first {
            // Behind it stands a sentence for people, if the peer is one of ours.
            let second = causes.iter().flatten().nth(1).and_then(|raw| Cause::parse(raw).ok());
            return Self::Insecure(match second {
                Some(Cause::UserInitiatedAbort(text)) => words(text),
                _ => cause.to_string(),
            });
        }
        Self::AbortedByPeer(first.map_or_else(|| "no cause given".into(), |cause| cause.to_string()))
    }
}

impl CloseReason {
    /// What an association says at its end that was to find out who is there.
    pub(crate) const ASKED: &'static str = "it was asked who is there";

    /// Returns the same of a peer that has proved no key: of its words only those that are ours
    /// too.
    pub(crate) fn of_stranger(self) -> Self {
        match self {
            Self::Insecure(why) => Self::Insecure(sentence(&why)),
            // It has its answer, and nobody need hear of it.
            Self::AbortedByPeer(why) if why.contains(Self::ASKED) => Self::NoAnswer,
            Self::AbortedByPeer(why) => Self::Insecure(sentence(&why)),
            other => other,
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("shut down after everything was delivered"),
            Self::Aborted => f.write_str("aborted at this end"),
            Self::AbortedByPeer(cause) => write!(f, "aborted by the peer: {cause}"),
            Self::NoAnswer => f.write_str("the peer did not answer; is it running, and reachable at this address?"),
            Self::PathsFailed => f.write_str("no path answers any more"),
            Self::Insecure(why) => write!(f, "no secure connection: {why}"),
            Self::Violation(what) => write!(f, "the peer broke the protocol: {what}"),
        }
    }
}
