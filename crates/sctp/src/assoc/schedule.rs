//! Which path data goes over now, and which of the lost chunks.

use super::plan::What;
use super::{Avoided, Open};
use crate::api::Options;
use crate::path::PathIndex;
use crate::tx::{Origin, Repeat};
use crate::wire::Header;
use braidcast_core::Instant;
use braidcast_mpath::{Delay, PathView, RetransmissionPolicy, View, Waiting};

impl Open {
    /// Puts into `views`, by their indices, what policies may know about the paths; those with room count as ready.
    pub(super) fn fill_views(&self, now: Instant, views: &mut Vec<PathView>) {
        let best = self.paths.best_rank(None);
        let forecasts = self.forecasts_queues();
        views.clear();
        views.resize_with(self.paths.places(), PathView::default);
        for (index, path) in self.paths.enumerate() {
            let in_flight = self.ledger.in_flight_over(index);
            let active = path.rank().is_some() && path.rank() == best;
            let view = path.view(in_flight, active, active && path.has_room(in_flight));
            let forecast = if forecasts { path.forecast_delay(now) } else { None };
            let delay = || forecast.unwrap_or_else(|| super::choose::one_way_delay(path, in_flight));
            let mean = path.is_measured().then(delay);
            let forward_delay = mean.map(|mean| Delay { mean, deviation: path.rtt().rttvar() });
            let oldest = self.ledger.sent_over(index).next().map(|(_, _, chunk)| chunk.sent());
            views[index.get()] = PathView { forward_delay, silent: path.silent_for(now, oldest), ..view };
        }
        self.fill_forward_delays(now, views);
        self.err_about_delays(views);
    }

    /// Has forward delays be longer than they are, where an experiment asks for that.
    fn err_about_delays(&self, views: &mut [PathView]) {
        let percent = self.options.papers.delay_error;
        for delay in views.iter_mut().filter(|_| percent > 0).filter_map(|view| view.forward_delay.as_mut()) {
            delay.mean = delay.mean * (100 + percent) / 100;
        }
    }

    /// What policies may know about the data that waits.
    fn waiting_data(&self) -> Waiting {
        let waiting =
            Waiting { bytes: self.queue.waiting_bytes(), peer_room: self.ledger.peer_room(), ..Waiting::default() };
        if let Some((key, head)) = self.queue.peek() {
            let message = self.queue.get(key);
            let priority = message.priority.index() as u8;
            return Waiting { head, deadline: message.expiry(), due: message.due(), priority, ..waiting };
        }
        match self.queue.front().and_then(|front| front.head()) {
            Some(tag) => {
                let (head, priority) = (tag.len, tag.priority.get());
                Waiting { head, deadline: tag.expiry, due: tag.due(), priority, ..waiting }
            }
            None => waiting,
        }
    }

    /// The path that data goes over now: what was lost before what is new (RFC 9260 §6.1 C).
    /// `None`: there is nothing to send, or no path has room or is let by pacing.
    pub(super) fn open_path(&mut self, now: Instant) -> Option<(PathIndex, What)> {
        let new_data = self.has_new_data();
        if !self.state.carries_data() || (!new_data && self.ledger.has_no_repeats()) {
            self.avoided = Avoided::default();
            return None;
        }
        if let Some(only) = self.paths.only() {
            return self.open_only(now, only, new_data).map(|what| (only, what));
        }
        let mut views = core::mem::take(&mut self.scratch.views);
        self.fill_views(now, &mut views);
        for (place, view) in views.iter_mut().enumerate().filter(|(_, view)| view.ready) {
            view.ready = self.paths[PathIndex::new(place)].is_paced_in(now);
        }
        let ready = views.iter().enumerate().filter(|(_, view)| view.ready);
        self.choose(now, ready.map(|(place, _)| PathIndex::new(place)));
        let waiting = self.waiting_data();
        let spared = self.spare_paths(now, &mut views);
        let repeat = self.path_for_repeat(now, waiting, &mut views);
        self.refused = spared;
        if repeat.is_none() && !self.ledger.has_no_repeats() {
            let ready = views.iter().enumerate().filter(|(_, view)| view.ready);
            ready.for_each(|(place, _)| self.refused.add(PathIndex::new(place)));
        }
        if let Some(path) = repeat {
            self.lead = self.lead_over(&View { now, paths: &views, waiting }, path);
        }
        let mut open = repeat.map(|path| (path, What::Repeat));
        if open.is_none() && new_data {
            open = if self.decides_by_frames() && self.queue.cuts_parts() {
                self.open_by_plan(now, waiting, &mut views, spared)
            } else {
                self.path_for_new(now, waiting, &mut views).map(|path| (path, What::New))
            };
        }
        self.scratch.views = views;
        open
    }

    /// What data goes over the path `only`, with no other one to choose.
    fn open_only(&mut self, now: Instant, only: PathIndex, new_data: bool) -> Option<What> {
        let active = self.paths[only].rank().is_some();
        let ready = active && self.path_has_room(only) && self.paths[only].is_paced_in(now);
        self.choose(now, ready.then_some(only).into_iter());
        (self.refused, self.lead) = (Avoided::default(), 0);
        if !self.ledger.has_no_repeats() && (ready || (active && self.unheld_packet)) {
            return Some(What::Repeat);
        }
        (new_data && ready && self.suits_new(only)).then_some(What::New)
    }

    /// The path for the first of the lost chunks whose path is ready.
    fn path_for_repeat(&mut self, now: Instant, waiting: Waiting, views: &mut [PathView]) -> Option<PathIndex> {
        if self.ledger.has_no_repeats() {
            return None;
        }
        let open = self.first_repeat(now, waiting, views);
        if open.is_some() || !self.unheld_packet {
            return open;
        }
        let mut ready = 0_u64;
        for (place, view) in views.iter_mut().enumerate() {
            ready |= u64::from(view.ready) << place;
            view.ready = view.active;
        }
        let open = self.first_repeat(now, waiting, views);
        views.iter_mut().enumerate().for_each(|(place, view)| view.ready = ready >> place & 1 == 1);
        open
    }

    /// The same, for the paths that are ready. A lost chunk is judged by its own deadline, and
    /// waits for none of the new data.
    fn first_repeat(&mut self, now: Instant, waiting: Waiting, views: &[PathView]) -> Option<PathIndex> {
        let Self { scheduler, ledger, options, queue, .. } = self;
        let waiting = Waiting { again: true, ..waiting };
        let lost = |tsn| {
            let chunk = ledger.get(tsn).filter(|chunk| chunk.has_message());
            chunk.map_or(waiting, |chunk| {
                let message = queue.get(chunk.piece().message);
                let (deadline, priority) = (message.expiry(), message.priority.index() as u8);
                Waiting { bytes: chunk.len(), head: chunk.len(), deadline, due: None, priority, ..waiting }
            })
        };
        let targets = ledger.repeats().filter_map(|(origin, priority, tsn)| {
            let target = match repeat_target(options, views, origin) {
                Some(index) => views[index.get()].ready.then_some(index),
                None => scheduler.pick(&View { now, paths: views, waiting: lost(tsn) }).map(PathIndex::new),
            };
            Some(((priority, tsn), target?))
        });
        targets.min_by_key(|&(rank, _)| rank).map(|(_, index)| index)
    }

    /// The path for new data.
    pub(super) fn path_for_new(&mut self, now: Instant, waiting: Waiting, views: &mut [PathView]) -> Option<PathIndex> {
        if !self.options.paths.concurrent {
            return self.paths.data_path().filter(|&index| views[index.get()].ready && self.suits_new(index));
        }
        for (place, view) in views.iter_mut().enumerate().filter(|(_, view)| view.ready) {
            view.ready = self.suits_new(PathIndex::new(place));
        }
        let view = View { now, paths: views, waiting };
        let mut picked = self.scheduler.pick(&view).map(PathIndex::new);
        self.lead = picked.map_or(0, |index| self.lead_over(&view, index));
        if self.lead > 0 && self.queue.peek_ahead(self.lead).is_none() {
            (picked, self.lead) = (None, 0); // It is all for quicker paths.
        }
        if picked.is_none() {
            // What waits, waits for a path that is full.
            let ready = views.iter().enumerate().filter(|(_, view)| view.ready);
            ready.for_each(|(place, _)| self.avoided.add(PathIndex::new(place)));
        }
        picked
    }

    /// Bytes of what waits that new data over the path `index` leaves to others. A queue says
    /// itself which message goes next.
    fn lead_over(&self, view: &View<'_>, index: PathIndex) -> usize {
        let chosen = !self.options.paths.concurrent || self.queue.front().is_some();
        if chosen { 0 } else { self.scheduler.ahead(view, index.get()) }
    }

    /// Returns `true` if something new is for the path `index`, which is ready, and its share of the buffers has room.
    fn suits_new(&self, index: PathIndex) -> bool {
        self.within_share(index) && !self.avoided.has(index)
    }

    /// The first of the lost chunks that may go over the path `index`.
    pub(super) fn next_repeat(&self, now: Instant, index: PathIndex) -> Option<Repeat> {
        if self.ledger.has_no_repeats() {
            return None;
        }
        let mut views = Vec::new();
        if self.options.papers.retransmission != RetransmissionPolicy::RtxAsap {
            self.fill_views(now, &mut views);
        }
        let here =
            |&(origin, ..): &Repeat| repeat_target(&self.options, &views, origin).is_none_or(|target| target == index);
        self.ledger.repeats().filter(here).min_by_key(|&(_, priority, tsn)| (priority, tsn))
    }

    /// Returns `true` if there is new data that flow control lets go.
    pub(super) fn has_new_data(&self) -> bool {
        if !self.state.carries_data() {
            return false;
        }
        // One chunk may always be out, to notice when a shut window opens (RFC 9260 §6.1 A).
        self.queue.has_waiting() && !self.ledger.is_full() && (!self.peer_is_full() || self.ledger.in_flight() == 0)
    }

    /// Returns `true` if data waits that the peer has no room for.
    pub(super) fn peer_is_full(&self) -> bool {
        if self.ledger.peer_room() >= self.options.paths.max_mtu.max(self.options.paths.base_mtu) {
            return false;
        }
        let first = || self.queue.front().and_then(|front| front.head()).map(|tag| tag.len);
        let Some(left) = self.queue.peek().map(|(_, left)| left).or_else(first) else { return false };
        let header = self.data_header();
        let piece = left.min(self.paths.common_mtu() - Header::LEN - header);
        piece > self.ledger.peer_room()
    }

    /// Returns `true` if new data may go over the path `index`.
    pub(super) fn may_carry_new(&self, index: PathIndex) -> bool {
        (self.options.paths.concurrent || self.paths.data_path() == Some(index))
            && self.path_has_room(index)
            && self.within_share(index)
    }

    /// Returns `true` if the window of the path `index` has room.
    pub(super) fn path_has_room(&self, index: PathIndex) -> bool {
        self.paths[index].has_room(self.ledger.in_flight_over(index))
    }

    /// When pacing lets the next packet go, if that is what holds it back.
    pub(super) fn pacing_timeout(&self) -> Option<Instant> {
        let new_data = self.has_new_data();
        if !self.options.congestion.pacing || !self.state.carries_data() || (!new_data && self.ledger.has_no_repeats())
        {
            return None;
        }
        let wanted = |index| {
            self.path_has_room(index)
                && ((new_data && self.may_carry_new(index) && !self.avoided.has(index))
                    || (!self.refused.has(index) && self.next_repeat(Instant::ZERO, index).is_some()))
        };
        self.paths.best().filter(|&(index, _)| wanted(index)).filter_map(|(_, path)| path.paced_until()).min()
    }
}

/// The path that chunks lost like `origin` are to go over; `None`: any.
fn repeat_target(options: &Options, views: &[PathView], origin: Origin) -> Option<PathIndex> {
    let lost_on = origin.path.map_or(usize::MAX, PathIndex::get);
    options.papers.retransmission.pick(views, lost_on, origin.timed_out).map(PathIndex::new)
}
