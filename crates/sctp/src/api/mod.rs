//! What users of an association see: options, messages, events, reports, errors.

mod blocking;
mod buffer_split;
mod close;
mod errors;
mod event;
mod mark_response;
mod message;
mod options;
mod policy;
mod queue_scope;
mod redundancy;
mod report;
mod sack_policy;
mod streams;
mod timing;
mod variant;

pub(crate) use blocking::Intervals;
pub use blocking::{BlockingReport, Waits};
pub use buffer_split::BufferSplit;
pub use close::{CloseReason, PeerCause};
pub use errors::{ConnectError, JoinError, ReconfigureError, SendError};
pub use event::Event;
pub use mark_response::MarkResponse;
pub use message::{AbandonmentPolicy, Priority, Reliability, SendOptions};
pub use options::{
    CongestionOptions, LimitOptions, Options, PaperRules, PathOptions, QueueOptions, RedundancyOptions, SackOptions,
    SecurityOptions, TimerOptions,
};
pub use policy::{Abandonment, CwndUnit, CwndUpdate, LossDetection, RttSamples, SackPath, StreamOrder};
pub use queue_scope::QueueScope;
pub use redundancy::{Artx, ArtxFrom, FecLosses, FecWindow};
pub use report::{Abandoned, PathReport, PathState, Stats};
pub use sack_policy::SackPolicy;
pub use streams::{ReconfigurationResult, StreamChange, StreamRequest};
pub use timing::Timing;
pub use variant::PrVariant;
