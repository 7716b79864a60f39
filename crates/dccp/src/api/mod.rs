//! What applications see besides [`Connection`](crate::Connection) and [`Endpoint`](crate::Endpoint).

mod errors;
mod event;
mod options;
mod report;
mod tfrc;

pub use errors::{ConnectError, ListenError, SendError};
pub use event::{CloseReason, Event};
pub use options::{Options, SendOptions};
pub use report::{Report, Sample, State, Stats};
pub use tfrc::{TfrcOptions, Wanted};
