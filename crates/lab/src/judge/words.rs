//! Numbers in reasons: `{METRIC | VARIANT | NAME=VALUE, …}` becomes what the run measured.
//!
//! In place of a variant there may be two with `-`, `/` or `%` between them: their difference,
//! their ratio, and by how many per cent the first one is above the second; a name that has such a
//! sign in it stands between backticks. A value may be several, `1,2`. Without points those of the
//! claim are meant, or all. If there are several, their minimum and maximum stand there.

use super::Placed;
use crate::scenario::{Point, Value, Where};
use std::collections::BTreeMap;

/// What stands between braces.
#[derive(Debug, PartialEq)]
pub(crate) struct Quote<'a> {
    pub(crate) metric: &'a str,
    pub(crate) variant: &'a str,
    /// The other variant, and what is to be told of both.
    pub(crate) other: Option<(Told, &'a str)>,
    pub(crate) at: Where,
}

/// What is told of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Difference,
    Ratio,
    PerCent,
}

impl<'a> Quote<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split('|').map(str::trim);
        let (metric, variants) = (parts.next()?, parts.next()?);
        let at = parts.next().unwrap_or_default();
        let one = |pair: &str| {
            let (name, value) = pair.split_once('=')?;
            let text = |value: &str| Value::Text(value.trim().to_owned());
            let values: Vec<Value> = value.split(',').map(text).collect();
            let value = if values.len() == 1 { text(value) } else { Value::List(values) };
            Some((name.trim().to_owned(), value))
        };
        let at: Option<BTreeMap<_, _>> = at.split(';').filter(|it| !it.trim().is_empty()).map(one).collect();
        let two = [("-", Told::Difference), ("/", Told::Ratio), ("%", Told::PerCent)];
        let (variant, other) = match variants.strip_prefix('`') {
            Some(quoted) => {
                let (variant, rest) = quoted.split_once('`')?;
                let other =
                    |(sign, told): (&str, Told)| Some((told, rest.trim().strip_prefix(sign)?.trim().trim_matches('`')));
                let other = two.into_iter().find_map(other);
                (rest.trim().is_empty() || other.is_some()).then_some((variant, other))?
            }
            None => {
                let split = |(sign, told): (&str, Told)| {
                    let (a, b) = variants.split_once(&format!(" {sign} "))?;
                    Some((a.trim(), Some((told, b.trim()))))
                };
                two.into_iter().find_map(split).unwrap_or((variants, None))
            }
        };
        let complete = parts.next().is_none() && !metric.is_empty() && !variant.is_empty();
        complete.then_some(Self { metric, variant, other, at: at? })
    }

    /// The variants that it names.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        [Some(self.variant), self.other.map(|(_, other)| other)].into_iter().flatten()
    }

    /// What the rows say, if it names no points those that `here` describes; none if they do not have it.
    fn told(&self, rows: &[Placed<'_>], here: &Where) -> Option<String> {
        let points = if self.at.is_empty() { here } else { &self.at };
        let mean = |variant: &str, point: Option<&Point>| {
            let is_it = |(at, row): &&Placed<'_>| {
                row.metric == self.metric
                    && row.variant == variant
                    && at.is_at(points)
                    && point.is_none_or(|point| point.params == at.params)
            };
            rows.iter().filter(is_it).map(|(at, row)| (*at, row.mean)).collect::<Vec<_>>()
        };
        let value = |(point, mine): (&Point, f64)| {
            let Some((told, other)) = self.other else { return Some(mine) };
            let (_, theirs) = mean(other, Some(point)).first().copied()?;
            Some(match told {
                Told::Difference => mine - theirs,
                Told::Ratio => mine / theirs,
                Told::PerCent => 100.0 * (mine / theirs - 1.0),
            })
        };
        let values: Vec<f64> = mean(self.variant, None).into_iter().filter_map(value).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let most = values.iter().copied().reduce(f64::max)?;
        let (least, most) = (short(least), short(most));
        Some(if least == most { least } else { format!("{least} to {most}") })
    }
}

/// Three digits that count, and no noise behind them.
fn short(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let places = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Every part of `text`: words, and what stood between braces, `Err` if that means nothing.
fn parts(text: &str) -> impl Iterator<Item = (&str, Option<Result<Quote<'_>, &str>>)> {
    let mut rest = Some(text);
    core::iter::from_fn(move || {
        let text = rest.take()?;
        let Some((before, inner)) = text.split_once('{') else { return Some((text, None)) };
        let Some((inner, after)) = inner.split_once('}') else { return Some((before, Some(Err(inner)))) };
        rest = Some(after);
        Some((before, Some(Quote::parse(inner).ok_or(inner))))
    })
}

/// All that `text` quotes; what stands between braces and means nothing is an error.
pub(crate) fn quotes(text: &str) -> impl Iterator<Item = Result<Quote<'_>, &str>> {
    parts(text).filter_map(|(_, quote)| quote)
}

/// `text`, which is about the points `here`, with the numbers of the run in place of what is
/// between braces; `?` for what was not run.
pub(crate) fn filled(text: &str, rows: &[Placed<'_>], here: &Where) -> String {
    let mut out = String::new();
    for (words, quote) in parts(text.trim()) {
        out.push_str(words);
        match quote {
            Some(Ok(quote)) => out += quote.told(rows, here).as_deref().unwrap_or("?"),
            Some(Err(nonsense)) => out += nonsense,
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::tests::{placed, read, rows};

    const MEANS: [[(f64, f64); 2]; 3] =
        [[(12.0, 0.5), (10.0, 0.5)], [(15.0, 0.5), (10.0, 0.5)], [(1234.56, 0.5), (10.0, 0.5)]];

    fn fill(text: &str) -> String {
        let scenario = read("");
        let points = scenario.points().unwrap();
        let rows = rows(&points, &MEANS);
        filled(text, &placed(&points, &rows), &Where::from([("n".to_owned(), Value::Text("2".to_owned()))]))
    }

    #[test]
    fn braces_become_what_was_measured() {
        assert_eq!(fill("By {m | a - b | n=1} of {m | a | n=1}; no braces."), "By 2 of 12; no braces.");
        assert_eq!(fill("{m | a / b | n=2} times, {m | a % b | n=2} %"), "1.5 times, 50 %");
        assert_eq!(fill("{m | a}, {m|b}"), "15, 10");
        assert_eq!(fill("{m | `a`}, {m | `a` / `b`}, {m | `a` % b}"), "15, 1.5, 50");
        let quote = Quote::parse("m | `10 % of it` - `b - c`").unwrap();
        assert_eq!((quote.variant, quote.other), ("10 % of it", Some((Told::Difference, "b - c"))));
        assert_eq!(fill("{m | a | n=1,2,3}, {m|b|n=3,1}"), "12 to 1235, 10");
        assert_eq!(fill("{m | a | n=7}; {other | a}"), "?; ?");
    }

    #[test]
    fn what_means_nothing_is_told() {
        let wrong: Vec<_> = quotes("{m | a} {m} {} {m | a | n} {m | `a` b} {open").filter_map(Result::err).collect();
        assert_eq!(wrong, ["m", "", "m | a | n", "m | `a` b", "open"]);
    }
}
