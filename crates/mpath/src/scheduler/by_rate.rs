use super::Scheduler;
use crate::View;

/// Bytes over each path in proportion to the rate that it carries, as in Westwood SCTP (Casetti,
/// Gaiotto, "Westwood SCTP: load balancing over multipaths using bandwidth-aware source
/// scheduling", IEEE VTC 2004-Fall; PATHS §5.2): each path has a clock that a packet moves on by
/// the time that it takes at the path's rate, and the clock that is behind goes next.
#[derive(Debug, Default)]
pub(super) struct ByRate {
    /// Seconds of sending, by path.
    clocks: Vec<f64>,
    /// Bytes in a second, as the last view had them.
    rates: Vec<f64>,
}

impl ByRate {
    /// How far behind the others a clock may be, seconds: a path that was full does not catch up with more.
    const BEHIND: f64 = 0.1;

    /// The rate of a path that is not measured yet, bytes in a second.
    const UNKNOWN: f64 = 125_000.0;

    /// A path that is new begins where the furthest is.
    fn know(&mut self, paths: usize) {
        if self.clocks.len() < paths {
            self.clocks.resize(paths, self.clocks.iter().copied().fold(0.0, f64::max));
        }
    }

    fn clock(&self, path: usize) -> f64 {
        self.clocks.get(path).copied().unwrap_or_default()
    }
}

impl Scheduler for ByRate {
    fn pick(&mut self, view: &View<'_>) -> Option<usize> {
        self.rates.clear();
        self.know(view.paths.len());
        self.rates.extend(view.paths.iter().map(|path| path.rate.unwrap_or(Self::UNKNOWN).max(1.0)));
        let ready = (0..view.paths.len()).filter(|&path| view.paths[path].ready);
        ready.min_by(|&a, &b| self.clock(a).total_cmp(&self.clock(b)))
    }

    fn on_sent(&mut self, path: usize, bytes: usize) {
        self.know(path + 1);
        self.clocks[path] += bytes as f64 / self.rates.get(path).copied().unwrap_or(Self::UNKNOWN);
        let least = self.clocks[path] - Self::BEHIND;
        self.clocks.iter_mut().for_each(|clock| *clock = clock.max(least));
    }

    fn on_extra(&mut self, path: usize, bytes: usize) {
        self.on_sent(path, bytes);
    }

    fn on_restarted(&mut self, path: usize) {
        let furthest = self.clocks.iter().copied().fold(0.0, f64::max);
        if let Some(clock) = self.clocks.get_mut(path) {
            *clock = furthest;
        }
    }
}
