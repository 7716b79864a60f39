//! Linked Increases, RFC 6356. Slow start and the response to loss are those of a path on its own (§3).

use super::CoupledPath;

/// Packets left after a loss: RFC 5681 §3.1 eq. 4, to which RFC 6356 §3 refers. The four of RFC 9260 for each of
/// several paths would be more than one TCP takes from a small bottleneck.
pub(super) const FLOOR: usize = 2;

/// Packets for each window acknowledged: equation (1) times `cwnd_i / (bytes_acked * MSS_i)`, with
/// alpha of equation (2), in which `cwnd_total` cancels out.
pub(super) fn avoidance(paths: &[CoupledPath], this: usize) -> f64 {
    let sum: f64 = paths.iter().map(CoupledPath::rate).sum();
    let best = paths.iter().map(|path| path.rate() / path.rtt.as_secs_f64().max(1e-6)).fold(0.0, f64::max);
    let cwnd = paths[this].cwnd as f64 / paths[this].mtu.max(1) as f64;
    (cwnd * best / (sum * sum).max(1e-12)).min(1.0)
}
