//! Erasure codes: packets that make up for lost ones without waiting a round trip for them.

mod auto;
mod code;
mod combination;
mod decoder;
pub mod gf;
mod kernel;
mod tinymt;

pub use auto::{Auto, Conditions, LossMeter};
pub use code::{Code, Encoder};
pub use combination::{Coefficients, Combination, PREFIX, TooLarge};
pub use decoder::raptorq::RaptorqDecoder;
pub use decoder::{Decoder, DecoderLimits, Evicted, LinearDecoder, Stats, Unusable};
pub use kernel::Kernel;
