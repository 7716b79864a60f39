//! Claims with what became of them, differences with their reasons, and lost runs.

use maud::{Markup, html};

use super::number::{difference_pct, percent, short};
use super::params::{labels, sentence};
use crate::results::{Difference, Outcome, Results, Verdict};

/// All outcomes, in the order in which badges stand.
pub(super) const OUTCOMES: [Outcome; 4] =
    [Outcome::Confirmed, Outcome::Refuted, Outcome::Mixed, Outcome::NotDistinguishable];

/// Class, sign and words of an outcome; the sign tells it without colour.
fn appearance(outcome: Outcome) -> (&'static str, &'static str, &'static str) {
    match outcome {
        Outcome::Confirmed => ("confirmed", "✓", "confirmed"),
        Outcome::Refuted => ("refuted", "✗", "refuted"),
        Outcome::Mixed => ("mixed", "◐", "mixed"),
        Outcome::NotDistinguishable => ("undecided", "≈", "not distinguishable"),
    }
}

/// A badge, with a number before its words unless there is none.
pub(super) fn badge(outcome: Outcome, count: Option<usize>) -> Markup {
    let (class, sign, words) = appearance(outcome);
    html! { span class={ "badge " (class) } { (sign) " " @if let Some(count) = count { (count) " " } (words) } }
}

/// The claims of the source.
pub(super) fn claims(verdicts: &[Verdict]) -> Markup {
    html! {
        @if !verdicts.is_empty() {
            h3 { "Claims" }
            @for verdict in verdicts {
                div.claim {
                    p { (badge(verdict.outcome, None)) " " strong { (verdict.claim) } " " span.quiet { (verdict.source) } }
                    @if !verdict.evidence.is_empty() { p.evidence { (verdict.evidence) } }
                    @if verdict.reason.is_empty() { p.missing { "No reason is given." } } @else { p { (verdict.reason) } }
                    @if !verdict.inside.is_empty() {
                        details {
                            summary { "Look inside a run" }
                            @for command in &verdict.inside { pre { (command) } }
                        }
                    }
                }
            }
        }
    }
}

/// Differences without a reason.
pub(super) fn unexplained(results: &Results) -> usize {
    results.differences.iter().filter(|d| d.reason.is_none()).count()
}

/// The large differences, those that share a reason together; those without one first.
pub(super) fn differences(results: &Results) -> Markup {
    let mut reasons: Vec<Option<&str>> = Vec::new();
    for difference in &results.differences {
        if !reasons.contains(&difference.reason.as_deref()) {
            reasons.push(difference.reason.as_deref());
        }
    }
    reasons.sort_by_key(Option::is_some);
    html! {
        @if !reasons.is_empty() {
            h3 { "Differences above 15 %" }
            @for reason in reasons {
                div.difference {
                    @match reason {
                        Some(reason) => p { (reason) },
                        None => p.missing { "No reason is given." },
                    }
                    div.wide { table {
                        thead { tr {
                            th { "metric" } th { "variant" } th { "at" } th { "against" }
                            th.number { "ours" } th.number { "theirs" } th.number { "difference" }
                        } }
                        tbody {
                            @for d in results.differences.iter().filter(|d| d.reason.as_deref() == reason) { (row(d)) }
                        }
                    } }
                }
            }
        }
    }
}

fn row(d: &Difference) -> Markup {
    html! {
        tr {
            td { (d.metric) } td { (d.variant) }
            td data-label="at" { (sentence(&labels(&d.params, d.params.keys()))) }
            td data-label="against" { @if d.against == "ns2" { "ns-2" } @else { (d.against) } }
            td.number data-label="ours" { (short(d.ours, 4)) }
            td.number data-label="theirs" { (short(d.theirs, 4)) }
            td.number.far { (percent(difference_pct(d.ours, d.theirs))) }
        }
    }
}

/// The runs that gave no result.
pub(super) fn lost(runs: &[String]) -> Markup {
    html! {
        @if !runs.is_empty() {
            h3 { "Lost runs" }
            ul.lost { @for run in runs { li { code { (run) } } } }
        }
    }
}
