use core::fmt;
use core::ops::{Add, AddAssign, Sub};
use core::time::Duration;

/// A point in time: nanoseconds since an origin that the driver or the simulator chose.
///
/// It wraps after 584 years. Subtracting a later instant from an earlier one gives zero, so a clock that
/// jumps back slows timers down but breaks nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The instant `nanos` nanoseconds after the origin.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The instant `micros` microseconds after the origin.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// The instant `millis` milliseconds after the origin.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds since the origin.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// How long after `earlier` this is; zero if it is not after.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The earliest of `times`; `None` if none is set. A machine asks for its next timer several times for each packet.
    #[inline]
    pub fn first_of<const N: usize>(times: [Option<Self>; N]) -> Option<Self> {
        let mut first = None;
        for at in times {
            first = match (first, at) {
                (Some(first), Some(at)) if at < first => Some(at),
                (None, at) => at,
                _ => first,
            };
        }
        first
    }
}

/// Nanoseconds of `d`, at most `u64::MAX`.
fn nanos(d: Duration) -> u64 {
    u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(nanos(d)))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(nanos(d)))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_back_counts_as_no_time() {
        let early = Instant::from_millis(5);
        let late = early + Duration::from_millis(7);
        assert_eq!(late - early, Duration::from_millis(7));
        assert_eq!(early - late, Duration::ZERO);
        assert_eq!(early - Duration::from_secs(1), Instant::ZERO);
    }

    #[test]
    fn the_first_of_times_is_the_earliest_that_is_there() {
        let [early, late] = [5, 7].map(|millis| Some(Instant::from_millis(millis)));
        for times in [[early, late, None], [late, None, early], [None, early, late], [early, early, None]] {
            assert_eq!(Instant::first_of(times), early, "{times:?}");
        }
        assert_eq!(Instant::first_of([None, None]), None);
        assert_eq!(Instant::first_of([None, Some(Instant::from_nanos(u64::MAX))]), Some(Instant::from_nanos(u64::MAX)));
    }
}
