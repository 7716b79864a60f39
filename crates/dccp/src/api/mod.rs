//! What applications see besides [`Connection`](crate::Connection) and [`Endpoint`](crate::Endpoint).

mod admission;
mod errors;
mod event;
mod options;
mod reorder;
mod report;
mod samples;
mod tfrc;

pub use admission::Call;
pub use braidcast_secure::SecurityOptions;
pub use errors::{ConnectError, ListenError, SendError};
pub use event::{CloseReason, Event};
pub use options::{OneWayDelay, Options, SendOptions};
pub use reorder::{ReorderOptions, ReorderReport};
pub use report::{Report, Sample, State, Stats};
pub use samples::Samples;
pub use tfrc::{TfrcOptions, Wanted};
