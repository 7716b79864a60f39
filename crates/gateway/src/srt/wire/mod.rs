//! The packets of SRT: one file for each kind. Lengths are checked once, so nothing here panics.

mod handshake;
mod key_material;
mod loss_list;
mod packet;

pub use handshake::{Extension, ExtensionKind, Handshake, HandshakeType, Hello, HelloFlags, MAGIC};
pub use key_material::{KeyMaterial, WhichKeys};
pub use loss_list::{LossList, write_loss};
pub use packet::{Ack, CAPACITY_PACKET, Control, ControlKind, Data, HEADER, KeySlot, Packet, Rate};

use braidcast_core::Truncated;
use core::fmt;

/// Why bytes are no packet of SRT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Malformed {
    /// A field is not all there.
    Short(Truncated),
    /// A field has a value that nothing is known of; the field's name and the value.
    Unknown(&'static str, u32),
    /// A length does not fit what it is the length of; its name and the value.
    Length(&'static str, usize),
}

impl From<Truncated> for Malformed {
    fn from(short: Truncated) -> Self {
        Self::Short(short)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => short.fmt(f),
            Self::Unknown(field, value) => write!(f, "{field} has the value {value}, which is not supported"),
            Self::Length(field, value) => write!(f, "{field} has {value} bytes, which does not fit"),
        }
    }
}

impl core::error::Error for Malformed {}
