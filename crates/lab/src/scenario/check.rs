//! What a scenario says of its own variants, parameters and metrics must be there.

use super::value::Settings;
use super::wrong::{Places, Wrong, did_you_mean};
use super::{Claim, Column, Found, Names, Scenario, Value};
use crate::judge;
use crate::results::{PlotKind, Results};
use std::collections::BTreeSet;

/// Looks up names of a kind.
type Look<'a> = dyn Fn(Part<'_>, &str, &str) -> Result<(), Wrong> + 'a;

/// What a `[[claim]]`, `[[difference]]`, `[[reference]]` or `[[plot]]` is called in messages, and its places.
type Part<'a> = (&'static str, &'a Places);

impl Scenario {
    /// Variants differ in name; claims, reasons, references and plots speak of variants and parameters that there are,
    /// and of numbers that mean something.
    pub(super) fn check_names(&self) -> Result<(), Wrong> {
        for (i, variant) in self.variants.iter().enumerate() {
            if self.variants[..i].iter().any(|it| it.name == variant.name) {
                let what = format!("a second variant is called '{}'", variant.name);
                return Err(Wrong::new(&variant.place, what, "give each a name of its own"));
            }
        }
        let variants: Vec<_> = self.variants.iter().map(|it| it.name.as_str()).collect();
        let listed = self.cases.iter().flat_map(|case| &case.params).map(|(name, _)| name.as_str());
        let params: Vec<_> = self.sweep.iter().map(|(name, _)| name.as_str()).chain(listed).collect();
        let variant = |part: Part<'_>, key: &str, name: &str| known(part, key, "variant", name, &variants);
        let param = |part: Part<'_>, table: &str, name: &str| {
            known(part, &format!("{table}.{name}"), "parameter", name, &params)
        };
        for claim in &self.claims {
            let part = ("[[claim]]", &claim.places);
            for (key, names) in [("higher", &claim.higher), ("lower", &claim.lower)] {
                if names.is_empty() {
                    let what = format!("the [[claim]] compares nothing: {key} is an empty list");
                    return Err(Wrong::new(claim.places.of(key), what, "name a variant, or several"));
                }
                names.iter().try_for_each(|name| variant(part, key, name))?;
            }
            claim.at.keys().try_for_each(|name| param(part, "where", name))?;
            for (key, range) in [("factor", claim.factor), ("by", claim.by)] {
                if let Some([least, most]) = range.filter(|[least, most]| least > most) {
                    let what = format!("no {key} is between {least} and {most}");
                    return Err(Wrong::new(claim.places.of(key), what, format!("write [{most}, {least}]")));
                }
            }
            if let Some(margin) = claim.margin.filter(|margin| !(*margin > 0.0 && *margin <= 1.0)) {
                let what = format!("{margin} is not a share of what the lower one has");
                let fix = "write a number above 0 and at most 1, for example 0.98 for not below 98 %";
                return Err(Wrong::new(claim.places.of("margin"), what, fix));
            }
            self.check_varies(claim)?;
            check_quotes(part, "reason", &claim.reason, &variant, &param)?;
        }
        for it in &self.differences {
            let part = ("[[difference]]", &it.places);
            it.variant.iter().flat_map(Names::iter).try_for_each(|name| variant(part, "variant", name))?;
            it.at.keys().try_for_each(|name| param(part, "where", name))?;
            for point in &it.points {
                let mut inner = point.variant.iter().flat_map(Names::iter);
                inner.try_for_each(|name| variant(part, "points", name))?;
                point.at.keys().try_for_each(|name| param(part, "points", name))?;
                check_extent(part, it.found, point.ratio, point.by)?;
            }
            let outside = it.ratio.is_some() || it.by.is_some();
            if it.points.is_empty() {
                check_extent(part, it.found, it.ratio, it.by)?;
            } else if outside {
                let what = "the [[difference]] says how far both for all of its points and for some";
                return Err(Wrong::new(it.places.of("points"), what, "leave ratio and by, or points, out"));
            }
            if it.found == Found::Traced && it.shown.as_ref().is_none_or(|shown| shown.trim().is_empty()) {
                let what = "the [[difference]] was traced, but nothing shows it";
                let fix = "say in `shown` the command or the switch that shows it, or write found = \"unknown\"";
                return Err(Wrong::new(it.places.of("found"), what, fix));
            }
            check_quotes(part, "text", &it.text, &variant, &param)?;
        }
        for it in &self.references {
            let part = ("[[reference]]", &it.places);
            it.variants
                .keys()
                .try_for_each(|name| known(part, &format!("variants.{name}"), "variant", name, &variants))?;
            it.params.keys().try_for_each(|name| param(part, "params", name))?;
            for (metric, column) in &it.metrics {
                if matches!(column, Column::Scaled { factor, .. } if *factor == 0.0) {
                    let what = format!("the values of '{metric}' are multiplied with 0");
                    return Err(Wrong::new(
                        it.places.of(&format!("metrics.{metric}.factor")),
                        what,
                        "leave factor out",
                    ));
                }
            }
        }
        for (plot, places) in self.plots.iter().zip(&self.plot_places).filter(|(plot, _)| !plot.x.is_empty()) {
            known(("[[plot]]", places), "x", "parameter", &plot.x, &params)?;
        }
        Ok(())
    }

    /// Those that a claim compares stand on the same links and differ in one option, but for what the claim is about.
    fn check_varies(&self, claim: &Claim) -> Result<(), Wrong> {
        let of = |names: &Names| {
            let variants = self.variants.iter().filter(|it| names.has(&it.name));
            variants.map(|it| &it.settings).collect::<Vec<_>>()
        };
        let (higher, lower) = (of(&claim.higher), of(&claim.lower));
        let is_of =
            |key: &str, part: &str| key.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let is_meant = |key: &str| claim.varies.iter().any(|part| is_of(key, part));
        let mut all = BTreeSet::new();
        for (high, low) in higher.iter().flat_map(|high| lower.iter().map(move |low| (high, low))) {
            let keys = self.differing(high, low);
            let (links, options): (Vec<&str>, Vec<&str>) =
                keys.iter().partition(|key| is_of(key, "link") || is_of(key, "network"));
            if let Some(key) = links.into_iter().find(|key| !is_meant(key)) {
                let what = format!("the [[claim]] compares variants on different links: they differ in {key}");
                let fix = format!(
                    "compare variants on the same links, or, if the claim is about that, add varies = [\"{key}\"]"
                );
                return Err(Wrong::new(claim.places.of(""), what, fix));
            }
            if options.len() > 1 && !options.iter().all(|key| is_meant(key)) {
                let what =
                    format!("the [[claim]] compares more than one thing: variants differ in {}", options.join(", "));
                let fix = format!(
                    "compare variants that differ in one key, or, if the claim is about all, add varies = [\"{}\"]",
                    options.join("\", \"")
                );
                return Err(Wrong::new(claim.places.of(""), what, fix));
            }
            all.extend(keys);
        }
        match claim.varies.iter().find(|part| !all.iter().any(|key| is_of(key, part))) {
            Some(part) => {
                let what = format!("the [[claim]] lets '{part}' vary, in which its variants do not differ");
                Err(Wrong::new(claim.places.of("varies"), what, "leave it out"))
            }
            None => Ok(()),
        }
    }

    /// The keys in which two variants differ, on top of what all runs have in common.
    fn differing<'a>(&self, one: &'a Settings, other: &'a Settings) -> BTreeSet<&'a str> {
        let value = |key: &str, variant: &Settings| -> Option<Value> {
            variant.get(key).or_else(|| self.settings.get(key)).map(|it| it.value.clone())
        };
        let keys = one.0.iter().chain(&other.0).map(|it| it.key.as_str());
        keys.filter(|key| value(key, one) != value(key, other)).collect()
    }

    /// What claims, reasons, references and plots say of metrics and curves that are not in
    /// `results`, which must be those of every point: a metric can be known by its name only once
    /// it was measured.
    pub(crate) fn unmeasured(&self, results: &Results) -> Vec<Wrong> {
        let metrics: BTreeSet<_> = results.rows.iter().map(|row| row.metric.as_str()).collect();
        let curves: BTreeSet<_> = results.series.iter().map(|series| series.name.as_str()).collect();
        let (metrics, curves): (Vec<_>, Vec<_>) = (metrics.into_iter().collect(), curves.into_iter().collect());
        let metric = |part: Part<'_>, key: &str, name: &str| known(part, key, "metric", name, &metrics).err();
        let curve = |part: Part<'_>, name: &str| known(part, "metrics", "curve", name, &curves).err();
        let mut wrong = Vec::new();
        wrong.extend(self.claims.iter().filter_map(|it| metric(("[[claim]]", &it.places), "metric", &it.metric)));
        let differences = self.differences.iter();
        wrong.extend(differences.flat_map(|it| {
            let inner = it.points.iter().flat_map(|point| &point.metric);
            let names = [&it.metric].into_iter().chain(inner).flat_map(Names::iter);
            names.filter_map(move |name| metric(("[[difference]]", &it.places), "metric", name)).collect::<Vec<_>>()
        }));
        let reasons = self.claims.iter().map(|it| ("[[claim]]", &it.places, "reason", &it.reason));
        let texts = self.differences.iter().map(|it| ("[[difference]]", &it.places, "text", &it.text));
        for (part, places, key, text) in reasons.chain(texts) {
            wrong.extend(judge::quotes(text).flatten().filter_map(|quote| metric((part, places), key, quote.metric)));
        }
        for it in &self.references {
            let part = ("[[reference]]", &it.places);
            wrong.extend(it.metrics.keys().filter_map(|name| metric(part, &format!("metrics.{name}"), name)));
        }
        for (plot, places) in self.plots.iter().zip(&self.plot_places) {
            let part = ("[[plot]]", places);
            wrong.extend(plot.metrics.iter().filter_map(|name| match plot.kind {
                PlotKind::Series | PlotKind::Cdf => curve(part, name),
                PlotKind::Line | PlotKind::Bars => metric(part, "metrics", name),
            }));
        }
        wrong
    }
}

/// How far a [[difference]] is: ours over theirs, or ours less theirs, to one side unless it is noise.
fn check_extent(
    (part, places): Part<'_>,
    found: Found,
    ratio: Option<[f64; 2]>,
    by: Option<[f64; 2]>,
) -> Result<(), Wrong> {
    let wrong = |key, what: String, fix| Err(Wrong::new(places.of(key), what, fix));
    let (key, [least, most], equal) = match (ratio, by) {
        (Some(ratio), None) => ("ratio", ratio, 1.0),
        (None, Some(by)) => ("by", by, 0.0),
        _ => {
            let fix = "write ratio = [LEAST, MOST] for ours over theirs, or by = [LEAST, MOST] for ours less theirs";
            return wrong("", format!("the {part} does not say how far ours are off"), fix);
        }
    };
    if least > most {
        return wrong(key, format!("no {key} is between {least} and {most}"), "write the lesser one first");
    }
    let noise = found == Found::Noise && by.is_some();
    if least <= equal && most >= equal && !noise {
        let fix = "say on which side ours are; points on both sides need a reason for each";
        return wrong(key, format!("a {key} from {least} to {most} holds {equal}, where there is no difference"), fix);
    }
    Ok(())
}

/// What a reason quotes are variants and parameters that there are.
fn check_quotes(part: Part<'_>, key: &str, text: &str, variant: &Look<'_>, param: &Look<'_>) -> Result<(), Wrong> {
    for quote in judge::quotes(text) {
        let quote = quote.map_err(|nonsense| {
            let what = format!("the {} quotes '{{{nonsense}}}', which means nothing", part.0);
            Wrong::new(
                part.1.of(key),
                what,
                "write {METRIC | VARIANT}, {METRIC | A - B} or {METRIC | VARIANT | NAME=VALUE; …}",
            )
        })?;
        quote.variants().try_for_each(|name| variant(part, key, name))?;
        quote.at.keys().try_for_each(|name| param(part, key, name))?;
    }
    Ok(())
}

fn known((part, places): Part<'_>, key: &str, kind: &str, name: &str, known: &[&str]) -> Result<(), Wrong> {
    if known.contains(&name) {
        return Ok(());
    }
    let what = format!("the {part} speaks of a {kind} '{name}' that there is not");
    Err(Wrong::new(places.of(key), what, did_you_mean(name, known.iter().copied())))
}
