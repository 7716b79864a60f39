//! What the rows say about the claims of the source, and how far they are from the references.

use crate::results::{Difference, Outcome, Row, Verdict};
use crate::scenario::{Against, Claim, Point, Scenario};
use crate::stats::mean_ci95;

/// How far from a reference a row may be without a reason.
const FAR: f64 = 0.15;

/// A row and the point that it belongs to.
pub(crate) type Placed<'a> = (&'a Point, &'a Row);

/// The verdict on each claim; `look_inside` is the command line that shows a run of a point, if there is
/// anything to be seen.
pub(crate) fn verdicts(
    scenario: &Scenario,
    rows: &[Placed<'_>],
    look_inside: &dyn Fn(&Point) -> Option<String>,
) -> Vec<Verdict> {
    scenario.claims.iter().map(|claim| verdict(scenario, claim, rows, look_inside)).collect()
}

fn verdict(
    scenario: &Scenario,
    claim: &Claim,
    rows: &[Placed<'_>],
    look_inside: &dyn Fn(&Point) -> Option<String>,
) -> Verdict {
    let lower_metric = claim.lower_metric.as_ref().unwrap_or(&claim.metric);
    let of = |variant: &str, metric: &str| {
        let wanted =
            |(point, row): &&Placed<'_>| row.metric == metric && row.variant == variant && point.is_at(&claim.at);
        rows.iter().filter(wanted).copied().collect::<Vec<_>>()
    };
    let lower = of(&claim.lower, lower_metric);
    let both = of(&claim.higher, &claim.metric).into_iter().filter_map(|high| {
        let low = lower.iter().copied().find(|low| low.1.params == high.1.params)?;
        Some((high, low))
    });
    let both: Vec<_> = both.collect();
    let pairs: Vec<_> = both.iter().map(|(high, low)| (high.1, low.1)).collect();
    let margin = claim.margin.unwrap_or(1.0);
    let count = |wanted: Order| pairs.iter().filter(|(high, low)| order(high, low, margin) == wanted).count();
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
    let than = if *lower_metric == claim.metric { &claim.lower } else { lower_metric };
    let above = claim.margin.map_or_else(|| "above".to_owned(), |margin| format!("above {} % of", percent(margin)));
    let mut evidence = format!(
        "{}: {} {above} {than} at {holds} of {} points, below at {fails}, not distinguishable at {open}",
        claim.metric,
        claim.higher,
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
    // Where it does not hold there is most to be seen.
    let most_telling = both.iter().min_by_key(|(high, low)| match order(high.1, low.1, margin) {
        Order::Below => 0,
        Order::Open => 1,
        Order::Above => 2,
    });
    let mut inside: Vec<_> =
        most_telling.into_iter().flat_map(|(high, low)| [high.0, low.0]).filter_map(look_inside).collect();
    inside.dedup();
    Verdict { claim: claim.text.clone(), source, outcome, evidence, reason: claim.reason.trim().to_owned(), inside }
}

/// A share in percent, without the noise of its last digits.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

#[derive(PartialEq, Eq)]
enum Order {
    Above,
    Below,
    Open,
}

/// Which is the higher one of the mean of `high` and `margin` times that of `low`: open if the interval of their difference holds zero.
/// Runs with the same seed met the same background traffic, so the differences of such pairs give the interval; if runs were lost,
/// the two intervals do, as if they were independent. Without intervals the means decide.
fn order(high: &Row, low: &Row, margin: f64) -> Order {
    let paired = !high.values.is_empty() && high.values.len() == low.values.len();
    let (difference, ci) = if paired {
        let differences: Vec<f64> =
            high.values.iter().zip(&low.values).map(|(high, low)| high - margin * low).collect();
        let (mean, ci) = mean_ci95(&differences);
        (mean, ci.unwrap_or(0.0))
    } else {
        (high.mean - margin * low.mean, high.ci95.unwrap_or(0.0).hypot(margin * low.ci95.unwrap_or(0.0)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const SCENARIO: &str = r#"name = "x"
title = "t"
source = "its source"
experiment = "transfer"
duration = "2s"
link.l.rate = "1mbit"
sweep.n = [1, 2, 3]
variant = [{ name = "a" }, { name = "b" }]
[[claim]]
text = "a is above b"
metric = "m"
higher = "a"
lower = "b"
"#;

    fn read(text: &str) -> Scenario {
        Scenario::read("x.toml", text, Path::new(".")).unwrap_or_else(|e| panic!("{e}"))
    }

    /// A mean and its interval, of `a` and of `b`, at each of the three points.
    type Means = [[(f64, f64); 2]; 3];

    fn rows(points: &[Point], means: &Means) -> Vec<Row> {
        let row = |(point, &(mean, ci95)): (&Point, &(f64, f64))| Row {
            experiment: "x".to_owned(),
            variant: point.variant.clone(),
            params: point.json_params(),
            metric: "m".to_owned(),
            unit: String::new(),
            mean,
            ci95: Some(ci95),
            n: 10,
            values: Vec::new(),
            published: None,
            ns2: None,
            source: String::new(),
        };
        points.iter().zip(means.iter().flatten()).map(row).collect()
    }

    /// What shows a run of this point.
    fn seen(point: &Point) -> Option<String> {
        Some(format!("{} {:?}", point.variant, point.json_params()))
    }

    /// The verdict on the claim, with these lines after it.
    fn verdict_on(more: &str, means: &Means) -> Verdict {
        let scenario = read(&format!("{SCENARIO}{more}"));
        let points = scenario.points().unwrap();
        let rows = rows(&points, means);
        let placed: Vec<Placed<'_>> = points.iter().zip(&rows).collect();
        verdicts(&scenario, &placed, &seen).remove(0)
    }

    const ABOVE: [(f64, f64); 2] = [(12.0, 0.5), (10.0, 0.5)];
    const BELOW: [(f64, f64); 2] = [(8.0, 0.5), (10.0, 0.5)];
    const OPEN: [(f64, f64); 2] = [(12.0, 2.0), (10.0, 2.0)];

    #[test]
    fn points_decide_by_their_intervals() {
        use Outcome::{Confirmed, Mixed, NotDistinguishable, Refuted};
        for (means, outcome) in [
            ([ABOVE, ABOVE, ABOVE], Confirmed),
            ([ABOVE, ABOVE, OPEN], Confirmed),
            ([ABOVE, OPEN, OPEN], Mixed),
            ([ABOVE, ABOVE, BELOW], Mixed),
            ([BELOW, BELOW, OPEN], Refuted),
            ([BELOW, OPEN, OPEN], Mixed),
            ([OPEN, OPEN, OPEN], NotDistinguishable),
        ] {
            assert_eq!(verdict_on("", &means).outcome, outcome, "{means:?}");
        }
    }

    #[test]
    fn a_claim_holds_at_its_points_only_and_to_its_degree() {
        let means = [BELOW, ABOVE, ABOVE];
        assert_eq!(verdict_on("", &means).outcome, Outcome::Mixed);
        assert_eq!(verdict_on("where.n = [2, 3]", &means).outcome, Outcome::Confirmed);
        assert_eq!(verdict_on("where.n = 1", &means).outcome, Outcome::Refuted);
        assert_eq!(verdict_on("where.n = [2, 3]\nfactor = [1.1, 1.3]", &means).outcome, Outcome::Confirmed);
        assert_eq!(verdict_on("where.n = [2, 3]\nfactor = [1.3, 1.5]", &means).outcome, Outcome::Mixed);
    }

    #[test]
    fn both_that_are_compared_are_shown_where_the_claim_does_not_hold() {
        let at = |verdict: Verdict| verdict.inside;
        let both = |n: u32| ["a", "b"].map(|variant| format!("{variant} {{\"n\": Number({n})}}"));
        assert_eq!(at(verdict_on("", &[ABOVE, ABOVE, BELOW])), both(3));
        assert_eq!(at(verdict_on("", &[ABOVE, OPEN, ABOVE])), both(2));
        assert_eq!(at(verdict_on("", &[ABOVE, ABOVE, ABOVE])), both(1));
    }

    #[test]
    fn a_margin_asks_only_not_to_be_below_that_share() {
        use Outcome::{Confirmed, NotDistinguishable, Refuted};
        // 95 is below 100, but not below 90 % of it; the interval of what is between widens with 90 % of the lower one's.
        const NEAR: [(f64, f64); 2] = [(95.0, 1.0), (100.0, 1.0)];
        const WIDE: [(f64, f64); 2] = [(95.0, 3.0), (100.0, 5.0)];
        assert_eq!(verdict_on("", &[NEAR; 3]).outcome, Refuted);
        let verdict = verdict_on("margin = 0.9", &[NEAR; 3]);
        assert_eq!(verdict.outcome, Confirmed);
        assert_eq!(
            verdict.evidence,
            "m: a above 90 % of b at 3 of 3 points, below at 0, not distinguishable at 0; mean ratio 0.950 (0.950 to 0.950)"
        );
        assert_eq!(verdict_on("margin = 0.985", &[NEAR; 3]).outcome, Refuted);
        assert!(verdict_on("margin = 0.985", &[NEAR; 3]).evidence.contains("above 98.5 % of b at 0"));
        assert_eq!(verdict_on("margin = 0.9", &[WIDE; 3]).outcome, NotDistinguishable);
    }

    #[test]
    fn with_a_margin_the_differences_of_each_seed_decide_too() {
        let scenario = read(&format!("{SCENARIO}margin = 0.9\n"));
        let points = scenario.points().unwrap();
        let mut rows = rows(&points, &[[(55.0, 60.0), (60.0, 60.0)]; 3]);
        // Far apart from seed to seed, but always 5 % less: the intervals of the means say nothing, those of the pairs do.
        for row in &mut rows {
            let share = if row.variant == "a" { 0.95 } else { 1.0 };
            row.values = [20.0, 60.0, 100.0].map(|value| value * share).to_vec();
            row.mean = 60.0 * share;
        }
        let placed: Vec<Placed<'_>> = points.iter().zip(&rows).collect();
        // 1, 3 and 5 above 90 %: 3 with an interval of 2 · 4.3027 / √3 = 4.97.
        assert_eq!(verdicts(&scenario, &placed, &seen).remove(0).outcome, Outcome::NotDistinguishable);
        for row in &mut rows {
            row.values.iter_mut().for_each(|value| *value += 100.0);
        }
        let placed: Vec<Placed<'_>> = points.iter().zip(&rows).collect();
        assert_eq!(verdicts(&scenario, &placed, &seen).remove(0).outcome, Outcome::Confirmed);
    }

    #[test]
    fn the_evidence_has_the_numbers_and_the_source_is_the_scenarios() {
        let verdict = verdict_on("factor = [1.3, 1.5]\nreason = \" why \"", &[ABOVE, ABOVE, OPEN]);
        assert_eq!(
            verdict.evidence,
            "m: a above b at 2 of 3 points, below at 0, not distinguishable at 1; mean ratio 1.200 (1.200 to 1.200), \
             claimed 1.3 to 1.5"
        );
        assert_eq!((verdict.source.as_str(), verdict.reason.as_str()), ("its source", "why"));
    }

    #[test]
    fn rows_far_from_a_reference_get_the_reason_that_fits() {
        let scenario = read(&format!(
            "{SCENARIO}[[difference]]\nmetric = \"m\"\nvariant = \"a\"\nwhere.n = 2\nagainst = \"ns2\"\ntext = \"known\"\n"
        ));
        let points = scenario.points().unwrap();
        let mut rows = rows(&points, &[ABOVE, ABOVE, ABOVE]);
        // `a` is 12 everywhere: 20 % above 10, but 14 % below 14; a reference of 0 is far from everything but 0.
        (rows[0].ns2, rows[2].ns2, rows[4].ns2) = (Some(10.0), Some(10.0), Some(14.0));
        (rows[1].published, rows[5].published) = (Some(0.0), Some(10.0));
        let placed: Vec<Placed<'_>> = points.iter().zip(&rows).collect();
        let found = differences(&scenario, &placed);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.params["n"].as_i64().unwrap(), &*it.variant, &*it.against, it.reason.as_deref()))
            .collect();
        assert_eq!(found, [(1, "a", "ns2", None), (1, "b", "published", None), (2, "a", "ns2", Some("known"))]);
    }
}
