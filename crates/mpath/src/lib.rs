//! Pure decisions over a plain view of the paths. No protocol types: SCTP and DCCP ask the same questions.

mod retransmission;
mod scheduler;
mod selection;
mod view;

pub use retransmission::RetransmissionPolicy;
pub use scheduler::{Scheduler, SchedulerKind};
pub use selection::{Candidate, Dispersion, PathSelection, Selector, Train, mean_opinion_score};
pub use view::{Delay, PathView, View, Waiting};
