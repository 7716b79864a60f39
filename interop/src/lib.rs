//! Runs the programs of other SCTP stacks, for the tests in `tests/`.

pub mod dccp;
mod host;
pub mod linux;
pub mod sctp;
pub mod tshark;
pub mod usrsctp;

pub use host::Host;
pub use sctp::Ours;
