use crate::api::{QueueScope, StreamOrder};
use braidcast_core::Misuse;
use braidcast_queue::{Limits, Method};

/// Where messages wait until a path has room.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct QueueOptions {
    /// The queue in which messages wait until a path has room, and by which the next one is chosen;
    /// see [`QueueScope`] for what it decides. Expiry is judged by the path that would carry the
    /// message; one that only a quicker path in use would bring in time waits for that, and the
    /// path takes the next one that it does bring in time. Padding (`keep-alive`) is never sent: a
    /// window that is not filled keeps. Default `None`: messages are sent in the order of their
    /// streams.
    pub method: Option<Method>,
    /// Which of the streams that wait is served next (RFC 8260 §3). Default the most important.
    pub stream_order: StreamOrder,
    /// How much waits in a queue at most, one message or more. Bytes are no more than half of
    /// [`send_buffer`](crate::LimitOptions::send_buffer), as the other half is for what was sent.
    /// Default no limit but that.
    pub limits: Limits,
    /// What the queue decides. Default everything.
    pub scope: QueueScope,
}

impl Default for QueueOptions {
    fn default() -> Self {
        Self { method: None, stream_order: StreamOrder::default(), limits: Limits::NONE, scope: QueueScope::default() }
    }
}

impl QueueOptions {
    pub(super) fn check(&self) -> Result<(), Misuse> {
        Misuse::below("queue.limits.messages", self.limits.messages, 1)?;
        Misuse::below("queue.limits.bytes", self.limits.bytes, 1)
    }
}
