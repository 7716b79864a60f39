//! What is on the wire: packets, chunks, parameters, error causes (RFC 9260 §3 and its extensions).
//!
//! All types here are views that borrow from the datagram, in both directions: [`Packet::parse`]
//! checks length and checksum, [`Packet::chunks`] frames, [`Chunk::parse`] reads one chunk. Each
//! type's `emit` appends to a [`Writer`] whose buffer the caller reuses. Nothing allocates, nothing
//! panics on bytes from outside, and code points that are not known survive as values.
//!
//! [`Writer`]: braidcast_core::Writer

mod binding;
pub mod cause;
pub mod chunk;
mod entries;
mod error;
mod fields;
mod packet;
pub mod param;
mod times;
mod tlv;

pub use binding::binding;
pub use cause::{Cause, Causes};
pub use chunk::Chunk;
pub use entries::{Entries, Entry};
pub use error::{ParseError, Place};
pub use packet::{BY_RECORD, Chunks, Header, PROTECTION, Packet, RawChunk, begin, seal};
pub use param::{Address, Parameter, Parameters};
pub use times::Times;
pub use tlv::{RawTlv, Tlvs, UnknownAction};

/// `len` rounded up to the next multiple of four (RFC 9260 §3.2: chunks and parameters are padded so).
pub const fn padded(len: usize) -> usize {
    len.next_multiple_of(4)
}

#[cfg(test)]
mod tests;
