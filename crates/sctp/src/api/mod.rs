//! What users of an association see: options, messages, events, reports, errors.

mod errors;
mod event;
mod message;
mod options;
mod policy;
mod report;
mod variant;

pub use errors::{ConnectError, JoinError, SendError};
pub use event::{CloseReason, Event};
pub use message::{Priority, Reliability, SendOptions};
pub use options::{Options, SackOptions};
pub use policy::{Abandonment, CwndUpdate, LossDetection, RttSamples, SackPath, StreamOrder};
pub use report::{PathReport, PathState, Stats};
pub use variant::PrVariant;
