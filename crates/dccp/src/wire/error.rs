/// Why a datagram is no DCCP packet; it is dropped without an answer (RFC 4340 §8.5 step 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// Shorter than its header.
    #[error("{given} bytes given, the header takes {needed}")]
    Short {
        /// Bytes that came.
        given: usize,
        /// Bytes that the fixed header takes.
        needed: usize,
    },
    /// One of the reserved packet types, 10 to 15.
    #[error("packet type {0} is reserved")]
    ReservedType(u8),
    /// Data Offset lies inside the fixed header or beyond the packet.
    #[error("data offset of {given} bytes is not between {header} and {len}")]
    DataOffset {
        /// Bytes before the application data, as the packet says.
        given: usize,
        /// Bytes of the fixed header.
        header: usize,
        /// Bytes of the packet.
        len: usize,
    },
    /// Short sequence numbers on a type that must have long ones.
    #[error("{0} packets must have long sequence numbers")]
    ShortSequence(&'static str),
    /// More application data covered than there is.
    #[error("checksum coverage {coverage} is too large for {payload} bytes of data")]
    Coverage {
        /// The field.
        coverage: u8,
        /// Bytes of application data.
        payload: usize,
    },
    /// The checksum does not match.
    #[error("the header checksum is wrong")]
    Checksum,
}
