//! Erasure codes: packets that make up for lost ones without waiting a round trip for them.

mod auto;
mod code;
mod combination;
mod decoder;
pub mod gf;
mod kernel;
pub mod raptorq;
mod sources;
mod symbol;
mod tinymt;

pub use auto::{Auto, Conditions, LossMeter};
pub use code::{Code, Encoder, Family};
pub use combination::{Coefficients, Combination, TooLarge};
pub use decoder::{DecoderLimits, Evicted, LinearDecoder, Stats, Unusable};
pub use kernel::Kernel;
pub use symbol::PREFIX;
