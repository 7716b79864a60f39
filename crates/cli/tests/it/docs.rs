//! The manual: every link leads somewhere, the generated page is what the program makes, every
//! field of a document is described.

use crate::common::Test;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All pages of Markdown that people are led to.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let mut pages: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"].map(|name| root.join(name)).into();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

/// The text without what stands in code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            for (i, part) in line.split('`').enumerate() {
                prose.push_str(if i % 2 == 0 { part } else { "``" });
            }
            prose.push('\n');
        }
    }
    prose
}

/// What `[text](target)` leads to.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let parts = prose.split("](").skip(1);
    parts.filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned())).collect()
}

/// The places on a page that a link can name, as GitHub and mdBook make them of headings.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let heading = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>()
    };
    text.lines()
        .filter(|line| {
            fenced ^= line.trim_start().starts_with("```");
            !fenced && line.starts_with('#')
        })
        .map(heading)
        .collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut dead = Vec::new();
    for page in pages() {
        for link in links(&read(&page)) {
            if link.starts_with("http://") || link.starts_with("https://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.clone() } else { page.parent().unwrap().join(file) };
            let lives = target.exists()
                && (anchor.is_empty()
                    || target.extension().is_none_or(|it| it != "md")
                    || anchors(&read(&target)).contains(anchor));
            if !lives {
                dead.push(format!("{}: {link}", page.strip_prefix(root()).unwrap_or(&page).display()));
            }
        }
        for include in read(&page).split("{{#include ").skip(1).filter_map(|rest| rest.split_once("}}")) {
            if !page.parent().unwrap().join(include.0).exists() {
                dead.push(format!("{}: {}", page.display(), include.0));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn the_summary_names_every_page_of_the_book() {
    let docs = root().join("docs");
    let named: BTreeSet<PathBuf> = links(&read(&docs.join("SUMMARY.md"))).iter().map(|link| docs.join(link)).collect();
    let there = pages().into_iter().filter(|page| page.starts_with(&docs) && !page.ends_with("SUMMARY.md"));
    let missing: Vec<PathBuf> = there.filter(|page| !named.contains(page)).collect();
    assert!(missing.is_empty(), "add to docs/SUMMARY.md: {missing:?}");
}

#[test]
fn decisions_have_one_page_that_begins_with_the_decision_and_its_status() {
    let mut wrong = Vec::new();
    for path in pages().into_iter().filter(|it| it.to_string_lossy().contains("/decisions/0")) {
        let text = read(&path);
        let head: Vec<&str> = text.lines().take(8).collect();
        let states = ["Accepted on ", "Superseded ", "Rejected on ", "Proposed on "];
        let status = head.iter().find_map(|line| line.strip_prefix("**Status.** "));
        if head.get(2).is_none_or(|line| !line.starts_with("**Decision.** "))
            || status.is_none_or(|it| !states.iter().any(|state| it.starts_with(state)))
            || text.lines().count() > 100
        {
            wrong.push(path.file_name().unwrap().to_owned());
        }
    }
    assert!(
        wrong.is_empty(),
        "line 3 is **Decision.**, then **Status.** Accepted on DATE; at most 100 lines: {wrong:?}"
    );
}

#[test]
fn the_page_of_experiments_and_keys_is_what_the_program_makes() {
    let ran = Test::new("generate reference").run();
    ran.says(0, &[]);
    assert!(ran.out() == read(&root().join("docs/reference.md")), "docs/reference.md is old: run `make reference`");
}

#[test]
fn every_field_of_a_document_is_described() {
    let described = read(&root().join("docs/fields.md"));
    for args in [
        "emulate 127.0.0.1:0 127.0.0.1:9 --duration 50ms --json",
        "lab list --json",
        "key new --json",
        "lab survey --sets 1 --runs 1 --duration 1s --json --quiet",
    ] {
        let mut names = BTreeSet::new();
        collect(&Test::new(args).run().json(), &mut names);
        for name in names {
            assert!(described.contains(&format!("`{name}`")), "`{name}` of `{args}` is not in docs/fields.md");
        }
    }
}

#[test]
fn the_fields_of_sessions_tunnels_and_tests_are_described() {
    let described = read(&root().join("docs/fields.md"));
    // Those whose documents need two ends: by the structures that are written. Only keys of a
    // document begin a line this way.
    let sources = [
        "crates/session/src/report.rs",
        "crates/cli/src/cmd/send/mod.rs",
        "crates/cli/src/cmd/receive/summary.rs",
        "crates/cli/src/cmd/tunnel/report.rs",
        "crates/cli/src/cmd/perf/client.rs",
        "crates/cli/src/cmd/perf/server.rs",
        "crates/cli/src/cmd/dccp.rs",
    ];
    let mut seen = 0;
    for source in sources {
        let text = read(&root().join(source));
        for part in text.split("Serialize)]").skip(1) {
            let body = part.split_once('{').and_then(|(_, rest)| rest.split_once("\n}")).map_or("", |(body, _)| body);
            let mut name_instead = None;
            let mut hidden = false;
            for line in body.lines().map(str::trim) {
                if let Some(rest) = line.strip_prefix("#[serde(") {
                    name_instead =
                        rest.strip_prefix("rename = \"").and_then(|rest| rest.split_once('"')).map(|it| it.0);
                    hidden |= rest.starts_with("flatten") || rest.starts_with("skip)");
                    continue;
                }
                let field =
                    line.trim_start_matches("pub(super) ").trim_start_matches("pub(crate) ").trim_start_matches("pub ");
                let Some((field, _)) =
                    field.split_once(": ").filter(|_| !line.starts_with("//") && !line.starts_with('#'))
                else {
                    continue;
                };
                let field = name_instead.take().unwrap_or(field);
                if !std::mem::take(&mut hidden) && field != "buffered_bytes" {
                    seen += 1;
                    assert!(
                        described.contains(&format!("`{field}`")),
                        "`{field}` of {source} is not in docs/fields.md"
                    );
                }
            }
        }
    }
    assert!(seen > 80, "only {seen} fields were found: has the code moved?");
}

/// The names in `value` and all that is in it.
fn collect(value: &serde_json::Value, names: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(name, value)| {
            names.insert(name.clone());
            collect(value, names);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, names)),
        _ => {}
    }
}

/// Tests that stand in backticks as `FILE: NAME`, and further names of the same file.
fn named_tests(text: &str) -> Vec<(String, String)> {
    let mut file = String::new();
    let mut tests = Vec::new();
    for code in text.split('`').skip(1).step_by(2) {
        let (place, name) = code.split_once(".rs: ").map_or((None, code), |(place, name)| (Some(place), name));
        if let Some(place) = place {
            let folder = if place.contains('/') { "" } else { "crates/sctp/tests/it/" };
            file = format!("{folder}{place}.rs");
        }
        let is_name = (place.is_some() || name.len() > 24)
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if is_name && !file.is_empty() {
            tests.push((file.clone(), name.to_owned()));
        }
    }
    tests
}

#[test]
fn bounds_and_claims_name_tests_that_are_there() {
    let architecture = read(&root().join("docs/architecture.md"));
    let (_, bounds) = architecture.split_once("## Bounds").unwrap();
    let (bounds, _) = bounds.split_once("\n## ").unwrap();
    let rows: Vec<_> = bounds.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| what |")).collect();
    assert!(rows.len() >= 30, "{} bounds", rows.len());
    for row in &rows {
        assert_eq!(row.matches(" | ").count(), 2, "{row}");
        assert_eq!(named_tests(row).len(), 1, "each bound has one test that holds it: {row}");
    }
    let security = read(&root().join("docs/security.md"));
    let (_, claims) = security.split_once("## Who can do what").unwrap();
    let tests: Vec<_> = named_tests(bounds).into_iter().chain(named_tests(claims)).collect();
    assert!(tests.len() > 28, "{}", tests.len());
    for (file, name) in tests {
        assert!(read(&root().join(&file)).contains(&format!("fn {name}")), "{file} has no test {name}");
    }
}
