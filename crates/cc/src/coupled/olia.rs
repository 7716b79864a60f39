//! Opportunistic Linked Increases, draft-khalili-mptcp-congestion-control-05; analysed in Khalili et al., IEEE/ACM
//! Transactions on Networking 21(5), 2013. Slow start and the halving upon loss are those of a path on its own.

use super::CoupledPath;

/// Packets left after a loss on one path of several (the draft: so that nothing much goes over a congested path).
pub(super) const FLOOR: usize = 1;

/// Packets for each window acknowledged: the draft's increase for each acknowledgement, `(w/rtt²) / (Σ w/rtt)² + α/w`,
/// times `w`.
pub(super) fn avoidance(paths: &[CoupledPath], this: usize) -> f64 {
    let sum: f64 = paths.iter().map(CoupledPath::rate).sum();
    let share = paths[this].rate() / sum.max(1e-12);
    share * share + alpha(paths, this)
}

/// Moves window from the paths that have the largest to those that are best but do not have it yet.
fn alpha(paths: &[CoupledPath], this: usize) -> f64 {
    let quality =
        |path: &CoupledPath| path.between_losses as f64 * path.between_losses as f64 / path.rtt.as_secs_f64().max(1e-6);
    let best = paths.iter().map(quality).fold(0.0, f64::max);
    let largest = paths.iter().map(|path| path.cwnd).max().unwrap_or(0);
    let has_largest = |path: &CoupledPath| path.cwnd == largest;
    // "collected" in the draft: best paths without the largest window.
    let collected = |path: &CoupledPath| quality(path) >= best && !has_largest(path);
    let count = paths.len() as f64;
    let collecting = paths.iter().filter(|path| collected(path)).count();
    if collecting == 0 {
        0.0
    } else if collected(&paths[this]) {
        1.0 / (count * collecting as f64)
    } else if has_largest(&paths[this]) {
        -1.0 / (count * paths.iter().filter(|path| has_largest(path)).count() as f64)
    } else {
        0.0
    }
}
