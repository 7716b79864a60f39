//! Paths that are not the quickest take parts of what waits by a plan, for which all of it is laid over all paths
//! (decision 41): young data goes over far ones, while what is urgent waits for the quick one.

use super::plan::What;
use super::{Avoided, Open};
use crate::path::PathIndex;
use crate::tx::Part;
use braidcast_core::Instant;
use braidcast_mpath::{PathView, Waiting};
use braidcast_queue::{Planned, Way};
use core::time::Duration;

/// A path whose answer is overdue by this much stands still, and has no place in a plan.
const SILENT: Duration = Duration::from_millis(50);

/// The part of its measured rate with which a path is planned. Of 0.85, 0.95 and 1.05 this one shows most (decision 41).
const CERTAIN: f64 = 0.95;

/// What goes over a path in slow start outside of the plan is there so long before it is due. Of 0, 60, 150 and 200 ms
/// this one shows most (decision 41).
const TO_SPARE: Duration = Duration::from_millis(150);

/// Returns `true` if it is known when what leaves over the path would arrive.
fn is_known(view: &PathView) -> bool {
    let is_measured = view.forward_delay.is_some() && view.rate.is_some_and(|rate| rate > 0.0);
    view.active && view.silent <= SILENT && is_measured
}

impl Open {
    /// The path for new data, and what of it. The quickest path takes what the queue gives, and so do those of which
    /// nothing is known yet; each other one takes what is planned for it.
    pub(super) fn open_by_plan(
        &mut self,
        now: Instant,
        waiting: Waiting,
        views: &mut [PathView],
        spared: Avoided,
    ) -> Option<(PathIndex, What)> {
        let delay = |view: &PathView| view.forward_delay.map(|it| it.mean);
        let known = |&(place, view): &(usize, &PathView)| is_known(view) && !spared.has(PathIndex::new(place));
        let quickest =
            views.iter().enumerate().filter(known).min_by_key(|(_, view)| delay(view)).map(|(place, _)| place);
        let mut far = Avoided::default();
        for (place, view) in views
            .iter_mut()
            .enumerate()
            .filter(|(place, view)| quickest.is_some_and(|quickest| *place != quickest) && is_known(view))
        {
            let index = PathIndex::new(place);
            if core::mem::take(&mut view.ready) && self.within_share(index) {
                far.add(index);
            }
        }
        if let Some(path) = self.path_for_new(now, waiting, views) {
            return Some((path, What::New));
        }
        let (mut left, mut refused) = (far, Avoided::default());
        while let Some(place) =
            (0..views.len()).filter(|&place| left.has(PathIndex::new(place))).min_by_key(|&place| delay(&views[place]))
        {
            let index = PathIndex::new(place);
            left.remove(index);
            match self.planned(now, index, views, spared) {
                Part::Of(planned) => return Some((index, What::Planned(planned))),
                Part::Refused => refused.add(index),
                Part::Nothing => {}
            }
            self.avoided.add(index);
        }
        self.path_without_plan(now, waiting, views, (far, refused)).map(|path| (path, What::New))
    }

    /// The path among those `far` ones that have no plan for what goes next. A path that was `refused` what was planned
    /// for it takes what the queue gives, if that is there long before it is due. One in slow start does so too: a plan
    /// by the rate that it showed so far gives it too little to show more.
    fn path_without_plan(
        &mut self,
        now: Instant,
        waiting: Waiting,
        views: &mut [PathView],
        (far, refused): (Avoided, Avoided),
    ) -> Option<PathIndex> {
        for (place, view) in views.iter_mut().enumerate() {
            let index = PathIndex::new(place);
            let arrival = now + view.forward_delay.unwrap_or_default().mean + TO_SPARE;
            let in_time = waiting.due.is_none_or(|due| arrival < due);
            let unplanned = view.ssthresh == usize::MAX || refused.has(index);
            view.ready = far.has(index) && unplanned && in_time && self.suits(now, index);
            if view.ready {
                self.avoided.remove(index);
            }
        }
        self.path_for_new(now, waiting, views)
    }

    /// What the path `mine` takes a part of.
    fn planned(&mut self, now: Instant, mine: PathIndex, views: &[PathView], spared: Avoided) -> Part {
        let mut ways = core::mem::take(&mut self.scratch.ways);
        ways.clear();
        let mut place = None;
        for (at, view) in views.iter().enumerate().filter(|(_, view)| is_known(view)) {
            let index = PathIndex::new(at);
            if spared.has(index) {
                continue;
            }
            if index == mine {
                place = Some(ways.len());
            }
            let path = &self.paths[index];
            let delay = view.forward_delay.unwrap_or_default().mean;
            let least = path.shortest_delay().unwrap_or(delay);
            let first = path.time_in_queue(now).map_or(delay, |queue| least + queue);
            let least = least.min(first).as_secs_f64();
            ways.push(Way::new(first.as_secs_f64(), least, CERTAIN * view.rate.unwrap_or_default()));
        }
        let part = place.map_or(Part::Nothing, |place| self.queue.planned(now, &mut ways, place));
        self.scratch.ways = ways;
        match part {
            Part::Of(planned) if !self.may_take(planned) => Part::Nothing,
            part => part,
        }
    }

    /// Returns `true` if the part of the buffer that is for what was sent has room for the message that was planned.
    fn may_take(&self, planned: Planned) -> bool {
        let Some((front, (_, left))) = self.queue.front().zip(self.queue.peek_planned(planned)) else { return false };
        let sent = self.queue.without_front(self.queue.held_bytes());
        planned == Planned::UnderWay || sent == 0 || sent + left <= self.options.limits.send_buffer - front.most_bytes()
    }
}
