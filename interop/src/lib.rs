//! Runs the programs of other SCTP stacks, for the tests in `tests/`.

pub mod linux;
pub mod ours;
pub mod tshark;
pub mod usrsctp;

pub use ours::Ours;
