//! ECN (RFC 3168 for SCTP: RFC 4960 appendix A; the count and paths: draft-stewart-tsvwg-sctpecn-05).
//!
//! Packets with data leave as ECT(0), repeats too: unlike TCP's, they cannot be forged without the tag (RFC 3168 §6.1.5). A
//! marked one is echoed by its lowest TSN, in front of each SACK, so that the sender still knows which path that TSN took;
//! that path's window shrinks, once in a window of data, be it for marks or losses (RFC 3168 §6.1.2). A path that loses what says
//! ECT carries Not-ECT instead ([`crate::path`]).

use super::Association;
use super::receive::Carried;
use crate::api::{FecWindow, PathState};
use crate::path::{Path, PathStats};
use crate::wire::Chunk;
use crate::wire::chunk::{Cwr, Ecne};
use braidcast_core::{Ecn, Instant, PathId};

impl Association {
    /// What the IP header says of the packets that just left over the path in `slot`; `before`: its counts before.
    ///
    /// ECT is for what a window holds back (RFC 3168 §6.1): data and, inside the window, redundancy, not copies.
    pub(super) fn codepoint(&self, slot: usize, before: &PathStats) -> Ecn {
        let inside = self.options.redundancy.fec_window == FecWindow::Inside;
        let held = |path: &&Path| {
            path.stats.sent_chunks > before.sent_chunks
                || (inside && path.stats.redundancy_chunks > before.redundancy_chunks)
        };
        let capable = |path: &&Path| path.ect.is_on();
        let ect = self.agreed.ecn && self.paths.get(slot).filter(held).filter(capable).is_some();
        if ect { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// Nothing of what is out over the path in `slot` was answered in time. That says nothing about the path if the peer has less
    /// room than that and so may have dropped it (RFC 9260 §6.1 A).
    pub(super) fn doubt_ect(&mut self, slot: usize) {
        let probing = self.out.in_flight > self.peer_a_rwnd;
        let Some(path) = self.paths.get_mut(slot).filter(|_| !probing) else { return };
        let next = path.next_order();
        path.ect.on_timeout(next);
    }

    /// A packet came over the path `id`, in `slot`. If it was `marked`, its lowest TSN is echoed; for one with redundancy alone,
    /// which has none, that of the next data over this path. For any other there is nothing to echo (RFC 4960 appendix A).
    pub(super) fn note_mark(&mut self, now: Instant, slot: usize, id: PathId, marked: bool, carried: Carried) {
        let Some(path) = self.paths.get_mut(slot).filter(|_| self.agreed.ecn) else { return };
        path.stats.marked_packets += u64::from(marked);
        match carried.lowest_tsn {
            Some(tsn) if marked || path.marks.owed => {
                path.marks.owed = false;
                if self.echoes.on_marked(id, tsn) {
                    self.ack.demand(now);
                }
            }
            None if marked && carried.redundancy => path.marks.owed = true,
            _ => {}
        }
    }

    /// ECNE, which came over the path in `arrived`.
    pub(super) fn handle_ecne(&mut self, now: Instant, arrived: usize, ecne: Ecne) {
        let tsn = self.acked.peek(u64::from(ecne.lowest_tsn));
        if tsn >= self.out.next_tsn() || !self.state.is_up() {
            return; // Never sent: nonsense.
        }
        let out = self.out.get(tsn).map(|chunk| (usize::from(chunk.slot), chunk.order));
        let known = out.filter(|&(slot, _)| self.paths.get(slot).is_some());
        let mut reduced = false;
        if let Some((slot, order)) = known {
            reduced = self.reduce_for_mark(slot, order);
        }
        // An echo repeated since its CWR was lost: the TSN may be acknowledged by now.
        let named = || self.paths.enumerate().find(|(_, path)| path.marks.answered.is_some_and(|(_, it)| it == tsn));
        let slot = known.map(|(slot, _)| slot).or_else(|| Some(named()?.0));
        self.answer_ecne(now, slot.unwrap_or(arrived), tsn, slot.is_none(), reduced);
    }

    /// What went as number `order` over the path in `slot` was marked. Whether that reduces the window.
    fn reduce_for_mark(&mut self, slot: usize, order: u64) -> bool {
        let response = self.options.congestion.mark_response;
        let Some(path) = self.paths.get_mut(slot) else { return false };
        if order < path.marks.reduced_at || path.recovery.is_some_and(|until| order < until) {
            return false;
        }
        path.recovery = Some(path.next_order());
        path.stats.mark_reductions += 1;
        let kept = response.kept(path.window.in_slow_start());
        self.shrink_to(slot, kept);
        true
    }

    /// Sends CWR over the path in `slot`: at once if the window was `reduced`, else once in a round trip, as echoes come with
    /// each SACK until it has arrived.
    fn answer_ecne(&mut self, now: Instant, slot: usize, tsn: u64, all_paths: bool, reduced: bool) {
        let initial = self.options.timers.rto.initial;
        let Some(path) = self.paths.get_mut(slot) else { return };
        let pause = path.rtt.srtt().unwrap_or(initial);
        if path.state == PathState::Unconfirmed
            || (!reduced && path.marks.answered.is_some_and(|(last, _)| now - last < pause))
        {
            return;
        }
        path.marks.answered = Some((now, tsn));
        let cwr = Cwr { lowest_tsn: tsn as u32, all_paths, same_window: !reduced };
        self.control_chunk(slot, &Chunk::Cwr(cwr));
    }

    /// CWR, which came over the path `id`.
    pub(super) fn handle_cwr(&mut self, id: PathId, cwr: Cwr) {
        let tsn = self.tracker.unwrap(cwr.lowest_tsn);
        self.echoes.on_cwr(id, tsn, cwr.all_paths);
    }
}
