//! What applications see besides [`Connection`](crate::Connection) and [`Endpoint`](crate::Endpoint).

mod admission;
mod errors;
mod event;
mod options;
mod reorder;
mod report;
mod tfrc;

pub use admission::{Admission, Call, Verdict};
pub use braidcast_secure::SecurityOptions;
pub use errors::{ConnectError, ListenError, SendError};
pub use event::{CloseReason, Event};
pub use options::{OneWayDelay, Options, SendOptions};
pub use reorder::{ReorderOptions, ReorderReport};
pub use report::{Report, State, Stats};
pub use tfrc::{TfrcOptions, Wanted};
