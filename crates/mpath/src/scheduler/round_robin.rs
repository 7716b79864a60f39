use super::{Scheduler, next_ready};
use crate::View;

/// The paths in turn, each as long as its congestion window has space: the scheduler of CMT-SCTP
/// (THESIS §6.1, PRCMT §4.3).
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    last: usize,
}

impl Scheduler for RoundRobin {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        next_ready(view, self.last)
    }

    fn reset(&mut self, path: usize) {
        self.last = path;
    }

    fn on_sent(&mut self, path: usize, _bytes: usize) {
        self.last = path;
    }
}
