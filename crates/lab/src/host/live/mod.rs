//! The product's own ends as hosts: a camera in front of [`braidcast_session::Sender`], a screen behind
//! [`braidcast_session::Receiver`], as `braidcast send` and `receive` have them.

mod camera;
mod receiver;
mod sender;

pub use camera::{Camera, Taken};
pub use receiver::{Came, LiveReceiver};
pub use sender::{LiveSample, LiveSender};

use core::time::Duration;

/// Time after the clip's end, beyond the latency, that the ends wait for what is still in flight.
const AFTER: Duration = Duration::from_secs(1);
