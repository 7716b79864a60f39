use super::{Books, Chunk, ChunkState, Ledger, LossCause};
use crate::number::{Order, Tsn};
use crate::path::PathIndex;
use crate::tx::Prospect;

/// Missing reports that make a chunk lost (RFC 9260 §7.2.4; ECMT says four, against its own reference).
const MISSING_REPORTS: u8 = 3;

impl Ledger {
    /// The chunk `tsn`, in flight, is taken for lost: it will be sent again if its message is still
    /// worth it, or else is abandoned now, not earlier (PRCMT §4.2, delayed abandonment).
    pub(crate) fn lose(&mut self, mut books: Books<'_>, prospect: Prospect, tsn: Tsn, cause: LossCause) {
        let Some(chunk) = self.get_mut(tsn).filter(|chunk| chunk.is_in_flight()) else { return };
        chunk.state = ChunkState::Lost;
        let chunk = *chunk;
        self.in_flight -= chunk.len();
        self.peer_room += chunk.len(); // RFC 9260 §6.2.1 C.
        if let Some(path) = chunk.path {
            let rule = self.window_waits_for;
            let lane = self.lane_mut(path);
            lane.in_flight -= chunk.len();
            lane.cumack.on_lost(rule, tsn);
        }
        self.repeat_or_abandon(&mut books, prospect, tsn, cause);
        if let Some(path) = chunk.path {
            self.oldest_is_gone(path); // Lost, not acknowledged: nobody is to take it for that later.
        }
        self.check(books.queue);
    }

    /// What becomes of a chunk that was lost by `cause`.
    fn repeat_or_abandon(&mut self, books: &mut Books<'_>, prospect: Prospect, tsn: Tsn, cause: LossCause) {
        let Some(chunk) = self.get_mut(tsn) else { return };
        chunk.lost_by = cause;
        let chunk = *chunk;
        books.journal.chunk_lost(tsn, &chunk, cause);
        let Chunk { piece, repeats, .. } = chunk;
        self.queue_repeat(books.queue, tsn);
        if !books.queue.is_worth_repeating(prospect, piece.message, repeats) {
            self.give_up(books, piece.message);
        }
    }

    /// Takes all that is in flight over `path` for lost. Returns how many chunks that were.
    pub(crate) fn lose_all(&mut self, books: Books<'_>, prospect: Prospect, path: PathIndex, cause: LossCause) -> u64 {
        let Books { queue, journal } = books;
        let mut sent = core::mem::take(&mut self.lane_mut(path).sent);
        let mut lost = 0;
        for (tsn, order) in sent.drain(..) {
            if self.get(tsn).is_some_and(|chunk| chunk.is_at(path, order)) {
                self.lose(Books { queue, journal }, prospect, tsn, cause);
                lost += 1;
            }
        }
        self.lane_mut(path).sent = sent;
        // Last, as a chunk that is not worth repeating takes the others of its message with it.
        self.release_abandoned(path);
        debug_assert_eq!(self.in_flight_over(path), 0, "no timer would ever free it");
        self.check(queue);
        lost
    }

    /// The path `path` leaves: what it owes goes over the others.
    pub(crate) fn reroute(&mut self, books: Books<'_>, prospect: Prospect, path: PathIndex) {
        let Books { queue, journal } = books;
        self.lose_all(Books { queue, journal }, prospect, path, LossCause::Silence);
        for chunk in self.chunks.iter_mut().filter(|chunk| chunk.path == Some(path)) {
            chunk.path = None;
        }
        self.repeats.forget_path(path);
        *self.lane_mut(path) = super::Lane::default();
        self.check(queue);
    }

    /// Chunks that were abandoned in flight over `path` are no longer counted there.
    fn release_abandoned(&mut self, path: PathIndex) {
        let mut released = 0;
        for chunk in &mut self.chunks {
            if chunk.state == ChunkState::AbandonedInFlight && chunk.path == Some(path) {
                chunk.state = ChunkState::Abandoned;
                released += chunk.len();
            }
        }
        self.in_flight -= released;
        self.lane_mut(path).in_flight -= released;
    }

    /// Everything that is out seems to have arrived, yet the cumulative acknowledgement stands still: the peer dropped
    /// what it had gap-acknowledged (RFC 9260 §6.2.1 D iii). It is sent again.
    pub(crate) fn withdraw_gap_acks(&mut self, mut books: Books<'_>, prospect: Prospect) {
        let base = self.base();
        self.acked = crate::rx::TsnRing::new(base.get());
        let mut reneged = Vec::new();
        for (tsn, chunk) in base.until(self.next_tsn()).zip(&mut self.chunks) {
            match chunk.state {
                ChunkState::Acked => {
                    chunk.state = ChunkState::Lost;
                    reneged.push(tsn);
                }
                ChunkState::Kept => _ = self.acked.set(tsn.get()),
                _ => {}
            }
        }
        self.forward.restart(base);
        for tsn in reneged {
            if self.get(tsn).is_some_and(|chunk| chunk.state == ChunkState::Lost) {
                self.repeat_or_abandon(&mut books, prospect, tsn, LossCause::Timeout);
            }
        }
        self.advance_forward();
        self.check(books.queue);
    }

    /// A SACK acknowledged what was sent later over `path` than what lies below `highest`:
    /// `reports` more reports that it is missing, but one of what lies above `lowest` (SFR, Iyengar
    /// et al. 2006 §III-B; PRCMT fig. 6). Puts into `overdue` what is now reported often enough.
    pub(crate) fn report_missing(
        &mut self,
        path: PathIndex,
        (lowest, highest): (Order, Order),
        reports: u8,
        overdue: &mut Vec<(Tsn, PathIndex, Order)>,
    ) {
        let base = self.base();
        let Some(lane) = self.lanes.get_mut(path.get()) else { return };
        for &(tsn, order) in lane.sent.iter().take_while(|&&(_, order)| order < highest) {
            let chunk = tsn.index_from(base).and_then(|index| self.chunks.get_mut(index));
            let Some(chunk) = chunk.filter(|chunk| chunk.is_at(path, order) && chunk.may_be_reported()) else {
                continue;
            };
            chunk.missing = chunk.missing.saturating_add(if order > lowest { 1 } else { reports });
            if chunk.missing >= MISSING_REPORTS {
                overdue.push((tsn, path, order));
            }
        }
    }

    /// RFC 9260 §7.2.4 as it stands: one more report that all below `highest` is missing. Puts into
    /// `overdue` what is now reported often enough.
    pub(crate) fn report_missing_plainly(&mut self, highest: Tsn, overdue: &mut Vec<(Tsn, PathIndex, Order)>) {
        let (base, end) = (self.base(), highest.min(self.next_tsn()));
        for (tsn, chunk) in base.until(end).zip(&mut self.chunks) {
            if let Some(path) = chunk.path.filter(|_| chunk.is_in_flight() && chunk.may_be_reported()) {
                chunk.missing = chunk.missing.saturating_add(1);
                if chunk.missing >= MISSING_REPORTS {
                    overdue.push((tsn, path, chunk.order));
                }
            }
        }
    }

    /// Returns `true` if the chunk `tsn` is in flight over `path`, in place `order`.
    pub(crate) fn is_at(&self, tsn: Tsn, path: PathIndex, order: Order) -> bool {
        self.get(tsn).is_some_and(|chunk| chunk.is_at(path, order))
    }
}
