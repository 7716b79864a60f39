//! Far paths take parts of what waits by a plan, for which all of it is laid over all paths (decision 41): young data
//! goes over them, while what is urgent waits for a near one.

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

/// The part of its measured rate with which a path is planned. Of 0.85, 0.95 and 1.05 this one shows most
/// (decision 41).
const CERTAIN: f64 = 0.95;

/// What goes over a path in slow start outside of the plan is there so long before it is due. Of 0, 60, 150 and 200 ms
/// this one shows most (decision 41).
const TO_SPARE: Duration = Duration::from_millis(150);

/// A repeat is to be there so long before it is due (decision 41).
const REPEAT_SPARE: Duration = Duration::from_millis(5);

/// Returns `true` if it is known when what leaves over the path would arrive.
fn is_known(view: &PathView) -> bool {
    let is_measured = view.forward_delay.is_some() && view.rate.is_some_and(|rate| rate > 0.0);
    view.active && view.silent <= SILENT && is_measured
}

impl Open {
    /// The path for new data, and what of it. Paths near the nearest one take what the queue gives, and so do those of
    /// which nothing is known yet; each far one takes what is planned for it.
    pub(super) fn open_by_plan(
        &mut self,
        now: Instant,
        waiting: Waiting,
        views: &mut [PathView],
        spared: Avoided,
    ) -> Option<(PathIndex, What)> {
        let mut far = Avoided::default();
        if let Some(from) = self.far_from(views, spared) {
            for (place, view) in views.iter_mut().enumerate().filter(|(_, view)| is_known(view)) {
                let index = PathIndex::new(place);
                let is_far = self.paths[index].shortest_delay().is_some_and(|own| own >= from);
                if is_far && core::mem::take(&mut view.ready) && self.within_share(index) {
                    far.add(index);
                }
            }
        }
        if let Some(path) = self.path_for_new(now, waiting, views) {
            return Some((path, What::New));
        }
        let delay = |view: &PathView| view.forward_delay.map(|it| it.mean);
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

    /// The own delay from which a path is far: that of the nearest one that is known and not `spared`, and
    /// `paths.plan_from` more.
    fn far_from(&self, views: &[PathView], spared: Avoided) -> Option<Duration> {
        let nearby = |(place, view): (usize, &PathView)| {
            let index = PathIndex::new(place);
            if is_known(view) && !spared.has(index) { self.paths[index].shortest_delay() } else { None }
        };
        let nearest = views.iter().enumerate().filter_map(nearby).min()?;
        self.options.paths.plan_from.map(|more| nearest + more)
    }

    /// The path among those `far` ones that have no plan for what goes next. A path that was `refused` what was planned
    /// for it takes what the queue gives. One in slow start does so if that is there long before it is due: a plan by
    /// the rate that it showed so far gives it too little to show more.
    fn path_without_plan(
        &mut self,
        now: Instant,
        waiting: Waiting,
        views: &mut [PathView],
        (far, refused): (Avoided, Avoided),
    ) -> Option<PathIndex> {
        for (place, view) in views.iter_mut().enumerate() {
            let index = PathIndex::new(place);
            view.ready = far.has(index) && self.suits(now, index) && {
                let arrives = now + Duration::from_secs_f64(self.first_arrival(now, index, view).0) + TO_SPARE;
                let in_time = waiting.due.is_none_or(|due| arrives < due);
                refused.has(index) || (view.ssthresh == usize::MAX && in_time)
            };
            if view.ready {
                self.avoided.remove(index);
            }
        }
        self.path_for_new(now, waiting, views)
    }

    /// Until a byte arrives that is handed to the path now, behind all that stands in its queue, and the same with an
    /// empty queue, s.
    fn first_arrival(&self, now: Instant, index: PathIndex, view: &PathView) -> (f64, f64) {
        let path = &self.paths[index];
        let delay = view.forward_delay.unwrap_or_default().mean;
        let least = path.shortest_delay().unwrap_or(delay);
        let first = path.time_in_queue(now).map_or(delay, |queue| least + queue);
        (first.as_secs_f64(), least.min(first).as_secs_f64())
    }

    /// What the path `mine` takes a part of.
    fn planned(&mut self, now: Instant, mine: PathIndex, views: &[PathView], spared: Avoided) -> Part {
        let mut ways = core::mem::take(&mut self.scratch.ways);
        ways.clear();
        let mut place = None;
        let nearest =
            views.iter().filter(|view| is_known(view)).filter_map(|view| view.forward_delay).map(|it| it.mean);
        let nearest = nearest.min().unwrap_or_default();
        for (at, view) in views.iter().enumerate().filter(|(_, view)| is_known(view)) {
            let index = PathIndex::new(at);
            if spared.has(index) {
                continue;
            }
            if index == mine {
                place = Some(ways.len());
            }
            let (first, least) = self.first_arrival(now, index, view);
            let again =
                self.paths[index].loss_known().map_or(0.0, |it| (it + nearest + REPEAT_SPARE).as_secs_f64() - first);
            let way = Way::new(first, least, CERTAIN * view.rate.unwrap_or_default());
            // What the nearest one loses is repeated there at once.
            let is_nearest = least <= nearest.as_secs_f64();
            ways.push(way.repeating(if is_nearest { 0.0 } else { again.max(0.0) }));
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
