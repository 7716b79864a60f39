//! How fast TFRC's slow start grows, as THESIS §4.5.2 reckons it.

use core::time::Duration;

/// Returns the least time after which a sender hears of what a change of its rate did.
///
/// There are `reports` in a round trip, 1 or more, and the receiver holds each for `held` (THESIS eq. 4.10; with one
/// report eq. 4.9, whose observation interval is the round trip).
pub fn least_feedback_delay(rtt: Duration, reports: f64, held: Duration) -> Duration {
    rtt.mul_f64(1.0 + reports.max(1.0).recip()) + held
}

/// Returns how long slow start takes from one rate to another, both above 0 and in the same unit.
///
/// It doubles with each report that can tell of the doubling before (THESIS eq. 4.12 solved for t; with one report eq.
/// 4.11). Zero if it need not grow.
pub fn slow_start(from: f64, to: f64, rtt: Duration, reports: f64) -> Duration {
    let doublings = (to / from).log2();
    if doublings > 0.0 && doublings.is_finite() {
        least_feedback_delay(rtt, reports, Duration::ZERO).mul_f64(doublings)
    } else {
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doublings_come_each_two_round_trips_or_as_often_as_reports_tell_of_them() {
        let (second, held) = (Duration::from_secs(1), Duration::from_millis(20));
        let delay = |reports| least_feedback_delay(second, reports, held).as_secs_f64();
        assert_eq!([delay(0.0), delay(1.0), delay(10.0)], [2.02, 2.02, 1.12]);
        // From a packet of 1500 bytes each second to 1 Mbit/s.
        let time = |reports| slow_start(1500.0, 125_000.0, second, reports).as_secs_f64();
        assert!((time(1.0) - 12.76).abs() < 0.01 && (time(10.0) - 7.02).abs() < 0.01);
        assert_eq!(slow_start(2.0, 1.0, second, 1.0), Duration::ZERO);
        assert_eq!(slow_start(0.0, 0.0, second, 1.0), Duration::ZERO, "nothing grows");
    }
}
