//! From values to places along an axis, and the round values that get a tick.

/// Values from here on are no measurements; without them no sum or step can overflow.
const LARGEST: f64 = 1e300;

/// An axis: the range that it shows, and whether it is logarithmic.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scale {
    from: f64,
    to: f64,
    log: bool,
}

impl Scale {
    /// A linear axis that holds all finite `values` and ends at round ones. `with_zero` forces zero in; otherwise
    /// zero is in when it lies nearer to the values than they spread.
    pub(super) fn linear(values: impl IntoIterator<Item = f64>, with_zero: bool) -> Self {
        let (mut low, mut high) = range(values, |_| true).unwrap_or((0.0, 1.0));
        if with_zero || (low > 0.0 && low < high / 2.0) {
            low = low.min(0.0);
        }
        if with_zero || (high < 0.0 && high > low / 2.0) {
            high = high.max(0.0);
        }
        if high - low <= high.abs().max(low.abs()) * 1e-9 {
            let room = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
            (low, high) = (if low == 0.0 { 0.0 } else { low - room }, high + room);
        }
        let step = step((high - low) / 5.0);
        Self { from: (low / step + 1e-9).floor() * step, to: (high / step - 1e-9).ceil() * step, log: false }
    }

    /// A linear axis that shows just the range of the finite `values`.
    pub(super) fn tight(values: impl IntoIterator<Item = f64>) -> Self {
        match range(values, |_| true) {
            Some((from, to)) if to > from => Self { from, to, log: false },
            Some((at, _)) => Self::linear([at], false),
            None => Self { from: 0.0, to: 1.0, log: false },
        }
    }

    /// A logarithmic axis over the positive of the `values`; linear when there is none.
    pub(super) fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let Some((low, high)) = range(values, |v| *v > 0.0) else {
            return Self { from: 0.0, to: 1.0, log: false };
        };
        let grid: Vec<f64> = grid(low, high);
        let from = grid.iter().rev().copied().find(|g| *g <= low * 1.000_001).unwrap_or(low);
        let to = grid.iter().copied().find(|g| *g >= high / 1.000_001).unwrap_or(high);
        if from < to { Self { from, to, log: true } } else { Self { from: low / 2.0, to: high * 2.0, log: true } }
    }

    /// Returns the position of a value: 0 at the beginning of the axis, 1 at its end; `None` if it
    /// is not on the axis.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        Some(self.unbounded(value)).filter(|p| (-1e-6..=1.0 + 1e-6).contains(p))
    }

    /// Returns the position of a value, or the end of the axis that is nearest to it; `None` for
    /// what is not a number.
    pub(super) fn nearest(&self, value: f64) -> Option<f64> {
        if self.log && value <= 0.0 {
            return Some(0.0);
        }
        Some(self.unbounded(value).clamp(0.0, 1.0)).filter(|p| !p.is_nan())
    }

    fn unbounded(&self, value: f64) -> f64 {
        if self.log {
            (value / self.from).ln() / (self.to / self.from).ln()
        } else {
            (value - self.from) / (self.to - self.from)
        }
    }

    /// Returns the position of the foot of bars: zero, or what is nearest to it.
    pub(super) fn foot(&self) -> f64 {
        if self.log { self.from } else { 0.0_f64.clamp(self.from, self.to) }
    }

    /// The round values within the axis, about six of them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let inside = |v: &f64| self.place(*v).is_some();
        if self.log {
            return thin_decades(grid(self.from, self.to).into_iter().filter(inside).collect());
        }
        let step = step((self.to - self.from) / 5.0);
        let first = (self.from / step - 1e-6).ceil();
        let count = ((self.to / step - first + 1e-6).floor().max(0.0) as usize).min(20);
        (0..=count).map(|i| (first + i as f64) * step).filter(inside).collect()
    }

    /// Returns `true` if the axis is logarithmic.
    pub(super) fn is_log(&self) -> bool {
        self.log
    }
}

/// The smallest and largest of the values that `counts` lets through.
fn range(values: impl IntoIterator<Item = f64>, counts: impl Fn(&f64) -> bool) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| v.abs() < LARGEST && counts(v)).fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((low, high)) => Some((low.min(v), high.max(v))),
    })
}

/// The round step (1, 2, 2.5 or 5 times a power of ten) that is not smaller than `rough`.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 2.5, 5.0].into_iter().map(|m| m * power).find(|s| *s >= rough * 0.999).unwrap_or(10.0 * power);
    if step > 0.0 && step.is_finite() { step } else { 1.0 }
}

/// 1, 2 and 5 times the powers of ten from below `low` to above `high`.
fn grid(low: f64, high: f64) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (first..=last).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(e))).collect()
}

/// Whole decades only, and not each of them, when the axis has many.
fn thin_decades(grid: Vec<f64>) -> Vec<f64> {
    if grid.len() <= 7 {
        return grid;
    }
    let decades: Vec<f64> = grid.into_iter().filter(|v| (v.log10() - v.log10().round()).abs() < 1e-9).collect();
    let each = decades.len().div_ceil(7);
    decades.into_iter().step_by(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            Scale::linear([422.0, 1891.0], true).ticks(),
            [0.0, 500.0, 1000.0, 1500.0, 2000.0],
            "steps are 1, 2, 2.5 or 5"
        );
        assert_eq!(Scale::linear([0.97, 0.9999], false).ticks().len(), 4);
        assert_eq!(Scale::logarithmic([3.0, 80.0]).ticks(), [2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        assert_eq!(Scale::logarithmic([1e-3, 1e6]).ticks(), [1e-3, 1e-1, 1e1, 1e3, 1e5]);
    }

    #[test]
    fn nothing_one_value_and_no_range_make_an_axis_too() {
        for values in [vec![], vec![f64::NAN], vec![0.0], vec![7.0, 7.0], vec![-3.0], vec![f64::INFINITY, 1.0]] {
            for scale in
                [Scale::linear(values.clone(), false), Scale::logarithmic(values.clone()), Scale::tight(values.clone())]
            {
                assert!(scale.ticks().len() >= 2, "{values:?} {scale:?}");
            }
        }
        assert!(!Scale::logarithmic([-1.0, 0.0]).is_log());
        assert_eq!(Scale::logarithmic([1.0, 10.0]).place(-1.0), None);
    }

    proptest! {
        #[test]
        fn every_value_lies_on_its_axis(values in prop::collection::vec(-1e12..1e12, 1..20), zero: bool) {
            let scale = Scale::linear(values.clone(), zero);
            for value in &values {
                prop_assert!(scale.place(*value).is_some(), "{} {:?}", value, scale);
            }
            prop_assert!((1..=21).contains(&scale.ticks().len()));
        }
    }
}
