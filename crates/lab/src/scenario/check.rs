//! What a scenario says of its own variants, parameters and metrics must be there.

use super::wrong::{Places, Wrong, did_you_mean};
use super::{Column, Scenario};
use crate::results::{PlotKind, Results};
use std::collections::BTreeSet;

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
            variant(part, "higher", &claim.higher)?;
            variant(part, "lower", &claim.lower)?;
            claim.at.keys().try_for_each(|name| param(part, "where", name))?;
            if let Some([least, most]) = claim.factor.filter(|[least, most]| least > most) {
                let what = format!("no factor is between {least} and {most}");
                return Err(Wrong::new(claim.places.of("factor"), what, format!("write [{most}, {least}]")));
            }
            if let Some(margin) = claim.margin.filter(|margin| !(*margin > 0.0 && *margin <= 1.0)) {
                let what = format!("{margin} is no share of what the lower one has");
                let mend = "write a number above 0 and at most 1, such as 0.98 for not below 98 %";
                return Err(Wrong::new(claim.places.of("margin"), what, mend));
            }
        }
        for it in &self.differences {
            let part = ("[[difference]]", &it.places);
            it.variant.iter().try_for_each(|name| variant(part, "variant", name))?;
            it.at.keys().try_for_each(|name| param(part, "where", name))?;
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

    /// What claims, reasons, references and plots say of metrics and curves that are not in `results`, which must be those
    /// of every point: a metric can be known by its name only once it was measured.
    pub(crate) fn unmeasured(&self, results: &Results) -> Vec<Wrong> {
        let metrics: BTreeSet<_> = results.rows.iter().map(|row| row.metric.as_str()).collect();
        let curves: BTreeSet<_> = results.series.iter().map(|series| series.name.as_str()).collect();
        let (metrics, curves): (Vec<_>, Vec<_>) = (metrics.into_iter().collect(), curves.into_iter().collect());
        let metric = |part: Part<'_>, key: &str, name: &str| known(part, key, "metric", name, &metrics).err();
        let curve = |part: Part<'_>, name: &str| known(part, "metrics", "curve", name, &curves).err();
        let mut wrong = Vec::new();
        wrong.extend(self.claims.iter().filter_map(|it| metric(("[[claim]]", &it.places), "metric", &it.metric)));
        let differences = self.differences.iter();
        wrong.extend(differences.filter_map(|it| metric(("[[difference]]", &it.places), "metric", &it.metric)));
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

fn known((part, places): Part<'_>, key: &str, kind: &str, name: &str, known: &[&str]) -> Result<(), Wrong> {
    if known.contains(&name) {
        return Ok(());
    }
    let what = format!("the {part} speaks of a {kind} '{name}' that there is not");
    Err(Wrong::new(places.of(key), what, did_you_mean(name, known.iter().copied())))
}
