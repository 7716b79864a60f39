//! What one end says of a refusal to the other, in words.

use crate::exchange::Refused;
use crate::guard::GuardError;
use crate::offer::Disagreement;

/// What an end that refuses a certificate says of it begins so.
const OF_OUR_CERTIFICATE: &str = "the other end says that our certificate";
/// Why there is no connection, as users read it, where only one end encrypts.
pub const PLAIN_THERE: &str = "the other end does not encrypt, and this end insists on it";
/// The same the other way round.
pub const PLAIN_HERE: &str = "the other end encrypts, and this end does not";
/// What may follow, up to where names and details begin.
const COMPLAINTS: [&str; 6] = [
    "has expired, by the clock of the end that checks it",
    "is not valid yet, by the clock of the end that checks it",
    "is not of an authority that the end which checks it knows",
    "is not for this use (extended key usage)",
    "is good, and not in the list of the end that checks it",
    "is not for",
];

impl GuardError {
    /// Returns the same as the other end sees it.
    pub fn told(&self) -> String {
        match self {
            Self::Refused(Refused::WrongKey(_)) => Refused::ByPeer.to_string(),
            Self::Refused(Refused::Certificate(why)) => format!("{OF_OUR_CERTIFICATE} {why}"),
            Self::Refused(Refused::ByPeer) => "this end does not accept the other end's key".into(),
            Self::Refused(Refused::Altered) => Refused::Altered.to_string(),
            other => format!("the other end says: {other}"),
        }
    }
}

/// Returns what may be shown of a refusal by somebody who has proved no key: those of our own
/// sentences that it begins with. What else it says is its own, and nobody is shown it.
pub fn sentence(text: &str) -> String {
    let own = [
        GuardError::Refused(Refused::ByPeer).told(),
        GuardError::Refused(Refused::Altered).told(),
        Refused::ByPeer.to_string(),
        GuardError::Changed.told(),
        GuardError::Silent.told(),
        GuardError::Spent.told(),
    ];
    let disagreements = Disagreement::ALL.iter().map(ToString::to_string);
    let complaints = COMPLAINTS.iter().map(|complaint| format!("{OF_OUR_CERTIFICATE} {complaint}"));
    let plain = [PLAIN_THERE, PLAIN_HERE].into_iter().map(str::to_owned);
    let known = own.into_iter().chain(disagreements).chain(complaints).chain(plain);
    let longest = known.filter(|known| text.starts_with(known.as_str())).max_by_key(String::len);
    longest.unwrap_or_else(|| "the other end left before it had proved a key".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_strangers_words_only_ours_are_shown() {
        for error in [GuardError::Silent, Refused::ByPeer.into(), Refused::Altered.into()] {
            assert_eq!(sentence(&error.told()), error.told());
        }
        let shown = sentence("the other end says that our certificate is not for cam1\\x1b");
        assert_eq!(shown, format!("{OF_OUR_CERTIFICATE} is not for"));
        let forged = sentence("cam7: a client is there, authenticated by the shared key");
        assert_eq!(forged, "the other end left before it had proved a key");
    }
}
