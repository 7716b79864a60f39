//! Pure decisions over a plain view of the paths. No protocol types: SCTP and DCCP ask the same questions.

mod retransmission;
mod scheduler;
mod view;

pub use retransmission::{RetransmissionPolicy, UnknownRetransmissionPolicy};
pub use scheduler::{Scheduler, SchedulerKind, UnknownScheduler};
pub use view::{Delay, PathView, View, Waiting};
