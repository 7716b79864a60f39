//! How an association that is open ends, other than by a shutdown.

use super::{Open, State};
use crate::api::CloseReason;
use crate::wire::{Cause, Causes};
use braidcast_core::Writer;

impl Open {
    /// It is over, for `reason`.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if !matches!(self.state, State::Closed) {
            self.state = State::Closed;
            self.journal.close(self.queue.unsettled(), reason);
        }
    }

    /// The peer aborted, for `causes`: nothing answers that, not what waits of the same packet
    /// either (RFC 9260 §9.1).
    pub(super) fn aborted(&mut self, causes: Causes<'_>) {
        self.control.clear();
        self.close(CloseReason::by_peer(causes));
    }

    /// ABORT with one cause.
    pub(super) fn send_abort(&mut self, cause: &Cause<'_>) {
        if matches!(self.state, State::Closed) {
            return;
        }
        self.send_abort_of(&[cause]);
    }

    /// The same with several causes.
    pub(super) fn send_abort_of(&mut self, causes: &[&Cause<'_>]) {
        let mut bytes = Vec::new();
        causes.iter().for_each(|cause| cause.emit(&mut Writer::new(&mut bytes)));
        self.control.abort(&self.paths, Some(self.peer_tag), &bytes);
    }

    /// The peer broke the protocol beyond repair.
    pub(super) fn violation(&mut self, what: &str) {
        self.send_abort(&Cause::ProtocolViolation(CloseReason::cut(what)));
        self.close(CloseReason::Violation(what.into()));
    }
}

#[cfg(test)]
mod tests;
