use crate::wire::cause::kind;
use crate::wire::{Cause, Causes};
use braidcast_core::{Reason, reason};
use braidcast_secure::{Insecure, Insecurity};
use core::fmt;

/// Why an association ended.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CloseReason {
    /// Shut down after everything was delivered.
    Shutdown,
    /// [`abort`](crate::Association::abort) was called.
    Aborted,
    /// The peer aborted, with this cause.
    AbortedByPeer(PeerCause),
    /// The peer has begun anew, so that nothing of what it knew is left.
    PeerRestarted,
    /// The handshake got no answer.
    NoAnswer,
    /// No path answered any more.
    PathsFailed,
    /// No protection: the peer has none, is somebody else, or does not want us.
    Insecure(Insecure),
    /// The peer broke the protocol.
    Violation(String),
}

/// What an ABORT of the peer says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeerCause {
    /// Nothing: it knows no such association (RFC 9260 §8.4).
    None,
    /// Its application ended the association, for this reason (RFC 9260 §3.3.10.12).
    User(Reason),
    /// The protocol did.
    Protocol {
        /// The code of the error cause (RFC 9260 §3.3.10).
        code: u16,
        /// The cause in words.
        text: String,
    },
}

impl CloseReason {
    /// Bytes of a text that the peer is told at most: it fits a packet of any path, with what else
    /// an ABORT needs.
    pub const MAX_TEXT: usize = 256;

    /// What an association says at its end that was to find out who is there.
    pub(crate) const ASKED: &'static str = "it was asked who is there";

    /// The beginning of `text` that the peer is told, of whole characters.
    pub(crate) fn cut(text: &str) -> &[u8] {
        reason::cut(text.as_bytes(), Self::MAX_TEXT)
    }

    /// `stranger`: the peer has proved no key, so that of its words only those count that are ours
    /// too.
    pub(crate) fn by_peer(causes: Causes<'_>, stranger: bool) -> Self {
        let mut known = causes.iter().flatten().filter_map(|raw| Cause::parse(raw).ok());
        match known.next() {
            Some(cause @ Cause::NoProtection { .. }) => match known.next() {
                // Behind it stands a sentence for people, if the peer is one of ours.
                Some(Cause::UserInitiatedAbort(said)) => {
                    Self::Insecure(Insecure::told_by_peer(&Reason::parse(said), stranger))
                }
                _ => Self::Insecure(Insecure::new(cause.insecurity(), cause.to_string())),
            },
            // It has its answer, and nobody need hear of it.
            Some(Cause::UserInitiatedAbort(said)) if stranger && said == Self::ASKED.as_bytes() => Self::NoAnswer,
            _ if stranger => Self::Insecure(Insecure::told_by_peer(&Reason::default(), true)),
            Some(Cause::UserInitiatedAbort(said)) => Self::AbortedByPeer(PeerCause::User(Reason::parse(said))),
            Some(cause) => Self::AbortedByPeer(PeerCause::Protocol { code: cause.kind(), text: cause.to_string() }),
            None => Self::AbortedByPeer(PeerCause::None),
        }
    }

    /// What the peer's application said, if it ended the association.
    pub const fn said(&self) -> Option<&Reason> {
        match self {
            Self::AbortedByPeer(PeerCause::User(reason)) => Some(reason),
            _ => None,
        }
    }

    /// Why it would not be secure, if that is the reason.
    pub const fn insecure(&self) -> Option<&Insecure> {
        if let Self::Insecure(insecure) = self { Some(insecure) } else { None }
    }
}

impl Cause<'_> {
    /// What a cause about protection means without more words.
    const fn insecurity(&self) -> Insecurity {
        match self {
            Self::NoProtection { kind: kind::NO_PROTECTION } => Insecurity::PlainHere,
            _ => Insecurity::Version,
        }
    }
}

impl fmt::Display for PeerCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no cause given"),
            Self::User(reason) if reason.text.is_empty() => f.write_str("User-Initiated Abort"),
            Self::User(reason) => write!(f, "User-Initiated Abort: \"{reason}\""),
            Self::Protocol { text, .. } => f.write_str(text),
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("shut down after everything was delivered"),
            Self::Aborted => f.write_str("aborted at this end"),
            Self::AbortedByPeer(cause) => write!(f, "aborted by the peer: {cause}"),
            Self::PeerRestarted => f.write_str("the other end was started anew"),
            Self::NoAnswer => f.write_str("the peer did not answer; is it running, and reachable at this address?"),
            Self::PathsFailed => f.write_str("no path answers any more"),
            Self::Insecure(why) => write!(f, "no secure connection: {why}"),
            Self::Violation(what) => write!(f, "the peer broke the protocol: {what}"),
        }
    }
}
