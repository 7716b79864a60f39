use super::micros;
use crate::api::Timing;
use crate::wire::Times;
use braidcast_core::Instant;
use core::time::Duration;

/// What the peer's clock shows, by the timestamps in its packets (decision 39).
///
/// A timestamp gives the difference of both clocks and the packet's delay together. The delay is
/// nothing at least, and a round trip of that time at most: half of that is off by as much. The
/// measurement that is best counts, as in NTP's clock filter (RFC 5905 §10): with a short round trip,
/// and not so old that clocks have drifted apart.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PeerClock {
    best: Option<Measurement>,
    /// What the present [`SPAN`](Self::SPAN) has shown so far.
    under_way: Option<Measurement>,
}

/// One packet and its limits.
#[derive(Clone, Copy, Debug)]
struct Measurement {
    /// What our clock showed at its arrival less what the peer's did when it left, µs; it wraps.
    difference: u32,
    /// From when on the clocks may have drifted.
    since: Instant,
    /// It was under way for no longer.
    round_trip: Duration,
}

impl Measurement {
    /// Seconds in which clocks drift apart by a second at most: 200 ppm, as in decision 21.
    const DRIFT: u32 = 5000;

    /// How far the clocks may have drifted apart until `now`.
    fn drift(&self, now: Instant) -> Duration {
        (now - self.since) / Self::DRIFT
    }

    fn uncertainty(&self, now: Instant) -> Duration {
        self.round_trip / 2 + self.drift(now)
    }

    /// How much slower a packet with this `difference` was, drift aside; negative: it was quicker.
    fn behind(&self, difference: u32) -> i64 {
        difference.wrapping_sub(self.difference).cast_signed().into()
    }
}

impl PeerClock {
    /// Time over which the quickest packet is looked for: longer than round trips take to be measured
    /// anew (30 s by heartbeats, RFC 9260 §16).
    const SPAN: Duration = Duration::from_secs(60);

    /// A packet came that had left at `sent` by the peer's clock; `round_trip` is that of the quickest
    /// path now, if it was measured.
    pub(super) fn observe(&mut self, now: Instant, sent: u32, round_trip: Option<Duration>) {
        let Some(round_trip) = round_trip else { return };
        let new = Measurement { difference: micros(now).wrapping_sub(sent), since: now, round_trip };
        let Some(best) = &mut self.best else {
            self.best = Some(new);
            return;
        };
        // Quicker than drift explains: the round trip of then was not too short for it.
        if best.behind(new.difference) < -(best.drift(now).as_micros() as i64) {
            *best = Measurement { round_trip: best.round_trip.min(round_trip), ..new };
        }
        let under_way = self.under_way.get_or_insert(new);
        // Round trips are known later than delays: the longest one is no shorter than this delay.
        under_way.round_trip = under_way.round_trip.max(round_trip);
        if under_way.behind(new.difference) < 0 {
            under_way.difference = new.difference;
        }
        if now - under_way.since >= Self::SPAN {
            if under_way.uncertainty(now) <= best.uncertainty(now) {
                *best = *under_way;
            }
            self.under_way = None;
        }
    }

    /// What `times` say of a message that could be received at `now`. `None`: nothing is known of the
    /// peer's clock yet.
    pub(super) fn timing(&self, now: Instant, times: Times) -> Option<Timing> {
        let best = self.best?;
        let shown = micros(now).wrapping_sub(best.difference).wrapping_add((best.round_trip / 2).as_micros() as u32);
        let since = |then: u32| {
            let passed = shown.wrapping_sub(then).cast_signed().max(0);
            Duration::from_micros(passed.unsigned_abs().into())
        };
        let age = since(times.given);
        let uncertainty = best.uncertainty(now) + age / Measurement::DRIFT;
        Some(Timing { age, late: since(times.due), uncertainty })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000;

    proptest! {
        /// Clocks of any difference that drift, any queue: what is said is off by the uncertainty at most.
        #[test]
        fn what_is_said_is_right_within_its_uncertainty(
            offset in any::<u32>(),
            ppm in -200_i64..=200,
            (there, back) in (0_u64..200_000, 0_u64..200_000),
            queues in prop::collection::vec((0_u64..2_000_000, 0_u64..2 * SECOND), 1..60),
            (age, allowed) in (0_u64..10 * SECOND, 0_u64..10 * SECOND),
        ) {
            let theirs = |true_us: u64| {
                let drifted = true_us as i64 + true_us as i64 * ppm / 1_000_000;
                (drifted as u64 as u32).wrapping_add(offset)
            };
            let at = |true_us: u64| Instant::from_nanos(true_us * 1000);
            let (mut clock, mut now) = (PeerClock::default(), 20 * SECOND);
            let round_trip = Duration::from_micros(there + back);
            clock.observe(at(now + there), theirs(now), Some(round_trip));
            for (queue, pause) in queues {
                now += pause;
                clock.observe(at(now + there + queue), theirs(now), Some(round_trip + Duration::from_micros(queue)));
            }
            // After all of them, so that time does not run backwards.
            let ready = now + there + 2 * SECOND;
            let given = ready - age;
            let due = given + allowed;
            let timing = clock.timing(at(ready), Times { given: theirs(given), due: theirs(due) }).expect("it is known");
            // Microseconds are cut off three times.
            let uncertainty = timing.uncertainty.as_micros() as i64 + 3;
            let late = (ready as i64 - due as i64).max(0);
            prop_assert!((timing.age.as_micros() as i64 - age as i64).abs() <= uncertainty, "{timing:?} {age}");
            prop_assert!((timing.late.as_micros() as i64 - late).abs() <= uncertainty, "{timing:?} {late}");
            prop_assert_eq!(timing.is_late(), timing.late > Duration::ZERO);
        }

        /// Whatever a peer says, nothing panics.
        #[test]
        fn any_times_are_answered(
            stamps in prop::collection::vec(any::<(u32, u32)>(), 0..20),
            (given, due) in any::<(u32, u32)>(),
        ) {
            let (mut clock, mut now) = (PeerClock::default(), Instant::ZERO);
            for (pause, sent) in stamps {
                now += Duration::from_micros(pause.into());
                clock.observe(now, sent, Some(Duration::from_micros(sent.into())));
            }
            clock.timing(now, Times { given, due });
        }
    }

    #[test]
    fn without_a_round_trip_nothing_is_said() {
        let mut clock = PeerClock::default();
        let times = Times { given: 0, due: 5000 };
        let at = Instant::from_millis;
        assert_eq!(clock.timing(at(20), times), None);
        clock.observe(at(10), 0, None);
        assert_eq!(clock.timing(at(20), times), None);
        clock.observe(at(15), 5000, Some(Duration::from_millis(8)));
        let timing = clock.timing(at(20), times).expect("a later packet brought the round trip");
        assert_eq!((timing.age.as_millis(), timing.late.as_millis()), (14, 9), "the packet took 4 ms");
    }

    #[test]
    fn what_was_quick_is_the_measure_until_it_is_old() {
        let mut clock = PeerClock::default();
        let at = Instant::from_millis;
        clock.observe(at(10), 0, Some(Duration::from_millis(20)));
        let mut timing = Timing::default();
        for n in 1..700 {
            let sent = 1_000_000 * n as u32;
            clock.observe(at(1000 * n + 110), sent, Some(Duration::from_millis(220)));
            timing = clock.timing(at(1000 * n + 110), Times { given: sent, due: sent + 50_000 }).expect("it is known");
            assert_eq!((timing.age.as_millis(), timing.late.as_millis()), (110, 60), "{timing:?}");
            assert!(timing.uncertainty <= Duration::from_millis(10 + n / 5 + 1), "200 ppm of it: {timing:?}");
        }
        assert!(timing.uncertainty > Duration::from_millis(110), "it is the slow way by now: {timing:?}");
        assert!(timing.uncertainty < Duration::from_millis(110 + 24 + 1), "200 ppm of two minutes: {timing:?}");
    }
}
