//! What links can carry, as chances to send.

use braidcast_core::Instant;
use braidcast_sim::link::{LinkModel, OPPORTUNITY_BYTES, OutageTimes, Rate};
use core::time::Duration;
use std::collections::BTreeMap;

/// Links are looked at once a millisecond, as recordings are.
const STEP_NANOS: u64 = 1_000_000;
/// Bytes in a step of a link without a rate: 80 Gbit/s.
const UNLIMITED: f64 = 1e7;

/// A time at which a path can carry something.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Chance {
    /// When it leaves.
    pub at: Duration,
    /// Bytes of it that arrive, after the mean loss.
    pub bytes: f64,
    /// Until it arrives.
    pub delay: Duration,
}

/// A path as the oracle sees it: its chances in order.
pub(crate) type Route = Vec<Chance>;

/// The chances of a path through `links`, one behind the other, in `from..until`.
///
/// Of outages only those with a time of their own are known. What varies at random beside them
/// (jitter, reordering, other flows on the same links) is left out.
pub(crate) fn chances(links: &[&LinkModel], from: Duration, until: Duration) -> Route {
    let step = |time: Duration| time.as_nanos() as u64 / STEP_NANOS;
    let (first, end) = (step(from), step(until) + 1);
    let recorded: Vec<_> = links.iter().map(|link| opportunities(link, first, end)).collect();
    let through: f64 = links.iter().map(|link| 1.0 - link.loss.mean().unwrap_or(0.0)).product();
    let chance = |step: u64| {
        let now = Instant::from_nanos(step * STEP_NANOS);
        let bytes = links.iter().zip(&recorded).map(|(link, recorded)| match recorded {
            _ if is_out(link, now) => 0.0,
            Some(recorded) => recorded.get(&step).copied().unwrap_or(0.0),
            None => steady(&link.rate, now),
        });
        let bytes = bytes.fold(f64::INFINITY, f64::min) * through;
        let delay = links.iter().map(|link| delay(link, now)).sum();
        (bytes > 0.0).then_some(Chance { at: Duration::from_nanos(step * STEP_NANOS), bytes, delay })
    };
    (first..end).filter_map(chance).collect()
}

/// Bytes in each step of a recording that has some.
fn opportunities(link: &LinkModel, first: u64, end: u64) -> Option<BTreeMap<u64, f64>> {
    let Rate::Trace(trace) = &link.rate else { return None };
    let (period, mut at) = (trace.period_millis(), BTreeMap::new());
    for round in first / period..=end / period {
        let steps = trace.millis().iter().map(|ms| round * period + u64::from(*ms));
        for step in steps.filter(|step| (first..end).contains(step)) {
            *at.entry(step).or_default() += OPPORTUNITY_BYTES as f64;
        }
    }
    Some(at)
}

/// Bytes in a step at a rate that is none of a recording.
fn steady(rate: &Rate, now: Instant) -> f64 {
    let bits = match rate {
        Rate::Bits(bits) => *bits,
        Rate::Schedule(schedule) => schedule.value_at(now),
        Rate::Unlimited | Rate::Trace(_) => return UNLIMITED,
    };
    bits as f64 / 8e9 * STEP_NANOS as f64
}

fn delay(link: &LinkModel, now: Instant) -> Duration {
    link.delay_schedule.as_ref().map_or(link.delay, |schedule| Duration::from_nanos(schedule.value_at(now)))
}

/// Returns `true` if nothing gets through: lost or held back, it makes no difference to what can be sent then.
fn is_out(link: &LinkModel, now: Instant) -> bool {
    link.outages.iter().any(|outage| match outage.times {
        OutageTimes::Window { from, until } => (from..until).contains(&now),
        OutageTimes::Every { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_sim::link::{Loss, Outage, Trace};
    use std::sync::Arc;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn seen(links: &[&LinkModel], from: u64, until: u64) -> Vec<(u64, f64, u64)> {
        let all = chances(links, ms(from), ms(until));
        all.iter().map(|it| (it.at.as_millis() as u64, it.bytes, it.delay.as_millis() as u64)).collect()
    }

    #[test]
    fn a_rate_is_bytes_in_each_millisecond_less_its_loss_and_outages() {
        let at = Instant::from_millis;
        let link = LinkModel {
            loss: Loss::Uniform(0.25),
            outages: vec![Outage::window(at(11), at(13)), Outage::window(at(14), at(15)).holding()],
            ..LinkModel::wire(8_000_000, ms(20))
        };
        assert_eq!(seen(&[&link], 10, 15), [(10, 750.0, 20), (13, 750.0, 20), (15, 750.0, 20)]);
    }

    #[test]
    fn a_recording_repeats_and_the_narrower_of_two_links_counts() {
        let trace = Arc::new(Trace::from_millis(vec![0, 3, 3, 5]).unwrap());
        let link = LinkModel { rate: Rate::Trace(trace), delay: ms(5), ..LinkModel::default() };
        // The last opportunity of a round falls on the first of the next one.
        assert_eq!(seen(&[&link], 4, 9), [(5, 3000.0, 5), (8, 3000.0, 5)]);
        let access = LinkModel::wire(8_000_000, ms(2));
        assert_eq!(seen(&[&link, &access], 4, 9), [(5, 1000.0, 7), (8, 1000.0, 7)]);
    }
}
