use braidcast_core::Instant;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// How a [`Schedule`] goes from one point to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Shape {
    /// The value of a point holds until the next one.
    #[default]
    Steps,
    /// The value changes linearly from one point to the next.
    Ramps,
}

/// A value that changes at given times, counted from [`Instant::ZERO`]: bit/s of a rate, nanoseconds of a delay.
///
/// After the last point its value stays, for ever or until the schedule repeats. It depends on time alone.
#[derive(Clone, PartialEq, Eq)]
pub struct Schedule {
    /// Nanoseconds and values; the first is at 0 and times rise.
    points: Arc<[(u64, u64)]>,
    shape: Shape,
    /// Nanoseconds after which it begins again; at least 1.
    period: Option<u64>,
}

/// A stretch of a schedule over which its value is linear.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    /// The value at its start.
    value: f64,
    /// Change of the value per nanosecond.
    slope: f64,
    /// When it ends; the end of time if never.
    pub(super) end: Instant,
}

impl Schedule {
    /// A schedule through `points`, beginning again every `period` if there is one. Times are nanosecond-exact up to
    /// 584 years.
    ///
    /// # Errors
    /// If there is no point, the first is not at 0, times do not rise, or the period ends before the last point has
    /// had time (a ramp may end with the period).
    pub fn new(points: &[(Duration, u64)], shape: Shape, period: Option<Duration>) -> Result<Self, ScheduleError> {
        let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        let points: Arc<[_]> = points.iter().map(|(at, value)| (nanos(*at), *value)).collect();
        let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else {
            return Err(ScheduleError::Empty);
        };
        if *first != 0 {
            return Err(ScheduleError::LateStart);
        }
        if !points.is_sorted_by(|(a, _), (b, _)| a < b) {
            return Err(ScheduleError::NotRising);
        }
        let period = period.map(nanos);
        let room = u64::from(shape == Shape::Steps || points.len() == 1);
        if period.is_some_and(|period| period < last.saturating_add(room)) {
            return Err(ScheduleError::ShortPeriod);
        }
        Ok(Self { points, shape, period })
    }

    /// The same value at all times.
    pub fn constant(value: u64) -> Self {
        Self { points: Arc::new([(0, value)]), shape: Shape::Steps, period: None }
    }

    /// The value at `at`.
    pub fn value_at(&self, at: Instant) -> u64 {
        let nanos = self.within(at);
        match self.shape {
            Shape::Steps => self.points[self.points.partition_point(|(from, _)| *from <= nanos) - 1].1,
            Shape::Ramps => self.piece(at).value.round() as u64,
        }
    }

    /// The value at the start.
    pub fn first(&self) -> u64 {
        self.points[0].1
    }

    /// The smallest value.
    pub fn min(&self) -> u64 {
        self.points.iter().map(|(_, value)| *value).min().unwrap_or(0)
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.points.iter().map(|(_, value)| *value).max().unwrap_or(0)
    }

    /// The mean over all time: over one period, or the last value if it does not repeat.
    pub fn mean(&self) -> u64 {
        let last = self.points[self.points.len() - 1];
        let Some(period) = self.period else { return last.1 };
        let ends = self.points[1..].iter().copied().chain([(period, last.1)]);
        let sum: u128 = core::iter::zip(self.points.iter(), ends)
            .map(|((from, value), (until, next))| {
                let height = match self.shape {
                    Shape::Steps => 2 * u128::from(*value),
                    Shape::Ramps => u128::from(*value) + u128::from(next),
                };
                u128::from(until - from) * height
            })
            .sum();
        u64::try_from(sum / 2 / u128::from(period)).unwrap_or(u64::MAX)
    }

    /// Nanoseconds since the present round began.
    fn within(&self, at: Instant) -> u64 {
        self.period.map_or(at.as_nanos(), |period| at.as_nanos() % period)
    }

    /// The rest of the linear stretch that holds `at`.
    pub(super) fn piece(&self, at: Instant) -> Piece {
        let nanos = self.within(at);
        let next = self.points.partition_point(|(from, _)| *from <= nanos);
        let (from, value) = self.points[next - 1];
        let end = self.points.get(next).map(|(end, _)| *end).or(self.period);
        let slope = match (self.shape, self.points.get(next)) {
            (Shape::Ramps, Some((end, target))) => (*target as f64 - value as f64) / (end - from) as f64,
            _ => 0.0,
        };
        Piece {
            value: value as f64 + slope * (nanos - from) as f64,
            slope,
            end: end.map_or(Instant::from_nanos(u64::MAX), |end| at + Duration::from_nanos(end - nanos)),
        }
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schedule({} points, {:?}, repeats after {:?} ns)", self.points.len(), self.shape, self.period)
    }
}

impl Piece {
    /// The integral of the value over `span` from the start, in value × nanoseconds.
    pub(super) fn integral(&self, span: Duration) -> f64 {
        let nanos = span.as_nanos() as f64;
        (self.value + self.slope * nanos / 2.0) * nanos
    }

    /// The span after which the integral is `amount`; the longest there is if it never is.
    pub(super) fn span_for(&self, amount: f64) -> Duration {
        if amount <= 0.0 {
            return Duration::ZERO;
        }
        // slope/2 · t² + value · t = amount, solved so that a slope of 0 does no harm.
        let root = self.value.mul_add(self.value, 2.0 * self.slope * amount);
        if root < 0.0 {
            return Duration::MAX;
        }
        Duration::from_nanos((2.0 * amount / (self.value + root.sqrt())).ceil() as u64)
    }
}

/// Why points are not a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScheduleError {
    /// There is no point.
    Empty,
    /// The first point is not at 0.
    LateStart,
    /// A point is not after the one before it.
    NotRising,
    /// It would begin again before its last point had time.
    ShortPeriod,
}

impl ScheduleError {
    /// What is wrong, in words.
    pub(super) const fn what(self) -> &'static str {
        match self {
            Self::Empty => "a schedule has at least one point",
            Self::LateStart => "a schedule begins at 0s",
            Self::NotRising => "the times of a schedule rise from point to point",
            Self::ShortPeriod => "a schedule repeats after its last point",
        }
    }
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what())
    }
}

impl core::error::Error for ScheduleError {}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn values(schedule: &Schedule, seconds: &[u64]) -> Vec<u64> {
        seconds.iter().map(|n| schedule.value_at(Instant::ZERO + s(*n))).collect()
    }

    #[test]
    fn steps_hold_and_ramps_go_straight_from_point_to_point() {
        let points = [(s(0), 80), (s(10), 20), (s(20), 60)];
        let steps = Schedule::new(&points, Shape::Steps, None).unwrap();
        assert_eq!(values(&steps, &[0, 9, 10, 19, 20, 1000]), [80, 80, 20, 20, 60, 60]);
        let ramps = Schedule::new(&points, Shape::Ramps, None).unwrap();
        assert_eq!(values(&ramps, &[0, 5, 10, 15, 20, 1000]), [80, 50, 20, 40, 60, 60]);
        assert_eq!((ramps.min(), ramps.max(), ramps.mean(), ramps.first()), (20, 80, 60, 80));
    }

    #[test]
    fn a_period_begins_it_again_and_gives_it_a_mean() {
        let points = [(s(0), 80), (s(10), 20)];
        let steps = Schedule::new(&points, Shape::Steps, Some(s(40))).unwrap();
        assert_eq!(values(&steps, &[39, 40, 49, 50, 400]), [20, 80, 80, 20, 80]);
        assert_eq!(steps.mean(), (10 * 80 + 30 * 20) / 40);
        let triangle = [(s(0), 80), (s(10), 20), (s(20), 80)];
        let ramps = Schedule::new(&triangle, Shape::Ramps, Some(s(20))).unwrap();
        assert_eq!(values(&ramps, &[15, 20, 25, 30]), [50, 80, 50, 20]);
        assert_eq!(ramps.mean(), 50);
    }

    #[test]
    fn what_is_out_of_order_is_refused() {
        let new = |points: &[(Duration, u64)], shape, period| Schedule::new(points, shape, period).err();
        assert_eq!(new(&[], Shape::Steps, None), Some(ScheduleError::Empty));
        assert_eq!(new(&[(s(1), 1)], Shape::Steps, None), Some(ScheduleError::LateStart));
        for times in [[0, 5, 5], [0, 5, 4]] {
            let points = times.map(|n| (s(n), 1));
            assert_eq!(new(&points, Shape::Ramps, None), Some(ScheduleError::NotRising));
        }
        let two = [(s(0), 1), (s(5), 2)];
        assert_eq!(new(&two, Shape::Steps, Some(s(5))), Some(ScheduleError::ShortPeriod));
        assert_eq!(new(&two, Shape::Ramps, Some(s(5))), None);
        assert_eq!(new(&[(s(0), 1)], Shape::Ramps, Some(s(0))), Some(ScheduleError::ShortPeriod));
    }
}
