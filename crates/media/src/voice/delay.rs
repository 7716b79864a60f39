//! Id: what delay from mouth to ear takes off R, for `ms` milliseconds.

/// No, noise at the 0 dBr point with the default values of G.107 table 2, dBm0p (eq. 7-3 to 7-7).
pub(super) const NO: f64 = -61.179;

/// Ro, the signal-to-noise ratio with the defaults, 15 − 1.5 (SLR + No), SLR = 8 dB (eq. 7-2).
pub(super) const RO: f64 = 15.0 - 1.5 * (8.0 + NO);

/// RLR, TELR and WEPL, defaults: receive loudness rating, talker echo loudness rating, weighted echo path loss, dB.
const RLR: f64 = 2.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;

/// Id = Idte + Idle + Idd (G.107 §7.4) with the defaults for echo, that is, with good echo cancellers.
pub(super) fn full(ms: f64) -> f64 {
    talker_echo(ms) + listener_echo(ms) + absolute(ms)
}

/// The approximation of [`full`] in two straight lines that THESIS §5.3 and SBPN eq. 4.5 use (Cole
/// and Rosenbluth, 2001).
pub(super) fn simple(ms: f64) -> f64 {
    0.024 * ms + 0.11 * (ms - 177.3).max(0.0)
}

/// Idte (eq. 7-18 to 7-22), T = `ms`.
fn talker_echo(ms: f64) -> f64 {
    let terv = TELR - 40.0 * ((1.0 + ms / 10.0) / (1.0 + ms / 150.0)).log10() + 6.0 * (-0.3 * ms * ms).exp();
    let re = 80.0 + 2.5 * (terv - 14.0);
    let roe = -1.5 * (NO - RLR);
    let half = (roe - re) / 2.0;
    (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-ms).exp())
}

/// Idle (eq. 7-25, 7-26), Tr = 2 T.
fn listener_echo(ms: f64) -> f64 {
    let rle = 10.5 * (WEPL + 7.0) * (2.0 * ms + 1.0).powf(-0.25);
    let half = (RO - rle) / 2.0;
    half + (half * half + 169.0).sqrt()
}

/// Idd (eq. 7-27, 7-28) for the default sensitivity, sT = 1 and mT = 100 ms; Ta = T.
fn absolute(ms: f64) -> f64 {
    if ms <= 100.0 {
        return 0.0;
    }
    let x = (ms / 100.0).log2();
    let root = |x: f64| (1.0 + x.powi(6)).powf(1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 log10 of a sum of powers, all in dB.
    fn sum(levels: &[f64]) -> f64 {
        10.0 * levels.iter().map(|level| 10_f64.powf(level / 10.0)).sum::<f64>().log10()
    }

    #[test]
    fn the_noise_is_that_of_the_default_values() {
        // Nc −70, Nfor −64, Ps = Pr = 35, SLR 8, RLR 2, LSTR 18, Ds 3 (G.107 table 2).
        let olr: f64 = 8.0 + 2.0;
        let nos = 35.0 - 8.0 - 3.0 - 100.0 + 0.004 * (35.0 - olr - 3.0 - 14.0_f64).powi(2);
        let pre = 35.0 + 10.0 * (1.0 + 10_f64.powf((10.0 - 18.0) / 10.0)).log10();
        let nor = RLR - 121.0 + pre + 0.008 * (pre - 35.0_f64).powi(2);
        let no = sum(&[-70.0, nos, nor, -64.0 + RLR]);
        assert!((no - NO).abs() < 0.001, "{no}");
        assert!((RO - 94.77).abs() < 0.01);
    }

    #[test]
    fn the_two_lines_lie_near_the_full_model_where_calls_are() {
        for ms in (0..=300).step_by(10).map(f64::from) {
            let (full, simple) = (full(ms), simple(ms));
            assert!((full - simple).abs() < 2.5, "{ms} ms: {full:.1} and {simple:.1}");
        }
        assert!(simple(900.0) > full(900.0) + 40.0, "far beyond, the lines go on where the model flattens");
    }
}
