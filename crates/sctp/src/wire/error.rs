use core::fmt;

use super::chunk::kind;

/// The part of a packet that an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The packet as a whole.
    Packet,
    /// A chunk of this type.
    Chunk(u8),
    /// A parameter of this type.
    Parameter(u16),
    /// An error cause of this code.
    Cause(u16),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packet => f.write_str("packet"),
            Self::Chunk(kind) => match kind::name(kind) {
                Some(name) => write!(f, "{name} chunk"),
                None => write!(f, "chunk of type {kind:#04x}"),
            },
            Self::Parameter(kind) => write!(f, "parameter of type {kind:#06x}"),
            Self::Cause(code) => write!(f, "error cause of code {code:#06x}"),
        }
    }
}

/// Why bytes from the network are not what they should be. Always the sender's fault, or the network's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParseError {
    /// The length, in bytes and including the header, is not what the content needs.
    #[error("{place}: {given} bytes given, {needed} needed")]
    Length {
        /// What has the wrong length.
        place: Place,
        /// Bytes that are there.
        given: usize,
        /// Bytes that there should be; the least where several lengths are right.
        needed: usize,
    },
    /// The CRC32c does not match (RFC 9260 §6.8).
    #[error("checksum {given:#010x} in the packet, {computed:#010x} computed")]
    Checksum {
        /// The checksum in the packet.
        given: u32,
        /// The checksum of what arrived.
        computed: u32,
    },
    /// A parameter stands where another type is required.
    #[error("{place}: parameter of type {kind:#06x} where it must not be")]
    Unexpected {
        /// What holds the parameter.
        place: Place,
        /// The parameter's type.
        kind: u16,
    },
}
