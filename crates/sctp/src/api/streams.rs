use core::fmt;

/// What [`Association::reconfigure`](crate::Association::reconfigure) asks the peer for (RFC 6525).
/// An empty list stands for all streams.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamRequest {
    /// Number the messages of these outgoing streams from 0 again, once all that was given to
    /// [`send`](crate::Association::send) before has gone; what is given after that waits until it
    /// is done. A stream that waits for that already does so once.
    ResetOutgoing(Vec<u16>),
    /// The peer is to do that with streams of its own.
    ResetIncoming(Vec<u16>),
    /// So many more outgoing streams.
    AddOutgoing(u16),
    /// So many more incoming streams.
    AddIncoming(u16),
}

/// What has changed about streams: [`Event::StreamsChanged`](crate::Event::StreamsChanged). An
/// empty list stands for all streams.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamChange {
    /// The next ordered message on these outgoing streams is their first.
    OutgoingReset(Vec<u16>),
    /// The peer did that with its own streams: all of before has come, and may still be waiting in
    /// [`recv`](crate::Association::recv).
    IncomingReset(Vec<u16>),
    /// There are so many outgoing streams now.
    Outgoing(u16),
    /// There are so many incoming streams now.
    Incoming(u16),
}

/// What became of a request (RFC 6525 §4.4, table 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReconfigurationResult {
    /// It was so already.
    NothingToDo,
    /// Done.
    Performed,
    /// The peer does not want it.
    Denied,
    /// There is no such stream.
    WrongStream,
    /// One request at a time.
    AlreadyInProgress,
    /// Its number is not the one that is due.
    BadSequenceNumber,
    /// It will be done.
    InProgress,
    /// A number that is not known here.
    Other(u32),
}

impl ReconfigurationResult {
    /// As it stands on the wire.
    pub(crate) const fn wire(self) -> u32 {
        match self {
            Self::NothingToDo => 0,
            Self::Performed => 1,
            Self::Denied => 2,
            Self::WrongStream => 3,
            Self::AlreadyInProgress => 4,
            Self::BadSequenceNumber => 5,
            Self::InProgress => 6,
            Self::Other(other) => other,
        }
    }

    pub(crate) const fn from_wire(number: u32) -> Self {
        match number {
            0 => Self::NothingToDo,
            1 => Self::Performed,
            2 => Self::Denied,
            3 => Self::WrongStream,
            4 => Self::AlreadyInProgress,
            5 => Self::BadSequenceNumber,
            6 => Self::InProgress,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for ReconfigurationResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NothingToDo => f.write_str("nothing to do"),
            Self::Performed => f.write_str("performed"),
            Self::Denied => f.write_str("denied"),
            Self::WrongStream => f.write_str("no such stream"),
            Self::AlreadyInProgress => f.write_str("another request is in progress"),
            Self::BadSequenceNumber => f.write_str("bad sequence number"),
            Self::InProgress => f.write_str("in progress"),
            Self::Other(other) => write!(f, "result {other}"),
        }
    }
}
