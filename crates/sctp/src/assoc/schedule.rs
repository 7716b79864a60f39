//! Which path data goes over now, and which of the lost chunks.

use super::{Association, Avoided};
use crate::api::Priority;
use crate::path::Path;
use crate::tx::Origin;
use crate::wire::Header;
use braidcast_core::Instant;
use braidcast_mpath::PathView;

/// Where data may go now.
pub(super) enum Way {
    /// Over the path in this slot.
    Open(usize),
    /// Nowhere: there is none, or no path has room or is let by pacing.
    Shut,
}

impl Association {
    /// The paths that the scheduler looks at, at most; [`PathOptions::max_paths`](crate::PathOptions::max_paths) is far below.
    const MAX_VIEWS: usize = 32;

    /// What policies may know about the paths; those with room count as ready.
    fn views(&self) -> ([PathView; Self::MAX_VIEWS], usize) {
        let best = self.paths.best_rank(None);
        let mut views = [PathView::default(); Self::MAX_VIEWS];
        let count = self.paths.slots().min(views.len());
        for (slot, path) in self.paths.enumerate().take_while(|&(slot, _)| slot < count) {
            let active = self.paths.is_best(path, best);
            views[slot] = PathView {
                ready: active && path.has_room(self.options.papers.max_burst),
                active,
                bursting: path.burst > 0,
                cwnd: path.window.cwnd(),
                ssthresh: path.window.ssthresh(),
                in_flight: path.in_flight,
                loss_rate: path.loss_rate,
                srtt: path.rtt.srtt(),
            };
        }
        (views, count)
    }

    /// Which path data goes over now: what was lost before what is new (RFC 9260 §6.1 C).
    pub(super) fn way(&mut self, now: Instant) -> Way {
        let new_data = self.has_new_data();
        if !self.state.carries_data() || (!new_data && self.retransmit.is_empty()) {
            self.avoided = Avoided::default();
            return Way::Shut;
        }
        let (mut views, count) = self.views();
        let pacing = self.options.congestion.pacing;
        for (slot, view) in views.iter_mut().enumerate().filter(|(_, view)| view.ready) {
            let Some(path) = self.paths.get_mut(slot) else { continue };
            let (mtu, rate) = (path.mtu(), path.pacing_rate().filter(|_| pacing));
            view.ready = path.pacer.ready_at(now, mtu, rate, mtu) <= now;
        }
        let views = &mut views[..count];
        self.choose(now, views.iter().enumerate().filter(|(_, view)| view.ready).map(|(slot, _)| slot));
        let open = self.repeat_way(views).or_else(|| self.new_way(views).filter(|_| new_data));
        open.map_or(Way::Shut, Way::Open)
    }

    /// The path for the first of the lost chunks whose path is ready.
    fn repeat_way(&self, views: &mut [PathView]) -> Option<usize> {
        let best = |views: &[PathView], ready: &dyn Fn(usize) -> bool| {
            let targets = self.retransmit.heads().filter_map(|(origin, priority, tsn)| {
                let target = match self.repeat_target(views, origin) {
                    Some(slot) => ready(slot).then_some(slot),
                    None => self.options.paths.scheduler.pick(views, self.paths.last),
                };
                Some(((priority, tsn), target?))
            });
            targets.min_by_key(|&(rank, _)| rank).map(|(_, slot)| slot)
        };
        best(views, &|slot| views[slot].ready).or_else(|| {
            if !self.unheld_packet || self.retransmit.is_empty() {
                return None;
            }
            let mut open = [PathView::default(); Self::MAX_VIEWS];
            let open = &mut open[..views.len()];
            open.copy_from_slice(views);
            open.iter_mut().for_each(|view| view.ready = view.active);
            best(open, &|_| true)
        })
    }

    /// The path for new data.
    fn new_way(&self, views: &[PathView]) -> Option<usize> {
        if self.options.paths.concurrent {
            let mut open = [PathView::default(); Self::MAX_VIEWS];
            let open = &mut open[..views.len()];
            open.copy_from_slice(views);
            for (slot, view) in open.iter_mut().enumerate() {
                view.ready &= self.within_share(slot) && !self.avoided.has(slot);
            }
            return self.options.paths.scheduler.pick(open, self.paths.last);
        }
        self.paths.data_path().filter(|&slot| views.get(slot).is_some_and(|view| view.ready))
    }

    /// The path that chunks lost like `origin` are to go over; `None`: any.
    fn repeat_target(&self, views: &[PathView], origin: Origin) -> Option<usize> {
        self.options.papers.retransmission.pick(views, usize::from(origin.slot), origin.timed_out)
    }

    /// The first of the lost chunks that may go over the path in `slot`.
    pub(super) fn next_repeat(&self, slot: usize) -> Option<(Origin, Priority, u64)> {
        if self.retransmit.is_empty() {
            return None;
        }
        let (views, count) = self.views();
        let here = |&(origin, ..): &(Origin, Priority, u64)| {
            self.repeat_target(&views[..count], origin).is_none_or(|target| target == slot)
        };
        self.retransmit.heads().filter(here).min_by_key(|&(_, priority, tsn)| (priority, tsn))
    }

    /// Whether there is new data that flow control lets go.
    pub(super) fn has_new_data(&self) -> bool {
        if !self.state.carries_data() {
            return false;
        }
        // One chunk may always be out, to notice when a shut window opens (RFC 9260 §6.1 A).
        self.queue.waiting_bytes() > 0 && !self.out.is_full() && (!self.peer_is_full() || self.out.in_flight == 0)
    }

    /// Whether data waits that the peer has no room for.
    pub(super) fn peer_is_full(&self) -> bool {
        if self.peer_rwnd >= self.options.paths.max_mtu.max(self.options.paths.base_mtu) {
            return false;
        }
        let first = || self.queue.front().and_then(|front| front.head()).map(|tag| tag.len);
        let Some(left) = self.queue.peek().map(|(_, left)| left).or_else(first) else { return false };
        let header = self.data_header();
        let piece = left.min(self.paths.common_mtu().unwrap_or(self.options.paths.base_mtu) - Header::LEN - header);
        piece > self.peer_rwnd
    }

    /// Whether new data may go over the path in `slot`.
    pub(super) fn may_carry_new(&self, slot: usize) -> bool {
        (self.options.paths.concurrent || self.paths.data_path() == Some(slot))
            && self.slot_has_room(slot)
            && self.within_share(slot)
    }

    pub(super) fn slot_has_room(&self, slot: usize) -> bool {
        self.paths.get(slot).is_some_and(|path| path.has_room(self.options.papers.max_burst))
    }

    /// When pacing lets the next packet go, if that is what holds it back.
    pub(super) fn pacing_timeout(&self) -> Option<Instant> {
        let new_data = self.has_new_data();
        if !self.options.congestion.pacing || !self.state.carries_data() || (!new_data && self.retransmit.is_empty()) {
            return None;
        }
        let best = self.paths.best_rank(None);
        let wanted = |slot: usize, path: &Path| {
            self.paths.is_best(path, best)
                && self.slot_has_room(slot)
                && ((new_data && self.may_carry_new(slot) && !self.avoided.has(slot))
                    || self.next_repeat(slot).is_some())
        };
        let candidates = self.paths.enumerate().filter(|&(slot, path)| wanted(slot, path));
        candidates.filter_map(|(_, path)| Some(path.pacer.earliest(path.mtu(), path.pacing_rate()?))).min()
    }
}
