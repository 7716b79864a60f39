/// Why [`Association::send`](crate::Association::send) took nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Wait for [`Event::Writable`](crate::Event::Writable).
    #[error("the send buffer of {limit} bytes has {free} free, the message needs {needed}")]
    BufferFull {
        /// Bytes that the message needs.
        needed: usize,
        /// Bytes that are free.
        free: usize,
        /// [`LimitOptions::send_buffer`](crate::LimitOptions::send_buffer).
        limit: usize,
    },
    /// Wait for [`Event::Writable`](crate::Event::Writable): what waits fills the queue, which
    /// discards nothing for a new message.
    #[error("the send queue is full: {messages} messages of {bytes} bytes wait")]
    QueueFull {
        /// Messages that wait in all queues.
        messages: usize,
        /// Bytes in them.
        bytes: usize,
    },
    /// Split the message, or raise the limit at both ends.
    #[error("a message of {len} bytes is longer than the limit of {limit}")]
    TooLong {
        /// Length of the message.
        len: usize,
        /// [`LimitOptions::max_message`](crate::LimitOptions::max_message), or what a queue holds.
        limit: usize,
    },
    /// SCTP cannot carry a message without bytes (RFC 9260 §3.3.1).
    #[error("a message must have at least one byte")]
    Empty,
    /// Use a lower stream, or ask for more streams.
    #[error("stream {stream} is not among the {count} that were negotiated")]
    NoSuchStream {
        /// The stream asked for.
        stream: u16,
        /// How many there are.
        count: u16,
    },
    /// Shut down or aborted, by either side.
    #[error("the association is closing")]
    Closing,
}

/// Why [`Endpoint::connect`](crate::Endpoint::connect) did not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Name at least one route.
    #[error("no route to connect over")]
    NoRoute,
    /// Ports are 1 to 65535.
    #[error("port 0 cannot be connected to")]
    PortZero,
    /// More than [`PathOptions::max_paths`](crate::PathOptions::max_paths).
    #[error("{given} routes where {limit} paths are allowed")]
    TooManyRoutes {
        /// Routes given.
        given: usize,
        /// The limit.
        limit: usize,
    },
    /// There is an association over this route to this port already.
    #[error("already connected over this route")]
    AlreadyConnected,
}

/// Why [`Association::join`](crate::Association::join) did not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The association is over or about to be.
    #[error("the association is closing")]
    Closing,
    /// Only the path of the handshake can be used.
    #[error("the peer does not let paths join (RFC 5061, RFC 4895)")]
    NotSupported,
    /// Leave with one first, or allow more.
    #[error("{limit} paths are in use, more are not allowed")]
    TooManyPaths {
        /// [`PathOptions::max_paths`](crate::PathOptions::max_paths).
        limit: usize,
    },
}

/// Why [`Association::reconfigure`](crate::Association::reconfigure) did not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReconfigureError {
    /// The association is not up, or about to end.
    #[error("the association is not open")]
    NotOpen,
    /// Both ends must offer it.
    #[error("not both ends offer RE-CONFIG (RFC 6525; `Options::reconfiguration`)")]
    NotSupported,
    /// Messages that wait in a queue have no place in their stream yet.
    #[error("streams cannot be numbered anew where messages wait in a queue (`Options::queue`)")]
    Queued,
    /// Name streams that there are.
    #[error("stream {stream} is not among the {count} that there are")]
    NoSuchStream {
        /// The stream asked for.
        stream: u16,
        /// How many there are.
        count: u16,
    },
    /// There are 65,535 at most.
    #[error("{more} streams more than {count} are too many: there are 65535 at most")]
    TooManyStreams {
        /// How many more were asked for.
        more: u16,
        /// How many there are, or were asked for before.
        count: u16,
    },
}
