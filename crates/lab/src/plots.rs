//! The plots of a scenario that asks for none: each metric over what is swept, and each curve.

use crate::results::{Plot, PlotKind, Row, Series};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of plots: nobody looks at more, and the tables have the rest.
const MOST: usize = 12;

/// A plot of each metric that is not the same everywhere, over the parameter with the most values,
/// and one of each kind of curve.
pub(crate) fn without_asking(rows: &[Row], series: &[Series]) -> Vec<Plot> {
    let x = longest_sweep(rows);
    let named = |names: &mut dyn Iterator<Item = &str>| {
        let mut known = BTreeSet::new();
        names.filter(|name| known.insert(*name)).map(str::to_owned).collect::<Vec<_>>()
    };
    let of_metric = |metric: String| {
        let mut values = rows.iter().filter(|row| row.metric == metric).map(|row| row.mean);
        let first = values.next()?;
        let varies = values.any(|value| value != first);
        let kind = if x.is_some() { PlotKind::Line } else { PlotKind::Bars };
        varies.then(|| plot(metric, kind, x.clone().unwrap_or_default()))
    };
    let metrics = named(&mut rows.iter().map(|row| row.metric.as_str())).into_iter().filter_map(of_metric);
    let curves = named(&mut series.iter().map(|it| it.name.as_str())).into_iter();
    metrics.chain(curves.map(|name| plot(name, PlotKind::Series, String::new()))).take(MOST).collect()
}

fn plot(metric: String, kind: PlotKind, x: String) -> Plot {
    Plot { title: metric.clone(), kind, metrics: vec![metric], x, log_y: false }
}

/// The parameter with the most values, numbers before words; `None` if nothing is swept.
fn longest_sweep(rows: &[Row]) -> Option<String> {
    let mut values: BTreeMap<&str, (bool, BTreeSet<String>)> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|row| &row.params) {
        let (numbers, known) = values.entry(name).or_insert_with(|| (true, BTreeSet::new()));
        *numbers &= value.is_number() || has_unit(value);
        known.insert(value.to_string());
    }
    values.retain(|_, (_, known)| known.len() > 1);
    let longest = values.into_iter().max_by_key(|(_, (numbers, known))| (*numbers, known.len()));
    longest.map(|(name, _)| name.to_owned())
}

/// Returns `true` if it is a text, for example `50ms`, which the axis takes as a number.
fn has_unit(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Params;
    use serde_json::json;

    fn row(variant: &str, params: &[(&str, Value)], metric: &str, mean: f64) -> Row {
        Row {
            experiment: "x".into(),
            variant: variant.into(),
            params: params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            metric: metric.into(),
            unit: String::new(),
            mean,
            ci95: None,
            n: 1,
            published: None,
            table: None,
            ns2: None,
            source: String::new(),
            values: Vec::new(),
        }
    }

    #[test]
    fn what_varies_is_drawn_over_the_longest_sweep() {
        let at = |rtt: u32, queue: &str| [("rtt", json!(rtt)), ("queue", json!(queue))];
        let rows: Vec<_> = [(20, "red", 1.0), (50, "red", 2.0), (90, "tail", 2.0)]
            .iter()
            .flat_map(|&(rtt, queue, mean)| {
                [row("a", &at(rtt, queue), "goodput", mean), row("a", &at(rtt, queue), "resets", 0.0)]
            })
            .collect();
        let curve = Series {
            name: "window".into(),
            variant: "a".into(),
            params: Params::new(),
            x: "s".into(),
            y: "bytes".into(),
            points: vec![[0.0, 1.0]],
        };
        let plots = without_asking(&rows, &[curve.clone(), curve]);
        let drawn: Vec<_> = plots.iter().map(|it| (it.title.as_str(), it.kind, it.x.as_str())).collect();
        assert_eq!(drawn, [("goodput", PlotKind::Line, "rtt"), ("window", PlotKind::Series, "")]);
        // Without a sweep the variants stand side by side; a single value makes no plot.
        let rows = [row("a", &[], "goodput", 1.0), row("b", &[], "goodput", 2.0), row("a", &[], "jitter", 2.0)];
        let plots = without_asking(&rows, &[]);
        assert_eq!(
            plots.iter().map(|it| (it.title.as_str(), it.kind)).collect::<Vec<_>>(),
            [("goodput", PlotKind::Bars)]
        );
        assert!(without_asking(&[], &[]).is_empty());
    }
}
