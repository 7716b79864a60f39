use super::{Scheduler, next_ready};
use crate::View;

/// The paths in turn, each until its window is full, and with each acknowledgement from the next one on: ns-2.35's CMT
/// (`SctpCMTAgent::SendMuch`). A receive window that opens by much goes to one path, then.
#[derive(Debug, Default)]
pub(super) struct FillInTurn {
    last: usize,
    /// Something left over the last path since an acknowledgement came.
    bursting: bool,
}

impl Scheduler for FillInTurn {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        if self.bursting && view.paths.get(self.last).is_some_and(|path| path.ready) {
            return Some(self.last);
        }
        next_ready(view, self.last)
    }

    fn reset(&mut self, path: usize) {
        *self = Self { last: path, bursting: false };
    }

    fn on_sent(&mut self, path: usize, _bytes: usize) {
        *self = Self { last: path, bursting: true };
    }

    fn on_extra(&mut self, path: usize, _bytes: usize) {
        self.bursting |= path == self.last;
    }

    fn on_acknowledged(&mut self) {
        self.bursting = false;
    }

    fn on_restarted(&mut self, path: usize) {
        self.bursting &= path != self.last;
    }
}
