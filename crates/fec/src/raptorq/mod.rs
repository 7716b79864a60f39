//! RaptorQ (RFC 6330) by the crate `raptorq`: a fountain code for long blocks, beside the linear
//! codes of [`Code`](crate::Code).
//!
//! It is not a [`Code`](crate::Code), and SCTP does not send it, because its repair symbols cannot
//! leave sources out, as those of a linear code can leave out what is acknowledged or abandoned. It
//! knows blocks only, so a repair symbol helps only receivers that have the same first symbol and
//! length. A block decodes whole or not at all; seldom (1 in 100, RFC 6330 §5) one symbol more is
//! needed than were lost. The symbols of a block are of one length, that of the repair symbols. No
//! state is kept from packet to packet: every attempt and every repair symbol solves the block
//! anew. For windows of a few packets the Cauchy block is better at everything; for blocks of more
//! than 256 symbols there is none.

mod decode;
mod encode;
mod repair;

pub use decode::Decoder;
pub use encode::Encoder;
pub use repair::{MAX_SOURCES, NoBlock, Repair};
