use crate::farewell::Farewell;
use crate::identity::{Digest, Identity};
use crate::report::SecurityReport;
use braidcast_core::{PathId, Route};
use braidcast_sctp::{AssociationId, CloseReason, Fingerprint};
use core::net::SocketAddr;

/// What a session reports to the layer above it.
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
    /// Data goes over this path from now on, the best one
    /// ([`SenderOptions::selection`](crate::SenderOptions::selection)).
    PathSelected(PathId, Route),
    /// A path has left.
    PathRemoved(PathId, Route),
    /// Sender: the association broke; the next one is being tried. Receiver: the sender is gone, and is waited for.
    Lost(CloseReason),
    /// Receiver: the sender is back; its stream goes on.
    Back,
    /// Sender: another stream is being received; this one has its turn after it.
    InLine,
    /// Reliable sender: the receiver has this number of bytes with this hash, and what is kept here
    /// does not reach there. Answer by [`Sender::resume`](crate::Sender::resume) or
    /// [`Sender::abort`](crate::Sender::abort).
    Resume {
        /// Bytes that the receiver has.
        offset: u64,
        /// Their hash.
        digest: Digest,
    },
    /// Receiver: a stream has its turn. One that is reliable waits for [`Receiver::accept`](crate::Receiver::accept).
    Offered(Offer),
    /// Receiver, reliable: the sender's bytes are others than those that are there; the stream
    /// begins anew at its first byte.
    Anew,
    /// Receiver, reliable: all has been handed out. Flush it and call [`Receiver::flushed`](crate::Receiver::flushed).
    Flush,
    /// Receiver: another sender, or the same one started anew, took the place of one that fell
    /// silent; its stream begins anew.
    Restarted,
    /// Receiver: the sender's clock jumped; the playout follows it.
    ClockJumped,
    /// Sender: a receiver calls, and gets nothing before [`Sender::admit`](crate::Sender::admit)
    /// ([`SenderOptions::ask`](crate::SenderOptions::ask)).
    Calling {
        /// For the answer.
        id: AssociationId,
        /// Where it calls from.
        remotes: Vec<SocketAddr>,
        /// How the connection is protected; `None` without encryption.
        security: Option<SecurityReport>,
    },
    /// At who is called: somebody connected with whom no secure connection came about.
    Insecure(CloseReason),
    /// At who is called: the other end was turned away.
    Refused {
        /// What its stream is called, or the one that it asked for; may be empty.
        name: String,
        /// What it was told.
        why: Farewell,
    },
    /// It is over: at the sender everything is, at the receiver this stream, and everything has
    /// been handed out as well.
    Ended {
        /// `true` if the sender said that this was all and all that was promised came.
        complete: bool,
        /// How the last association ended.
        reason: CloseReason,
    },
}

/// A stream that a sender offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The same as long as it is the same stream.
    pub identity: Identity,
    /// Its name; empty without one.
    pub name: String,
    /// `true` if everything is to be delivered.
    pub reliable: bool,
    /// Bytes of all of it, if the sender knows.
    pub size: Option<u64>,
    /// The key that the sender proved, if it is one that this end knows. What belongs to the stream
    /// belongs to this key and this name.
    pub key: Option<Fingerprint>,
}
