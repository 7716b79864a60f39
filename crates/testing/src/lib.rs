//! What tests of several crates share and nothing else may use; tests on the simulator find more in
//! `braidcast_sim::testing`.

mod counting;
/// What front ends run, beside what is documented.
pub mod front_ends;
mod known;
mod numbers;
/// What other implementations were met, for the summary of `make test`.
pub mod peers;

pub use counting::Counting;
pub use known::known_failure;
pub use numbers::{extreme, nanos};
