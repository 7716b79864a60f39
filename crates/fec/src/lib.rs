//! Erasure codes: packets that make up for lost ones without waiting a round trip for them.

mod code;
mod combination;
pub mod gf;
mod kernel;
mod tinymt;

pub use code::{Code, Encoder};
pub use combination::{Coefficients, Combination, TooLarge};
pub use kernel::Kernel;
