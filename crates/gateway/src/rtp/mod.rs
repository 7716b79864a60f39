//! MPEG-TS in RTP (RFC 3550, RFC 2250): one stream, in order again within a few milliseconds.
//!
//! Without repetitions: what is lost is lost. The same packets may come twice, over two networks (SMPTE ST 2022-7):
//! each is taken once.

mod receiver;
mod sender;
mod wire;

pub use receiver::{Counts, Receiver};
pub use sender::Sender;
pub use wire::{HEADER, Header, Packet};
