use super::Association;
use crate::api::LossDetection;
use crate::tx::{ChunkState, LossCause};
use crate::wire::chunk::Sack;
use braidcast_core::Instant;

/// Missing reports that make a chunk lost (RFC 9260 §7.2.4; ECMT says four, see the mission's list of slips).
const MISSING_REPORTS: u8 = 3;

impl Association {
    /// Marks what is overdue on each path, and sets the timers for what will be.
    pub(super) fn detect_losses(&mut self, now: Instant) {
        if self.options.papers.loss_detection == LossDetection::Time {
            for slot in 0..self.paths.slots() {
                self.detect_overdue(now, slot);
            }
        }
    }

    /// RACK on one path (RFC 8985 §6.2 step 5). Entries leave the front of the send order once: O(1) for each chunk.
    fn detect_overdue(&mut self, now: Instant, slot: usize) {
        loop {
            let Some(path) = self.paths.get_mut(slot) else { return };
            path.timers.reordering = None;
            let Some(&(tsn, order)) = path.sent.front() else { return };
            let Some(&chunk) = self.out.get(tsn).filter(|chunk| chunk.is_at(slot, order)) else {
                path.sent.pop_front();
                continue;
            };
            let Some(deadline) = path.rack.lost_at(chunk.sent, order, path.rtt.min(), path.rtt.srtt()) else { return };
            let deadline = self.lost_after_waiting(slot, tsn, chunk.sent, deadline);
            let Some(path) = self.paths.get_mut(slot) else { return };
            if now < deadline {
                path.timers.reordering = Some(deadline);
                return;
            }
            path.sent.pop_front();
            self.lose(now, tsn, LossCause::Reported);
            self.enter_recovery(slot, order);
        }
    }

    /// The papers' rule: every SACK that acknowledges something sent later on the same path reports a chunk missing
    /// (SFR, Iyengar et al. 2006 §III-B; PRCMT fig. 6).
    pub(super) fn count_missing(&mut self, now: Instant, slot: usize, highest: u64, reports: u8) {
        let Some(path) = self.paths.get_mut(slot) else { return };
        if path.sent.front().is_none_or(|&(_, order)| order >= highest) {
            return; // Nothing older is out, as long as nothing is lost.
        }
        let mut entries = core::mem::take(&mut path.sent);
        entries.retain(|&(tsn, order)| {
            let Some(chunk) = self.out.get_mut(tsn) else { return false };
            let live = chunk.is_at(slot, order);
            if live && order < highest && chunk.may_be_reported() {
                chunk.missing = chunk.missing.saturating_add(reports);
                if chunk.missing >= MISSING_REPORTS && !self.waits_for_code(now, slot, tsn) {
                    self.lose(now, tsn, LossCause::Reported);
                    self.enter_recovery(slot, order);
                    return false;
                }
            }
            live
        });
        if let Some(path) = self.paths.get_mut(slot) {
            path.sent = entries;
        }
    }

    /// RFC 9260 §7.2.4 as it stands: a SACK reports everything missing below the highest TSN that it newly acknowledges (HTNA),
    /// and if it moves the cumulative TSN during a recovery, everything missing below the highest that it names.
    pub(super) fn count_missing_plainly(
        &mut self,
        now: Instant,
        sack: &Sack<'_>,
        cumulative: u64,
        newly: Option<u64>,
        moved: bool,
    ) {
        let recovering = self.paths.iter().any(|path| path.recovery.is_some());
        let named = sack.gaps.iter().map(|gap| cumulative + u64::from(gap.end)).max();
        let limit = if moved && recovering { named } else { newly };
        let Some(highest) = limit else { return };
        for tsn in self.out.base()..highest.min(self.out.next_tsn()) {
            let Some(chunk) = self.out.get_mut(tsn) else { continue };
            if chunk.state == ChunkState::InFlight && chunk.may_be_reported() {
                chunk.missing = chunk.missing.saturating_add(1);
                let (slot, order) = (usize::from(chunk.slot), chunk.order);
                if chunk.missing >= MISSING_REPORTS && !self.waits_for_code(now, slot, tsn) {
                    self.lose(now, tsn, LossCause::Reported);
                    self.enter_recovery(slot, order);
                }
            }
        }
    }

    /// Shrinks the window once for all losses of one round trip (RFC 9260 §7.2.4 5).
    pub(super) fn enter_recovery(&mut self, slot: usize, order: u64) {
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.stats.lost_chunks += 1;
        if path.recovery.is_none_or(|until| order >= until) {
            path.recovery = Some(path.next_order());
            self.shrink(slot);
            self.unheld_packet = true;
        }
    }

    /// The chunk `tsn`, in flight, is taken for lost: it will be sent again if its message is still worth it, or else
    /// is given up now, not earlier (PRCMT §4.2, delayed abandonment).
    pub(super) fn lose(&mut self, now: Instant, tsn: u64, cause: LossCause) {
        let Some(chunk) = self.out.get_mut(tsn) else { return };
        debug_assert_eq!(chunk.state, ChunkState::InFlight);
        chunk.state = ChunkState::Lost;
        chunk.lost_by = cause;
        let chunk = *chunk;
        let len = usize::from(chunk.piece.len);
        self.out.in_flight -= len;
        self.peer_rwnd += len; // RFC 9260 §6.2.1 C.
        if let Some(path) = self.paths.get_mut(usize::from(chunk.slot)) {
            path.in_flight -= len;
            path.cumack.on_lost(self.options.papers.cwnd_update, tsn);
            path.note_fate((cause == LossCause::Reported).then_some(true));
        }
        if self.worth_repeating(now, chunk.piece.message, chunk.repeats) {
            self.queue_repeat(tsn);
        } else {
            self.abandon(chunk.piece.message);
        }
    }

    /// Whether a chunk of `message` that was repeated `repeats` times may be repeated once more.
    pub(super) fn worth_repeating(&self, now: Instant, message: u32, repeats: u16) -> bool {
        !self.agreed.forward_tsn || self.is_worth_sending(now, message, repeats.saturating_add(1))
    }

    /// Puts the lost chunk `tsn` among those to be sent again.
    pub(super) fn queue_repeat(&mut self, tsn: u64) {
        if let Some(chunk) = self.out.get(tsn) {
            self.retransmit.insert(chunk.origin(), self.queue.get(chunk.piece.message).priority, tsn);
        }
    }

    /// T3-rtx expired on the path in `slot` (RFC 9260 §6.3.3).
    pub(super) fn handle_retransmission_timeout(&mut self, now: Instant, slot: usize) {
        if let Some(until) = self.code_has_until(slot).filter(|&until| now < until) {
            if let Some(path) = self.paths.get_mut(slot) {
                path.timers.retransmission = Some(until);
            }
            return;
        }
        if self.release_held(now, slot) {
            return;
        }
        self.doubt_ect(slot);
        let decrease = self.decrease(slot, 0.5);
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.timers.retransmission = None;
        path.timers.probe = None;
        let unit = path.unit();
        path.window.on_timeout(unit, decrease);
        path.recovery = Some(path.next_order());
        path.pending.heartbeat |= self.options.paths.quick_failover.is_some();
        path.pmtu.on_timeout(now);
        path.stats.t3_expiries += 1;
        path.burst = 0;
        self.stats.t3_expiries += 1;
        if self.out.in_flight == 0 && !self.is_forwarding() {
            self.withdraw_gap_acks(now);
        }
        let lost = self.take_in_flight(now, slot, LossCause::Timeout);
        self.unheld_packet = lost > 0;
        if let Some(path) = self.paths.get_mut(slot) {
            path.stats.lost_chunks += lost;
        }
        self.path_failed(slot);
    }

    /// Takes all that is in flight on the path in `slot` for lost; how many chunks.
    fn take_in_flight(&mut self, now: Instant, slot: usize, cause: LossCause) -> u64 {
        let Some(path) = self.paths.get_mut(slot) else { return 0 };
        let mut entries = core::mem::take(&mut path.sent);
        let mut lost = 0;
        for (tsn, order) in entries.drain(..) {
            if self.out.get(tsn).is_some_and(|chunk| chunk.is_at(slot, order)) {
                self.lose(now, tsn, cause);
                lost += 1;
            }
        }
        // Last, as a chunk that is not worth repeating takes the others of its message with it.
        let released = self.out.release_abandoned(slot);
        if let Some(path) = self.paths.get_mut(slot) {
            path.sent = entries;
            path.in_flight -= released;
            debug_assert_eq!(path.in_flight, 0, "no timer would ever free it");
        }
        lost
    }

    /// Everything that is out seems to have arrived, yet the cumulative acknowledgement stands still: the peer dropped
    /// what it had gap-acknowledged (RFC 9260 §6.2.1 D iii). Send it again.
    fn withdraw_gap_acks(&mut self, now: Instant) {
        let mut reneged = Vec::new();
        self.out.renege(|tsn, chunk| {
            chunk.state = ChunkState::Lost;
            chunk.lost_by = LossCause::Timeout;
            reneged.push((tsn, chunk.piece.message, chunk.repeats));
        });
        for (tsn, message, repeats) in reneged {
            if self.worth_repeating(now, message, repeats) {
                self.queue_repeat(tsn);
            } else {
                self.abandon(message);
            }
        }
    }

    /// Nothing sent over the path in `slot` was answered for two round trips (RFC 8985 §7.3, and for several paths:
    /// what may be stuck there goes over the others at once, so that a dead path costs two round trips, not an RTO).
    pub(super) fn handle_probe_timeout(&mut self, now: Instant, slot: usize) {
        let others = self.paths.best_rank(Some(slot)) == Some(0);
        let ack_delay = self.options.sack.delay;
        let Some(path) = self.paths.get_mut(slot) else { return };
        path.timers.probe = None;
        if path.in_flight == 0 {
            return;
        }
        path.probes += 1;
        if others {
            path.silent_since = Some(now);
            path.pmtu.on_timeout(now);
            path.pending.heartbeat = true;
            path.timers.retransmission = None; // The heartbeat's own timer takes over.
            self.doubt_ect(slot);
            self.take_in_flight(now, slot, LossCause::Silence);
            return;
        }
        path.timers.probe = path.probe_timeout(ack_delay).map(|timeout| now + timeout);
        let last = path.sent.iter().rev().copied().find(|&(tsn, order)| {
            self.out.get(tsn).is_some_and(|chunk| chunk.state == ChunkState::InFlight && chunk.order == order)
        });
        if let Some((tsn, _)) = last {
            self.lose(now, tsn, LossCause::Silence);
        }
    }
}
