//! The oracle: what a sender could have delivered in time that knew links and frames in advance, so
//! that a measured value can be a share of the possible.
//!
//! Links are fluid: they carry bytes without headers, queue nothing, and lose their mean, not
//! packets. Of the frames as many as possible are chosen greedily: the set need not be the largest,
//! but whether a set fits is decided exactly. Frames take the earliest chances to send, in the
//! order of their capture (Glover's rule for convex bipartite graphs): a chance that serves this
//! frame and lies before another one serves no later frame that the other one does not serve too.

mod capacity;
mod causal;
mod choice;
mod fit;
mod rates;

use capacity::Chance;
pub(crate) use capacity::{Route, chances};
pub(crate) use causal::{Line, STEPS, causal};
pub(crate) use choice::{Possible, possible};
pub(crate) use rates::{Frames, sizes};

use crate::clip::FrameKind;
use core::time::Duration;

/// A frame as the oracle sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    /// When it can first be sent, on the clock of the links.
    pub at: Duration,
    /// Its bytes.
    pub bytes: u64,
    /// What it is.
    pub kind: FrameKind,
}

#[cfg(test)]
mod tests;
