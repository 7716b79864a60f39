use crate::number::Tsn;
use braidcast_core::{Instant, PathId};

/// How a fragment says to which message it belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Key {
    /// DATA: the stream sequence number; fragments stand in the order of their TSNs.
    Ssn(u16),
    /// I-DATA (RFC 8260 §2.1).
    Mid {
        /// The message identifier.
        mid: u32,
        /// The fragment sequence number; 0 in the first fragment, where the wire has the PPID instead.
        fsn: u32,
    },
}

/// What a DATA or I-DATA chunk carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fragment<'a> {
    /// Unwrapped by [`Tracker`](super::Tracker).
    pub(crate) tsn: Tsn,
    /// Checked against the number of streams negotiated.
    pub(crate) stream: u16,
    /// The U bit.
    pub(crate) unordered: bool,
    /// The B bit.
    pub(crate) first: bool,
    /// The E bit.
    pub(crate) last: bool,
    /// The T bit, if it was agreed on: of the last fragment it counts.
    pub(crate) timed: bool,
    /// Of the first fragment it counts; of others it is ignored.
    pub(crate) ppid: u32,
    /// Its message, and with I-DATA its place there.
    pub(crate) key: Key,
    /// Not empty: a chunk without user data is a violation that the caller answers (RFC 9260 §6.2).
    pub(crate) payload: &'a [u8],
    /// The path it came over.
    pub(crate) path: PathId,
    /// When.
    pub(crate) arrived: Instant,
}

impl Fragment<'_> {
    /// What each fragment is charged beside its payload, in bytes: about what the maps and the allocator spend
    /// on a message of one byte that waits.
    pub(crate) const OVERHEAD: usize = 128;
}

/// Why a fragment was dropped. All but [`InvalidStream`](Self::InvalidStream) are violations of the protocol
/// after which the message cannot be completed: abort the association.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ReassemblyError {
    /// To be answered by an ERROR chunk with the cause Invalid Stream Identifier (RFC 9260 §6.5).
    #[error("stream {0} was not negotiated")]
    InvalidStream(u16),
    #[error("DATA where I-DATA was negotiated, or I-DATA where it was not")]
    WrongKind,
    #[error("a first fragment whose FSN is not 0, or another fragment whose FSN is 0")]
    FirstFsn,
    #[error("the same fragment of a message again under another TSN")]
    Repeated,
    #[error("a fragment past the last one of its message")]
    PastLast,
    #[error("consecutive fragments that differ in stream, order or sequence number")]
    Mismatch,
    #[error("two messages with the same sequence number")]
    RepeatedMessage,
    #[error("a message that has nothing but its times")]
    NothingButTimes,
    #[error("a message of more than {limit} bytes")]
    TooLong { limit: usize },
}
