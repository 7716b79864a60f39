//! Swept parameters: as text, as quantities on an axis, and which of them tell rows apart.

use serde_json::Value;

use super::number::{NONE, short};
use crate::results::Params;
use std::collections::BTreeMap;

/// Parameters as text, in the order of their names: what groups and labels are made of.
pub(super) type Labels = Vec<(String, String)>;

/// A value as a reader wants it.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => NONE.into(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |n| short(n, 6)),
        other => other.to_string(),
    }
}

/// The value of the parameter `name` as text.
pub(super) fn value_text(params: &Params, name: &str) -> String {
    params.get(name).map_or_else(|| NONE.into(), text)
}

/// The parameters called `names`, as text.
pub(super) fn labels<'a>(params: &Params, names: impl IntoIterator<Item = &'a String>) -> Labels {
    names.into_iter().map(|name| (name.clone(), value_text(params, name))).collect()
}

/// `rtt = 20, loss = 1 %`.
pub(super) fn sentence(labels: &Labels) -> String {
    labels.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
}

/// Names of the parameters whose values differ, and those with the same value everywhere.
pub(super) fn varying<'a>(all: impl Iterator<Item = &'a Params> + Clone) -> (Vec<String>, Labels) {
    let mut names: Vec<String> = all.clone().flat_map(|p| p.keys().cloned()).collect();
    names.sort();
    names.dedup();
    let (mut differ, mut same) = (Vec::new(), Labels::new());
    for name in names {
        let mut values = all.clone().map(|p| value_text(p, &name));
        let first = values.next().unwrap_or_default();
        if values.all(|v| v == first) {
            same.push((name, first));
        } else {
            differ.push(name);
        }
    }
    (differ, same)
}

/// Returns `true` if the parameter `name` has one value for each value of `of`, as the columns of a case's table do.
pub(super) fn follows<'a>(all: impl Iterator<Item = &'a Params>, name: &str, of: &str) -> bool {
    let mut known = BTreeMap::new();
    all.into_iter().all(|params| {
        let value = value_text(params, name);
        *known.entry(value_text(params, of)).or_insert_with(|| value.clone()) == value
    })
}

/// The values of a parameter along an axis.
#[derive(Debug, PartialEq)]
pub(super) enum Positions {
    /// All are numbers of one unit, which is empty if none is written.
    Numbers(String),
    /// Names side by side.
    Names(Vec<String>),
}

impl Positions {
    /// How the values of `name` lie along an axis: by size if all are numbers of one unit, else as names in their order
    /// of appearance. With `side_by_side` numbers become names too, in order of size.
    pub(super) fn of<'a>(all: impl Iterator<Item = &'a Params>, name: &str, side_by_side: bool) -> Self {
        let mut names: Vec<(String, Option<(f64, String)>)> = Vec::new();
        for params in all {
            let text = value_text(params, name);
            if !names.iter().any(|(known, _)| *known == text) {
                names.push((text, params.get(name).and_then(quantity)));
            }
        }
        let unit = names.first().and_then(|(_, q)| q.as_ref()).map(|(_, unit)| unit.clone());
        let unit = unit.filter(|unit| names.iter().all(|(_, q)| q.as_ref().is_some_and(|(_, u)| u == unit)));
        match unit {
            Some(unit) if !side_by_side => Self::Numbers(unit),
            Some(_) => {
                names.sort_by(|(_, a), (_, b)| {
                    let size = |q: &Option<(f64, String)>| q.as_ref().map_or(0.0, |(n, _)| *n);
                    size(a).total_cmp(&size(b))
                });
                Self::Names(names.into_iter().map(|(text, _)| text).collect())
            }
            None => Self::Names(names.into_iter().map(|(text, _)| text).collect()),
        }
    }

    /// Returns the position of `params` on the axis.
    pub(super) fn place(&self, params: &Params, name: &str) -> f64 {
        match self {
            Self::Numbers(_) => params.get(name).and_then(quantity).map_or(f64::NAN, |(n, _)| n),
            Self::Names(names) => {
                let text = value_text(params, name);
                names.iter().position(|n| *n == text).map_or(f64::NAN, |i| i as f64)
            }
        }
    }
}

/// Splits a number, or a text like `20ms` or `1.5 %`, into number and unit.
fn quantity(value: &Value) -> Option<(f64, String)> {
    match value {
        Value::Number(number) => Some((number.as_f64()?, String::new())),
        Value::String(text) => {
            let text = text.trim();
            let end = text.find(|c: char| !matches!(c, '0'..='9' | '.' | '-')).unwrap_or(text.len());
            let (number, unit) = text.split_at(end);
            let unit = unit.trim();
            let plain = unit.chars().count() <= 8 && unit.chars().all(|c| c.is_alphabetic() || matches!(c, '%' | '/'));
            Some((number.parse().ok()?, unit.to_string())).filter(|_| plain)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sweep(values: &[Value]) -> Vec<Params> {
        values.iter().map(|v| Params::from([("x".to_string(), v.clone())])).collect()
    }

    #[test]
    fn quantities_of_one_unit_lie_by_size() {
        let all = sweep(&[json!("20ms"), json!("5ms"), json!("100 ms")]);
        let positions = Positions::of(all.iter(), "x", false);
        assert_eq!(positions, Positions::Numbers("ms".into()));
        assert_eq!(positions.place(&all[2], "x"), 100.0);
        assert_eq!(
            Positions::of(all.iter(), "x", true),
            Positions::Names(vec!["5ms".into(), "20ms".into(), "100 ms".into()])
        );
    }

    #[test]
    fn anything_else_stands_side_by_side() {
        for values in [[json!("20ms"), json!("1s")], [json!("wifi"), json!(3)], [json!(null), json!([1])]] {
            let all = sweep(&values);
            let positions = Positions::of(all.iter(), "x", false);
            assert!(matches!(&positions, Positions::Names(names) if names.len() == 2), "{positions:?}");
            assert_eq!(positions.place(&all[1], "x"), 1.0);
        }
    }

    #[test]
    fn columns_of_a_table_follow_its_first() {
        let row = |rtt, late, loss| {
            ["rtt", "late", "loss"].map(str::to_string).into_iter().zip([rtt, late, loss].map(|it| json!(it)))
        };
        let all: Vec<Params> = [row(20, 10, 0), row(20, 10, 1), row(40, 20, 0)].map(Iterator::collect).into();
        assert!(follows(all.iter(), "late", "rtt"));
        assert!(!follows(all.iter(), "loss", "rtt"));
    }

    #[test]
    fn what_varies_is_told_from_what_does_not() {
        let a = Params::from([("rtt".to_string(), json!(20)), ("queue".to_string(), json!(50))]);
        let b = Params::from([("rtt".to_string(), json!(40)), ("queue".to_string(), json!(50))]);
        let (differ, same) = varying([&a, &b].into_iter());
        assert_eq!(differ, ["rtt"]);
        assert_eq!(sentence(&same), "queue = 50");
    }
}
