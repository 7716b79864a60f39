//! Plots of means over a swept parameter: one panel for each metric and each value of the other parameters.

use super::number::{decimals, fixed, interval};
use super::panel::{Axis, Curve, Origin, Panel, Point, by_layer, look};
use super::params::{Labels, Positions, follows, labels, sentence, varying};
use super::scale::Scale;
use crate::results::{Plot, Results, Row};

/// Name of the axis that has the variants themselves side by side.
const VARIANT: &str = "variant";

/// The panels of a plot of rows, as lines or as bars. Panels of one metric share their axes.
pub(super) fn panels(results: &Results, plot: &Plot, variants: &[&str], bars: bool) -> Vec<Panel> {
    plot.metrics
        .iter()
        .flat_map(|metric| {
            let rows: Vec<&Row> = results.rows.iter().filter(|r| r.metric == *metric).collect();
            of_metric(&rows, plot, variants, bars)
        })
        .collect()
}

fn of_metric(rows: &[&Row], plot: &Plot, variants: &[&str], bars: bool) -> Vec<Panel> {
    let Some(first) = rows.first() else { return Vec::new() };
    let by_variant = plot.x.is_empty() || plot.x == VARIANT;
    let measured: Vec<&str> = variants.iter().copied().filter(|v| rows.iter().any(|r| r.variant == *v)).collect();
    let positions = Positions::of(rows.iter().map(|r| &r.params), &plot.x, bars);
    let place = |row: &Row| {
        if by_variant { look(&measured, &row.variant) as f64 } else { positions.place(&row.params, &plot.x) }
    };
    let x = if by_variant {
        Axis::of_names(VARIANT.into(), measured.iter().map(|v| v.to_string()).collect())
    } else {
        axis(&plot.x, &positions, rows.iter().map(|r| place(r)))
    };
    let label = with_unit(&first.metric, &first.unit);
    let (mut others, _) = varying(rows.iter().map(|r| &r.params));
    others.retain(|name| *name != plot.x && !follows(rows.iter().map(|r| &r.params), name, &plot.x));
    let decimals = decimals(&rows.iter().map(|r| (r.mean, r.ci95)).collect::<Vec<_>>());
    let groups = groups(rows, |row| labels(&row.params, &others));
    let common = common_scale(&groups, plot.log_y, bars);
    groups
        .into_iter()
        .map(|(title, rows)| Panel {
            title: sentence(&title),
            x: x.clone(),
            y: Axis {
                label: label.clone(),
                scale: common.clone().unwrap_or_else(|| y_scale(&rows, plot.log_y, bars)),
                names: None,
            },
            bars,
            curves: curves(&rows, variants, place, |row| tip(row, plot, decimals)),
        })
        .collect()
}

/// The vertical axis that panels share, so that they can be compared; none if one of them would be flat on it.
fn common_scale(groups: &[(Labels, Vec<&Row>)], log: bool, bars: bool) -> Option<Scale> {
    let all: Vec<&Row> = groups.iter().flat_map(|(_, rows)| rows.iter().copied()).collect();
    let scale = y_scale(&all, log, bars);
    let flat = groups.iter().any(|(_, rows)| {
        let places: Vec<f64> = rows.iter().filter_map(|r| scale.nearest(r.mean)).collect();
        let foot = scale.nearest(scale.foot()).unwrap_or(0.0);
        places.iter().all(|p| (p - foot).abs() < 0.15) && places.iter().any(|p| *p != foot)
    });
    (!flat || log).then_some(scale)
}

/// Groups `items` by `key`, in the order of appearance.
pub(super) fn groups<'a, T>(items: &[&'a T], key: impl Fn(&T) -> Labels) -> Vec<(Labels, Vec<&'a T>)> {
    let mut groups: Vec<(Labels, Vec<&T>)> = Vec::new();
    for item in items {
        let key = key(item);
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, group)) => group.push(item),
            None => groups.push((key, vec![item])),
        }
    }
    groups
}

fn axis(name: &str, positions: &Positions, places: impl Iterator<Item = f64> + Clone) -> Axis {
    match positions {
        Positions::Names(names) => Axis::of_names(name.into(), names.clone()),
        Positions::Numbers(unit) => {
            // Values spread over orders of magnitude would crowd at the left end.
            let (low, high) = places.clone().fold((f64::MAX, 0.0), |(l, h): (f64, f64), v| (l.min(v), h.max(v)));
            let wide = low > 0.0 && high / low >= 100.0;
            let scale = if wide { Scale::logarithmic(places) } else { Scale::tight(places) };
            Axis { label: with_unit(name, unit), scale, names: None }
        }
    }
}

fn y_scale(rows: &[&Row], log: bool, bars: bool) -> Scale {
    let values = rows.iter().flat_map(|r| {
        let ci = r.ci95.filter(|ci| ci.is_finite()).unwrap_or(0.0);
        // Below zero, a confidence interval must not stretch an axis of what is positive.
        let low = if r.mean >= 0.0 { (r.mean - ci).max(if log { r.mean / 2.0 } else { 0.0 }) } else { r.mean - ci };
        [low, r.mean, r.mean + ci, r.published.unwrap_or(f64::NAN), r.ns2.unwrap_or(f64::NAN)]
    });
    if log { Scale::logarithmic(values) } else { Scale::linear(values, bars) }
}

fn curves(rows: &[&Row], variants: &[&str], place: impl Fn(&Row) -> f64, tip: impl Fn(&Row) -> String) -> Vec<Curve> {
    let value = |row: &Row, origin| match origin {
        Origin::Ours => Some(row.mean),
        Origin::Published => row.published,
        Origin::Ns2 => row.ns2,
    };
    let mut curves = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        for origin in [Origin::Ours, Origin::Published, Origin::Ns2] {
            let mut points: Vec<Point> = rows
                .iter()
                .filter(|r| r.variant == *variant)
                .filter_map(|r| {
                    let ci = r.ci95.filter(|_| origin == Origin::Ours);
                    value(r, origin).map(|y| Point { x: place(r), y, ci, tip: tip(r) })
                })
                .collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            if !points.is_empty() {
                curves.push(Curve { look: index, origin, points });
            }
        }
    }
    by_layer(&mut curves);
    curves
}

/// All that is known of a point, for the pointer that rests on it.
fn tip(row: &Row, plot: &Plot, decimals: usize) -> String {
    let mut tip = row.variant.clone();
    if row.params.contains_key(&plot.x) {
        tip += &format!(", {}", sentence(&labels(&row.params, [&plot.x])));
    }
    tip += &format!("\n{}", fixed(row.mean, decimals));
    if let Some(ci) = row.ci95 {
        tip += &format!(" {}", interval(ci, row.mean, decimals));
    }
    tip += &format!(" {} (n = {})", row.unit, row.n);
    for (origin, value) in [(Origin::Published, row.published), (Origin::Ns2, row.ns2)] {
        if let Some(value) = value {
            tip += &format!("\n{}: {}", origin.name(), fixed(value, decimals));
        }
    }
    tip
}

/// `goodput, kbit/s`; just the name if there is no unit.
pub(super) fn with_unit(name: &str, unit: &str) -> String {
    if unit.is_empty() { name.into() } else { format!("{name}, {unit}") }
}
