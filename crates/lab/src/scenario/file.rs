//! Reads a scenario file.

use super::value::{Setting, Settings, Value};
use super::wrong::{Places, Wrong, did_you_mean};
use super::{Case, Claim, KnownDifference, Reference, Scenario, Variant};
use crate::results::Plot;
use braidcast_sim::link::parse;
use core::ops::Range;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// Tables that set something up; cases and variants may have them too.
const SETTINGS: [&str; 8] = ["network", "link", "flow", "traffic", "live", "sctp", "dccp", "tcp"];
/// What else stands at the top of a file.
const TOP: [&str; 14] = [
    "name",
    "title",
    "source",
    "text",
    "experiment",
    "runs",
    "duration",
    "sweep",
    "case",
    "variant",
    "claim",
    "difference",
    "reference",
    "plot",
];

/// Longest file that is read, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// Most runs at each point.
const MAX_RUNS: i64 = 100_000;

/// A scenario file while it is read.
struct File<'a> {
    name: &'a str,
    text: &'a str,
}

type Node<'a> = Spanned<DeValue<'a>>;

/// Reads the scenario in `text`, which came from the file `name` in `folder`.
pub(super) fn read(name: &str, text: &str, folder: &Path) -> Result<Scenario, Wrong> {
    let file = File { name, text };
    if text.len() > MAX_BYTES {
        let what = format!("the file has {} bytes, more than {MAX_BYTES}", text.len());
        return Err(Wrong::new(name, what, "a scenario is a short TOML file; put long lists into files of their own"));
    }
    let root = DeTable::parse(text).map_err(|e| {
        let fix = match e.message().contains("duplicate key") {
            true => "say everything once; tables of a list have two brackets: [[variant]]",
            false => "the file must be TOML: [section] and key = \"value\", each on a line",
        };
        Wrong { fix: fix.to_owned(), ..file.toml(&e) }
    })?;
    root.get_ref().values().try_for_each(|value| file.finite(value))?;
    let mut scenario = Scenario {
        file: name.to_owned(),
        folder: PathBuf::from(folder),
        places: Places::default(),
        name: String::new(),
        title: String::new(),
        source: String::new(),
        text: String::new(),
        experiment: String::new(),
        runs: 10,
        duration: core::time::Duration::ZERO,
        settings: Settings::default(),
        sweep: Vec::new(),
        cases: Vec::new(),
        variants: Vec::new(),
        claims: Vec::new(),
        differences: Vec::new(),
        references: Vec::new(),
        plots: Vec::new(),
        plot_places: Vec::new(),
    };
    let mut seen = Vec::new();
    for (key, value) in root.get_ref() {
        let known: &str = key.get_ref();
        seen.push(known.to_owned());
        scenario.places.add(known, file.place(&key.span()));
        match known {
            "name" => scenario.name = file.serde(value)?,
            "title" => scenario.title = file.serde(value)?,
            "source" => scenario.source = file.serde(value)?,
            "text" => scenario.text = file.serde(value)?,
            "experiment" => scenario.experiment = file.serde(value)?,
            "runs" => scenario.runs = file.runs(value)?,
            "duration" => scenario.duration = file.duration(value)?,
            "sweep" => scenario.sweep = file.sweep(value)?,
            "case" => scenario.cases = file.each(value, |table| file.case(table))?,
            "variant" => scenario.variants = file.each(value, |table| file.variant(table))?,
            "claim" => scenario.claims = file.list(value, |claim: &mut Claim| &mut claim.places)?,
            "difference" => scenario.differences = file.list(value, |it: &mut KnownDifference| &mut it.places)?,
            "reference" => scenario.references = file.list(value, |it: &mut Reference| &mut it.places)?,
            "plot" => {
                let plots = file.each(value, |table| Ok((file.serde::<Plot>(table)?, file.places(table))))?;
                (scenario.plots, scenario.plot_places) = plots.into_iter().unzip();
            }
            section if SETTINGS.contains(&section) => file.flatten(section, value, &mut scenario.settings)?,
            unknown => {
                let what = format!("unknown key '{unknown}'");
                let fix = did_you_mean(unknown, TOP.into_iter().chain(SETTINGS));
                return Err(Wrong::new(file.place(&key.span()), what, fix));
            }
        }
    }
    for needed in ["name", "title", "experiment", "duration", "link"] {
        if !seen.iter().any(|key| key == needed) {
            let fix = match needed {
                "link" => "add a [link.NAME] with rate and delay".to_owned(),
                "duration" => "add at the top, for example: duration = \"60s\"".to_owned(),
                _ => format!("add at the top: {needed} = \"…\""),
            };
            return Err(Wrong::new(format!("{name}:1"), format!("'{needed}' is missing"), fix));
        }
    }
    if scenario.variants.is_empty() {
        let place = format!("{name}:1");
        scenario.variants.push(Variant { name: "default".to_owned(), settings: Settings::default(), place });
    }
    Ok(scenario)
}

impl File<'_> {
    fn place(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        format!("{}:{}", self.name, before.matches('\n').count() + 1)
    }

    fn wrong(&self, value: &Node<'_>, what: impl Into<String>, fix: &str) -> Wrong {
        Wrong::new(self.place(&value.span()), what, fix)
    }

    fn toml(&self, error: &toml::de::Error) -> Wrong {
        let place = error.span().map_or_else(|| self.name.to_owned(), |span| self.place(&span));
        Wrong::new(place, error.message().trim().replace('\n', ", "), "")
    }

    fn serde<T: DeserializeOwned>(&self, value: &Node<'_>) -> Result<T, Wrong> {
        T::deserialize(ValueDeserializer::from(value.clone())).map_err(|error| match error.span() {
            Some(_) => self.toml(&error),
            None => Wrong::new(self.place(&value.span()), error.message().trim(), ""),
        })
    }

    /// The items of `[[KEY]]`, each of which gets to know its places.
    fn list<T: DeserializeOwned>(
        &self,
        value: &Node<'_>,
        places: impl Fn(&mut T) -> &mut Places,
    ) -> Result<Vec<T>, Wrong> {
        self.each(value, |table| {
            let mut item = self.serde(table)?;
            *places(&mut item) = self.places(table);
            Ok(item)
        })
    }

    /// Returns the places of the keys of a table.
    fn places(&self, value: &Node<'_>) -> Places {
        let mut places = Places::default();
        places.add("", self.place(&value.span()));
        self.add_places("", value, &mut places);
        places
    }

    fn add_places(&self, key: &str, value: &Node<'_>, places: &mut Places) {
        let DeValue::Table(table) = value.get_ref() else { return };
        for (inner, value) in table {
            let dot = if key.is_empty() { "" } else { "." };
            let key = format!("{key}{dot}{}", inner.get_ref());
            self.add_places(&key, value, places);
            places.add(key, self.place(&inner.span()));
        }
    }

    /// Refuses what TOML calls a float but is no number.
    fn finite(&self, value: &Node<'_>) -> Result<(), Wrong> {
        match value.get_ref() {
            DeValue::Float(float) if !float.as_str().parse().is_ok_and(f64::is_finite) => {
                let what = format!("{} is not a finite number", float.as_str());
                Err(self.wrong(value, what, "write a finite number"))
            }
            DeValue::Array(items) => items.iter().try_for_each(|item| self.finite(item)),
            DeValue::Table(table) => table.values().try_for_each(|value| self.finite(value)),
            _ => Ok(()),
        }
    }

    /// The items of `[[KEY]]`.
    fn each<T>(&self, value: &Node<'_>, read: impl Fn(&Node<'_>) -> Result<T, Wrong>) -> Result<Vec<T>, Wrong> {
        match value.get_ref() {
            DeValue::Array(items) => items.iter().map(read).collect(),
            _ => Err(self.wrong(value, "this is a list of tables", "write it with two brackets: [[…]]")),
        }
    }

    fn runs(&self, value: &Node<'_>) -> Result<u32, Wrong> {
        let runs: i64 = self.serde(value)?;
        if runs < 1 {
            return Err(self.wrong(value, format!("{runs} runs show nothing"), "write 1 or more"));
        }
        u32::try_from(runs).ok().filter(|_| runs <= MAX_RUNS).ok_or_else(|| {
            self.wrong(value, format!("{runs} runs at each point are too many"), &format!("write at most {MAX_RUNS}"))
        })
    }

    fn duration(&self, value: &Node<'_>) -> Result<core::time::Duration, Wrong> {
        let text: String = self.serde(value)?;
        match parse::duration(&text) {
            Ok(duration) if duration.is_zero() => {
                Err(self.wrong(value, "a duration of 0 shows nothing", "write for example 60s"))
            }
            Ok(duration) => Ok(duration),
            Err(e) => Err(self.wrong(value, e.to_string(), "")),
        }
    }

    /// `NAME = [values]`, in the order of the file.
    fn sweep(&self, value: &Node<'_>) -> Result<Vec<(String, Vec<Value>)>, Wrong> {
        let mut flat = Settings::default();
        self.flatten("", value, &mut flat)?;
        let lists = flat.0.into_iter().map(|Setting { key, value, place }| match value {
            Value::List(values) if !values.is_empty() => Ok((key, values)),
            _ => {
                Err(Wrong::new(place, format!("the parameter '{key}' is a list of values"), "write for example [1, 2]"))
            }
        });
        lists.collect()
    }

    fn case(&self, value: &Node<'_>) -> Result<Case, Wrong> {
        let (params, settings) = self.layer(value, "params")?;
        let params = params.table("params").0.into_iter().map(|it| (it.key, it.value)).collect();
        Ok(Case { params, settings })
    }

    fn variant(&self, value: &Node<'_>) -> Result<Variant, Wrong> {
        let (own, settings) = self.layer(value, "name")?;
        match own.get("name") {
            Some(name) => Ok(Variant { name: name.value.to_string(), settings, place: name.place.clone() }),
            None => Err(self.wrong(value, "the variant has no name", "add name = \"…\"")),
        }
    }

    /// What stands under `own` in a table, and its settings.
    fn layer(&self, value: &Node<'_>, own: &str) -> Result<(Settings, Settings), Wrong> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(value, "this is a list of tables", "write it with two brackets: [[…]]"));
        };
        let (mut special, mut settings) = (Settings::default(), Settings::default());
        for (key, value) in table {
            let name: &str = key.get_ref();
            if name == own {
                self.flatten(own, value, &mut special)?;
            } else if SETTINGS.contains(&name) {
                self.flatten(name, value, &mut settings)?;
            } else {
                let fix = did_you_mean(name, [own].into_iter().chain(SETTINGS));
                return Err(Wrong::new(self.place(&key.span()), format!("unknown key '{name}'"), fix));
            }
        }
        Ok((special, settings))
    }

    /// Adds `value`, a table of tables perhaps, to `out`, under keys that begin with `key`.
    fn flatten(&self, key: &str, value: &Node<'_>, out: &mut Settings) -> Result<(), Wrong> {
        if let DeValue::Table(table) = value.get_ref() {
            // The parser sorts keys; scenarios mean the order in which things are written.
            let mut entries: Vec<_> = table.iter().collect();
            entries.sort_by_key(|(key, _)| key.span().start);
            for (inner, value) in entries {
                let dot = if key.is_empty() { "" } else { "." };
                self.flatten(&format!("{key}{dot}{}", inner.get_ref()), value, out)?;
            }
            return Ok(());
        }
        let place = self.place(&value.span());
        let value = self.serde::<Value>(value).map_err(|_| {
            let what = format!("'{key}' is neither text, number, true, false nor a list of them");
            Wrong::new(&place, what, "dates, empty tables and numbers beyond 64 bits have no meaning here")
        })?;
        out.0.push(Setting { key: key.to_owned(), value, place });
        Ok(())
    }
}
