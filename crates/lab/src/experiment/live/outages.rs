//! Outages at random, drawn before the run, so that the oracle knows them and both directions have
//! them at the same time.

use crate::plan::Run;
use crate::scenario::LinkSpec;
use braidcast_core::{Instant, Rng};
use braidcast_sim::link::{LinkModel, Outage, OutageTimes};
use core::time::Duration;

/// Maximum number of outages of one kind that are drawn for a link; of shorter ones the first
/// count.
const MAX_DRAWN: usize = 10_000;
/// Beyond what is measured: the session's beginning and its end.
const BEYOND: Duration = Duration::from_secs(120);
/// Least pause between two.
const PAUSE: Duration = Duration::from_millis(1);

/// Returns `links` with each outage at its own time. If both directions have the same kind of
/// outage, they have the same times.
pub(super) fn settled(mut links: Vec<LinkSpec>, run: &Run<'_>) -> Vec<LinkSpec> {
    let rng = Rng::from_seed(run.seed);
    for link in &mut links {
        let rng = rng.stream(&format!("outages of {}", link.name));
        settle(&mut link.there, &rng, run.duration + BEYOND);
        settle(&mut link.back, &rng, run.duration + BEYOND);
    }
    links
}

fn settle(link: &mut LinkModel, rng: &Rng, length: Duration) {
    let all = link.outages.iter().enumerate();
    link.outages = all.flat_map(|(n, outage)| drawn(*outage, rng.stream(&format!("{n}")), length)).collect();
}

/// As [`OutageTimes::Every`] has it: pauses and lengths are uniform from half to one and a half of their means.
fn drawn(outage: Outage, mut rng: Rng, length: Duration) -> Vec<Outage> {
    let OutageTimes::Every { period, length: mean } = outage.times else { return vec![outage] };
    let (mut all, mut now) = (Vec::new(), Instant::ZERO);
    while now < Instant::ZERO + length && all.len() < MAX_DRAWN {
        let from = now + period.saturating_sub(mean).max(PAUSE).mul_f64(0.5 + rng.f64());
        now = from + mean.mul_f64(0.5 + rng.f64());
        all.push(Outage { times: OutageTimes::Window { from, until: now }, ..outage });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_has_its_mean_share_of_time_and_what_has_a_time_keeps_it() {
        let fixed = Outage::window(Instant::from_millis(1), Instant::from_millis(2));
        assert_eq!(drawn(fixed, Rng::from_seed(1), Duration::from_secs(1)), [fixed]);
        let every = Outage::every(Duration::from_millis(1000), Duration::from_millis(200)).holding();
        let all = drawn(every, Rng::from_seed(1), Duration::from_secs(1000));
        let out: Duration = all
            .iter()
            .map(|it| match it.times {
                OutageTimes::Window { from, until } => until.since(from),
                OutageTimes::Every { .. } => unreachable!("all are drawn"),
            })
            .sum();
        assert!((190.0..210.0).contains(&out.as_secs_f64()), "{out:?}");
        assert!(all.iter().all(|it| it.effect == every.effect));
    }
}
