//! The weighted mean of loss intervals, and history discounting (RFC 5348 §5.4, §5.5).

/// Loss intervals that count (n in RFC 5348 §5.4).
pub(super) const N: usize = 8;
const WEIGHTS: [f64; N] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Lowest general discount factor (RFC 5348 §5.5).
const THRESHOLD: f64 = 0.25;

/// A stretch of packets from one loss event to the next (RFC 5348 §5.3, RFC 4342 §6.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LossInterval {
    /// Sequence number of the first packet, which was lost or marked.
    pub start: u64,
    /// Packets from `start` to the last one lost or marked in this event: the lossy part.
    pub lossy: u64,
    /// All packets of the interval, other than data included; for the current one up to the highest received.
    pub sequence: u64,
    /// Data packets lost or marked in the event.
    pub losses: u64,
    /// Data packets among them; for the made-up interval before the first loss event, its length.
    pub data: u64,
    /// Its length for the mean: data packets, or for TFRC-SP in a short interval data packets per loss.
    pub length: f64,
    pub(super) discount: f64,
}

/// The mean loss interval without discounting (RFC 5348 §5.4), from the newest: I_0, which is the current one, to I_k.
///
/// `None` if there is no closed interval. With `short` the current interval is left out (RFC 4828 §3). Takes the first
/// nine. For senders that compute the loss event rate from reported intervals.
pub fn mean_interval(newest_first: &[f64], short: bool) -> Option<f64> {
    let (&current, closed) = newest_first.split_first()?;
    mean(current, closed.iter().map(|&length| (length, 1.0)), 1.0, short)
}

/// The loss event rate's inverse (RFC 5348 §5.5), from the current length and the closed intervals, newest first.
pub(super) fn discounted_mean(current: f64, closed: &[LossInterval], short: bool) -> Option<f64> {
    let pairs = || closed.iter().map(|it| (it.length, it.discount));
    mean(current, pairs(), general_discount(current, closed, short), short)
}

/// DF of RFC 5348 §5.5: how much the closed intervals lose by, as the current one is so much longer.
pub(super) fn general_discount(current: f64, closed: &[LossInterval], short: bool) -> f64 {
    let history = mean(0.0, closed.iter().map(|it| (it.length, it.discount)), 1.0, true);
    match history {
        Some(mean) if !short && current > 2.0 * mean => (2.0 * mean / current).max(THRESHOLD),
        _ => 1.0,
    }
}

/// The larger of the means with and without the current interval; both over the same number of intervals.
fn mean(current: f64, closed: impl Iterator<Item = (f64, f64)>, discount: f64, short: bool) -> Option<f64> {
    let (mut with, mut with_weight) = (current * WEIGHTS[0], WEIGHTS[0]);
    let (mut without, mut without_weight) = (0.0, 0.0);
    let mut oldest = None;
    for (i, (length, own)) in closed.take(N).enumerate() {
        if let Some((length, own)) = oldest.replace((length, own)) {
            let weight = WEIGHTS[i] * own * discount;
            with += length * weight;
            with_weight += weight;
        }
        let weight = WEIGHTS[i] * own;
        without += length * weight;
        without_weight += weight;
    }
    oldest?;
    let without = without / without_weight;
    Some(if short { without } else { without.max(with / with_weight) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(lengths: &[f64]) -> Vec<LossInterval> {
        lengths
            .iter()
            .map(|&length| LossInterval { start: 0, lossy: 1, sequence: 1, losses: 1, data: 1, length, discount: 1.0 })
            .collect()
    }

    /// The weights of §5.4 worked by hand: 1,1,1,1,.8,.6,.4,.2 sum to 6.
    #[test]
    fn worked_weights() {
        let lengths = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0];
        let by_hand = (10.0 + 20.0 + 30.0 + 40.0 + 0.8 * 50.0 + 0.6 * 60.0 + 0.4 * 70.0 + 0.2 * 80.0) / 6.0;
        let with = |current: f64| [&[current], &lengths[..]].concat();
        assert_eq!(mean_interval(&with(1.0), false), Some(by_hand), "a short current interval does not lower the mean");
        // Long, it takes weight 1 and pushes the others one place on; the oldest falls out.
        let pushed = (100.0 + 10.0 + 20.0 + 30.0 + 0.8 * 40.0 + 0.6 * 50.0 + 0.4 * 60.0 + 0.2 * 70.0) / 6.0;
        assert_eq!(mean_interval(&with(100.0), false), Some(pushed));
        assert_eq!(mean_interval(&with(100.0), true), Some(by_hand), "RFC 4828 §3");
    }

    #[test]
    fn fewer_than_eight() {
        assert_eq!(mean_interval(&[], false), None);
        assert_eq!(mean_interval(&[5.0], false), None);
        assert_eq!(mean_interval(&[5.0, 30.0], false), Some(30.0));
        assert_eq!(mean_interval(&[50.0, 30.0], false), Some(50.0));
        assert_eq!(mean_interval(&[50.0, 30.0, 10.0], false), Some(40.0));
    }

    /// §5.5 by hand: eight intervals of 100; the current one of 400 halves their weight.
    #[test]
    fn discounting() {
        let history = closed(&[100.0; 8]);
        assert_eq!(general_discount(200.0, &history, false), 1.0, "not more than twice the mean");
        assert_eq!(general_discount(400.0, &history, false), 0.5);
        assert_eq!(general_discount(1e6, &history, false), 0.25);
        assert_eq!(general_discount(400.0, &history, true), 1.0);
        let by_hand = (400.0 + 0.5 * 5.0 * 100.0) / (1.0 + 0.5 * 5.0);
        let mean = discounted_mean(400.0, &history, false).unwrap();
        assert!((mean - by_hand).abs() < 1e-9, "{mean}, by hand {by_hand}");
    }
}
