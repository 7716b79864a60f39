use braidcast_core::{PathId, Route};
use braidcast_sctp::CloseReason;

/// What a session tells the layer above it.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The association is up. At the receiver: this sender's stream is being played from here on.
    Connected,
    /// Sender, reliable: a unit that was given back can be pushed again.
    Room,
    /// A path can be used.
    PathUp(PathId, Route),
    /// A path does not answer any more.
    PathDown(PathId, Route),
    /// Sender: a path loses packets of the usual size while smaller ones get through: those are sent from now on.
    PathNarrow(PathId, Route),
    /// A path has left.
    PathRemoved(PathId, Route),
    /// Receiver: the sender restarted; its stream begins anew. Sender: the receiver did.
    Restarted,
    /// Receiver: the sender's clock jumped; the playout follows it.
    ClockJumped,
    /// Receiver: somebody connected with whom no secure connection came about.
    Insecure(CloseReason),
    /// Receiver: a second sender was turned away.
    Refused,
    /// It is over: at the sender the association is closed, at the receiver everything has been handed out as well.
    Ended {
        /// Whether the sender said that this was all and all that was promised came.
        complete: bool,
        /// How the association ended.
        reason: CloseReason,
    },
}
