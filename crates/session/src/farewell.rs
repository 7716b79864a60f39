//! Why one end sends the other away.

use braidcast_core::Reason;
use braidcast_sctp::CloseReason;
use core::fmt;

/// What an end says when it ends an association on purpose. Whoever hears one that [is
/// final](Self::is_final) does not come back by itself.
///
/// It travels as the reason of an ABORT (RFC 9260 §3.3.10.12): its number, which stays as it is, and words for people
/// and other tools.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Farewell {
    /// Another sender is being received.
    Busy = 1,
    /// The receiver takes named streams only, and not this one.
    UnknownName = 2,
    /// The receiver has as many streams as it takes.
    Full = 3,
    /// What the receiver lacks cannot be sent any more.
    CannotResume = 4,
    /// The receiver's user ended it.
    ReceiverStopped = 5,
    /// The receiver is shut down by the system, and may come back: the one that is not for good.
    GoingDown = 6,
    /// The sender's user ended it.
    SenderStopped = 7,
    /// The receiver's output failed.
    OutputFailed = 8,
    /// The sender's input failed.
    InputFailed = 9,
    /// A newer start of the same sender took its place.
    Replaced = 10,
    /// It was silent, and another sender took its place.
    Silent = 11,
    /// No hello came, or something that no sender of streams says.
    NoHello = 12,
    /// The other end speaks another version of sessions.
    Version = 13,
    /// The receiver's list of keys does not have the sender's, or no longer.
    NotPermitted = 14,
    /// More came than the receiver's list of keys allows this sender.
    TooMuch = 15,
    /// A sender that is called sends to another receiver.
    Served = 16,
    /// It was silent, and another receiver called.
    Succeeded = 17,
    /// The other end measures networks, and takes no streams.
    Measures = 18,
    /// Who sends has no stream of the name that a receiver asked for. Which there are may follow the words.
    NoSuchStream = 19,
    /// The list of who serves streams does not let this receiver have one, or no longer.
    NotForYou = 20,
    /// Receivers call here, and what called is none.
    NoAsk = 21,
    /// Who serves a stream ended with it.
    Over = 22,
}

impl Farewell {
    /// All of them.
    pub const ALL: [Self; 22] = [
        Self::Busy,
        Self::UnknownName,
        Self::Full,
        Self::CannotResume,
        Self::ReceiverStopped,
        Self::GoingDown,
        Self::SenderStopped,
        Self::OutputFailed,
        Self::InputFailed,
        Self::Replaced,
        Self::Silent,
        Self::NoHello,
        Self::Version,
        Self::NotPermitted,
        Self::TooMuch,
        Self::Served,
        Self::Succeeded,
        Self::Measures,
        Self::NoSuchStream,
        Self::NotForYou,
        Self::NoAsk,
        Self::Over,
    ];

    /// The words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Busy => "busy: another sender is being received",
            Self::UnknownName => "unknown name: the receiver does not expect a stream of this name",
            Self::Full => "busy: the receiver has as many streams as it takes",
            Self::CannotResume => "what the receiver lacks cannot be sent again",
            Self::ReceiverStopped => "the receiver was stopped",
            Self::GoingDown => "the receiver goes down, and may come back",
            Self::SenderStopped => "the sender was stopped",
            Self::OutputFailed => "the receiver cannot write its output",
            Self::InputFailed => "the sender cannot read its input",
            Self::Replaced => "replaced: the same stream was started again",
            Self::Silent => "replaced: silent while another sender waited",
            Self::NoHello => "this is braidcast receive, and the other end is not braidcast send",
            Self::Version => "the other end speaks another version of braidcast",
            Self::NotPermitted => "the receiver's list does not have the sender's key",
            Self::TooMuch => "the sender sends more than the receiver's list allows it",
            Self::Served => "busy: the sender sends to another receiver",
            Self::Succeeded => "replaced: silent while another receiver called",
            Self::Measures => "this is braidcast perf, and the other end is not",
            Self::NoSuchStream => "no stream of this name is sent here",
            Self::NotForYou => "the list of who may have this stream does not have the receiver's key",
            Self::NoAsk => "receivers call here (`braidcast receive --from`), and the other end is none",
            Self::Over => "the stream that is served here has ended",
        }
    }

    /// Returns `true` if there is nothing to come back for.
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::GoingDown | Self::Full | Self::NoSuchStream)
    }

    /// Returns `true` if this end was set up wrongly for that one: by its key, its name or its
    /// version, or as that is no receiver.
    pub const fn is_mismatch(self) -> bool {
        matches!(
            self,
            Self::UnknownName | Self::NoHello | Self::Version | Self::NotPermitted | Self::Measures | Self::NoAsk
        )
    }

    /// What the peer said in full, with what follows the words of a farewell; `None` if it said none.
    pub fn said(reason: &CloseReason) -> Option<String> {
        Self::of(reason)?;
        reason.said().map(ToString::to_string)
    }

    /// What the peer said at the end of an association; `None` if it ended by itself or otherwise.
    pub fn of(reason: &CloseReason) -> Option<Self> {
        Self::of_code(reason.said()?.code)
    }

    /// The one that travels as this number, if there is one.
    pub fn of_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|farewell| *farewell as u32 == code)
    }
}

/// As it travels.
impl From<Farewell> for Reason {
    fn from(farewell: Farewell) -> Self {
        Self::new(farewell as u32, farewell.words())
    }
}

impl fmt::Display for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_sctp::PeerCause;

    #[test]
    fn each_is_told_from_the_others_by_its_number() {
        for (place, farewell) in Farewell::ALL.into_iter().enumerate() {
            let told = Reason::new(place as u32 + 1, "other words");
            let reason = CloseReason::AbortedByPeer(PeerCause::User(told));
            assert_eq!(Farewell::of(&reason), Some(farewell));
            assert_eq!(Farewell::said(&reason).as_deref(), Some("other words"));
            assert_eq!(Reason::from(farewell).code, place as u32 + 1);
        }
        let words = Reason::from(Farewell::Busy.words());
        for other in [PeerCause::None, PeerCause::User(words), PeerCause::User(Reason::new(9999, ""))] {
            assert_eq!(Farewell::of(&CloseReason::AbortedByPeer(other)), None);
        }
        assert_eq!(Farewell::of(&CloseReason::PathsFailed), None);
    }
}
