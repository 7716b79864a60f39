//! What SCTP gets through over several paths that lose packets, by the model of Yi, Saadawi and Lee
//! (NYMAN 2004) as ECMT eq. 6 to 11 and THESIS eq. 8.6 to 8.11 print it: Padhye's for TCP, with
//! four missing reports instead of three, and retransmissions over the other paths. It knows
//! neither the capacity of the links nor a receive window that the paths share.

/// A path as the model sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct ModelPath {
    /// Share of packets lost, p_j: 0 to 1.
    pub loss: f64,
    /// Round trip, RTT_j, in seconds.
    pub rtt: f64,
    /// Retransmission timeout, To, in seconds.
    pub rto: f64,
    /// W_max, in packets: the receiver's window.
    pub max_window: f64,
}

impl ModelPath {
    /// E\[W_j\], the window in packets before a loss (eq. 8.11); `b` is the number of packets for each acknowledgement.
    fn window(&self, b: f64) -> f64 {
        let c = 4.0 / (3.0 * b);
        c + (8.0 / (3.0 * b * self.loss) + c * c).sqrt()
    }
}

/// Packets that arrive for the first time over each of `paths` in a second, B_j (eq. 8.6); `b`
/// packets for each acknowledgement.
///
/// The sources differ in three places of eq. 8.6. The logarithm has base 1.5 (ECMT; THESIS prints
/// `log 2.5`). The round trip of the retransmission belongs into the bracket with the timeout,
/// which Q multiplies (ECMT; THESIS has lost its brackets). The window of the receiver is divided
/// by the path's own round trip (THESIS; ECMT prints that of the retransmission).
pub(crate) fn throughput(paths: &[ModelPath], b: f64) -> Vec<f64> {
    let rate = |j: usize| {
        let path = &paths[j];
        let limit = path.max_window / path.rtt;
        let p = path.loss;
        if p <= 0.0 {
            return limit;
        }
        let w = path.window(b);
        let q = timeout_share(w, p);
        let (rtt_r, w_r) = elsewhere(paths, j, b);
        let packets = q * (1.5 * w - 2.0) + 1.25 * w + (1.0 - p) / p;
        let recovery = path.rto + rtt_r * (0.5 + over_other_paths(w, p) / w_r);
        let seconds = q * recovery + path.rtt * (q * ((w + 2.0) / 2.0).log(1.5) + (w - 2.0) / 2.0);
        limit.min(packets / seconds)
    };
    (0..paths.len()).map(rate).collect()
}

/// Q(w), the share of losses that end in a timeout (eq. 8.7).
fn timeout_share(w: f64, p: f64) -> f64 {
    let arrives = 1.0 - p;
    let four = arrives.powi(4);
    ((1.0 - four) * (1.0 + four * (1.0 - arrives.powf(w - 3.0))) / (1.0 - arrives.powf(w))).min(1.0)
}

/// RP(w), packets that go over another path after a timeout (eq. 8.10).
fn over_other_paths(w: f64, p: f64) -> f64 {
    let above = (3.0 - w) * p.powi(3) + (4.0 * w - 11.0) * p * p + (14.0 - 6.0 * w) * p + (4.0 * w - 6.0);
    above / (-p.powi(3) + 4.0 * p * p - 6.0 * p + 4.0)
}

/// E\[RTT_j^r\] and E\[W_j^r\], round trip and window of the path that a retransmission takes (eq.
/// 8.8, 8.9): another one, the likelier the less it loses. A single path repeats over itself.
fn elsewhere(paths: &[ModelPath], j: usize, b: f64) -> (f64, f64) {
    let others = || paths.iter().enumerate().filter(|&(l, _)| l != j || paths.len() == 1).map(|(_, path)| path);
    if let Some(clean) = others().find(|path| path.loss <= 0.0) {
        return (clean.rtt, clean.max_window);
    }
    let mean = |value: &dyn Fn(&ModelPath) -> f64| {
        let weight: f64 = others().map(|path| 1.0 / path.loss).sum();
        others().map(|path| value(path) / path.loss).sum::<f64>() / weight
    };
    (mean(&|path| path.rtt), mean(&|path| path.window(b)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn path(loss: f64, rtt: f64) -> ModelPath {
        ModelPath { loss, rtt, rto: 1.0, max_window: 43.0 }
    }

    fn near(value: f64, hand: f64) {
        assert!((value - hand).abs() < 1e-4 * hand.abs(), "{value}, by hand {hand}");
    }

    #[test]
    fn each_equation_gives_what_was_computed_by_hand() {
        // p = 10 %, b = 2: W = 2/3 + sqrt(40/3 + 4/9).
        let w = path(0.1, 0.1).window(2.0);
        near(w, 4.378_51);
        // (0.3439 · (1 + 0.6561 · (1 − 0.9^1.37851))) / (1 − 0.9^4.37851) is 1.014, so 1.
        near(timeout_share(w, 0.1), 1.0);
        // p = 1 %, b = 2: 0.039404 · (1 + 0.960596 · (1 − 0.99^9.2329)) / (1 − 0.99^12.2329).
        near(timeout_share(path(0.01, 0.1).window(2.0), 0.01), 0.369_60);
        // (−1.37851 · 0.001 + 6.51404 · 0.01 − 12.27106 · 0.1 + 11.51404) / 3.439.
        near(over_other_paths(w, 0.1), 3.009_80);
    }

    #[test]
    fn two_equal_paths_retransmit_over_each_other() {
        // p = 10 %: (4.56776 + 5.47313 + 9) / (1 + 0.1 · (0.5 + 0.68740) + 0.1 · (2.86060 + 1.18925)).
        for rate in throughput(&[path(0.1, 0.1); 2], 2.0) {
            near(rate, 12.496_45);
        }
        near(throughput(&[path(0.05, 0.1); 2], 1.0)[0], 28.406_69);
    }

    #[test]
    fn a_retransmission_takes_the_better_of_the_others_more_often() {
        // Seen from the first, 4/5 go over the second and 1/5 over the third: 140 ms, a window of 11.08203.
        let paths = [path(0.02, 0.05), path(0.01, 0.1), path(0.04, 0.3)];
        let (rtt, window) = elsewhere(&paths, 0, 2.0);
        near(rtt, 0.14);
        near(window, 11.082_03);
        near(throughput(&paths, 2.0)[0], 74.266_17);
    }

    #[test]
    fn without_loss_the_receivers_window_decides() {
        near(throughput(&[path(0.0, 0.1), path(0.05, 0.1)], 2.0)[0], 430.0);
        near(throughput(&[path(1e-9, 0.1); 2], 2.0)[1], 430.0);
    }

    proptest! {
        #[test]
        fn more_loss_never_gives_more(
            loss in prop::array::uniform2(0.0_f64..0.3), rtt in 0.01..0.5, b in 1.0..2.0, paths in 1_usize..4,
        ) {
            let rate = |loss| throughput(&vec![path(loss, rtt); paths], b)[0];
            let (more, less) = (rate(loss[0].min(loss[1])), rate(loss[0].max(loss[1])));
            prop_assert!(less <= more * (1.0 + 1e-9) && less > 0.0 && more <= 43.0 / rtt);
        }
    }
}
