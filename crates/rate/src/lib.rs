//! What an encoder may make: one number, from all that a sender knows of its paths.
//!
//! The sender knows how fast each path delivers, what waits before a frame, and when the frame has
//! to be there. From that the guide says, for each frame, how many bits it may have, and which rate
//! will hold for the next second. It is read only: nothing that is sent depends on it.
//!
//! How it works, in the terms of RFC 8836 (requirements of congestion control for interactive
//! media): what is *full* is measured, what is not full is tried. A path is full when more is in
//! flight than it carries in a round trip and its packets stood in a queue; then its delivery rate
//! is what it carries. While nothing is full the rate grows, slowly near the rate at which
//! something was full last. Once something was, the next frame fills what waits up to a bound: no
//! path runs empty, and what the last frame was too large is taken from the next one.
//!
//! [`RateGuide`] does so for senders that see their paths, as over SCTP; [`Allowed`] where
//! congestion control says a rate itself, as over DCCP.
//! [`Follower`] makes of the report what an encoder is set to, or leaves a frame out.

mod allowed;
mod follow;
mod guide;
mod input;
mod path;
mod report;

pub use allowed::Allowed;
pub use follow::{Allowance, Follower, Profile, Verdict};
pub use guide::{RateGuide, View};
pub use path::PathSample;
pub use report::{RateLimits, RateOptions, RateReport};
