//! Means and their confidence intervals.

/// 0.975 quantiles of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010, 2.1788, 2.1604, 2.1448,
    2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484,
    2.0452, 2.0423,
];

/// The 0.975 quantile of Student's t: a table, then the first two terms of Cornish and Fisher's expansion about the
/// normal quantile (below 0.0001 off from 31 degrees on).
fn t975(degrees: usize) -> f64 {
    const Z: f64 = 1.959_964;
    match degrees {
        0 => f64::INFINITY,
        1..=30 => T[degrees - 1],
        _ => {
            let n = degrees as f64;
            Z + (Z.powi(3) + Z) / (4.0 * n) + (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / (96.0 * n * n)
        }
    }
}

/// Mean, and half the width of its 95 % confidence interval (Student's t); none for fewer than two values.
pub fn mean_ci95(values: &[f64]) -> (f64, Option<f64>) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    if values.len() < 2 {
        return (mean, None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, Some(t975(values.len() - 1) * (variance / n).sqrt()))
}

/// Returns the bounds of a share of which `hits` of `all` were seen, 0 to 1, with 95 % (Wilson's score
/// interval: NIST/SEMATECH e-Handbook, §7.2.4.1).
pub(crate) fn share_ci95(hits: usize, all: usize) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    if all == 0 {
        return (0.0, 1.0);
    }
    let (n, share) = (all as f64, hits as f64 / all as f64);
    let middle = (share + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let half = Z / (1.0 + Z * Z / n) * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    // At the ends a bound is exact, and would only be rounded.
    let low = if hits == 0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if hits == all { 1.0 } else { (middle + half).min(1.0) };
    (low, high)
}

/// Returns the sum of the second values over that of the first, and half the width of its 95 % interval, by
/// the residuals of the ratio (Cochran, Sampling Techniques, §6.4); no interval for fewer than two pairs.
pub(crate) fn ratio_ci95(pairs: &[(f64, f64)]) -> (f64, Option<f64>) {
    let (below, above) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0, y + pair.1));
    if below == 0.0 {
        return (0.0, None);
    }
    let (ratio, mean) = (above / below, below / pairs.len() as f64);
    let residuals: Vec<f64> = pairs.iter().map(|(x, y)| (y - ratio * x) / mean).collect();
    (ratio, mean_ci95(&residuals).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_intervals_of_the_handbook() {
        // §7.2.4.1: 4 of 20 defective; Wilson's two-sided bounds are 0.0807 and 0.4160.
        let (low, high) = share_ci95(4, 20);
        assert!((low - 0.0807).abs() < 1e-4 && (high - 0.4160).abs() < 1e-4, "{low} {high}");
        assert_eq!(share_ci95(0, 0), (0.0, 1.0));
        let ((low, some), (less, high)) = (share_ci95(0, 50), share_ci95(50, 50));
        assert!(low == 0.0 && (0.05..0.08).contains(&some) && (0.92..0.95).contains(&less) && high == 1.0);
    }

    #[test]
    fn a_ratio_is_that_of_the_sums_and_as_sure_as_its_residuals() {
        let (ratio, ci) = ratio_ci95(&[(100.0, 50.0), (80.0, 40.0), (60.0, 30.0)]);
        assert!((ratio - 0.5).abs() < 1e-12 && ci.unwrap() < 1e-12, "{ci:?}");
        // Residuals -1/3, 1/3 about 2/3 with a mean of 1.5: sd 0.314, standard error 0.222, t(1) 12.7.
        let (ratio, ci) = ratio_ci95(&[(1.0, 1.0), (2.0, 1.0)]);
        assert!((ratio - 2.0 / 3.0).abs() < 1e-12 && (ci.unwrap() - 12.7062 * 2.0 / 9.0).abs() < 1e-4, "{ci:?}");
        assert_eq!([ratio_ci95(&[]), ratio_ci95(&[(0.0, 0.0)])], [(0.0, None); 2]);
    }

    #[test]
    fn intervals_are_those_of_the_textbook() {
        assert_eq!(mean_ci95(&[5.0]), (5.0, None));
        let (mean, ci) = mean_ci95(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        // sd 1.5811, standard error 0.70711, t(4) 2.7764
        assert!((mean - 3.0).abs() < 1e-12 && (ci.unwrap() - 1.9632).abs() < 1e-4);
        assert_eq!(mean_ci95(&[2.0, 2.0, 2.0]), (2.0, Some(0.0)));
    }

    #[test]
    fn two_values_are_the_fewest_and_their_interval_is_wide() {
        let (mean, ci) = mean_ci95(&[1.0, 3.0]);
        // sd 1.4142, standard error 1, t(1) 12.7062
        assert!((mean, true) == (2.0, (ci.unwrap() - 12.7062).abs() < 1e-4), "{ci:?}");
        assert_eq!(mean_ci95(&[]), (0.0, None));
    }

    #[test]
    fn quantiles_are_those_of_the_table() {
        // Two-sided 95 %: NIST/SEMATECH e-Handbook of Statistical Methods, §1.3.6.7.2.
        for (degrees, t) in [(1, 12.706), (2, 4.303), (5, 2.571), (9, 2.262), (19, 2.093), (29, 2.045), (30, 2.042)] {
            assert!((t975(degrees) - t).abs() < 6e-4, "{degrees}: {}", t975(degrees));
        }
        assert!((1..2000).all(|degrees| t975(degrees) > t975(degrees + 1)), "it falls");
    }

    #[test]
    fn the_expansion_continues_the_table() {
        for (degrees, t) in [(31, 2.0395), (40, 2.0211), (60, 2.0003), (120, 1.9799), (1_000_000, 1.95997)] {
            assert!((t975(degrees) - t).abs() < 1e-4, "{degrees}: {}", t975(degrees));
        }
    }
}
