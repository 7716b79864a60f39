//! What the receiving halves of SRT and RIST have in common: a stream of numbered packets with times, of which some are
//! missing and asked for again, until they are due.

mod clock;
mod receive;
mod rtt;

pub(crate) use clock::Clock;
pub use receive::Received;
pub(crate) use receive::{RANGES, Receive};
pub(crate) use rtt::Rtt;
