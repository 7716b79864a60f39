//! What follows the network in `braidcast-encode`, for it and for what measures it.
#![allow(clippy::disallowed_methods, reason = "a program beside a live pipeline, in real time")]

pub mod told;
pub mod x264;
