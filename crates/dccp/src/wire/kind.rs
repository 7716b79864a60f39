use super::{Reset, ServiceCode};

/// The type of a packet, with the fields of that type (RFC 4340 §5.1 table 1).
///
/// Acknowledgement numbers are as on the wire: 24 bits where the header has short sequence numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Asks for a connection (§5.2).
    Request {
        /// What the client wants to talk to.
        service: ServiceCode,
    },
    /// Grants it (§5.3).
    Response {
        /// The Request that it answers.
        ack: u64,
        /// The Request's.
        service: ServiceCode,
    },
    /// Application data (§5.4).
    Data,
    /// An acknowledgement (§5.4).
    Ack {
        /// Greatest sequence number received.
        ack: u64,
    },
    /// Both (§5.4).
    DataAck {
        /// Greatest sequence number received.
        ack: u64,
    },
    /// The server asks the client to close (§5.5).
    CloseReq {
        /// Greatest sequence number received.
        ack: u64,
    },
    /// Closes the connection (§5.5).
    Close {
        /// Greatest sequence number received.
        ack: u64,
    },
    /// The connection is over (§5.6).
    Reset {
        /// Greatest sequence number received, or where the sender knows of none, 0.
        ack: u64,
        /// Why.
        reset: Reset,
    },
    /// Resynchronises (§5.7).
    Sync {
        /// A packet that came, perhaps out of the window.
        ack: u64,
    },
    /// Answers a Sync (§5.7).
    SyncAck {
        /// The Sync.
        ack: u64,
    },
}

impl Kind {
    /// The type field.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Request { .. } => 0,
            Self::Response { .. } => 1,
            Self::Data => 2,
            Self::Ack { .. } => 3,
            Self::DataAck { .. } => 4,
            Self::CloseReq { .. } => 5,
            Self::Close { .. } => 6,
            Self::Reset { .. } => 7,
            Self::Sync { .. } => 8,
            Self::SyncAck { .. } => 9,
        }
    }

    /// The name without `DCCP-`.
    pub const fn name(&self) -> &'static str {
        Self::NAMES[self.code() as usize]
    }

    /// The names of all types, by code.
    pub const NAMES: [&'static str; 10] =
        ["Request", "Response", "Data", "Ack", "DataAck", "CloseReq", "Close", "Reset", "Sync", "SyncAck"];

    /// The acknowledgement number, which all but Request and Data have.
    pub const fn ack(&self) -> Option<u64> {
        match *self {
            Self::Request { .. } | Self::Data => None,
            Self::Response { ack, .. }
            | Self::Ack { ack }
            | Self::DataAck { ack }
            | Self::CloseReq { ack }
            | Self::Close { ack }
            | Self::Reset { ack, .. }
            | Self::Sync { ack }
            | Self::SyncAck { ack } => Some(ack),
        }
    }

    /// Returns `true` if this counts as a data packet (RFC 4340 §7.7), with or without data in it.
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::Request { .. } | Self::Response { .. } | Self::Data | Self::DataAck { .. })
    }

    /// Returns `true` if sequence numbers may be short (RFC 4340 §5.1).
    pub const fn may_be_short(&self) -> bool {
        matches!(self, Self::Data | Self::Ack { .. } | Self::DataAck { .. })
    }
}
