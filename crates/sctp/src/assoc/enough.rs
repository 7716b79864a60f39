//! The least set of paths that carries all that waits with ease. Nothing else goes over
//! another one but copies: a path that is not needed can only lose it, or deliver it late.

use super::Open;
use super::choose::Avoided;
use crate::path::PathIndex;
use braidcast_core::Instant;
use braidcast_mpath::PathView;
use core::time::Duration;

/// Shortest interval between two looks at the paths.
const EACH: Duration = Duration::from_millis(5);
/// A path whose answer is overdue by this much, and by more than round trips differ, may be gone.
const SILENT: Duration = Duration::from_millis(50);

/// A path over which a repeat arrives within this share of the time that a frame has does no harm,
/// and an encoder that follows the network is to learn what it carries.
const NEAR: f64 = 0.6;

/// What a path still delivers.
#[derive(Clone, Copy, Debug)]
struct Curve {
    index: PathIndex,
    /// Seconds until a byte arrives that is handed to it now.
    first: f64,
    /// Bytes in a second.
    rate: f64,
    /// Seconds until the repeat of a packet that is lost would arrive.
    again: f64,
}

impl Curve {
    /// Bytes that arrive within this time, s.
    fn delivered(&self, within: f64) -> f64 {
        self.rate * (within - self.first).max(0.0)
    }
}

/// Paths that are not needed, as found a moment ago.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spared {
    paths: Avoided,
    looked: Option<Instant>,
    /// Bytes that waited then.
    waiting: usize,
}

impl Open {
    /// Returns `true` if what stands in the paths' queues is forecast, for a queue that leaves out in time what is too
    /// much. Without one all of it goes somewhere.
    pub(super) fn forecasts_queues(&self) -> bool {
        self.queue.front().is_some_and(crate::tx::Front::tells_needs)
    }

    /// Returns `true` if frames decide which path carries what: the queue can tell what they need, and the scheduler
    /// leaves that open. Those of papers use all paths, whatever comes of it.
    pub(super) fn decides_by_frames(&self) -> bool {
        self.options.paths.concurrent
            && self.options.paths.scheduler == braidcast_mpath::SchedulerKind::EarliestDelivery
            && self.queue.front().is_some_and(crate::tx::Front::tells_needs)
    }

    /// Has paths that are not needed not be ready, neither for new data nor for what was lost.
    /// Returns them.
    pub(super) fn spare_paths(&mut self, now: Instant, views: &mut [PathView]) -> Avoided {
        if !self.decides_by_frames() {
            return Avoided::default();
        }
        let waiting = self.queue.waiting_bytes();
        let Spared { looked, waiting: before, .. } = self.spared;
        if looked.is_none_or(|looked| now.since(looked) >= EACH) || waiting > before {
            self.spared = Spared { paths: self.not_needed(now, views), looked: Some(now), waiting };
        }
        for (place, view) in views.iter_mut().enumerate().filter(|(_, view)| view.ready) {
            let index = PathIndex::new(place);
            if self.spared.paths.has(index) {
                view.ready = false;
                self.avoided.add(index);
                self.paths[index].on_app_limited(view.in_flight);
            }
        }
        self.spared.paths
    }

    /// The paths without which all that waits is in time with ease. Those stay over which a lost
    /// packet comes soonest when it is repeated.
    fn not_needed(&self, now: Instant, views: &[PathView]) -> Avoided {
        let mut curves = [None; Avoided::BITS];
        let mut count = 0;
        let active = views.iter().enumerate().filter(|(_, view)| view.active);
        for (curve, (place, view)) in curves.iter_mut().zip(active) {
            *curve = self.curve(now, PathIndex::new(place), view);
            count += 1;
        }
        let curves = &mut curves[..count];
        curves.sort_by(|a, b| {
            let again = |it: &Option<Curve>| it.map_or(f64::INFINITY, |it| it.again);
            again(a).total_cmp(&again(b))
        });
        let enough = (1..curves.len()).find(|&enough| {
            let set = &curves[..enough];
            let delivered = |within: f64| set.iter().flatten().map(|it| it.delivered(within)).sum();
            set.iter().all(Option::is_some) && self.queue.is_carried(now, &delivered)
        });
        let mut spared = Avoided::default();
        let time = self.queue.front().and_then(crate::tx::Front::time).unwrap_or_default().as_secs_f64();
        for curve in curves.iter().skip(enough.unwrap_or(count)).flatten().filter(|it| it.again > NEAR * time) {
            spared.add(curve.index);
        }
        spared
    }

    /// What the path `index` still delivers; `None` before that is known, and while it is silent.
    fn curve(&self, now: Instant, index: PathIndex, view: &PathView) -> Option<Curve> {
        let path = &self.paths[index];
        let rate = path.measured_rate().filter(|rate| *rate > 0.0)?;
        let round_trip = path.shortest_round_trip()?.as_secs_f64();
        let (delay, answer) = if path.is_one_way() {
            (path.shortest_delay()?.as_secs_f64(), path.shortest_answer()?.as_secs_f64())
        } else {
            (round_trip / 2.0, round_trip)
        };
        let counted = if path.is_one_way() { path.time_in_queue(now) } else { None };
        let queue = counted.map_or_else(|| (view.in_flight as f64 / rate - answer).max(0.0), |it| it.as_secs_f64());
        if view.silent > SILENT + 4 * path.rtt().rttvar() {
            return None;
        }
        let first = delay + queue;
        // By its own round trip, though its losses may be known sooner: acknowledgements over a quicker path make it
        // no nearer ([`NEAR`]).
        Some(Curve { index, first, rate, again: 2.0 * first + 1.25 * round_trip })
    }
}
