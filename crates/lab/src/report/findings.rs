//! Claims with what became of them, differences with their reasons, and lost runs.

use maud::{Markup, html};

use super::number::{difference_pct, percent, short};
use super::params::{labels, sentence};
use super::prose;
use crate::results::{Difference, Found, Outcome, Results, Verdict};

/// All outcomes, in the order in which badges stand.
pub(super) const OUTCOMES: [Outcome; 5] =
    [Outcome::Confirmed, Outcome::Refuted, Outcome::Mixed, Outcome::NotDistinguishable, Outcome::NoVerdict];

/// Class, sign and words of an outcome; the sign shows it without colour.
fn appearance(outcome: Outcome) -> (&'static str, &'static str, &'static str) {
    match outcome {
        Outcome::Confirmed => ("confirmed", "✓", "confirmed"),
        Outcome::Refuted => ("refuted", "✗", "refuted"),
        Outcome::Mixed => ("mixed", "◐", "mixed"),
        Outcome::NotDistinguishable => ("undecided", "≈", "not distinguishable"),
        Outcome::NoVerdict => ("undecided", "–", "no verdict"),
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
                    p { (badge(verdict.outcome, None)) " " strong { (prose(&verdict.claim)) } " " span.quiet { (verdict.source) } }
                    @if !verdict.evidence.is_empty() { p.evidence { (verdict.evidence) } }
                    @if verdict.reason.is_empty() { p.missing { "No reason is given." } } @else { p { (prose(&verdict.reason)) } }
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

/// Differences that no reason stands for.
pub(super) fn unexplained(results: &Results) -> usize {
    of_kind(results, None)
}

/// Differences whose reason was found in this way; none for those without one.
pub(super) fn of_kind(results: &Results, found: Option<Found>) -> usize {
    results.differences.iter().filter(|d| how(d) == found).count()
}

/// How the reason was found: nobody knows what an older file does not say.
fn how(d: &Difference) -> Option<Found> {
    d.found.or_else(|| d.reason.as_ref().map(|_| Found::Unknown))
}

/// How a reason was found, in a word.
fn kind(found: Option<Found>) -> &'static str {
    match found {
        Some(Found::Traced) => "traced",
        Some(Found::Arithmetic) => "arithmetic",
        Some(Found::Noise) => "the source's noise",
        Some(Found::Unknown) => "unknown",
        None => "unexplained",
    }
}

/// The large differences, those that share a reason together; those without one first, then those
/// of which nobody knows why.
pub(super) fn differences(results: &Results) -> Markup {
    let mut reasons: Vec<(Option<Found>, Option<&str>, Option<&str>)> = Vec::new();
    let of = |d: &Difference| (how(d), d.reason.clone(), d.shown.clone());
    for difference in &results.differences {
        let reason = (how(difference), difference.reason.as_deref(), difference.shown.as_deref());
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons.sort_by_key(|(found, reason, _)| (reason.is_some(), *found != Some(Found::Unknown)));
    html! {
        @if !reasons.is_empty() {
            h3 { "Differences above 15 %" }
            @for (found, reason, shown) in reasons {
                div.difference {
                    div {
                        @match reason {
                            Some(reason) => p { strong { (kind(found)) } ": " (prose(reason)) },
                            None => p.missing { "No reason is given for these points and sizes." },
                        }
                        @if let Some(shown) = shown { p.quiet { "Shown by: " code { (shown) } } }
                    }
                    div.wide { table {
                        thead { tr {
                            th { "metric" } th { "variant" } th { "at" } th { "against" }
                            th.number { "ours" } th.number { "theirs" } th.number { "difference" }
                        } }
                        tbody {
                            @for d in results.differences.iter().filter(|d| {
                                let (its_found, its_reason, its_shown) = of(d);
                                (its_found, its_reason.as_deref(), its_shown.as_deref()) == (found, reason, shown)
                            }) { (row(d)) }
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
