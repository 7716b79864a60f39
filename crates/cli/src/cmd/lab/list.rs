//! `braidcast lab list`: what there is, by name.

use super::refused;
use crate::args::{Common, LabKind, LabListArgs};
use crate::failure::{Failure, Outcome};
use crate::out::{json, text};
use braidcast_lab::Scenario;
use braidcast_lab::experiment::Experiment;
use braidcast_lab::manual::{self, Section, Word};
use serde::Serialize;

pub(super) fn run(args: &LabListArgs, common: &Common) -> Outcome {
    if let (Some(section), true) = (&args.section, args.what != LabKind::Keys) {
        return Err(Failure::usage(
            format!("'{section}' is not expected here"),
            "a section comes after `keys`: lab list keys sctp",
        ));
    }
    match args.what {
        LabKind::Experiments => experiments(common),
        LabKind::Measures => {
            let all = Experiment::ALL.iter().map(|it| Entry { word: it.name, value: "", meaning: it.text });
            entries("measures", &all.collect::<Vec<_>>(), common)
        }
        LabKind::Traffic => words("traffic", &manual::traffic_words(), common),
        LabKind::Links => words("links", &manual::link_words(), common),
        LabKind::Keys => keys(args.section.as_deref(), common),
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    title: &'a str,
    source: &'a str,
    variants: Vec<&'a str>,
    runs: u32,
}

impl<'a> Listed<'a> {
    fn new(it: &'a Scenario) -> Self {
        let variants = it.variants.iter().map(|variant| variant.name.as_str()).collect();
        Self { name: &it.name, title: &it.title, source: &it.source, variants, runs: it.runs }
    }
}

#[derive(Serialize)]
struct Listing<'a> {
    experiments: Vec<Listed<'a>>,
}

fn experiments(common: &Common) -> Outcome {
    let all = Scenario::all().map_err(|e| refused(&e))?;
    if common.json {
        return json::print("lab list", &Listing { experiments: all.iter().map(Listed::new).collect() });
    }
    let source = |it: &Scenario| if it.source.is_empty() { String::new() } else { format!(" ({})", it.source) };
    let lines: Vec<_> = all.iter().map(|it| (it.name.as_str(), format!("{}{}", it.title, source(it)))).collect();
    text::print(&columns(&lines))
}

/// Something that can be written into a scenario.
#[derive(Serialize)]
struct Entry<'a> {
    word: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    value: &'a str,
    meaning: &'a str,
}

impl<'a> Entry<'a> {
    fn new(word: &'a Word) -> Self {
        Self { word: &word.word, value: &word.value, meaning: &word.meaning }
    }

    fn line(&self) -> (&'a str, String) {
        let value = if self.value.is_empty() { String::new() } else { format!(" ({})", self.value) };
        (self.word, format!("{}{value}", self.meaning))
    }
}

fn words(name: &str, words: &[Word], common: &Common) -> Outcome {
    entries(name, &words.iter().map(Entry::new).collect::<Vec<_>>(), common)
}

fn entries(name: &str, entries: &[Entry<'_>], common: &Common) -> Outcome {
    if common.json {
        return json::print("lab list", &std::collections::BTreeMap::from([(name, entries)]));
    }
    text::print(&columns(&entries.iter().map(Entry::line).collect::<Vec<_>>()))
}

#[derive(Serialize)]
struct Keys<'a> {
    name: &'a str,
    about: &'a str,
    keys: Vec<Entry<'a>>,
}

fn keys(only: Option<&str>, common: &Common) -> Outcome {
    let all = manual::sections();
    let is_meant = |section: &&Section| {
        only.is_none_or(|only| section.name == only || section.name.strip_suffix(".NAME") == Some(only))
    };
    let chosen: Vec<&Section> = all.iter().filter(is_meant).collect();
    if let (Some(only), []) = (only, &chosen[..]) {
        let names: Vec<_> = all.iter().map(|section| section.name).filter(|name| !name.is_empty()).collect();
        return Err(Failure::usage(
            format!("scenarios have no section [{only}]"),
            format!("there are: {}", names.join(", ")),
        ));
    }
    if common.json {
        let sections = chosen.iter().map(|it| Keys {
            name: it.name,
            about: it.about,
            keys: it.keys.iter().map(Entry::new).collect(),
        });
        return json::print(
            "lab list",
            &std::collections::BTreeMap::from([("sections", sections.collect::<Vec<_>>())]),
        );
    }
    let section = |section: &&Section| {
        let head = if section.name.is_empty() { String::new() } else { format!("[{}]\n", section.name) };
        let lines: Vec<_> = section.keys.iter().map(|word| Entry::new(word).line()).collect();
        format!("{head}{}", columns(&lines))
    };
    text::print(&chosen.iter().map(section).collect::<Vec<_>>().join("\n\n"))
}

/// Names in a column, what they mean beside them; behind a long name on the next line.
fn columns(lines: &[(&str, String)]) -> String {
    const WIDEST: usize = 32;
    let widths = lines.iter().map(|(name, _)| name.chars().count()).filter(|width| *width <= WIDEST);
    let width = widths.max().unwrap_or(0);
    let line = |(name, meaning): &(&str, String)| match name.chars().count() > WIDEST {
        true => format!("{name}\n{:width$}  {meaning}", ""),
        false => format!("{name:width$}  {meaning}"),
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}
