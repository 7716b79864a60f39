use super::{Scheduler, stands_still};
use crate::{PathView, View};
use core::time::Duration;

/// Delay-aware packet scheduling, DAPS (THESIS §7.1.2): what goes over a slow path is what will be due at the receiver when it arrives,
/// behind all that the quicker paths deliver until then.
///
/// The source makes vectors for the lowest common multiple of the delays (eq. 7.3, 7.4; algorithms 1 and 2) and works them off (algorithm 3).
/// What they say of a packet that leaves now over path i is this: path j still delivers, before that packet is there, what it emits
/// within `D_i - D_j`, which is `C_j / D_j * (D_i - D_j)` bytes, with `C_j / D_j` the rate of j. That needs neither a
/// common multiple nor a plan that grows old: each packet is planned by the delays and windows of its moment, and where delays divide each other
/// it gets the very place that the vectors have for it (`tests::daps`).
#[derive(Debug)]
pub(super) struct Daps;

impl Daps {
    /// The longest delay that counts: more is an error of measurement.
    const LONGEST: Duration = Duration::from_secs(10);

    /// A path that loses so much is no quick one.
    const LOSES: f32 = 0.5;

    fn delay(path: &PathView) -> Duration {
        // An unmeasured path is tried at once: only traffic can measure it.
        path.forward_delay.map_or(Duration::ZERO, |delay| delay.mean).min(Self::LONGEST)
    }

    /// What a path delivers that loses every second packet says nothing of when data arrives: it may answer heartbeats alone.
    fn delivers(path: &PathView) -> bool {
        path.active && path.loss_rate < Self::LOSES && !stands_still(path)
    }

    /// Bytes that `quicker` paths deliver of what waits before a packet is there that leaves now over a path of this `delay`.
    fn delivered_before(view: &View<'_>, delay: Duration) -> usize {
        let quicker = view.paths.iter().filter(|path| Self::delivers(path));
        let bytes = |path: &PathView| {
            let lead = delay.saturating_sub(Self::delay(path));
            path.rate.filter(|_| path.forward_delay.is_some()).unwrap_or_default().max(0.0) * lead.as_secs_f64()
        };
        quicker.map(bytes).sum::<f64>().round() as usize
    }

    /// Whether a packet that is to be repeated is there sooner over a path that is full now than over one of this `delay`.
    fn is_sooner_elsewhere(view: &View<'_>, delay: Duration) -> bool {
        view.paths
            .iter()
            .any(|path| Self::delivers(path) && path.forward_delay.is_some() && Self::delay(path) * 2 < delay)
    }
}

impl Scheduler for Daps {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        let ready = view.paths.iter().enumerate().filter(|(_, path)| path.ready);
        let (index, path) = ready.min_by_key(|(_, path)| (path.loss_rate >= Self::LOSES, Self::delay(path)))?;
        let delay = Self::delay(path);
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
