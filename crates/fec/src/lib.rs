//! Erasure codes: packets that make up for lost ones without waiting a round trip for them.

pub mod gf;
mod kernel;

pub use kernel::Kernel;
