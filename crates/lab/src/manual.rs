//! What scenarios can be made of, from the code: every experiment, measure, scenario key and word,
//! and the page of the manual that has them all.

mod words;

use crate::experiment::Experiment;
use crate::scenario::{self, Scenario, Wrong};
use braidcast_sim::link::parse;
use braidcast_sim::traffic;
use std::fmt::Write;

/// A section of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// Its name, for example `sctp`; empty for what stands at the top.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// Its keys.
    pub keys: Vec<Word>,
}

/// A key or word, and what it means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// The key, or how the word is written.
    pub word: String,
    /// What values it takes; empty for words that are values themselves.
    pub value: String,
    /// What it means.
    pub meaning: String,
}

impl Word {
    fn new(word: &str, value: &str, meaning: &str) -> Self {
        Self { word: word.to_owned(), value: value.to_owned(), meaning: meaning.to_owned() }
    }
}

/// Every section of a scenario with its keys.
pub fn sections() -> Vec<Section> {
    let top = words::TOP.iter().map(|(key, value, meaning)| Word::new(key, value, meaning)).collect();
    let top = Section { name: "", about: "At the top.", keys: top };
    let section = |(name, keys): (&'static str, Vec<(&'static str, String)>)| {
        let key = |(key, value): (&'static str, String)| Word::new(key, &value, words::meaning(name, key));
        Section { name, about: words::about(name), keys: keys.into_iter().map(key).collect() }
    };
    core::iter::once(top).chain(scenario::accepted().into_iter().map(section)).collect()
}

/// Words for `source` in `[traffic]`.
pub fn traffic_words() -> Vec<Word> {
    rows(traffic::WORDS)
}

/// Words for the keys of `[link.NAME]`.
pub fn link_words() -> Vec<Word> {
    rows(parse::WORDS)
}

/// The rows of a table in Markdown with two columns, words and meanings.
fn rows(table: &str) -> Vec<Word> {
    let plain = |text: &str| text.trim().replace('`', "").replace("\\|", "|");
    let row = |line: &str| {
        let (word, meaning) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        Some(Word::new(&plain(word), "", &plain(meaning)))
    };
    // The first row is the head.
    table.lines().filter_map(row).skip(1).collect()
}

const HEAD: &str = "\
<!-- Made by `braidcast generate reference`; `make reference` writes it anew. -->

# Experiments and scenario keys

This page is made from the code, so it names everything that there is. [The lab](lab.md) explains how the parts work together.
";

/// The page, as Markdown.
///
/// # Errors
/// If a scenario that the program has inside is wrong, which a test rules out.
pub fn markdown() -> Result<String, Wrong> {
    let mut page = HEAD.to_owned();
    let mut line = |text: String| {
        page.push_str(&text);
        page.push('\n');
    };
    line("\n## Experiments\n\n`braidcast lab run NAME` runs one. References, for example THESIS §6.1.2, are listed in [Papers](papers.md).\n".into());
    line("| name | shows | source | measure | runs | time of each |\n|---|---|---|---|---|---|".into());
    for it in Scenario::all()? {
        let points = it.points()?.len();
        let (name, title, source) = (&it.name, cell(&it.title), cell(&it.source));
        let (measure, runs, seconds) = (&it.experiment, it.runs, it.duration.as_secs_f64());
        line(format!("| `{name}` | {title} | {source} | `{measure}` | {points} × {runs} | {seconds} s |"));
    }
    line("\nRuns: points of the sweep (variants counted) × runs at each.\n\n## Measures\n".into());
    line(
        "`experiment = \"NAME\"` at the top of a scenario chooses what is measured.\n\n| name | measures |\n|---|---|"
            .into(),
    );
    for it in Experiment::ALL {
        line(format!("| `{}` | {} |", it.name, cell(it.text)));
    }
    line("\n## Keys of a scenario\n\n### At the top\n\n| key | value | meaning |\n|---|---|---|".into());
    for section in sections() {
        let Section { name, about, .. } = section;
        if !name.is_empty() {
            line(format!("\n### `[{name}]`\n\n{about}\n\n| key | value | meaning |\n|---|---|---|"));
        }
        for Word { word, value, meaning } in section.keys {
            line(format!("| `{word}` | {} | {meaning} |", if name.is_empty() { value } else { cell(&value) }));
        }
    }
    line(format!(
        "\n## Words for traffic\n\nFor `source` in `[traffic]` and `back` in `[flow.NAME]`.\n\n{}",
        traffic::WORDS
    ));
    line(format!(
        "## Words for links\n\nFor `[link.NAME]` and the flags of `braidcast emulate`.\n\n{}",
        parse::WORDS.trim_end()
    ));
    Ok(page)
}

/// Text that stays in its cell.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for c in text.trim().chars() {
        match c {
            '|' => out.push_str("\\|"),
            '\n' => out.push(' '),
            // Not HTML.
            '<' => out.push_str("&lt;"),
            c => _ = write!(out, "{c}"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_of_each_section_has_its_meaning() {
        for (section, keys) in scenario::accepted() {
            assert_ne!(words::about(section), "", "[{section}]");
            for (key, value) in keys {
                assert_ne!(value, "", "{key} in [{section}]");
                assert_ne!(words::meaning(section, key), "", "add a line for {key} in [{section}] to manual/words.rs");
            }
        }
    }

    #[test]
    fn words_are_read_from_the_tables_that_people_read() {
        let words = traffic_words();
        let bulk = Word::new("bulk, bulk:10MB", "", "always something to send, for ever or so much");
        assert_eq!(words.first(), Some(&bulk));
        for (words, table) in [(words, traffic::WORDS), (link_words(), parse::WORDS)] {
            let lines = table.lines().filter(|line| line.starts_with("| ")).count();
            assert_eq!(words.len(), lines - 1, "each line but the head: {table}");
        }
    }

    #[test]
    fn what_a_cell_holds_stays_in_it() {
        assert_eq!(cell(" a|b\nc < d "), "a\\|b c &lt; d");
    }
}
