//! Results as people read them.

use crate::failure::Outcome;
use crate::out::style::Style;
use crate::out::table::{Table, Tone};
use crate::out::text;
use braidcast_lab::results::{Found, Outcome as Verdict, Results, Row};
use console::{Term, measure_text_width};
use serde_json::Value;
use std::collections::BTreeSet;

/// Width if there is no terminal.
const WIDTH: usize = 100;

/// The means, then the claims and the differences that nobody has explained.
pub(super) fn print(results: &Results, kept: &str) -> Outcome {
    let style = Style::stdout();
    let width = Term::stdout().size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns));
    let from = [results.experiment.as_str(), results.source.as_str()].into_iter().filter(|it| !it.is_empty());
    text::print(&format!("{} ({})", style.bold(&results.title), from.collect::<Vec<_>>().join(", ")))?;
    text::print(&tables(&results.rows, width, style))?;
    for verdict in &results.verdicts {
        let outcome = match verdict.outcome {
            Verdict::Confirmed => verdict.outcome.words().to_owned(),
            Verdict::Refuted => style.red(verdict.outcome.words()),
            Verdict::Mixed | Verdict::NotDistinguishable | Verdict::NoVerdict => style.yellow(verdict.outcome.words()),
        };
        text::print(&format!("\n{outcome}: {}\n  {}", verdict.claim, verdict.evidence))?;
        if !verdict.reason.is_empty() {
            text::print(&format!("  {}", verdict.reason.replace('\n', " ")))?;
        }
    }
    let count = |found| results.differences.iter().filter(|it| it.found == found).count();
    let (traced, arithmetic) = (count(Some(Found::Traced)), count(Some(Found::Arithmetic)));
    let (noise, unknown, open) = (count(Some(Found::Noise)), count(Some(Found::Unknown)), count(None));
    let far = results.differences.len();
    let compared = results.rows.iter().any(|row| row.published.is_some() || row.ns2.is_some());
    let differences = if compared {
        format!(
            "{far} values are more than 15 % from a reference: {traced} traced, {arithmetic} by arithmetic, {noise} within the source's noise, {unknown} unknown, {open} unexplained; "
        )
    } else {
        String::new()
    };
    text::print(&format!("\n{differences}{kept}\n"))
}

/// Makes a table for each metric, with a line for each point and a column for each variant; if that
/// is too wide for the terminal, a line for each variant and point. Makes one table of a single
/// point, with a line for each metric. Parameters and metrics that are the same everywhere get one
/// line.
fn tables(rows: &[Row], width: usize, style: Style) -> String {
    let (varying, constant) = params(rows);
    let mut parts = Vec::new();
    if !constant.is_empty() {
        parts.push(format!("with {}", constant.join(", ")));
    }
    let mut metrics: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match metrics.iter_mut().find(|of| of[0].metric == row.metric) {
            Some(of) => of.push(row),
            None => metrics.push(vec![row]),
        }
    }
    let (same, metrics): (Vec<_>, Vec<_>) = metrics.into_iter().partition(|rows| rows.len() > 1 && are_same(rows));
    if varying.is_empty() {
        let rows: Vec<&Row> = metrics.into_iter().flatten().collect();
        let table = across(&rows, &["metric", "unit"], |row| vec![row.metric.clone(), row.unit.clone()], style);
        parts.push(fitting(table, width, || down(&rows, &["metric"], |row| vec![title(row)], style)));
    } else {
        let head: Vec<&str> = varying.iter().map(|name| name.as_str()).collect();
        let key =
            |row: &Row| varying.iter().map(|name| row.params.get(*name).map_or_else(String::new, plain)).collect();
        for rows in &metrics {
            let table = fitting(across(rows, &head, key, style), width, || down(rows, &head, key, style));
            parts.push(format!("{}\n{table}", style.bold(title(rows[0]))));
        }
    }
    if !same.is_empty() {
        let same: Vec<_> = same.iter().map(|rows| format!("{} {}", rows[0].metric, number(rows[0].mean))).collect();
        parts.push(format!("the same everywhere: {}", same.join(", ")));
    }
    format!("\n{}", parts.join("\n\n"))
}

/// The names of the parameters that vary, and `name = value` of the others.
fn params(rows: &[Row]) -> (Vec<&String>, Vec<String>) {
    let names: BTreeSet<&String> = rows.iter().flat_map(|row| row.params.keys()).collect();
    let value = |name: &String| rows.first().and_then(|row| row.params.get(name));
    let (constant, varying): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|name| rows.iter().all(|row| row.params.get(*name) == value(name)));
    let told = |name: &String| format!("{name} = {}", value(name).map_or_else(String::new, plain));
    (varying, constant.into_iter().map(told).collect())
}

/// Returns `true` if all means are one value, in every run, and no reference has another.
fn are_same(rows: &[&Row]) -> bool {
    let value = rows[0].mean;
    let is_it = |theirs: Option<f64>| theirs.is_none_or(|theirs| theirs == value);
    rows.iter()
        .all(|row| row.mean == value && row.ci95.is_none_or(|ci| ci == 0.0) && is_it(row.published) && is_it(row.ns2))
}

fn title(row: &Row) -> String {
    if row.unit.is_empty() { row.metric.clone() } else { format!("{}, {}", row.metric, row.unit) }
}

/// `table` if it is not too wide, else the other one.
fn fitting(table: Table, width: usize, other: impl Fn() -> Table) -> String {
    let text = table.to_string();
    if text.lines().all(|line| measure_text_width(line) <= width) { text } else { other().to_string() }
}

/// A line for each key, columns for each variant.
fn across(rows: &[&Row], keys: &[&str], key: impl Fn(&Row) -> Vec<String>, style: Style) -> Table {
    let mut variants: Vec<(&str, Columns)> = Vec::new();
    let mut lines: Vec<(Vec<String>, Vec<&Row>)> = Vec::new();
    for row in rows {
        match variants.iter_mut().find(|(name, _)| *name == row.variant) {
            Some((_, columns)) => *columns = columns.with(row),
            None => variants.push((&row.variant, Columns::default().with(row))),
        }
        let key = key(row);
        match lines.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => lines.push((key, vec![row])),
        }
    }
    let head: Vec<&str> =
        keys.iter().copied().chain(variants.iter().flat_map(|(name, columns)| columns.head(name))).collect();
    let mut table = Table::new(&head, style);
    for (key, rows) in lines {
        let cells = variants
            .iter()
            .flat_map(|(name, columns)| columns.cells(rows.iter().copied().find(|row| row.variant == *name)));
        table.row(key.into_iter().map(|text| (text, Tone::Plain)).chain(cells));
    }
    table
}

/// A line for each row.
fn down(rows: &[&Row], keys: &[&str], key: impl Fn(&Row) -> Vec<String>, style: Style) -> Table {
    let columns = rows.iter().fold(Columns::default(), |columns, row| columns.with(row));
    let head: Vec<&str> = ["variant"].into_iter().chain(keys.iter().copied()).chain(columns.head("mean")).collect();
    let mut table = Table::new(&head, style);
    for row in rows {
        let texts = [row.variant.clone()].into_iter().chain(key(row)).map(|text| (text, Tone::Plain));
        table.row(texts.chain(columns.cells(Some(row))));
    }
    table
}

/// Which numbers there are besides the mean.
#[derive(Clone, Copy, Default)]
struct Columns {
    ci95: bool,
    published: bool,
    ns2: bool,
}

impl Columns {
    /// The same and those of `row`.
    fn with(self, row: &Row) -> Self {
        Self {
            ci95: self.ci95 || row.ci95.is_some(),
            published: self.published || row.published.is_some(),
            ns2: self.ns2 || row.ns2.is_some(),
        }
    }

    fn head(self, mean: &str) -> impl Iterator<Item = &str> {
        let others = [self.ci95.then_some("±"), self.published.then_some("published"), self.ns2.then_some("ns-2")];
        [mean].into_iter().chain(others.into_iter().flatten())
    }

    fn cells(self, row: Option<&Row>) -> Vec<(String, Tone)> {
        let cell = |value: Option<f64>, tone| (value.map_or_else(String::new, number), tone);
        let theirs = |of: fn(&Row) -> Option<f64>| {
            let far = row.is_some_and(|row| of(row).is_some_and(|it| (row.mean - it).abs() > 0.15 * it.abs()));
            cell(row.and_then(of), if far { Tone::Doubtful } else { Tone::Plain })
        };
        let mut cells = vec![cell(row.map(|row| row.mean), Tone::Plain)];
        cells.extend(self.ci95.then(|| cell(row.and_then(|row| row.ci95), Tone::Plain)));
        cells.extend(self.published.then(|| theirs(|row| row.published)));
        cells.extend(self.ns2.then(|| theirs(|row| row.ns2)));
        cells
    }
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

    fn row(variant: &str, loss: &str, metric: &str, mean: f64) -> Row {
        serde_json::from_value(serde_json::json!({
            "experiment": "x", "variant": variant, "params": { "loss": loss, "rate": "1mbit" }, "metric": metric,
            "unit": "kbit/s", "mean": mean, "ci95": mean / 100.0, "n": 10, "published": null,
            "ns2": (variant == "one" && mean > 0.0).then_some(900.0), "source": "",
        }))
        .unwrap()
    }

    #[test]
    fn variants_stand_beside_each_other_where_there_is_room() {
        let points = [("0%", 1000.0), ("3%", 500.0)];
        let of = |metric: &'static str, factor: f64| {
            points.into_iter().flat_map(move |(loss, mean)| {
                [row("one", loss, metric, mean * factor), row("both", loss, metric, 2.0 * mean * factor)]
            })
        };
        let rows: Vec<Row> = of("goodput", 1.0).chain(of("timeouts", 0.0)).collect();
        insta::assert_snapshot!(tables(&rows, 80, Style::of(false)));
        insta::assert_snapshot!(tables(&rows, 30, Style::of(false)));
        let single: Vec<Row> = rows.into_iter().filter(|row| row.params["loss"] == "3%").collect();
        insta::assert_snapshot!(tables(&single, 80, Style::of(false)));
    }

    #[test]
    fn numbers_have_four_digits() {
        let shown = [0.0, 0.001_234_56, 3.45678, 1903.86, 123_456.7].map(number);
        assert_eq!(shown, ["0", "0.001235", "3.457", "1904", "123457"]);
    }
}
