use crate::RttEstimator;
use core::time::Duration;

/// What is known of the round trips over one path, to tell the delay from here to the receiver.
///
/// [`Default`] is nothing known: no delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RoundTrips {
    /// The shortest of late, which met no queue.
    pub shortest: Duration,
    /// How long one takes now.
    pub present: Duration,
    /// How long packets stood in queues in the latest round
    /// ([`QueueingDelay::latest`](crate::QueueingDelay)); `None` if `present` says all.
    pub queued: Option<Duration>,
}

impl RoundTrips {
    /// Of a path that carries data: its smoothed round trip, and the queue of the latest round, which smoothing hides.
    pub fn under_load(rtt: &RttEstimator, shortest: Option<Duration>, queued: Duration) -> Self {
        let shortest = shortest.or(rtt.min()).or(rtt.srtt()).unwrap_or_default();
        Self { shortest, present: rtt.srtt().unwrap_or(shortest), queued: Some(queued) }
    }

    /// Of a path that carries nothing: its latest round trip alone, as what was smoothed or queued there is past.
    pub fn at_rest(rtt: &RttEstimator, shortest: Option<Duration>) -> Self {
        let shortest = shortest.or(rtt.min()).unwrap_or_default();
        Self { shortest, present: rtt.latest().unwrap_or_default(), queued: None }
    }

    /// The delay from here to the receiver: half of the shortest round trip, and all by which the
    /// present one is longer.
    ///
    /// What is above the shortest was spent in queues, and queues stand before data rather than
    /// before acknowledgements. If a queue is on the return path after all, messages are discarded a
    /// bit early and fresher ones go in their place. Half of the present round trip (SBPN §3.4)
    /// has the opposite error: it sends what arrives just too late (decisions 12 and 13).
    pub fn one_way(&self) -> Duration {
        let half = self.shortest / 2;
        let present = self.present.saturating_sub(half);
        self.queued.map_or(present, |queued| present.max(half + queued))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RtoBounds;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn measured(samples: &[u64]) -> RttEstimator {
        let mut rtt = RttEstimator::new(RtoBounds::default());
        samples.iter().for_each(|&sample| rtt.sample(ms(sample)));
        rtt
    }

    #[test]
    fn what_queues_add_is_before_the_receiver() {
        let trips = |present, queued| RoundTrips { shortest: ms(100), present: ms(present), queued: Some(ms(queued)) };
        assert_eq!(trips(100, 0).one_way(), ms(50));
        assert_eq!(trips(180, 0).one_way(), ms(130));
        assert_eq!(trips(110, 80).one_way(), ms(130), "the latest round is worse than the smoothed one");
        assert_eq!(trips(180, 10).one_way(), ms(130));
        assert_eq!(RoundTrips::default().one_way(), ms(0));
    }

    #[test]
    fn a_path_at_rest_is_as_it_was_last_seen() {
        let rtt = measured(&[100, 500, 120]);
        assert_eq!(RoundTrips::at_rest(&rtt, None).one_way(), ms(70));
        assert_eq!(RoundTrips::at_rest(&rtt, Some(ms(60))).one_way(), ms(90));
        let loaded = RoundTrips::under_load(&rtt, Some(ms(60)), ms(10));
        assert_eq!(loaded.one_way(), rtt.srtt().unwrap() - ms(30));
        let nothing = measured(&[]);
        assert_eq!(RoundTrips::under_load(&nothing, None, ms(30)).one_way(), ms(30), "of another return path");
        assert_eq!(RoundTrips::at_rest(&nothing, None), RoundTrips::default());
    }
}
