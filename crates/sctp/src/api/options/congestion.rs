use crate::api::MarkResponse;
use braidcast_cc::{Algorithm, Congestion};
use braidcast_core::Misuse;
use core::time::Duration;

/// How fast data leaves: the windows of the paths, and what makes them shrink.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CongestionOptions {
    /// How the windows of the paths depend on each other. Default not at all.
    pub coupling: Congestion,
    /// The congestion controller of each path. Default Reno.
    pub algorithm: Algorithm,
    /// What the window does upon marks (`ecn`). Default that it halves.
    pub mark_response: MarkResponse,
    /// Offer ECN (RFC 4960 appendix A, draft-stewart-tsvwg-sctpecn; RFC 9260 leaves the numbers
    /// reserved): queues that mark instead of dropping are heard. A peer that does not know it
    /// skips the parameter. A path that loses packets which say that they can be marked is sent
    /// others ([`PathReport::takes_ect`](crate::PathReport::takes_ect)). Default true.
    pub ecn: bool,
    /// Packets in the first window of a path, 1 to [10,000](Self::MAX_INITIAL_WINDOW); `None`, the
    /// default, as RFC 9260 §7.2.1 has it, three or four.
    pub initial_window: Option<usize>,
    /// Spread packets over the round trip instead of sending windows in bursts. Default true.
    pub pacing: bool,
    /// How long our packets may stand in a path's queues before its window stops growing and
    /// shrinks, for data that must be on time ([`braidcast_cc::QueueingDelay`]). `None`, the
    /// default: only loss shows congestion, as in RFC 9260.
    pub queueing_limit: Option<Duration>,
}

impl Default for CongestionOptions {
    fn default() -> Self {
        Self {
            coupling: Congestion::default(),
            algorithm: Algorithm::default(),
            mark_response: MarkResponse::default(),
            ecn: true,
            initial_window: None,
            pacing: true,
            queueing_limit: None,
        }
    }
}

impl CongestionOptions {
    /// The most packets of the first window.
    pub const MAX_INITIAL_WINDOW: usize = 10_000;

    pub(super) fn check(&self) -> Result<(), Misuse> {
        let packets = 1..=Self::MAX_INITIAL_WINDOW;
        self.initial_window.map_or(Ok(()), |it| Misuse::unless_within("congestion.initial_window", it, packets))
    }
}
