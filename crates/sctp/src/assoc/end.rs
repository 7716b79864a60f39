//! How an association that is open ends, other than by a shutdown.

use super::{Open, State};
use crate::api::CloseReason;
use crate::path::Path;
use crate::wire::{Cause, Causes};
use braidcast_core::Writer;
use braidcast_secure::{Disagreement, GuardError, Refused, State as Keys};

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
        self.close(self.reason_by_peer(causes));
    }

    /// Why it is over, as the peer has it. Of one that came by itself and has proved no key only
    /// those words count that are ours too.
    pub(super) fn reason_by_peer(&self, causes: Causes<'_>) -> CloseReason {
        CloseReason::by_peer(causes, !self.initiator && self.is_agreeing())
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
        if self.paths.iter().all(Path::is_unproved_hearsay) {
            return; // Nobody has shown that the peer is there.
        }
        let mut bytes = Vec::new();
        causes.iter().for_each(|cause| cause.emit(&mut Writer::new(&mut bytes)));
        self.control.abort(&self.paths, Some(self.peer_tag), &bytes);
    }

    /// Returns whether it is to be protected and no keys are agreed on yet.
    pub(super) fn is_agreeing(&self) -> bool {
        self.protection.as_ref().is_some_and(|it| it.guard.state() == Keys::Agreeing)
    }

    /// The peer is not whom we want, or keys are used up.
    pub(super) fn refuse(&mut self, error: &GuardError) {
        let cause = Cause::NoProtection { kind: Disagreement::NoCommonMethod.cause() };
        let told = error.told().reason().emit(CloseReason::MAX_TEXT);
        self.send_abort_of(&[&cause, &Cause::UserInitiatedAbort(&told)]);
        self.close(CloseReason::Insecure(error.into()));
    }

    /// The peer broke the protocol beyond repair.
    pub(super) fn violation(&mut self, what: &str) {
        if self.is_agreeing() {
            // Before there are keys the ends may go by other offers than each other's.
            return self.refuse(&Refused::Altered.into());
        }
        self.send_abort(&Cause::ProtocolViolation(CloseReason::cut(what)));
        self.close(CloseReason::Violation(what.into()));
    }
}

#[cfg(test)]
mod tests;
