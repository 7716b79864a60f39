use super::{Scheduler, nanos, stands_still};
use crate::{PathView, View};

/// Delay-aware packet scheduling, DAPS (THESIS §7.1.2): what goes over a slow path is what will be
/// due at the receiver when it arrives, behind all that the quicker paths deliver until then.
///
/// The source makes vectors for the lowest common multiple of the delays (eq. 7.3, 7.4; algorithms
/// 1 and 2) and works them off (algorithm 3). What they say of a packet that leaves now over path i
/// is this: path j still delivers, before that packet is there, what it emits within `D_i - D_j`,
/// which is `C_j / D_j * (D_i - D_j)` bytes, with `C_j / D_j` the rate of j. That needs neither a
/// common multiple nor a plan that grows old: each packet is planned by the delays and windows of
/// its moment, and where delays divide each other it gets the very place that the vectors have for
/// it (`tests::daps`).
#[derive(Debug)]
pub(super) struct Daps;

impl Daps {
    /// The longest delay that counts, in nanoseconds: more is an error of measurement.
    const LONGEST: f64 = 10e9;

    /// A path that loses so much is no quick one.
    const LOSES: f32 = 0.5;

    /// From here to the receiver, in nanoseconds.
    fn delay(path: &PathView) -> f64 {
        // An unmeasured path is tried at once: only traffic can measure it.
        path.forward_delay.map_or(0.0, |delay| nanos(delay.mean)).min(Self::LONGEST)
    }

    /// What a path delivers that loses every second packet says nothing of when data arrives: it
    /// may answer heartbeats alone.
    fn delivers(path: &PathView) -> bool {
        path.active && path.loss_rate < Self::LOSES && !stands_still(path)
    }

    /// Bytes that `quicker` paths deliver of what waits before a packet is there that leaves now
    /// over a path of this `delay`.
    fn delivered_before(view: &View<'_>, delay: f64) -> usize {
        let quicker = view.paths.iter().filter(|path| Self::delivers(path));
        let bytes = |path: &PathView| {
            let lead = (delay - Self::delay(path)).max(0.0);
            path.rate.filter(|_| path.forward_delay.is_some()).unwrap_or_default().max(0.0) * lead
        };
        (quicker.map(bytes).sum::<f64>() * 1e-9).round() as usize
    }

    /// Returns `true` if a packet that is to be repeated is there sooner over a path that is full now than
    /// over one of this `delay`.
    fn is_sooner_elsewhere(view: &View<'_>, delay: f64) -> bool {
        view.paths
            .iter()
            .any(|path| Self::delivers(path) && path.forward_delay.is_some() && Self::delay(path) * 2.0 < delay)
    }
}

impl Scheduler for Daps {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        let ready = view.paths.iter().enumerate().filter(|(_, path)| path.ready);
        let order = |path: &PathView| (path.loss_rate >= Self::LOSES, Self::delay(path));
        let best = ready.map(|(index, path)| (order(path), index));
        let ((_, delay), index) = best.min_by(|((a, one), _), ((b, other), _)| a.cmp(b).then(one.total_cmp(other)))?;
        if view.waiting.again {
            return (!Self::is_sooner_elsewhere(view, delay)).then_some(index);
        }
        let ahead = Self::delivered_before(view, delay);
        // What the quicker paths will have carried by then needs no slow one.
        (ahead == 0 || ahead < view.waiting.bytes).then_some(index)
    }

    fn ahead(&self, view: &View<'_>, path: usize) -> usize {
        view.paths.get(path).map_or(0, |path| Self::delivered_before(view, Self::delay(path)))
    }

    fn heeds_forward_delay(&self) -> bool {
        true
    }
}
