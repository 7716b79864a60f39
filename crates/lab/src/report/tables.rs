//! The values as tables, one for each metric.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::number::{NONE, decimals, difference_pct, fixed, interval, percent};
use super::panel::Origin;
use super::params::{labels, sentence, value_text, varying};
use super::rows::with_unit;
use crate::results::{Results, Row};

/// Longer tables begin folded.
const LONG: usize = 24;

/// What names a difference: metric, variant, parameters, and the reference that it is from.
type Key = (String, String, String, String);

/// The tables of an experiment.
pub(super) fn tables(results: &Results) -> Markup {
    let mut metrics: Vec<&str> = Vec::new();
    for row in &results.rows {
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
    }
    let far: BTreeSet<Key> = results
        .differences
        .iter()
        .map(|d| {
            let params = sentence(&labels(&d.params, d.params.keys()));
            (d.metric.clone(), d.variant.clone(), params, d.against.clone())
        })
        .collect();
    html! {
        @for metric in metrics {
            (table(&results.rows.iter().filter(|r| r.metric == metric).collect::<Vec<_>>(), &far))
        }
    }
}

fn table(rows: &[&Row], far: &BTreeSet<Key>) -> Markup {
    let (differ, same) = varying(rows.iter().map(|r| &r.params));
    let decimals = decimals(&rows.iter().map(|r| (r.mean, r.ci95)).collect::<Vec<_>>());
    let references: Vec<Origin> = [Origin::Published, Origin::Ns2]
        .into_iter()
        .filter(|origin| rows.iter().any(|r| reference(r, *origin).is_some()))
        .collect();
    let name = rows.first().map(|r| with_unit(&r.metric, &r.unit)).unwrap_or_default();
    html! {
        details open[rows.len() <= LONG] {
            summary { (name) " " span.quiet { (rows.len()) " values" @if !same.is_empty() { "; " (sentence(&same)) } } }
            div.wide { table {
                thead { tr {
                    @for name in &differ { th { (name) } }
                    th { "variant" } th.number { "ours" } th.ci { "± 95 %" } th.number.runs { "runs" }
                    @for origin in &references { th.number { (origin.name()) } th.number { "difference" } }
                } }
                tbody { @for row in rows { tr {
                    @for name in &differ { td { (value_text(&row.params, name)) } }
                    td { (row.variant) }
                    td.number { (fixed(row.mean, decimals)) }
                    td.ci { @match row.ci95 { Some(ci) => { (interval(ci, row.mean, decimals)) } None => { (NONE) } } }
                    td.number.runs { (row.n) }
                    @for origin in &references { (against(row, *origin, decimals, far)) }
                } } }
            } }
        }
    }
}

fn reference(row: &Row, origin: Origin) -> Option<f64> {
    match origin {
        Origin::Ours => None,
        Origin::Published => row.published,
        Origin::Ns2 => row.ns2,
    }
}

fn against(row: &Row, origin: Origin, decimals: usize, far: &BTreeSet<Key>) -> Markup {
    let Some(value) = reference(row, origin) else {
        return html! { td.number { (NONE) } td.number { (NONE) } };
    };
    let params = sentence(&labels(&row.params, row.params.keys()));
    let key = (row.metric.clone(), row.variant.clone(), params, origin.class().to_string());
    html! {
        td.number { (fixed(value, decimals)) }
        td.number.far[far.contains(&key)] { (percent(difference_pct(row.mean, value))) }
    }
}
