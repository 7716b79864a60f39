//! The choice of the one path that carries data, where one is used at a time (PATHS §5.2, §5.3).

mod kind;
mod selector;
mod train;
mod voice;

pub use kind::PathSelection;
pub use selector::Selector;
pub use train::{Dispersion, Train};
pub use voice::mean_opinion_score;

use core::time::Duration;

/// What the choice may know of one path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Candidate {
    /// It is among the best that there are: it answers, or none does.
    pub active: bool,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// From here to the receiver.
    pub forward_delay: Option<Duration>,
    /// Bytes in a second that the bottleneck lets through, by the dispersion of packets.
    pub bottleneck: Option<f64>,
    /// What a call over it would sound like: a mean opinion score, 1 to 4.5.
    pub opinion: Option<f64>,
}
