use braidcast_core::words;
use braidcast_sctp::{CloseReason as Inner, PeerCause};
use braidcast_secure::Insecurity;
use std::fmt;

/// Why a connection is over.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Shut down after everything was delivered.
    Shutdown,
    /// This program aborted it.
    Aborted,
    /// The other end's program aborted it, by [`Socket::abort`](crate::Socket::abort).
    ByPeer {
        /// What it called the reason; 0 if it gave none.
        code: u32,
        /// The reason: mostly text in UTF-8, and any bytes.
        reason: Vec<u8>,
    },
    /// The other end's transport ended it, for example as nobody listens there.
    ByTransport {
        /// The code of the error cause (RFC 9260 §3.3.10): 4 if it has no room, or nobody listens.
        cause: u16,
        /// The cause in words.
        text: String,
    },
    /// The other end knows nothing of this connection: it was started anew. Connect again.
    PeerRestarted,
    /// Nobody answered.
    NoAnswer,
    /// The name of a host has no address that is known.
    Unresolved {
        /// The name.
        host: String,
        /// What the resolver says.
        why: String,
    },
    /// The other end was silent on all paths for too long, or no path can be used.
    PathsFailed,
    /// No protection: the peer has none, is somebody else, or does not want us.
    Insecure {
        /// Of which kind.
        why: Insecurity,
        /// The same in words, with more details.
        text: String,
    },
    /// The other end broke the protocol.
    Violation(String),
}

/// Out of Resource (RFC 9260 §3.3.10.4).
const OUT_OF_RESOURCE: u16 = 4;

impl CloseReason {
    /// Bytes of a reason that the other end is told at most.
    pub const MAX_TEXT: usize = Inner::MAX_TEXT;

    /// Returns `true` if connecting again later may succeed though nobody changes anything: nobody
    /// answered or listened, networks failed, or the other end was started anew. Of
    /// [`ByPeer`](Self::ByPeer) only the programs know.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::PeerRestarted
                | Self::NoAnswer
                | Self::Unresolved { .. }
                | Self::PathsFailed
                | Self::ByTransport { cause: OUT_OF_RESOURCE, .. }
        )
    }
}

/// The transport's reason.
impl From<Inner> for CloseReason {
    fn from(reason: Inner) -> Self {
        match reason {
            Inner::Shutdown => Self::Shutdown,
            Inner::Aborted => Self::Aborted,
            // Ends send it that know no such connection (RFC 9260 §8.4).
            Inner::AbortedByPeer(PeerCause::None) | Inner::PeerRestarted => Self::PeerRestarted,
            Inner::AbortedByPeer(PeerCause::User(said)) => Self::ByPeer { code: said.code, reason: said.text },
            Inner::AbortedByPeer(PeerCause::Protocol { code, text }) => Self::ByTransport { cause: code, text },
            Inner::NoAnswer => Self::NoAnswer,
            Inner::PathsFailed => Self::PathsFailed,
            Inner::Insecure(it) => Self::Insecure { why: it.why, text: it.text },
            Inner::Violation(what) => Self::Violation(what),
            other => Self::Violation(other.to_string()),
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("shut down after everything was delivered"),
            Self::Aborted => f.write_str("aborted at this end"),
            Self::ByPeer { code: 0, reason } if reason.is_empty() => f.write_str("aborted by the other end"),
            Self::ByPeer { code: 0, reason } => write!(f, "aborted by the other end: {}", words(reason)),
            Self::ByPeer { code, reason } => {
                write!(f, "aborted by the other end: {} (code {code})", words(reason))
            }
            Self::ByTransport { text, .. } => write!(f, "refused by the other end: {text}"),
            Self::PeerRestarted => f.write_str("the other end was started anew; connect again"),
            Self::NoAnswer => {
                f.write_str("the other end did not answer; is it running, and reachable at this address?")
            }
            Self::Unresolved { host, why } => write!(f, "cannot find the address of {host}: {why}"),
            Self::PathsFailed => f.write_str("no path answers any more"),
            Self::Insecure { text, .. } => write!(f, "no secure connection: {text}"),
            Self::Violation(what) => write!(f, "the other end broke the protocol: {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_sctp::{Insecure, Reason};

    #[test]
    fn what_the_transport_says_is_known_without_reading() {
        let by_peer = |cause| CloseReason::from(Inner::AbortedByPeer(cause));
        let said = by_peer(PeerCause::User(Reason::new(7, [b'x', 0xff])));
        assert_eq!(said.to_string(), "aborted by the other end: x\\xff (code 7)");
        assert_eq!(said, CloseReason::ByPeer { code: 7, reason: vec![b'x', 0xff] });
        assert_eq!(by_peer(PeerCause::None), CloseReason::PeerRestarted);
        let no_room = by_peer(PeerCause::Protocol { code: 4, text: "Out of Resource".into() });
        assert!(no_room.may_pass() && !by_peer(PeerCause::Protocol { code: 13, text: String::new() }).may_pass());
        let insecure = CloseReason::from(Inner::Insecure(Insecure::plain_here()));
        assert!(matches!(insecure, CloseReason::Insecure { why: Insecurity::PlainHere, .. }));
    }
}
