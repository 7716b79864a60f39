use super::Open;
use super::coupled::Coupled;
use crate::api::LossDetection;
use crate::number::{Order, Tsn};
use crate::path::{Congested, PathIndex};
use crate::tx::LossCause;
use braidcast_core::Instant;
use braidcast_core::events::{Reduction, SctpEvent};

impl Open {
    /// Marks what is overdue on each path, and sets the timers for what will be.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        if self.options.papers.loss_detection == LossDetection::Time {
            for place in 0..self.paths.places() {
                if let Some(index) = self.paths.at(place) {
                    self.detect_overdue(now, index);
                }
            }
        }
    }

    /// RACK on one path (RFC 8985 §6.2 step 5). Entries leave the front of the send order once: O(1) for each chunk.
    ///
    /// What is acknowledged restarts T3-rtx even where it proves nothing, as a copy went over another path too. So each
    /// chunk that waits behind such ones is lost an RTO after it was sent, or after the path last proved to work.
    fn detect_overdue(&mut self, now: Instant, index: PathIndex) {
        let at = loop {
            self.ledger.oldest_is_gone(index);
            let Some((tsn, order, chunk)) = self.ledger.sent_over(index).next() else { break None };
            let (sent, path) = (chunk.sent(), &self.paths[index]);
            let overtaken = path.lost_at(sent, order);
            let Some(due) = overtaken.or_else(|| path.unanswered_at(sent, order)) else { break None };
            let due = self.lost_after_waiting(index, tsn, sent, due);
            if now < due {
                break Some(due);
            }
            if overtaken.is_some() {
                self.lose_reported(now, tsn, index, order);
            } else {
                self.lose_unanswered(now, tsn, index);
            }
        };
        self.paths[index].expect_loss(at);
    }

    /// Nothing was heard of the chunk `tsn` on the path `index` for longer than it may take.
    fn lose_unanswered(&mut self, now: Instant, tsn: Tsn, index: PathIndex) {
        let prospect = self.prospect(now);
        let (ledger, books) = self.books();
        ledger.lose(books, prospect, tsn, LossCause::Silence);
        self.paths[index].on_lost(1, LossCause::Silence);
    }

    /// The chunk `tsn`, in place `order` of the path `index`, was reported missing once too often:
    /// it is lost, unless it waits for the code.
    pub(super) fn lose_unless_held(&mut self, now: Instant, tsn: Tsn, index: PathIndex, order: Order) {
        // Its message may have been abandoned with a chunk before it.
        if self.ledger.is_at(tsn, index, order) && !self.waits_for_code(now, index, tsn) {
            self.lose_reported(now, tsn, index, order);
        }
    }

    /// Acknowledgements of others show that the chunk `tsn`, in place `order` of the path `index`,
    /// is lost. Shrinks the window once for all losses of one round trip (RFC 9260 §7.2.4 5).
    pub(super) fn lose_reported(&mut self, now: Instant, tsn: Tsn, index: PathIndex, order: Order) {
        let prospect = self.prospect(now);
        let (ledger, books) = self.books();
        ledger.lose(books, prospect, tsn, LossCause::Reported);
        let next = self.ledger.next_order(index);
        let path = &mut self.paths[index];
        path.on_reported_lost(now, order);
        path.on_lost(1, LossCause::Reported);
        if path.enter_recovery(order, next) {
            self.reduce(now, index, Congested::Lost);
            self.unheld_packet = true;
        }
    }

    /// T3-rtx expired on the path `index` (RFC 9260 §6.3.3).
    pub(super) fn handle_retransmission_timeout(&mut self, now: Instant, index: PathIndex) {
        if let Some(until) = self.code_has_until(index).filter(|&until| now < until) {
            return self.paths[index].postpone_retransmission(until);
        }
        if self.release_held(now, index) {
            return;
        }
        let probe = self.ledger.probes_window();
        self.doubt_ect(index);
        let coupled = self.coupled(index);
        let siblings = coupled.as_ref().map(Coupled::siblings).unwrap_or_default();
        let (in_flight, next) = (self.ledger.in_flight_over(index), self.ledger.next_order(index));
        self.paths[index].on_retransmission_timeout(now, in_flight, siblings, next);
        self.doubt_mtu(now, index);
        self.scheduler.on_restarted(index.get());
        self.journal.stats.t3_expiries += 1;
        let (path, cause) = (self.paths[index].id(), Reduction::Timeout);
        self.journal.tell(|| SctpEvent::WindowReduced { path, cause });
        if self.ledger.in_flight() == 0 && !self.ledger.is_forwarding() {
            let prospect = self.prospect(now);
            let (ledger, books) = self.books();
            ledger.withdraw_gap_acks(books, prospect);
        }
        self.unheld_packet = self.lose_all(now, index, LossCause::Timeout) > 0;
        // What probes a shut window is dropped by a peer that is there (RFC 9260 §6.1 A): a heartbeat says if it is.
        if probe { self.paths[index].ask(now) } else { self.path_failed(index) }
    }

    /// The path `index` answers again: what was sent over it before what it answers is lost, and
    /// need not wait for its timer, which has backed off.
    pub(super) fn lose_sent_before(&mut self, now: Instant, index: PathIndex, asked: Instant) {
        let sent =
            |(tsn, order, chunk): (Tsn, Order, &crate::tx::Chunk)| (chunk.sent() < asked).then_some((tsn, order));
        let overdue: Vec<(Tsn, Order)> = self.ledger.sent_over(index).map_while(sent).collect();
        for (tsn, order) in overdue {
            // Its message may have been abandoned with a chunk before it.
            if self.ledger.is_at(tsn, index, order) {
                self.lose_unanswered(now, tsn, index);
            }
        }
    }

    /// Nothing sent over the path `index` was answered in time: perhaps its packets are too large.
    fn doubt_mtu(&mut self, now: Instant, index: PathIndex) {
        // What probes a shut window is dropped by the peer, however small it is.
        if self.ledger.peer_room() >= self.paths[index].mtu() {
            // Before there are keys nothing large is known to have got through.
            let first = self.agrees_on_keys();
            self.paths[index].doubt_mtu_after_timeout(now, first);
        }
    }

    /// Takes all that is in flight on the path `index` for lost. Returns how many chunks that were.
    fn lose_all(&mut self, now: Instant, index: PathIndex, cause: LossCause) -> u64 {
        let prospect = self.prospect(now);
        let (ledger, books) = self.books();
        let lost = ledger.lose_all(books, prospect, index, cause);
        self.paths[index].on_lost(lost, cause);
        lost
    }

    /// Nothing sent over the path `index` was answered for two round trips (RFC 8985 §7.3, and for several paths:
    /// what may be stuck there goes over the others at once, so that a dead path costs two round trips, not an RTO).
    pub(super) fn handle_probe_timeout(&mut self, now: Instant, index: PathIndex) {
        let others = self.paths.best_rank(Some(index)) == Some(0);
        let in_flight = self.ledger.in_flight_over(index);
        if !self.paths[index].on_probe_timeout(in_flight) {
            return;
        }
        if others {
            self.paths[index].fall_silent(now);
            self.doubt_mtu(now, index);
            self.doubt_ect(index);
            self.lose_all(now, index, LossCause::Silence);
            return;
        }
        self.paths[index].probe_again(now);
        let last = self.ledger.sent_over(index).next_back().map(|(tsn, ..)| tsn);
        if let Some(tsn) = last {
            self.lose_unanswered(now, tsn, index);
        }
    }

    /// T3-rtx expired on the path `index` (algorithm 5): fast retransmissions that are held there
    /// are done instead of a timeout recovery. Whether there were any.
    fn release_held(&mut self, now: Instant, index: PathIndex) -> bool {
        if self.fec.is_none() || self.options.redundancy.artx.is_none() {
            return false;
        }
        let by_time = self.options.papers.loss_detection == LossDetection::Time;
        let path = &self.paths[index];
        let overdue = |sent, order| by_time && path.lost_at(sent, order).is_some_and(|at| at <= now);
        let out = self.ledger.sent_over(index);
        let held: Vec<(Tsn, Order)> = out
            .filter(|&(_, order, chunk)| chunk.held_until().is_some() || overdue(chunk.sent(), order))
            .map(|(tsn, order, _)| (tsn, order))
            .collect();
        for &(tsn, order) in &held {
            // Its message may have been abandoned with one before it.
            if self.ledger.is_at(tsn, index, order) {
                self.lose_reported(now, tsn, index, order);
            }
        }
        if !held.is_empty() {
            self.paths[index].restart_retransmission(now);
        }
        !held.is_empty()
    }
}
