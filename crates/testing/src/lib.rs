//! What tests of several crates share and nothing else may use; tests on the simulator find more in `braidcast_sim::testing`.

mod counting;
mod numbers;

pub use counting::Counting;
pub use numbers::{extreme, nanos};
