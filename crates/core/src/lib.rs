//! What every Braidcast crate agrees on: time as a number, seeded randomness, serial numbers,
//! checked byte access, [`Machine`], the one interface by which simulator, sockets, fuzzers and
//! tests drive a protocol, [`Dials`] for paths that come and go, what endpoints have in common
//! ([`Roster`]), and names of values that users choose ([`named!`]).
//!
//! Nothing here does I/O or reads a clock.

mod allowance;
mod bytes;
mod crowd;
mod dials;
pub mod events;
mod lobby;
mod machine;
mod misuse;
mod names;
pub mod reason;
mod rng;
mod roster;
mod serial;
mod sliding_sum;
mod strangers;
mod time;
mod words;

pub use allowance::Allowance;
pub use bytes::{Reader, Truncated, Writer};
pub use crowd::{Holder, crowded_out};
pub use dials::{Dials, NotJoined};
pub use lobby::Lobby;
pub use machine::{Datagram, Ecn, Heard, LATE_WAKE, Machine, PathId, Route, SocketId, Transmit};
pub use misuse::Misuse;
pub use names::UnknownName;
pub use reason::Reason;
pub use rng::Rng;
pub use roster::{Key, Member, Roster, Turn};
pub use serial::{Serial, Unwrapper};
pub use sliding_sum::SlidingSum;
pub use strangers::{NoRoom, Prefix, Strangers};
pub use time::Instant;
pub use words::words;
