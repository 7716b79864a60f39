//! What is on the wire: packets (RFC 4340 §5) and options (§5.8).
//!
//! All types are views that borrow from the datagram. [`Packet::parse`] makes the checks of RFC
//! 4340 §8.5 step 1, [`Packet::options`] walks through the options one by one. [`Builder`] writes a
//! packet into a buffer that the caller reuses. Nothing allocates, nothing panics on bytes from
//! outside, and code points that are not known survive as values.

mod binding;
mod builder;
mod checksum;
mod error;
mod kind;
pub mod option;
mod packet;
mod reset;
mod service;

pub use binding::binding;
pub(crate) use binding::changes;
pub use builder::Builder;
pub use checksum::{Checksum, write_checksum};
pub use error::ParseError;
pub use kind::Kind;
pub use option::{Opt, Options, RawOption};
pub use packet::{Header, Packet};
pub use reset::{Reset, ResetCode};
pub use service::{ServiceCode, ServiceCodeError};

#[cfg(test)]
mod tests;
