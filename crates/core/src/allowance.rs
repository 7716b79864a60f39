use crate::Instant;

/// Parts of a unit that are counted, so that nothing is lost between two looks at the clock.
const PARTS: u128 = 1_000_000_000;

/// What may still be spent: units that come with time or are [earned](Self::earn), up to a limit, and are
/// [taken](Self::take) by what is done. A token bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    most: u64,
    per_second: u64,
    /// In [`PARTS`] of a unit, as it was at `at`.
    left: u128,
    at: Instant,
}

impl Allowance {
    /// `most` units, and again `per_second` in each second, up to `most`. Its time begins with [`Instant::ZERO`].
    pub const fn by_time(per_second: u64, most: u64) -> Self {
        Self { most, per_second, left: most as u128 * PARTS, at: Instant::ZERO }
    }

    /// Nothing: up to `most` units are to be earned.
    pub const fn by_merit(most: u64) -> Self {
        Self { most, per_second: 0, left: 0, at: Instant::ZERO }
    }

    fn parts(&self, now: Instant) -> u128 {
        let gained = u128::from(self.per_second) * now.since(self.at).as_nanos();
        (self.left + gained).min(u128::from(self.most) * PARTS)
    }

    /// Whole units that are left at `now`.
    pub fn left(&self, now: Instant) -> u64 {
        (self.parts(now) / PARTS) as u64
    }

    /// Adds `units`, up to the limit.
    pub fn earn(&mut self, units: u64) {
        self.left = (self.left + u128::from(units) * PARTS).min(u128::from(self.most) * PARTS);
    }

    /// Returns `true` if `units` are left at `now`, and takes them off. A clock that goes back adds nothing.
    pub fn take(&mut self, now: Instant, units: u64) -> bool {
        self.left = self.parts(now);
        self.at = self.at.max(now);
        let rest = self.left.checked_sub(u128::from(units) * PARTS);
        self.left = rest.unwrap_or(self.left);
        rest.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Instant {
        Instant::from_millis(n)
    }

    #[test]
    fn time_brings_units_up_to_the_limit() {
        let mut it = Allowance::by_time(20, 5);
        assert_eq!((0..9).filter(|_| it.take(ms(0), 1)).count(), 5);
        // A unit is 50 ms, and looking more often brings no less.
        assert_eq!((1..50).filter(|at| it.take(ms(*at), 1)).count(), 0);
        assert_eq!((it.left(ms(49)), it.left(ms(50)), it.left(ms(299)), it.left(ms(9000))), (0, 1, 5, 5));
        assert!(!it.take(ms(9000), 6) && it.take(ms(9000), 5));
        assert!(!it.take(ms(50), 1), "the clock went back");
    }

    #[test]
    fn merit_is_bounded_and_time_adds_nothing_to_it() {
        let mut it = Allowance::by_merit(1000);
        assert!(!it.take(ms(1_000_000), 1));
        it.earn(600);
        it.earn(600);
        assert_eq!((it.left(ms(0)), it.left(ms(1_000_000))), (1000, 1000));
        assert!(it.take(ms(0), 400) && it.take(ms(0), 600) && !it.take(ms(0), 1));
        it.earn(u64::MAX);
        assert_eq!(it.left(ms(u64::MAX / 1_000_000)), 1000);
    }

    proptest! {
        /// Whenever it is asked for: never more than the limit and what time brought.
        #[test]
        fn no_more_is_taken_than_came(
            per_second in 0_u64..1_000_000, most in 0_u64..100_000,
            steps in prop::collection::vec((0_u64..100, 0_u64..50_000), 1..50)
        ) {
            let mut it = Allowance::by_time(per_second, most);
            let (mut now, mut taken) = (0, 0);
            for (passed, units) in steps {
                now += passed;
                taken += if it.take(ms(now), units) { units } else { 0 };
                prop_assert!(taken * 1000 <= most * 1000 + per_second * now);
            }
        }
    }
}
