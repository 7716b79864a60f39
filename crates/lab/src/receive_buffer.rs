//! How large a receiver's buffer must be that round robin never fills it (THESIS §7.1.1, eq. 7.2).

use core::time::Duration;

/// Bytes: what all paths carry in the longest round trip, for `paths` with bits per second and round trip each.
///
/// The model knows neither queues, which lengthen round trips, nor losses: "even higher if we
/// consider lossy scenarios".
pub(crate) fn least(paths: &[(f64, Duration)]) -> f64 {
    let rate: f64 = paths.iter().map(|(rate, _)| rate).sum();
    let longest = paths.iter().map(|(_, rtt)| *rtt).max().unwrap_or_default();
    rate / 8.0 * longest.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The two examples in the source.
    #[test]
    fn it_is_what_all_paths_carry_in_the_longest_round_trip() {
        let ms = Duration::from_millis;
        assert_eq!(least(&[(1.6e6, ms(20)), (0.4e6, ms(200))]), 50_000.0);
        assert_eq!(least(&[(10e6, ms(20)), (1e6, ms(200))]), 275_000.0);
        assert_eq!(least(&[]), 0.0);
    }
}
