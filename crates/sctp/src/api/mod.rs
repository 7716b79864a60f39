//! What users of an association see: options, messages, events, reports, errors.

mod errors;
mod event;
mod message;
mod options;
mod report;

pub use errors::{ConnectError, JoinError, SendError};
pub use event::{CloseReason, Event};
pub use message::{Priority, Reliability, SendOptions};
pub use options::{LossDetection, Options, SackOptions};
pub use report::{PathReport, PathState, Stats};
