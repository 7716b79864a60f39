//! CMT/RPv2: growth in proportion to a path's share of the total bandwidth `Σ cwnd/rtt`, and a loss takes half of the
//! total off the one path that had it (Dreibholz, Becke, Adhari and Rathgeb, `ConTEL` 2011; Dreibholz, habilitation,
//! University of Duisburg-Essen, 2012; checked against the authors' simulation code).

use super::{CoupledPath, Growth};

/// Packets left after a loss (the authors' `RPMinCwnd`).
pub(super) const FLOOR: usize = 1;

/// Growth in slow start and congestion avoidance alike.
pub(super) fn growth(paths: &[CoupledPath], this: usize) -> Growth {
    let share = paths[this].rate() / total(paths);
    Growth { slow_start: share, avoidance: share, ..Growth::default() }
}

/// The share of the window that is kept: `1 - max(1/2, total / (2 · own))`, where 1/2 is what a
/// path on its own loses.
pub(super) fn kept(paths: &[CoupledPath], this: usize, alone: f64) -> f64 {
    let own = paths[this].rate().max(1e-12);
    let given_up = 1.0 - alone;
    1.0 - given_up.max(given_up * total(paths) / own).min(1.0)
}

fn total(paths: &[CoupledPath]) -> f64 {
    paths.iter().map(CoupledPath::rate).sum::<f64>().max(1e-12)
}
