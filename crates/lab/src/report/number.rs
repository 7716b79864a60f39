//! Numbers as a reader wants them: as many digits as they are worth, a real minus sign, thousands apart.

/// Shown if there is no number.
pub(super) const NONE: &str = "–";

/// Confidence intervals below this share of the mean are what is left of sums of equal numbers.
const NOISE: f64 = 1e-9;

/// Decimals that suit a whole column: two significant digits of the usual confidence interval, or four of the usual
/// value if there is none; never so many that the largest value shows more than six digits.
pub(super) fn decimals(values: &[(f64, Option<f64>)]) -> usize {
    let magnitude = |v: f64| v.abs().log10().floor() as i32;
    let usual = |values: Vec<f64>| {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite() && *v != 0.0).map(f64::abs).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let means = || values.iter().map(|(v, _)| *v);
    let intervals = values.iter().filter_map(|(v, ci)| ci.filter(|ci| *ci > v.abs() * NOISE));
    let wanted = match usual(intervals.collect()) {
        Some(ci) => 1 - magnitude(ci),
        None => usual(means().collect()).map_or(0, |v| 3 - magnitude(v)),
    };
    let largest = means().filter(|v| v.is_finite()).map(f64::abs).fold(0.0, f64::max);
    let most = if largest > 0.0 { 5 - magnitude(largest) } else { 0 };
    wanted.min(most).clamp(0, 9) as usize
}

/// A number with the given decimals; one that would vanish in them keeps two significant digits.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    if value.abs() >= 1e9 {
        return scientific(value);
    }
    let text = format!("{:.decimals$}", value + 0.0); // no sign on a negative zero
    if value != 0.0 && text.bytes().all(|b| matches!(b, b'-' | b'0' | b'.')) {
        return short(value, 2);
    }
    spaced(&text)
}

/// Half a confidence interval around `mean`, with the decimals of the mean.
pub(super) fn interval(ci: f64, mean: f64, decimals: usize) -> String {
    format!("± {}", fixed(if ci.abs() > mean.abs() * NOISE { ci } else { 0.0 }, decimals))
}

/// A number with up to `digits` significant digits and no zeros at the end of its fraction.
pub(super) fn short(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-4..1e9).contains(&value.abs()) {
        return scientific(value);
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
    let text = format!("{value:.decimals$}");
    spaced(if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
}

/// How far `ours` is from `theirs`, in percent of `theirs`; none if that means nothing.
pub(super) fn difference_pct(ours: f64, theirs: f64) -> Option<f64> {
    if ours == theirs {
        return Some(0.0);
    }
    let difference = (ours - theirs) / theirs.abs() * 100.0;
    difference.is_finite().then_some(difference)
}

/// A difference in percent with its sign: whole from 10 % on, one decimal below.
pub(super) fn percent(difference: Option<f64>) -> String {
    let Some(d) = difference else { return NONE.into() };
    let size = if d.abs() < 9.95 { format!("{:.1}", d.abs()) } else { spaced(&format!("{:.0}", d.abs())) };
    let sign = match d {
        _ if size == "0.0" => "±",
        _ if d < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{size} %")
}

/// Groups of three digits, from five digits on, and a minus sign instead of a hyphen.
fn spaced(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("−", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// `1.5×10⁻⁷`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.2e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.').replace('-', "−");
    let exponent: String = exponent
        .chars()
        .map(|c| match c.to_digit(10) {
            Some(d) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][d as usize],
            None => '⁻',
        })
        .collect();
    format!("{mantissa}×10{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_shows_what_it_is_worth() {
        assert_eq!(short(1898.11, 4), "1898");
        assert_eq!(short(12_345.6, 4), "12\u{202f}346");
        assert_eq!(short(0.050, 3), "0.05");
        assert_eq!(short(-2.5, 3), "−2.5");
        assert_eq!(short(1.5e-7, 3), "1.5×10⁻⁷");
        assert_eq!(short(f64::NAN, 3), NONE);
    }

    #[test]
    fn a_column_takes_its_decimals_from_the_confidence() {
        assert_eq!(decimals(&[(1898.1, Some(4.7)), (1113.7, Some(113.0)), (1248.9, Some(7.0))]), 1);
        assert_eq!(decimals(&[(0.9997, None), (0.74, None)]), 4);
        assert_eq!(decimals(&[(1898.1, Some(0.0001))]), 2, "six digits at most");
        assert_eq!(decimals(&[(f64::NAN, None), (0.0, Some(0.0))]), 0);
        assert_eq!(decimals(&[(1934.4, Some(7e-13)), (1892.6, Some(1.7))]), 1, "rounding errors don't count");
        assert_eq!((interval(7e-13, 1934.4, 1), interval(1.7, 1892.6, 1)), ("± 0.0".into(), "± 1.7".into()));
        assert_eq!(fixed(0.0004, 1), "0.0004", "what is not zero does not show as zero");
        assert_eq!(fixed(-0.0, 1), "0.0", "zero has no sign");
    }

    #[test]
    fn a_difference_has_a_sign() {
        assert_eq!(percent(difference_pct(115.0, 100.0)), "+15 %");
        assert_eq!(percent(difference_pct(98.76, 100.0)), "−1.2 %");
        assert_eq!(percent(difference_pct(-5.0, -10.0)), "+50 %");
        assert_eq!(percent(difference_pct(100.0, 100.0)), "±0.0 %");
        assert_eq!(percent(difference_pct(0.0, 0.0)), "±0.0 %");
        assert_eq!(percent(difference_pct(1.0, 0.0)), NONE);
        assert_eq!(percent(difference_pct(f64::NAN, 1.0)), NONE);
    }
}
