//! What every Braidcast crate agrees on: time as a number, seeded randomness, serial numbers, checked byte
//! access, and [`Machine`], the one interface by which simulator, sockets, fuzzers and tests drive a protocol.
//!
//! Nothing here does I/O or reads a clock.

mod bytes;
mod machine;
mod misuse;
mod rng;
mod serial;
mod time;

pub use bytes::{Reader, Truncated, Writer};
pub use machine::{Datagram, Ecn, Machine, PathId, Route, SocketId, Transmit};
pub use misuse::Misuse;
pub use rng::Rng;
pub use serial::{Serial, Unwrapper};
pub use time::Instant;
