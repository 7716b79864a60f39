//! Results as people read them.

use crate::failure::Outcome;
use crate::out::style::Style;
use crate::out::table::{Table, Tone};
use crate::out::text;
use braidcast_lab::results::{Outcome as Verdict, Results, Row};
use serde_json::Value;
use std::path::Path;

/// A table for each metric, then the claims and the differences that nobody has explained.
pub(super) fn print(results: &Results, kept: &Path) -> Outcome {
    let style = Style::stdout();
    text::print(&format!("{} ({}, {})", style.bold(&results.title), results.experiment, results.source))?;
    let mut metrics: Vec<&str> = Vec::new();
    for row in &results.rows {
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
    }
    for metric in metrics {
        let rows: Vec<&Row> = results.rows.iter().filter(|row| row.metric == metric).collect();
        text::print(&format!("\n{}", table(metric, &rows, style)))?;
    }
    for verdict in &results.verdicts {
        let outcome = match verdict.outcome {
            Verdict::Confirmed => "confirmed".to_owned(),
            Verdict::Refuted => style.red("refuted"),
            Verdict::Mixed => style.yellow("mixed"),
            Verdict::NotDistinguishable => style.yellow("not distinguishable"),
        };
        text::print(&format!("\n{outcome}: {}\n  {}", verdict.claim, verdict.evidence))?;
        if !verdict.reason.is_empty() {
            text::print(&format!("  {}", verdict.reason.replace('\n', " ")))?;
        }
    }
    let (far, open) = (results.differences.len(), results.differences.iter().filter(|it| it.reason.is_none()).count());
    text::print(&format!(
        "\n{far} values are more than 15 % from a reference, {open} of them without a reason; kept in {}\n",
        kept.display()
    ))
}

fn table(metric: &str, rows: &[&Row], style: Style) -> Table {
    let params: Vec<&String> = rows.first().map(|row| row.params.keys().collect()).unwrap_or_default();
    let unit = rows.first().map_or("", |row| row.unit.as_str());
    let title = if unit.is_empty() { metric.to_owned() } else { format!("{metric}, {unit}") };
    let (published, ns2) = (rows.iter().any(|row| row.published.is_some()), rows.iter().any(|row| row.ns2.is_some()));
    let mut head = vec!["variant"];
    head.extend(params.iter().map(|name| name.as_str()));
    head.extend([title.as_str(), "±"]);
    head.extend(published.then_some("published"));
    head.extend(ns2.then_some("ns-2"));
    let mut table = Table::new(&head, style);
    for row in rows {
        let mut cells = vec![(row.variant.clone(), Tone::Plain)];
        cells.extend(params.iter().map(|name| (row.params.get(*name).map_or_else(String::new, plain), Tone::Plain)));
        cells.push((number(row.mean), Tone::Plain));
        cells.push((row.ci95.map_or_else(String::new, number), Tone::Plain));
        for theirs in [published.then_some(row.published), ns2.then_some(row.ns2)].into_iter().flatten() {
            let far = theirs.is_some_and(|theirs| (row.mean - theirs).abs() > 0.15 * theirs.abs());
            let tone = if far { Tone::Doubtful } else { Tone::Plain };
            cells.push((theirs.map_or_else(String::new, number), tone));
        }
        table.row(cells);
    }
    table
}

/// Rows as CSV: `params` as `name=value` with spaces between them.
pub(super) fn csv(all: &[Results]) -> String {
    let mut lines = vec!["experiment,variant,params,metric,unit,mean,ci95,n,published,ns2,source".to_owned()];
    let quote = |text: &str| {
        if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
    };
    let maybe = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    for row in all.iter().flat_map(|results| &results.rows) {
        let params: Vec<_> = row.params.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
        let texts = [&row.experiment, &row.variant, &params.join(" "), &row.metric, &row.unit].map(|it| quote(it));
        let numbers = [maybe(Some(row.mean)), maybe(row.ci95), row.n.to_string(), maybe(row.published), maybe(row.ns2)];
        lines.push([texts.join(","), numbers.join(","), quote(&row.source)].join(","));
    }
    lines.join("\n")
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Four digits that count.
fn number(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { (3 - value.abs().log10().floor() as i32).clamp(0, 6) };
    format!("{value:.*}", digits as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let shown = [0.0, 0.001_234_56, 3.45678, 1903.86, 123_456.7].map(number);
        assert_eq!(shown, ["0", "0.001235", "3.457", "1904", "123457"]);
    }
}
