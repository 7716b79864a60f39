use super::Open;
use crate::api::Event;
use crate::path::PathIndex;
use braidcast_core::Instant;

impl Open {
    /// Takes the path `index` out; what it owes goes over the others, without blame.
    pub(super) fn remove_path(&mut self, now: Instant, index: PathIndex) {
        let Some(path) = self.paths.remove(index) else { return };
        self.scheduler.on_restarted(index.get());
        let prospect = self.prospect(now);
        let (ledger, books) = self.books();
        ledger.reroute(books, prospect, index);
        if self.ledger.is_forwarding() {
            self.request_forward(); // The F-timer may have been this path's.
        }
        self.control.forget_path(index);
        self.journal.events.push_back(Event::PathRemoved(path.id(), path.route()));
    }

    /// The path `index` can carry data: it was confirmed, or answers again. Whether it did not before.
    pub(super) fn path_answers(&mut self, now: Instant, index: PathIndex) -> bool {
        self.errors = 0;
        self.paths.note_answer(now);
        let path = &mut self.paths[index];
        let (proved, route) = (path.is_unproved_hearsay(), path.route());
        let answer = path.on_answer(now, self.ledger.is_forwarding());
        if proved {
            self.list_address(route);
        }
        self.scheduler.on_restarted(index.get());
        if answer.up {
            self.journal.events.push_back(Event::PathUp(self.paths[index].id(), route));
        }
        if answer.revived {
            self.ledger.copy_urgent(&self.queue, index);
            // What no path answered went over paths that lead nowhere; the peer waits for its timer else.
            if self.paths.enumerate().all(|(other, path)| other == index || path.has_failed()) {
                self.ack.repeat(now);
            }
        }
        answer.revived
    }

    /// The path `index` missed an answer (RFC 9260 §8.1, §8.2; RFC 7829 §3).
    pub(super) fn path_failed(&mut self, index: PathIndex) {
        // Paths that carry no data do not speak for the association (RFC 9260 §8.1).
        let best = self.paths.is_best(index);
        let others = self.paths.best_rank(None).is_some();
        let path = &mut self.paths[index];
        let missed = path.on_missed_answer(others);
        if missed.down {
            self.journal.events.push_back(Event::PathDown(path.id(), path.route()));
        }
        self.switch_over(index);
        self.errors = self.errors.saturating_add(u32::from(best && missed.counts));
        if self.options.timers.association_max_retrans.is_some_and(|most| self.errors > most) {
            self.end_unanswered();
        }
    }

    /// The primary path `index` missed one answer too many: the path that data takes meanwhile is
    /// the primary one from now on (RFC 7829 §5).
    fn switch_over(&mut self, index: PathIndex) {
        let paths = &self.options.paths;
        let missed =
            paths.switchover.filter(|_| !paths.concurrent).is_some_and(|most| self.paths[index].errors() > most);
        if !missed || self.paths.primary() != Some(index) {
            return;
        }
        let Some(other) = self.paths.data_path().filter(|&other| other != index) else { return };
        self.paths.set_primary(other);
        let path = &self.paths[other];
        self.journal.events.push_back(Event::PathSelected(path.id(), path.route()));
    }

    /// Ends the association if no path has answered for as long as that is waited for.
    pub(super) fn give_up(&mut self, now: Instant) {
        if self.give_up_at().is_some_and(|at| at <= now) {
            self.end_unanswered();
        }
    }

    /// When patience ends.
    pub(super) fn give_up_at(&self) -> Option<Instant> {
        Some(self.paths.answered()? + self.options.timers.give_up?)
    }

    fn end_unanswered(&mut self) {
        self.send_abort(&crate::wire::Cause::UserInitiatedAbort(b"no path answers"));
        self.close(crate::api::CloseReason::PathsFailed);
    }
}
