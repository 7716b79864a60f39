//! `true` if claims hold: their order, and their degree.

use super::{Placed, words};
use crate::results::{Outcome, Row, Verdict};
use crate::scenario::{Claim, Point, Scenario};
use crate::stats::mean_ci95;

/// The verdict on each claim; `look_inside` is the command line that shows a run of a point, if there is
/// anything to be seen.
pub(crate) fn verdicts(
    scenario: &Scenario,
    rows: &[Placed<'_>],
    look_inside: &dyn Fn(&Point) -> Option<String>,
) -> Vec<Verdict> {
    scenario.claims.iter().map(|claim| verdict(scenario, claim, rows, look_inside)).collect()
}

/// What a point says of a claim.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Point95 {
    /// The order is the claimed one, and so is the degree, if there is one.
    Holds,
    /// The order is the opposite one.
    Fails,
    /// The order is right, the degree is not.
    Off,
    /// The intervals do not tell.
    Open,
    /// There is no interval.
    Single,
}

/// The higher one and the lower one at one point.
type Pair<'a> = (Placed<'a>, Placed<'a>);

/// The pairs of rows that `claim` compares.
pub(super) fn pairs<'a>(claim: &Claim, rows: &[Placed<'a>]) -> Vec<Pair<'a>> {
    let lower_metric = claim.lower_metric.as_ref().unwrap_or(&claim.metric);
    let of = |variant: &str, metric: &str| {
        let wanted =
            |(point, row): &&Placed<'_>| row.metric == metric && row.variant == variant && point.is_at(&claim.at);
        rows.iter().filter(wanted).copied().collect::<Vec<_>>()
    };
    let highs: Vec<_> = claim.higher.iter().map(|variant| of(variant, &claim.metric)).collect();
    let lows: Vec<_> = claim.lower.iter().map(|variant| of(variant, lower_metric)).collect();
    let mut pairs = Vec::new();
    for (high, low) in highs.iter().flat_map(|high| lows.iter().map(move |low| (high, low))) {
        let same = |high: &Placed<'a>| low.iter().copied().find(|low| low.1.params == high.1.params);
        pairs.extend(high.iter().filter_map(|high| Some((*high, same(high)?))));
    }
    pairs
}

fn verdict(
    scenario: &Scenario,
    claim: &Claim,
    rows: &[Placed<'_>],
    look_inside: &dyn Fn(&Point) -> Option<String>,
) -> Verdict {
    let pairs = pairs(claim, rows);
    let judged: Vec<Point95> = pairs.iter().map(|(high, low)| judged(claim, high.1, low.1)).collect();
    let count = |wanted: Point95| judged.iter().filter(|it| **it == wanted).count();
    let (holds, fails, off) = (count(Point95::Holds), count(Point95::Fails), count(Point95::Off));
    let (open, single) = (count(Point95::Open), count(Point95::Single));
    let outcome = match (holds, fails, off) {
        _ if single == pairs.len() => Outcome::NoVerdict,
        (0, 0, 0) => Outcome::NotDistinguishable,
        (holds, 0, 0) if holds == pairs.len() => Outcome::Confirmed,
        (0, fails, 0) if fails >= open + single => Outcome::Refuted,
        _ => Outcome::Mixed,
    };
    let source = claim.source.clone().unwrap_or_else(|| scenario.source.clone());
    // The points at which it does not hold show most.
    let most_telling = pairs.iter().zip(&judged).min_by_key(|(_, judged)| match judged {
        Point95::Fails => 0,
        Point95::Off => 1,
        Point95::Open | Point95::Single => 2,
        Point95::Holds => 3,
    });
    let most_telling = most_telling.into_iter().flat_map(|((high, low), _)| [high.0, low.0]);
    let mut inside: Vec<_> = most_telling.filter_map(look_inside).collect();
    inside.dedup();
    let against = if claim.is_of_sameness() { "farther apart" } else { "below" };
    let mut points = format!("{holds} of {} points, {against} at {fails}", pairs.len());
    if (claim.factor.is_some() || claim.by.is_some()) && !claim.is_of_sameness() {
        points += &format!(", off the claimed degree at {off}");
    }
    points += &format!(", not distinguishable at {}", open + single);
    let kind = match (outcome, fails, off) {
        (Outcome::Mixed, 0, 0) => "; it holds where it can be told",
        (Outcome::Mixed, 0, _) => "; the order is right, the degree is another one",
        (Outcome::Mixed, ..) => "; some points contradict it",
        _ => "",
    };
    Verdict {
        claim: claim.text.clone(),
        source,
        headline: claim.headline.clone(),
        outcome,
        evidence: format!("{} at {points}{kind}{}", compared(claim), degree(claim, &pairs)),
        reason: words::filled(&claim.reason, rows, &claim.at),
        inside,
    }
}

/// `goodput: a above 98 % of b`.
fn compared(claim: &Claim) -> String {
    let lower_metric = claim.lower_metric.as_ref().filter(|it| **it != claim.metric);
    let than = lower_metric.cloned().unwrap_or_else(|| claim.lower.to_string());
    if claim.is_of_sameness() {
        return format!("{}: {} near {than}", claim.metric, claim.higher);
    }
    let above = claim.margin.map_or_else(|| "above".to_owned(), |margin| format!("above {} % of", percent(margin)));
    format!("{}: {} {above} {than}", claim.metric, claim.higher)
}

/// Returns, in words, the means over the points of ratios and, if the claim names one, of
/// differences, with minimum and maximum.
fn degree(claim: &Claim, pairs: &[Pair<'_>]) -> String {
    let spread = |values: &[f64], digits: usize| {
        let (least, most) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(format!("{mean:.digits$} ({least:.digits$} to {most:.digits$})"))
    };
    let claimed = |range: Option<[f64; 2]>| {
        range.map_or_else(String::new, |[least, most]| format!(", claimed {least} to {most}"))
    };
    let means = || pairs.iter().map(|(high, low)| (high.1.mean, low.1.mean));
    let ratios: Vec<f64> = means().filter(|(_, low)| *low != 0.0).map(|(high, low)| high / low).collect();
    let mut text = String::new();
    if let Some(ratio) = spread(&ratios, 3) {
        text += &format!("; mean ratio {ratio}{}", claimed(claim.factor));
    }
    let differences: Vec<f64> = means().map(|(high, low)| high - low).collect();
    if let Some(difference) = spread(&differences, 2).filter(|_| claim.by.is_some()) {
        text += &format!("; mean difference {difference}{}", claimed(claim.by));
    }
    text
}

/// A share in percent, without the noise of its last digits.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// What one point says: first of the order, unless both are claimed to be about the same, then of
/// both ends of what is claimed of the degree.
fn judged(claim: &Claim, high: &Row, low: &Row) -> Point95 {
    let Some(order) = order(high, low, claim.margin.unwrap_or(1.0), 0.0) else { return Point95::Single };
    let same = claim.is_of_sameness();
    match order {
        _ if same => {}
        Order::Open => return Point95::Open,
        Order::Below => return Point95::Fails,
        Order::Above => {}
    }
    let by_factor = claim.factor.map(|range| range.map(|factor| (factor, 0.0)));
    let by_difference = claim.by.map(|range| range.map(|by| (1.0, by)));
    let mut judged = Point95::Holds;
    for [least, most] in [by_factor, by_difference].into_iter().flatten() {
        let at = |(factor, by): (f64, f64)| self::order(high, low, factor, by);
        match (at(least), at(most)) {
            (Some(Order::Above), Some(Order::Below)) => {}
            (Some(Order::Below), _) | (_, Some(Order::Above)) if same => return Point95::Fails,
            (Some(Order::Below), _) | (_, Some(Order::Above)) => return Point95::Off,
            _ => judged = Point95::Open,
        }
    }
    judged
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Above,
    Below,
    Open,
}

/// Which is the higher one of the mean of `high` and `factor` times that of `low` and `by` more:
/// open if the interval of their difference holds zero, none if there is no interval.
///
/// Runs with the same seed met the same background traffic, so the differences of such pairs give
/// the interval; if runs were lost, the two intervals do, as if they were independent.
fn order(high: &Row, low: &Row, factor: f64, by: f64) -> Option<Order> {
    let paired = !high.values.is_empty() && high.values.len() == low.values.len();
    let (difference, ci) = if paired {
        let differences: Vec<f64> =
            high.values.iter().zip(&low.values).map(|(high, low)| high - factor * low - by).collect();
        let (mean, ci) = mean_ci95(&differences);
        (mean, ci?)
    } else {
        (high.mean - factor * low.mean - by, high.ci95?.hypot(factor * low.ci95?))
    };
    Some(if difference.abs() <= ci {
        Order::Open
    } else if difference > 0.0 {
        Order::Above
    } else {
        Order::Below
    })
}
