use super::{Candidate, PathSelection};
use braidcast_core::{Instant, Rng};
use core::time::Duration;

/// Says which path carries data, one at a time.
///
/// The path in use stays unless another one is better by more than the hysteresis, and stays so for
/// the time guard, which is drawn anew each time, uniformly up to its limit, so that those who
/// share a network do not move all at once (PATHS §5.2).
#[derive(Debug)]
pub struct Selector {
    by: PathSelection,
    hysteresis: Duration,
    guard: Duration,
    /// The time guard ends.
    due: Option<Instant>,
}

impl Selector {
    /// By what, how much better in delay another path must be, and for how long at most.
    pub const fn new(by: PathSelection, hysteresis: Duration, guard: Duration) -> Self {
        Self { by, hysteresis, guard, due: None }
    }

    /// By what it chooses.
    pub const fn by(&self) -> PathSelection {
        self.by
    }

    /// When to [`choose`](Self::choose) again even if nothing was measured.
    pub const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The index of the path to use from now on, `current` being the one in use: its own, or that
    /// of a better one. `None` if no path is active. A path that is not active is left at once; one
    /// that is not measured is not gone to while another one is.
    pub fn choose(
        &mut self,
        now: Instant,
        current: Option<usize>,
        paths: &[Candidate],
        rng: &mut Rng,
    ) -> Option<usize> {
        let active = || paths.iter().enumerate().filter(|(_, path)| path.active);
        let costs = active().filter_map(|(index, path)| Some((index, self.by.cost(path)?)));
        let best = costs.min_by(|(_, a), (_, b)| a.total_cmp(b));
        let Some(current) = current.filter(|&index| paths.get(index).is_some_and(|path| path.active)) else {
            self.due = None;
            return best.map(|(index, _)| index).or_else(|| active().next().map(|(index, _)| index));
        };
        let cost = self.by.cost(&paths[current]);
        let better = best.zip(cost).filter(|((_, best), cost)| {
            best + self.by.margin(*cost, self.hysteresis) < *cost // Also while the guard lasts.
        });
        let Some(((index, _), _)) = better else {
            self.due = None;
            return Some(current);
        };
        let due = *self.due.get_or_insert_with(|| now + self.guard.mul_f64(rng.f64()));
        if now < due {
            return Some(current);
        }
        self.due = None;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::Rng;
    use proptest::prelude::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn by_srtt(srtt: Option<u64>) -> Candidate {
        Candidate { active: true, srtt: srtt.map(ms), ..Candidate::default() }
    }

    fn choose(selector: &mut Selector, at: u64, current: usize, paths: &[Candidate]) -> Option<usize> {
        selector.choose(Instant::from_millis(at), Some(current), paths, &mut Rng::from_seed(1))
    }

    #[test]
    fn hysteresis_keeps_the_path_in_use() {
        let mut selector = Selector::new(PathSelection::BestDelay, ms(20), ms(0));
        for (other, expected) in [(79, 1), (80, 0), (100, 0)] {
            let paths = [by_srtt(Some(100)), by_srtt(Some(other))];
            assert_eq!(choose(&mut selector, 0, 0, &paths), Some(expected), "{other} ms");
        }
        // An unmeasured path is no better, nor worse.
        assert_eq!(choose(&mut selector, 0, 0, &[by_srtt(Some(100)), by_srtt(None)]), Some(0));
        assert_eq!(choose(&mut selector, 0, 0, &[by_srtt(None), by_srtt(Some(1))]), Some(0));
    }

    #[test]
    fn the_time_guard_waits_and_forgets() {
        let mut selector = Selector::new(PathSelection::BestDelay, ms(0), ms(3000));
        let [better, worse] = [90, 110].map(|other| [by_srtt(Some(100)), by_srtt(Some(other))]);
        assert_eq!(choose(&mut selector, 0, 0, &better), Some(0));
        let first = selector.due().unwrap();
        assert!(first > Instant::ZERO && first <= Instant::from_millis(3000));
        assert_eq!(choose(&mut selector, 1, 0, &worse), Some(0), "it was better for a moment only");
        assert_eq!(selector.due(), None);
        assert_eq!(choose(&mut selector, 5000, 0, &better), Some(0), "the guard begins anew");
        let due = selector.due().unwrap();
        assert_eq!(selector.choose(due, Some(0), &better, &mut Rng::from_seed(1)), Some(1));
        assert_eq!(selector.due(), None);
    }

    #[test]
    fn the_time_guard_is_uniform() {
        let mut rng = Rng::from_seed(7);
        let paths = [by_srtt(Some(100)), by_srtt(Some(50))];
        let guards: Vec<f64> = (0..2000)
            .map(|_| {
                let mut selector = Selector::new(PathSelection::BestDelay, ms(0), ms(3000));
                selector.choose(Instant::ZERO, Some(0), &paths, &mut rng);
                (selector.due().unwrap() - Instant::ZERO).as_secs_f64()
            })
            .collect();
        let mean = guards.iter().sum::<f64>() / 2000.0;
        let variance = guards.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 2000.0;
        assert!((mean - 1.5).abs() < 0.06 && (variance - 0.75).abs() < 0.06, "{mean} {variance}");
    }

    #[test]
    fn a_path_that_fails_is_left_at_once_and_rates_and_scores_count_where_they_shall() {
        let guard = ms(3000);
        let mut selector = Selector::new(PathSelection::BestDelay, ms(20), guard);
        let failed = Candidate { active: false, ..by_srtt(Some(10)) };
        assert_eq!(choose(&mut selector, 0, 0, &[failed, by_srtt(None), by_srtt(Some(400))]), Some(2));
        assert_eq!(choose(&mut selector, 0, 0, &[failed, by_srtt(None)]), Some(1));
        assert_eq!(choose(&mut selector, 0, 0, &[failed]), None);

        let rate = |bottleneck| Candidate { active: true, bottleneck: Some(bottleneck), ..by_srtt(Some(10)) };
        let mut pair = Selector::new(PathSelection::PacketPair, ms(20), ms(0));
        assert_eq!(choose(&mut pair, 0, 0, &[rate(1e6), rate(1.09e6)]), Some(0));
        assert_eq!(choose(&mut pair, 0, 0, &[rate(1e6), rate(1.11e6)]), Some(1));
        let score = |opinion| Candidate { active: true, opinion: Some(opinion), ..by_srtt(Some(10)) };
        let mut echo = Selector::new(PathSelection::Echo, ms(20), ms(0));
        assert_eq!(choose(&mut echo, 0, 0, &[score(4.0), score(4.05)]), Some(0));
        assert_eq!(choose(&mut echo, 0, 0, &[score(4.0), score(4.2)]), Some(1));
        let way = |ms| Candidate { forward_delay: Some(Duration::from_millis(ms)), ..by_srtt(Some(10)) };
        let mut one_way = Selector::new(PathSelection::OneWay, ms(20), ms(0));
        assert_eq!(choose(&mut one_way, 0, 0, &[way(100), way(70)]), Some(1));
    }

    proptest! {
        /// Whatever the paths: what is chosen is active, and something is, if anything is.
        #[test]
        fn what_is_chosen_is_active(
            paths in prop::collection::vec((any::<bool>(), prop::option::of(0_u64..4), prop::option::of(0.0..4.0)), 0..6),
            current in prop::option::of(0_usize..8),
            guard in 0_u64..2,
        ) {
            let paths: Vec<_> = paths.into_iter().map(|(active, srtt, rate)| {
                Candidate { active, bottleneck: rate, opinion: rate, forward_delay: srtt.map(ms), ..by_srtt(srtt) }
            }).collect();
            for (_, by) in PathSelection::ALL {
                let mut selector = Selector::new(by, ms(1), ms(guard));
                let chosen = selector.choose(Instant::ZERO, current, &paths, &mut Rng::from_seed(1));
                prop_assert_eq!(chosen.is_some(), paths.iter().any(|path| path.active));
                prop_assert!(chosen.is_none_or(|index| paths[index].active));
            }
        }
    }
}
