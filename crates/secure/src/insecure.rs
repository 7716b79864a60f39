//! Why two ends have no secure connection: for programs, for people, and for the other end.

use crate::exchange::{Fingerprint, Refused};
use crate::guard::GuardError;
use crate::offer::Disagreement;
use braidcast_core::{Reason, words};
use core::fmt;

/// What an end that refuses a certificate says of it begins so.
const OF_OUR_CERTIFICATE: &str = "the other end says that our certificate";
/// What may follow, up to where names and details begin.
const COMPLAINTS: [&str; 6] = [
    "has expired, by the clock of the end that checks it",
    "is not valid yet, by the clock of the end that checks it",
    "is not of an authority that the end which checks it knows",
    "is not for this use (extended key usage)",
    "is good, and not in the list of the end that checks it",
    "is not for",
];

/// Why a connection would not be secure. Numbers travel: they stay as they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Insecurity {
    /// Another reason.
    Other = 0,
    /// The other end has a key that this end does not let in.
    WrongKey = 1,
    /// The other end does not let in this end's key.
    NotLetIn = 2,
    /// The other end does not encrypt, and this end does.
    PlainThere = 3,
    /// This end does not encrypt, and the other end does.
    PlainHere = 4,
    /// The ends know no common way to agree on keys: their versions differ.
    Version = 5,
    /// Somebody in between changed what the ends offered each other, or their versions differ.
    Altered = 6,
    /// This end has a key, and the other end has none.
    NoKeyThere = 7,
    /// The other end has a key, and this end has none.
    NoKeyHere = 8,
    /// This end has a certificate, and the other end has none.
    NoCertificateThere = 9,
    /// The other end has a certificate, and this end has none.
    NoCertificateHere = 10,
    /// This end takes only keys that it knows, and the other end has none of its own.
    UnknownThere = 11,
    /// The other end takes only keys that it knows, and this end has none of its own.
    UnknownHere = 12,
    /// A certificate is not valid at this time, by the clock of the end that checks it.
    Clock = 13,
    /// The certificate is for another host.
    WrongHost = 14,
    /// A certificate is not good for another reason.
    Certificate = 15,
    /// The other end agreed on no keys in time.
    Silent = 16,
    /// The other end showed another key in the middle of the connection.
    Changed = 17,
    /// Keys were used up before new ones were agreed on.
    Spent = 18,
}

impl Insecurity {
    /// All of them, by their numbers.
    const ALL: [Self; 19] = [
        Self::Other,
        Self::WrongKey,
        Self::NotLetIn,
        Self::PlainThere,
        Self::PlainHere,
        Self::Version,
        Self::Altered,
        Self::NoKeyThere,
        Self::NoKeyHere,
        Self::NoCertificateThere,
        Self::NoCertificateHere,
        Self::UnknownThere,
        Self::UnknownHere,
        Self::Clock,
        Self::WrongHost,
        Self::Certificate,
        Self::Silent,
        Self::Changed,
        Self::Spent,
    ];
}

/// Why there is no secure connection.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Insecure {
    /// Of which kind.
    pub why: Insecurity,
    /// In words.
    pub text: String,
    /// The key that the other end has in place of the one that was expected ([`Insecurity::WrongKey`]).
    pub shown: Option<Fingerprint>,
}

impl Insecure {
    /// Of this kind, in these words.
    pub fn new(why: Insecurity, text: impl Into<String>) -> Self {
        Self { why, text: text.into(), shown: None }
    }

    /// The other end does not encrypt.
    pub fn plain_there() -> Self {
        Self::new(Insecurity::PlainThere, "the other end does not encrypt, and this end insists on it")
    }

    /// The other end encrypts, and this end does not.
    pub fn plain_here() -> Self {
        Self::new(Insecurity::PlainHere, "the other end encrypts, and this end does not")
    }

    /// As the other end is told it, if this is how it sees it.
    pub fn reason(&self) -> Reason {
        Reason::new(self.why as u32, &self.text)
    }

    /// What the other end says. Of a `stranger`, who has proved no key, only those of its words are
    /// kept that are ours too.
    pub fn told_by_peer(reason: &Reason, stranger: bool) -> Self {
        let known = usize::try_from(reason.code).ok().and_then(|code| Insecurity::ALL.get(code));
        let text = words(&reason.text);
        let text = if stranger { own_sentence(&text) } else { text };
        Self::new(known.copied().unwrap_or(Insecurity::Other), text)
    }
}

impl fmt::Display for Insecure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&GuardError> for Insecure {
    fn from(error: &GuardError) -> Self {
        let why = match error {
            GuardError::Refused(Refused::WrongKey(_)) => Insecurity::WrongKey,
            GuardError::Refused(Refused::ByPeer) => Insecurity::NotLetIn,
            GuardError::Refused(Refused::Certificate(why, _)) => *why,
            GuardError::Refused(Refused::Altered) => Insecurity::Altered,
            GuardError::Refused(Refused::Broken(_)) => Insecurity::Other,
            GuardError::Changed => Insecurity::Changed,
            GuardError::Silent => Insecurity::Silent,
            GuardError::Spent => Insecurity::Spent,
        };
        let shown = if let GuardError::Refused(Refused::WrongKey(key)) = error { Some(*key) } else { None };
        Self { why, text: error.to_string(), shown }
    }
}

impl From<Disagreement> for Insecure {
    fn from(disagreement: Disagreement) -> Self {
        let why = match disagreement {
            Disagreement::NoCommonMethod => Insecurity::Version,
            Disagreement::Tie | Disagreement::Roles => Insecurity::Other,
            Disagreement::NoKeyThere => Insecurity::NoKeyThere,
            Disagreement::NoKeyHere => Insecurity::NoKeyHere,
            Disagreement::NoCertificateThere => Insecurity::NoCertificateThere,
            Disagreement::NoCertificateHere => Insecurity::NoCertificateHere,
            Disagreement::UnknownThere => Insecurity::UnknownThere,
            Disagreement::UnknownHere => Insecurity::UnknownHere,
        };
        Self::new(why, disagreement.to_string())
    }
}

impl GuardError {
    /// Returns the same as the other end sees it.
    pub fn told(&self) -> Insecure {
        let here = Insecure::from(self);
        match self {
            Self::Refused(Refused::WrongKey(_)) => Self::Refused(Refused::ByPeer).as_seen_there(Insecurity::NotLetIn),
            Self::Refused(Refused::Certificate(why, text)) => {
                Insecure::new(*why, format!("{OF_OUR_CERTIFICATE} {text}"))
            }
            Self::Refused(Refused::ByPeer) => {
                Insecure::new(Insecurity::WrongKey, "this end does not accept the other end's key")
            }
            Self::Refused(Refused::Altered) => self.as_seen_there(here.why),
            other => Insecure::new(here.why, format!("the other end says: {other}")),
        }
    }

    fn as_seen_there(&self, why: Insecurity) -> Insecure {
        Insecure::new(why, self.to_string())
    }
}

/// Returns what may be shown of a refusal by somebody who has proved no key: those of our own
/// sentences that it begins with. What else it says is its own, and nobody is shown it.
fn own_sentence(text: &str) -> String {
    let own = [
        GuardError::Refused(Refused::ByPeer).told().text,
        GuardError::Refused(Refused::Altered).told().text,
        Refused::ByPeer.to_string(),
        GuardError::Changed.told().text,
        GuardError::Silent.told().text,
        GuardError::Spent.told().text,
    ];
    let disagreements = Disagreement::ALL.iter().map(ToString::to_string);
    let complaints = COMPLAINTS.iter().map(|complaint| format!("{OF_OUR_CERTIFICATE} {complaint}"));
    let plain = [Insecure::plain_there(), Insecure::plain_here()].map(|it| it.text);
    let known = own.into_iter().chain(disagreements).chain(complaints).chain(plain);
    let longest = known.filter(|known| text.starts_with(known.as_str())).max_by_key(String::len);
    longest.unwrap_or_else(|| "the other end left before it had proved a key".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the other end makes of it, as far as it trusts us.
    fn there(told: &Insecure, stranger: bool) -> Insecure {
        Insecure::told_by_peer(&Reason::parse(&told.reason().emit(256)), stranger)
    }

    #[test]
    fn of_a_strangers_words_only_ours_are_shown() {
        for error in [GuardError::Silent, Refused::ByPeer.into(), Refused::Altered.into()] {
            assert_eq!(there(&error.told(), true), error.told());
        }
        let stranger = |text: &str| Insecure::told_by_peer(&text.into(), true);
        let shown = stranger("the other end says that our certificate is not for cam1\\x1b");
        assert_eq!(shown.text, format!("{OF_OUR_CERTIFICATE} is not for"));
        let forged = stranger("cam7: a client is there, authenticated by the shared key");
        assert_eq!(forged.text, "the other end left before it had proved a key");
        assert_eq!(Insecure::told_by_peer(&Reason::new(99, ""), true).why, Insecurity::Other);
    }

    #[test]
    fn each_kind_arrives_as_its_number() {
        for (number, why) in Insecurity::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, number);
            assert_eq!(there(&Insecure::new(why, "x"), false), Insecure::new(why, "x"));
        }
    }

    #[test]
    fn what_one_end_refuses_is_the_other_way_round_there() {
        let key = Fingerprint([7; 32]);
        let wrong = GuardError::Refused(Refused::WrongKey(key));
        assert_eq!((Insecure::from(&wrong).why, Insecure::from(&wrong).shown), (Insecurity::WrongKey, Some(key)));
        assert_eq!((wrong.told().why, wrong.told().shown), (Insecurity::NotLetIn, None));
        let expired = GuardError::Refused(Refused::Certificate(Insecurity::Clock, "has expired".into()));
        assert_eq!((Insecure::from(&expired).why, expired.told().why), (Insecurity::Clock, Insecurity::Clock));
        for disagreement in Disagreement::ALL {
            let (here, there) = (Insecure::from(disagreement), Insecure::from(disagreement.mirrored()));
            assert_eq!(here == there, disagreement == disagreement.mirrored());
        }
    }
}
