//! The page of the manual that is made from the code: every experiment, measure and scenario key.

mod words;

use crate::experiment::Experiment;
use crate::scenario::{self, Scenario, Wrong};
use braidcast_sim::link::parse;
use braidcast_sim::traffic;
use std::fmt::Write;

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
    line("\n## Experiments\n\n`braidcast lab run NAME` runs one. References such as THESIS §6.1.2 are listed in [Papers](papers.md).\n".into());
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
    for (key, value, meaning) in words::TOP {
        line(format!("| `{key}` | {value} | {meaning} |"));
    }
    for (section, keys) in scenario::accepted() {
        line(format!("\n### `[{section}]`\n\n{}\n\n| key | value | meaning |\n|---|---|---|", words::about(section)));
        for (key, value) in keys {
            line(format!("| `{key}` | {} | {} |", cell(&value), words::meaning(section, key)));
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
    fn what_a_cell_holds_stays_in_it() {
        assert_eq!(cell(" a|b\nc < d "), "a\\|b c &lt; d");
    }
}
