//! How unevenly an application gets its data: the pauses of the sequence progression (THESIS fig. 6.7).

use crate::host::Arrival;
use core::time::Duration;

/// For each stall how long it lasted: from the arrival of the first message that had to wait for its turn until the
/// messages that waited were handed over, all at once. It is the inner maximum of THESIS eq. 6.3, taken over the
/// messages that one late packet held up.
pub(super) fn stalls(log: &[Arrival]) -> impl Iterator<Item = Duration> {
    let released_together = log.chunk_by(|a, b| a.at == b.at);
    released_together
        .filter_map(|group| group.iter().map(|arrival| arrival.at - arrival.whole).max().filter(|it| !it.is_zero()))
}

/// Standard deviation over mean of the bytes handed over in successive intervals; 0 is perfectly even.
pub(super) fn unevenness(log: &[Arrival], interval: Duration) -> f64 {
    let (Some(first), Some(last)) = (log.first(), log.last()) else { return 0.0 };
    let index = |arrival: &Arrival| ((arrival.at - first.at).as_nanos() / interval.as_nanos()) as usize;
    // The last interval is not over when the log ends.
    let mut bytes = vec![0.0; index(last)];
    for arrival in log {
        if let Some(sum) = bytes.get_mut(index(arrival)) {
            *sum += arrival.bytes as f64;
        }
    }
    let n = bytes.len().max(1) as f64;
    let mean = bytes.iter().sum::<f64>() / n;
    let variance = bytes.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / n;
    if mean > 0.0 { variance.sqrt() / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Header;
    use braidcast_core::{Instant, PathId};
    use braidcast_sim::traffic::Kind;

    fn log(times: &[(u64, u64)]) -> Vec<Arrival> {
        let ms = Instant::from_millis;
        let header = Header { sequence: 0, sent: ms(0), kind: Kind::default(), flow: 0, frame: 0 };
        let arrival =
            |&(whole, at): &(u64, u64)| Arrival { header, whole: ms(whole), at: ms(at), bytes: 100, path: PathId(0) };
        times.iter().map(arrival).collect()
    }

    #[test]
    fn a_stall_is_the_longest_wait_of_those_released_together() {
        // 10 comes in turn; 12 and 15 wait for what comes at 20; 30 comes in turn; 41 waits for 44.
        let log = log(&[(10, 10), (20, 20), (12, 20), (15, 20), (30, 30), (44, 44), (41, 44)]);
        let ms = Duration::from_millis;
        assert_eq!(stalls(&log).collect::<Vec<_>>(), [ms(8), ms(3)]);
    }

    #[test]
    fn even_delivery_has_no_unevenness_and_all_at_once_has_much() {
        let even: Vec<_> = (0..100).map(|i| (i * 10, i * 10)).collect();
        assert_eq!(unevenness(&log(&even), Duration::from_millis(100)), 0.0);
        let bursts: Vec<_> = (0..100).map(|i| (i / 50 * 500, i / 50 * 500)).chain([(1000, 1000)]).collect();
        assert_eq!(unevenness(&log(&bursts), Duration::from_millis(100)), 2.0);
    }
}
