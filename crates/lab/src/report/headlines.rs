//! The first page: what each source is known for, and what came of it here.

use maud::{Markup, html};

use super::findings::badge;
use super::prose;
use crate::results::{Results, Verdict};

/// The sources, by the names with which a claim's source begins (`docs/papers.md`).
pub(super) const SOURCES: [&str; 5] = ["THESIS", "SBPN", "PATHS", "ECMT", "PRCMT"];

/// Where in the table a claim of `source` stands.
fn place(source: &str) -> usize {
    SOURCES.iter().position(|it| source.starts_with(it)).unwrap_or(SOURCES.len())
}

/// A line for each headline claim, by source; its reason and the way to its experiment, whose places on
/// the page are `ids`.
pub(super) fn table(results: &[Results], ids: &[String]) -> Markup {
    let of = |(results, id)| move |verdict| (results, id, verdict);
    let mut lines: Vec<(&Results, &String, &Verdict)> =
        results.iter().zip(ids).flat_map(|it| it.0.verdicts.iter().map(of(it))).collect();
    lines.retain(|(_, _, verdict)| verdict.headline.is_some());
    lines.sort_by_key(|(_, _, verdict)| place(&verdict.source));
    html! {
        @if !lines.is_empty() {
            section {
                h2 { "What the sources are known for, and what came of it here" }
                table.headlines {
                    thead { tr { th { "in a sentence" } th { "here" } th { "why, and where" } } }
                    tbody { @for (results, id, verdict) in lines { tr {
                        td {
                            @if let Some(headline) = &verdict.headline { strong { (prose(headline)) } }
                            " " span.quiet { (verdict.source) }
                        }
                        td { (badge(verdict.outcome, None)) }
                        td {
                            p { (prose(&verdict.reason)) }
                            p { a href={ "#" (id) } { (results.title) } }
                        }
                    } } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SOURCES;
    use crate::Scenario;

    /// Without a reason nobody knows what a verdict means.
    #[test]
    fn each_source_has_headlines_with_reasons() {
        let scenarios = Scenario::all().unwrap();
        for source in SOURCES {
            let of = |scenario: &Scenario| {
                let claims = scenario.claims.iter().filter(|claim| claim.headline.is_some()).cloned();
                let named = claims.map(|claim| (claim.source.clone().unwrap_or(scenario.source.clone()), claim));
                named.filter(|(by, _)| by.starts_with(source)).map(|(_, claim)| claim).collect::<Vec<_>>()
            };
            let claims: Vec<_> = scenarios.iter().flat_map(of).collect();
            assert!(claims.len() >= 3, "{source}: {} headlines", claims.len());
            for claim in claims {
                assert!(!claim.reason.trim().is_empty(), "{source}: no reason for \"{}\"", claim.text);
            }
        }
    }
}
