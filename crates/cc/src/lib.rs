//! Congestion control that several transports share. Each piece belongs to one path, holds no I/O and knows no
//! packet format: it is told what was sent, acknowledged or lost, and when.

mod backlog;
mod capacity;
mod controller;
mod coupled;
mod hystart;
mod one_way_delay;
mod pacing;
mod path_mtu;
mod queueing;
mod rack;
mod rate_sampler;
mod rtt;
pub mod tfrc;

pub use backlog::Backlog;
pub use capacity::Capacity;
pub use controller::{
    Acked, Algorithm, Conditions, Controller, Counting, LossBasis, Policing, Setup, Signal, Standard, shows_congestion,
};
pub use coupled::{Congestion, Coupled, CoupledPath, Decrease, Growth, Siblings};
pub use hystart::HyStart;
pub use one_way_delay::RoundTrips;
pub use pacing::Pacer;
pub use path_mtu::PathMtu;
pub use queueing::QueueingDelay;
pub use rack::Rack;
pub use rate_sampler::{RateSample, RateSampler, Stamp};
pub use rtt::{RtoBounds, RttEstimator};
