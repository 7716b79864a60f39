use core::time::Duration;

/// The mean of the round trips of a round.
///
/// One measurement counts in each round trip (RFC 9260 §6.3.1 C4). If that is one packet, it is the first that left after the last one was
/// measured: the first of a burst, which finds the queue at its shortest.
#[derive(Debug, Default)]
pub(super) struct RoundMean {
    sum: Duration,
    count: u32,
}

impl RoundMean {
    /// A packet took `rtt`.
    pub(super) fn add(&mut self, rtt: Duration) {
        self.sum += rtt;
        self.count += 1;
    }

    /// The mean of what was added since; `None` if nothing was.
    pub(super) fn take(&mut self) -> Option<Duration> {
        let Self { sum, count } = core::mem::take(self);
        sum.checked_div(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_its_mean_and_then_over() {
        let mut round = RoundMean::default();
        assert_eq!(round.take(), None);
        [20, 30, 40, 110].into_iter().map(Duration::from_millis).for_each(|rtt| round.add(rtt));
        assert_eq!(round.take(), Some(Duration::from_millis(50)));
        assert_eq!(round.take(), None);
    }
}
