/// Why [`Connection::send`](crate::Connection::send) took nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// Congestion control lets data out more slowly than it comes in: wait for
    /// [`Event::Writable`](crate::Event::Writable).
    #[error("{messages} messages of {bytes} bytes wait already, as congestion control allows no more for now")]
    QueueFull {
        /// Messages that wait.
        messages: usize,
        /// Bytes in them.
        bytes: usize,
    },
    /// DCCP does not fragment: split the message, or see whether
    /// [`Event::MaxPayload`](crate::Event) reports a larger limit soon.
    #[error("a message of {len} bytes is longer than the {limit} that a packet carries")]
    TooLong {
        /// Length of the message.
        len: usize,
        /// [`Connection::max_payload`](crate::Connection::max_payload), or all bytes of the
        /// [`send_queue`](crate::Options::send_queue) if these are fewer.
        limit: usize,
    },
    /// More covered than there is, or above 15.
    #[error("checksum coverage {coverage} does not fit a message of {len} bytes")]
    Coverage {
        /// [`SendOptions::coverage`](crate::SendOptions).
        coverage: u8,
        /// Length of the message.
        len: usize,
    },
    /// The peer takes only messages with more coverage (RFC 4340 §9.2.1).
    #[error("checksum coverage {coverage} is less than the {minimum} that the peer takes")]
    CoverageRefused {
        /// [`SendOptions::coverage`](crate::SendOptions).
        coverage: u8,
        /// Minimum Checksum Coverage of the peer.
        minimum: u8,
    },
    /// The peer's application listens no longer (RFC 4340 §11.7.2).
    #[error("the peer's application listens no longer")]
    NotListening,
    /// Closed or reset, by either side.
    #[error("the connection is closing")]
    Closing,
}

/// Why [`Endpoint::connect`](crate::Endpoint::connect) did not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Ports are 1 to 65535.
    #[error("port 0 cannot be connected to")]
    PortZero,
    /// There is a connection with these ports over this route, or was a short time ago (TIMEWAIT).
    #[error("the ports are in use over this route, or were less than four minutes ago")]
    PortsInUse,
    /// The service code 4294967295 is reserved.
    #[error("the service code is the invalid one")]
    BadServiceCode,
    /// More than [`Options::max_connections`](crate::Options).
    #[error("{limit} connections are open already")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// Straight over IP, the checksum needs to know our address: see
    /// [`Endpoint::set_local_address`](crate::Endpoint::set_local_address).
    #[error("the local address of the socket is not known")]
    NoLocalAddress,
}

/// Why [`Endpoint::listen`](crate::Endpoint::listen) did not start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Ports are 1 to 65535.
    #[error("port 0 cannot be listened at")]
    PortZero,
    /// The service code 4294967295 is reserved.
    #[error("the service code is the invalid one")]
    BadServiceCode,
}
