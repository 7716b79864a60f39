//! What the rows say about the claims of the source, and how far they are from the references.

use crate::results::{Difference, Outcome, Row, Verdict};
use crate::scenario::{Against, Claim, Point, Scenario};
use crate::stats::mean_ci95;

/// How far from a reference a row may be without a reason.
const FAR: f64 = 0.15;

/// A row and the point that it belongs to.
pub(crate) type Placed<'a> = (&'a Point, &'a Row);

/// The verdict on each claim.
pub(crate) fn verdicts(scenario: &Scenario, rows: &[Placed<'_>]) -> Vec<Verdict> {
    scenario.claims.iter().map(|claim| verdict(scenario, claim, rows)).collect()
}

fn verdict(scenario: &Scenario, claim: &Claim, rows: &[Placed<'_>]) -> Verdict {
    let of = |variant: &str| {
        let wanted = move |(point, row): &&Placed<'_>| {
            row.metric == claim.metric && row.variant == variant && point.is_at(&claim.at)
        };
        rows.iter().filter(wanted).map(|&(_, row)| row).collect::<Vec<_>>()
    };
    let lower = of(&claim.lower);
    let pairs = of(&claim.higher).into_iter().filter_map(|high| {
        let low = lower.iter().copied().find(|low| low.params == high.params)?;
        Some((high, low))
    });
    let pairs: Vec<_> = pairs.collect();
    let count = |wanted: Order| pairs.iter().filter(|(high, low)| order(high, low) == wanted).count();
    let (holds, fails) = (count(Order::Above), count(Order::Below));
    let open = pairs.len() - holds - fails;
    let ratios: Vec<_> = pairs.iter().filter(|(_, low)| low.mean != 0.0).map(|(h, l)| h.mean / l.mean).collect();
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    let outcome = match (holds, fails) {
        (0, 0) => Outcome::NotDistinguishable,
        (holds, 0) if holds >= open => match claim.factor {
            Some([least, most]) if !(least..=most).contains(&mean) => Outcome::Mixed,
            _ => Outcome::Confirmed,
        },
        (0, fails) if fails >= open => Outcome::Refuted,
        _ => Outcome::Mixed,
    };
    let mut evidence = format!(
        "{}: {} above {} at {holds} of {} points, below at {fails}, not distinguishable at {open}",
        claim.metric,
        claim.higher,
        claim.lower,
        pairs.len()
    );
    if let (Some(least), Some(most)) =
        (ratios.iter().copied().reduce(f64::min), ratios.iter().copied().reduce(f64::max))
    {
        evidence += &format!("; mean ratio {mean:.3} ({least:.3} to {most:.3})");
    }
    if let Some([least, most]) = claim.factor {
        evidence += &format!(", claimed {least} to {most}");
    }
    let source = claim.source.clone().unwrap_or_else(|| scenario.source.clone());
    Verdict { claim: claim.text.clone(), source, outcome, evidence, reason: claim.reason.trim().to_owned() }
}

#[derive(PartialEq, Eq)]
enum Order {
    Above,
    Below,
    Open,
}

/// Which of two means is the higher one: open if the interval of their difference holds zero. Runs with the same seed met
/// the same background traffic, so the differences of such pairs give the interval; if runs were lost, the two intervals
/// do, as if they were independent. Without intervals the means decide.
fn order(high: &Row, low: &Row) -> Order {
    let paired = !high.values.is_empty() && high.values.len() == low.values.len();
    let (difference, ci) = if paired {
        let differences: Vec<f64> = high.values.iter().zip(&low.values).map(|(high, low)| high - low).collect();
        let (mean, ci) = mean_ci95(&differences);
        (mean, ci.unwrap_or(0.0))
    } else {
        (high.mean - low.mean, high.ci95.unwrap_or(0.0).hypot(low.ci95.unwrap_or(0.0)))
    };
    if difference.abs() <= ci {
        Order::Open
    } else if difference > 0.0 {
        Order::Above
    } else {
        Order::Below
    }
}

/// Every row that is far from a reference, with the reason if the scenario has one.
pub(crate) fn differences(scenario: &Scenario, rows: &[Placed<'_>]) -> Vec<Difference> {
    let against = |against: Against, row: &Row| match against {
        Against::Published => row.published,
        Against::Ns2 => row.ns2,
    };
    let mut found = Vec::new();
    for &(point, row) in rows {
        for which in [Against::Published, Against::Ns2] {
            let Some(theirs) = against(which, row).filter(|theirs| (row.mean - theirs).abs() > FAR * theirs.abs())
            else {
                continue;
            };
            let known = scenario.differences.iter().find(|it| {
                it.against == which
                    && it.metric == row.metric
                    && it.variant.as_ref().is_none_or(|variant| *variant == row.variant)
                    && point.is_at(&it.at)
            });
            found.push(Difference {
                metric: row.metric.clone(),
                variant: row.variant.clone(),
                params: row.params.clone(),
                against: which.name().to_owned(),
                ours: row.mean,
                theirs,
                reason: known.map(|it| it.text.trim().to_owned()),
            });
        }
    }
    found
}
