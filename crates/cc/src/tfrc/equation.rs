use core::time::Duration;

/// The smallest loss event rate that the equation takes; anything below counts as this.
const MIN_P: f64 = 1e-8;

/// TCP's throughput in bytes per second, with t_RTO = 4 R and b = 1 (RFC 5348 §3.1; THESIS eq. 3.1).
///
/// `s`: segment size in bytes. `rtt` counts as at least 1 µs, `p` as within 1e-8..=1, so that the result is positive
/// and finite for every positive `s`.
pub fn throughput(s: f64, rtt: Duration, p: f64) -> f64 {
    throughput_with_rto(s, rtt, rtt.saturating_mul(4), p)
}

/// The same with a retransmission timeout of one's own (THESIS eq. 4.5).
pub fn throughput_with_rto(s: f64, rtt: Duration, rto: Duration, p: f64) -> f64 {
    let (rtt, rto) = (seconds(rtt), seconds(rto));
    let p = if p >= MIN_P { p.min(1.0) } else { MIN_P };
    s / (rtt * (2.0 * p / 3.0).sqrt() + rto * 3.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p))
}

/// The loss event rate at which [`throughput`] gives `rate` bytes per second: what seeds the loss history (RFC 5348
/// §6.3.1).
///
/// By bisection of log p in a fixed number of steps, to within 1e-9 of p's logarithm. Rates out of the equation's reach
/// give the nearest end of 1e-8..=1.
pub fn loss_event_rate_for(s: f64, rtt: Duration, rate: f64) -> f64 {
    let (mut low, mut high) = (libm::log(MIN_P), 0.0_f64);
    for _ in 0..36 {
        let middle = f64::midpoint(low, high);
        if throughput(s, rtt, libm::exp(middle)) > rate {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::exp(high)
}

/// `d` in seconds, at least a microsecond.
pub(super) fn seconds(d: Duration) -> f64 {
    d.as_secs_f64().max(1e-6)
}

/// `seconds` as a duration, to the nearest nanosecond: what `Duration::from_secs_f64` gives in many times the time, for
/// negative numbers none and for large ones the longest.
pub(super) fn duration(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9 + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn close(a: f64, b: f64, share: f64) -> bool {
        (a - b).abs() <= share * b.abs()
    }

    /// f(p) of RFC 5348 §8.1; for p = 0.01: sqrt(0.02/3) = 0.081650, 12 sqrt(0.00375) 0.01 (1.0032) = 0.007372.
    #[test]
    fn hand_values() {
        for (p, f) in [(0.01, 0.089_021_6), (0.1, 0.564_939), (1.0, 243.315_98), (0.0001, 0.008_172_3)] {
            let x = throughput(1460.0, ms(100), p);
            assert!(close(1460.0 / (0.1 * x), f, 1e-4), "f({p}) = {}, by hand {f}", 1460.0 / (0.1 * x));
        }
    }

    /// RFC 5348 §3.1: the simplified form is the full one with t_RTO = 4 R; and losses are rare enough for Mathis'
    /// square root.
    #[test]
    fn the_forms_agree() {
        assert_eq!(throughput(1000.0, ms(80), 0.02), throughput_with_rto(1000.0, ms(80), ms(320), 0.02));
        let mathis = 1000.0 / 0.08 * (1.5_f64 / 1e-5).sqrt();
        assert!(close(throughput(1000.0, ms(80), 1e-5), mathis, 0.01));
    }

    #[test]
    fn out_of_range_gives_the_ends() {
        for p in [f64::NAN, f64::NEG_INFINITY, -1.0, 0.0, 2.0, f64::INFINITY] {
            let x = throughput(1000.0, Duration::ZERO, p);
            assert!(x.is_finite() && x > 0.0, "p = {p}");
        }
        assert!(close(loss_event_rate_for(1000.0, ms(100), 0.0), 1.0, 1e-6));
        assert!(close(loss_event_rate_for(1000.0, ms(100), f64::INFINITY), MIN_P, 1e-6));
    }

    proptest! {
        #[test]
        fn falls_with_p_and_rtt(p in 1e-7_f64..0.9, rtt in 1_u64..5000, s in 20.0_f64..9000.0) {
            let x = throughput(s, ms(rtt), p);
            prop_assert!(x > throughput(s, ms(rtt), p * 1.01));
            prop_assert!(x > throughput(s, ms(rtt + 1), p));
        }

        #[test]
        fn the_inverse_is_one(p in 1e-7_f64..1.0, rtt in 1_u64..5000, s in 20.0_f64..9000.0) {
            let back = loss_event_rate_for(s, ms(rtt), throughput(s, ms(rtt), p));
            prop_assert!(close(back, p, 1e-6), "{} for {}", back, p);
        }
    }
}
