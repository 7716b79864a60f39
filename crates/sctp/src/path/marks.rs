use super::Path;
use crate::api::PathState;
use crate::number::{Order, Tsn};
use braidcast_core::{Ecn, Instant};

/// What ECN marks did to a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    /// Marks of what was sent before this place in the order came too late to reduce the window once more.
    pub(super) reduced_at: Order,
    /// When the last CWR left over this path, and the TSN in it.
    answered: Option<(Instant, Tsn)>,
    /// A packet came marked that had redundancy and no data: the mark is told of with the next data.
    owed: bool,
}

impl Path {
    /// A packet of `bytes` came over this path, its header with `ecn`.
    pub(crate) fn on_packet_received(&mut self, bytes: usize, ecn: Ecn) {
        self.stats.received_packets += 1;
        self.stats.ect_packets += u64::from(ecn != Ecn::NotEct);
        self.stats.received_bytes += bytes as u64;
    }

    /// A packet came, `marked` or not, with data or not, with redundancy or not. Whether a mark is
    /// to be told of by that data.
    pub(crate) const fn on_mark_received(&mut self, marked: bool, data: bool, redundancy: bool) -> bool {
        self.stats.marked_packets += marked as u64;
        let echo = data && (marked || self.marks.owed);
        if echo {
            self.marks.owed = false;
        } else if !data && marked && redundancy {
            self.marks.owed = true;
        }
        echo
    }

    /// What went as number `order` over this path was marked. Whether that calls for a reduction:
    /// one a round trip, be it for marks or losses (RFC 3168 §6.1.2).
    pub(crate) fn on_marked(&mut self, order: Order, next: Order) -> bool {
        if order < self.marks.reduced_at || self.recovery.is_some_and(|until| order < until) {
            return false;
        }
        self.recovery = Some(next);
        self.stats.mark_reductions += 1;
        true
    }

    /// CWR with `tsn` may leave over this path: at once if the window was `reduced`, else once in a
    /// round trip, as echoes come with each SACK until it has arrived. Whether it leaves.
    pub(crate) fn answers_mark(&mut self, now: Instant, tsn: Tsn, reduced: bool) -> bool {
        let pause = self.rtt.srtt().unwrap_or(self.options.timers.rto.initial);
        let soon = self.marks.answered.is_some_and(|(last, _)| now - last < pause);
        if self.state == PathState::Unconfirmed || (!reduced && soon) {
            return false;
        }
        self.marks.answered = Some((now, tsn));
        true
    }

    /// Returns `true` if the last CWR over this path had `tsn`.
    pub(crate) fn has_answered_mark(&self, tsn: Tsn) -> bool {
        self.marks.answered.is_some_and(|(_, it)| it == tsn)
    }

    /// Returns `true` if packets that leave now may say ECT.
    pub(crate) const fn takes_ect(&self) -> bool {
        self.ect.is_on()
    }

    /// Nothing of what is out was answered in time, `next` being the place that the next chunk gets.
    pub(crate) fn doubt_ect(&mut self, next: Order) {
        self.ect.on_timeout(next);
    }
}
