//! Rows that are far from a reference, with the reason that stands for them.

use super::{FAR, Placed, words};
use crate::results::{Difference, Row};
use crate::scenario::{Against, Compared, Scenario};

/// Every row that is far from a reference, with the reason if the scenario has one that stands for
/// this point and this size.
pub(crate) fn differences(scenario: &Scenario, rows: &[Placed<'_>]) -> Vec<Difference> {
    let mut found = Vec::new();
    for &(point, row) in rows {
        for against in [Against::Published, Against::Ns2] {
            let Some(theirs) = reference(against, row).filter(|theirs| is_far(row.mean, *theirs)) else { continue };
            let (metric, variant, ours) = (row.metric.as_str(), row.variant.as_str(), row.mean);
            let compared = Compared { point, metric, variant, against, ours, theirs };
            let known = scenario.differences.iter().find(|it| it.covers(&compared));
            found.push(Difference {
                metric: row.metric.clone(),
                variant: row.variant.clone(),
                params: row.params.clone(),
                against: against.name().to_owned(),
                ours,
                theirs,
                reason: known.map(|it| words::filled(&it.text, rows, &it.at)),
                found: known.map(|it| it.found),
                shown: known.and_then(|it| it.shown.clone()),
            });
        }
    }
    found
}

pub(super) fn reference(against: Against, row: &Row) -> Option<f64> {
    match against {
        Against::Published => row.published,
        Against::Ns2 => row.ns2,
    }
}

pub(super) fn is_far(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() > FAR * theirs.abs()
}
