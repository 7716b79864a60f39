use super::{PACKET, Scheduler, nanos, quickest_two};
use crate::{PathView, View};

/// Earliest completion first: a slow path is left alone if all that waits would be done sooner over
/// the quickest path, though that is full (Lim, Nahum, Towsley, Gibbens, "ECF: An MPTCP Path
/// Scheduler to Manage Heterogeneous Paths", CoNEXT 2017, algorithm 1). As published, by windows
/// and round trips; [`EarliestDelivery`](super::earliest_delivery::EarliestDelivery) goes by rates
/// and delays.
#[derive(Debug, Default)]
pub(super) struct Ecf {
    /// It waits for the quickest path: to stop that takes a little more than to begin it.
    waits: bool,
}

impl Ecf {
    /// How much more (β).
    const HYSTERESIS: f64 = 0.25;

    /// Returns `true` if to wait for `fast`, which is full, rather than to use `slow`. `None`: as before.
    fn is_better(&self, view: &View<'_>, fast: &PathView, slow: &PathView) -> Option<bool> {
        let (Some(rtt_fast), Some(rtt_slow)) = (fast.srtt, slow.srtt) else { return Some(false) };
        let deviation = |path: &PathView| path.forward_delay.map_or(0.0, |delay| nanos(delay.deviation));
        let margin = deviation(fast).max(deviation(slow));
        let (rtt_fast, rtt_slow) = (nanos(rtt_fast), nanos(rtt_slow));
        let waiting = view.waiting.bytes.max(PACKET) as f64;
        // Rounds are waiting bytes over windows; all is multiplied by the windows, as a division
        // takes as long as the rest.
        let (window_fast, window_slow) = (fast.cwnd.max(PACKET) as f64, slow.cwnd.max(PACKET) as f64);
        let more = if self.waits { 1.0 + Self::HYSTERESIS } else { 1.0 };
        if (window_fast + waiting) * rtt_fast >= more * (rtt_slow + margin) * window_fast {
            return Some(false);
        }
        (waiting.max(window_slow) * rtt_slow >= (2.0 * rtt_fast + margin) * window_slow).then_some(true)
    }
}

impl Scheduler for Ecf {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        let (slow, fast) = quickest_two(view)?;
        let Some((_, fast_path)) = fast.filter(|&(fast, _)| fast != slow) else { return Some(slow) };
        let path = &view.paths[slow];
        if path.srtt.is_none_or(|srtt| Some(srtt) <= fast_path.srtt) {
            return Some(slow);
        }
        let wait = self.is_better(view, fast_path, path);
        self.waits = wait.unwrap_or(self.waits);
        (wait != Some(true)).then_some(slow)
    }
}
