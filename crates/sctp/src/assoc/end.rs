//! How an association ends, other than by a shutdown.

use super::{Association, State};
use crate::api::{CloseReason, Event};
use crate::capabilities::Refusal;
use crate::wire::chunk::Abort;
use crate::wire::{Cause, Causes, Chunk};
use braidcast_core::Writer;

impl Association {
    /// It is over, for `reason`.
    pub(super) fn close(&mut self, reason: CloseReason) {
        if !matches!(self.state, State::Closed) {
            self.state = State::Closed;
            self.journal.events.push_back(Event::Closed(reason));
        }
    }

    /// ABORT with one cause.
    pub(super) fn send_abort(&mut self, cause: &Cause<'_>) {
        let mut causes = Vec::new();
        cause.emit(&mut Writer::new(&mut causes));
        self.send_abort_with(&causes);
    }

    /// ABORT is the last thing that is sent; all that waited before it is void.
    fn send_abort_with(&mut self, causes: &[u8]) {
        if matches!(self.state, State::Closed) {
            return;
        }
        self.control.clear();
        if self.peer_tag == 0 {
            return;
        }
        let preferred = self.paths.indices().next();
        if let Some(path) = self.paths.for_control(None).or(preferred) {
            self.control_chunk(path, &Chunk::Abort(Abort { reflected: false, causes: Causes::new(causes) }));
        }
    }

    /// The peer broke the protocol beyond repair.
    pub(super) fn violation(&mut self, what: &str) {
        self.send_abort(&Cause::ProtocolViolation(what.as_bytes()));
        self.close(CloseReason::Violation(what.into()));
    }

    /// The peer's offer cannot be taken.
    pub(super) fn refuse(&mut self, refusal: &Refusal<'_>) {
        let mut causes = Vec::new();
        refusal.emit(&mut Writer::new(&mut causes));
        self.send_abort_with(&causes);
        self.close(CloseReason::Violation(refusal.to_string()));
    }
}
