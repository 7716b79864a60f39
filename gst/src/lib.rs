//! What follows the network in `braidcast-encode`, for it and for what measures it.

pub mod follow;
pub mod told;
pub mod x264;
