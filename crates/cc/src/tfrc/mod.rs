//! TCP-friendly rate control as mathematics and state, without a packet format: what DCCP's CCID3 and CCID4 share.
//!
//! A [`Receiver`] is told of packets and says when to report what; a [`Sender`] is told of reports and says when the
//! next packet may leave. Rates are bytes per second of application data, as RFC 5348 counts them.

mod counter;
mod equation;
mod faster_restart;
mod growth;
mod intervals;
mod loss_history;
mod receiver;
mod recv_set;
mod schedule;
mod sender;
#[cfg(test)]
mod sim_tests;
mod variant;

pub use counter::WindowCounter;
pub use equation::{loss_event_rate_for, throughput, throughput_with_rto};
pub use growth::{least_feedback_delay, slow_start};
pub use intervals::{LossInterval, mean_interval};
pub use loss_history::{Arrival, LossHistory, Stamp};
pub use receiver::{Feedback, Receiver};
pub use sender::{Config, Report, Sender};
pub use variant::{FeedbackRate, Rules, Variant};
