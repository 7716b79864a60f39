//! ECN (RFC 3168 for SCTP: RFC 4960 appendix A; the count and paths: draft-stewart-tsvwg-sctpecn-05).
//!
//! Packets with data leave as ECT(0), repeats too: unlike TCP's, they cannot be forged without the
//! tag (RFC 3168 §6.1.5). A marked one is echoed by its lowest TSN, in front of each SACK, so that
//! the sender still knows which path that TSN took; that path's window shrinks, once in a window of
//! data, be it for marks or losses (RFC 3168 §6.1.2). A path that loses what says ECT carries
//! Not-ECT instead ([`crate::path`]).

use super::Open;
use super::receive::Carried;
use crate::api::FecWindow;
use crate::number::Order;
use crate::path::{Congested, PathIndex, PathStats};
use crate::wire::Chunk;
use crate::wire::chunk::{Cwr, Ecne};
use braidcast_core::{Ecn, Instant, PathId};

impl Open {
    /// What the IP header says of the packets that just left over the path `index`; `before`: its counts before.
    ///
    /// ECT is for what a window holds back (RFC 3168 §6.1): data and, inside the window, redundancy, not copies.
    pub(super) fn codepoint(&self, index: PathIndex, before: &PathStats) -> Ecn {
        let path = &self.paths[index];
        let inside = self.options.redundancy.fec_window == FecWindow::Inside;
        let held = path.stats().sent_chunks() > before.sent_chunks()
            || (inside && path.stats().redundancy_chunks() > before.redundancy_chunks());
        if self.agreed.ecn && held && path.takes_ect() { Ecn::Ect0 } else { Ecn::NotEct }
    }

    /// Nothing of what is out over the path `index` was answered in time. That says nothing about
    /// the path if the peer has less room than that and so may have dropped it (RFC 9260 §6.1 A).
    pub(super) fn doubt_ect(&mut self, index: PathIndex) {
        if !self.ledger.probes_window() {
            self.paths[index].doubt_ect(self.ledger.next_order(index));
        }
    }

    /// A packet came over the path `index`. If it was `marked`, its lowest TSN is echoed; for one
    /// with redundancy alone, which has none, that of the next data over this path. For any other
    /// there is nothing to echo (RFC 4960 appendix A).
    pub(super) fn note_mark(&mut self, now: Instant, index: PathIndex, marked: bool, carried: Carried) {
        if !self.agreed.ecn {
            return;
        }
        let path = &mut self.paths[index];
        if path.on_mark_received(marked, carried.lowest_tsn.is_some(), carried.redundancy)
            && carried.lowest_tsn.is_some_and(|tsn| self.echoes.on_marked(path.id(), tsn))
        {
            self.ack.demand(now);
        }
    }

    /// ECNE, which came over the path `arrived`.
    pub(super) fn handle_ecne(&mut self, now: Instant, arrived: PathIndex, ecne: Ecne) {
        let tsn = self.ledger.unwrap(ecne.lowest_tsn);
        if tsn >= self.ledger.next_tsn() || !self.state.is_up() {
            return; // Never sent: nonsense.
        }
        let place = self.ledger.get(tsn).and_then(crate::tx::Chunk::place);
        let reduced = place.is_some_and(|(index, order)| self.note_marked(now, index, order));
        // An echo repeated since its CWR was lost: the TSN may be acknowledged by now.
        let named = || self.paths.enumerate().find(|(_, path)| path.has_answered_mark(tsn)).map(|(index, _)| index);
        let index = place.map(|(index, _)| index).or_else(named);
        if self.paths[index.unwrap_or(arrived)].answers_mark(now, tsn, reduced) {
            let cwr = Cwr { lowest_tsn: tsn.wire(), all_paths: index.is_none(), same_window: !reduced };
            self.control_chunk(index.unwrap_or(arrived), &Chunk::Cwr(cwr));
        }
    }

    /// What went as number `order` over the path `index` was marked. Whether that reduces the window.
    fn note_marked(&mut self, now: Instant, index: PathIndex, order: Order) -> bool {
        let next = self.ledger.next_order(index);
        let reduces = self.paths[index].on_marked(order, next);
        if reduces {
            self.reduce(now, index, Congested::Marked);
        }
        reduces
    }

    /// CWR, which came over the path `id`.
    pub(super) fn handle_cwr(&mut self, id: PathId, cwr: Cwr) {
        let tsn = self.tracker.unwrap(cwr.lowest_tsn);
        self.echoes.on_cwr(id, tsn, cwr.all_paths);
    }
}
