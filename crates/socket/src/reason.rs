use braidcast_secure::{GuardError, PLAIN_HERE, PLAIN_THERE, Refused};
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
        /// The reason in words. What cannot be shown stands as `\x1b`.
        reason: String,
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

/// Why a connection would not be secure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Insecurity {
    /// The other end has a key that this end does not let in.
    WrongKey,
    /// The other end does not let in this end's key.
    NotLetIn,
    /// The other end does not encrypt, and this end does.
    PlainThere,
    /// This end does not encrypt, and the other end does.
    PlainHere,
    /// Another reason, for example ends of different versions.
    Other,
}

impl CloseReason {
    /// Bytes of a reason that the other end is told at most.
    pub const MAX_TEXT: usize = braidcast_sctp::CloseReason::MAX_TEXT;

    /// Returns `true` if connecting again later may succeed though nobody changes anything: nobody
    /// answered, networks failed, or the other end was started anew. Of [`ByPeer`](Self::ByPeer) only
    /// the programs know.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::PeerRestarted | Self::NoAnswer | Self::Unresolved { .. } | Self::PathsFailed)
    }

    /// `cause` is as the transport shows it.
    fn by_peer(cause: &str) -> Self {
        let said = cause.strip_prefix(PROGRAM).map(|said| said.trim_start_matches(": "));
        let said = said.map(|said| said.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(said));
        let (code, reason) = told(said.unwrap_or(cause));
        Self::ByPeer { code, reason: reason.to_owned() }
    }
}

/// The transport's reason.
impl From<braidcast_sctp::CloseReason> for CloseReason {
    fn from(reason: braidcast_sctp::CloseReason) -> Self {
        use braidcast_sctp::CloseReason as Inner;
        match reason {
            Inner::Shutdown => Self::Shutdown,
            Inner::Aborted => Self::Aborted,
            Inner::AbortedByPeer(cause) if cause == NO_CAUSE => Self::PeerRestarted,
            Inner::AbortedByPeer(cause) => Self::by_peer(&cause),
            Inner::NoAnswer => Self::NoAnswer,
            Inner::PathsFailed => Self::PathsFailed,
            Inner::Insecure(text) => Self::Insecure { why: Insecurity::of(&text), text },
            Inner::Violation(what) => Self::Violation(what),
            other => Self::Violation(other.to_string()),
        }
    }
}

impl Insecurity {
    fn of(text: &str) -> Self {
        let not_let_in = Refused::ByPeer;
        let wrong_key = GuardError::Refused(Refused::ByPeer).told();
        match text {
            _ if text.starts_with(PLAIN_THERE) => Self::PlainThere,
            _ if text.starts_with(PLAIN_HERE) => Self::PlainHere,
            _ if text.starts_with(&not_let_in.to_string()) => Self::NotLetIn,
            _ if text.starts_with(&wrong_key) || text.starts_with(ANOTHER_KEY) => Self::WrongKey,
            _ => Self::Other,
        }
    }
}

/// What the transport says of an ABORT without a cause (RFC 9260 §8.4), which ends send that know
/// no such association.
const NO_CAUSE: &str = "no cause given";
/// What stands before a program's own reason.
const PROGRAM: &str = "User-Initiated Abort";
/// How [`Refused::WrongKey`] begins.
const ANOTHER_KEY: &str = "the other end has another key";

/// What the other end is told: `#CODE REASON`, or the reason alone if the code is 0.
pub(crate) fn to_tell(code: u32, reason: &str) -> String {
    if code == 0 && !reason.starts_with('#') { reason.to_owned() } else { format!("#{code} {reason}") }
}

/// The opposite.
fn told(text: &str) -> (u32, &str) {
    let parts = text.strip_prefix('#').and_then(|rest| rest.split_once(' '));
    let coded = parts.and_then(|(code, reason)| Some((code.parse().ok()?, reason)));
    coded.unwrap_or((0, text))
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shutdown => f.write_str("shut down after everything was delivered"),
            Self::Aborted => f.write_str("aborted at this end"),
            Self::ByPeer { code: 0, reason } if reason.is_empty() => f.write_str("aborted by the other end"),
            Self::ByPeer { code: 0, reason } => write!(f, "aborted by the other end: {reason}"),
            Self::ByPeer { code, reason } => write!(f, "aborted by the other end: {reason} (code {code})"),
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
    use braidcast_sctp::CloseReason as Inner;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn codes_and_words_come_back(code in any::<u32>(), reason in "[ -~]{0,40}", other in ".{0,60}") {
            let shown = format!("User-Initiated Abort: \"{}\"", to_tell(code, &reason));
            prop_assert_eq!(by_peer(&shown), (code, reason));
            // Whatever a peer says is shown.
            by_peer(&other);
            _ = CloseReason::from(Inner::Insecure(other));
        }
    }

    fn by_peer(cause: &str) -> (u32, String) {
        match CloseReason::from(Inner::AbortedByPeer(cause.into())) {
            CloseReason::ByPeer { code, reason } => (code, reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_program_says_comes_out_as_it_went_in() {
        for (code, reason) in [(0, ""), (0, "bye"), (7, "say \"bye\""), (u32::MAX, ""), (0, "#5 is alive"), (0, "#")] {
            let shown = format!("User-Initiated Abort: \"{}\"", to_tell(code, reason));
            assert_eq!(by_peer(&shown), (code, reason.into()), "{shown}");
        }
        assert_eq!(by_peer("User-Initiated Abort"), (0, String::new()));
        assert_eq!(by_peer("User-Initiated Abort: \"#99999999999 x\""), (0, "#99999999999 x".into()));
        assert_eq!(by_peer("Out of Resource"), (0, "Out of Resource".into()));
    }

    #[test]
    fn why_it_is_not_secure_is_known_without_reading() {
        let kind = |text: String| match CloseReason::from(Inner::Insecure(text)) {
            CloseReason::Insecure { why, .. } => why,
            other => panic!("{other:?}"),
        };
        let fingerprint = braidcast_secure::Fingerprint([7; 32]);
        assert_eq!(kind(Refused::WrongKey(fingerprint).to_string()), Insecurity::WrongKey);
        assert_eq!(kind(Refused::ByPeer.to_string()), Insecurity::NotLetIn);
        assert_eq!(kind(GuardError::Refused(Refused::WrongKey(fingerprint)).told()), Insecurity::NotLetIn);
        assert_eq!(kind(PLAIN_HERE.into()), Insecurity::PlainHere);
        assert_eq!(kind(PLAIN_THERE.into()), Insecurity::PlainThere);
        assert_eq!(kind(GuardError::Silent.to_string()), Insecurity::Other);
    }
}
