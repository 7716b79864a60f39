//! Packets as they stand on the wire.

pub mod gre;
pub mod nulls;
pub mod rtcp;
