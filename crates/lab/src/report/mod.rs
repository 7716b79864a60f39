//! The report: one HTML page, which needs nothing from outside, out of the results of any number of experiments.
//!
//! Plots are SVG in the page itself, coloured by its style sheet, so they follow the reader's light
//! or dark mode (`docs/decisions/0007-report-plots.md`). The same results make the same bytes.

mod curves;
mod figure;
mod findings;
mod headlines;
mod number;
mod panel;
mod params;
mod published;
mod rows;
mod scale;
mod tables;
#[cfg(test)]
mod tests;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::findings::{OUTCOMES, badge, of_kind, unexplained};
use self::number::short;
use crate::results::{Found, Outcome, Results};

const STYLE: &str = include_str!("style.css");

/// Points of series on the whole page, about 10 bytes each.
const MOST_POINTS: usize = 150_000;

/// The page for `results`, in their order. It is complete: style and plots are in it, and it has no
/// script.
///
/// Values that are no numbers show as gaps; long series are thinned so that the page stays below a few megabytes.
pub fn html(results: &[Results]) -> String {
    let ids = ids(results);
    let curves: usize = results.iter().map(figure::series_drawn).sum();
    let most_points = (MOST_POINTS / curves.max(1)).clamp(60, 800);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "Braidcast lab report" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { "Braidcast lab report" }
                    p { (overview(results)) }
                }
                @if !results.is_empty() {
                    (headlines::table(results, &ids)) (published::tables(results)) (summary(results, &ids))
                }
                main { @for (results, id) in results.iter().zip(&ids) { (experiment(results, id, most_points)) } }
            }
        }
    };
    page.into_string()
}

/// Places on the page: names of experiments in letters that an address can hold, each once.
fn ids(results: &[Results]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (index, results) in results.iter().enumerate() {
        let id: String = results.experiment.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        ids.push(if id.is_empty() || ids.contains(&id) { format!("{id}-{}", index + 1) } else { id });
    }
    ids
}

/// A text of a scenario: what stands in backticks is a name or a command.
fn prose(text: &str) -> Markup {
    html! {
        @for (n, part) in text.split('`').enumerate() { @if n % 2 == 0 { (part) } @else { code { (part) } } }
    }
}

/// `3 experiments`, `1 run`.
fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn overview(results: &[Results]) -> String {
    if results.is_empty() {
        return "There are no results yet. “braidcast lab run NAME” makes some.".into();
    }
    let mut versions: Vec<&str> = results.iter().map(|r| r.version.as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    let sum = |of: &dyn Fn(&Results) -> usize| results.iter().map(of).sum::<usize>();
    let outcome = |outcome: Outcome| sum(&|r| r.verdicts.iter().filter(|v| v.outcome == outcome).count());
    let found = |found| sum(&|r| of_kind(r, found));
    format!(
        "{}; {}: {} confirmed, {} refuted, {} mixed, {} not distinguishable, {} without a verdict; {} above 15 %: {} traced, {} by arithmetic, \
         {} within the source's noise, {} unknown, {} unexplained; {}. Braidcast {}.",
        counted(results.len(), "experiment"),
        counted(sum(&|r| r.verdicts.len()), "claim"),
        outcome(Outcome::Confirmed),
        outcome(Outcome::Refuted),
        outcome(Outcome::Mixed),
        outcome(Outcome::NotDistinguishable),
        outcome(Outcome::NoVerdict),
        counted(sum(&|r| r.differences.len()), "difference"),
        found(Some(Found::Traced)),
        found(Some(Found::Arithmetic)),
        found(Some(Found::Noise)),
        found(Some(Found::Unknown)),
        found(None),
        counted(sum(&|r| r.lost_runs.len()), "lost run"),
        versions.join(", "),
    )
}

/// A line for each experiment; the way to them, too.
fn summary(results: &[Results], ids: &[String]) -> Markup {
    html! {
        nav aria-label="Experiments" { table {
            thead { tr { th { "experiment" } th { "claims" } th { "differences above 15 %" } th { "lost runs" } } }
            tbody { @for (results, id) in results.iter().zip(ids) { tr {
                td { a href={ "#" (id) } { (results.title) } " " span.quiet { (results.experiment) } }
                td { (verdicts(results)) }
                td.number data-label="differences above 15 %" {
                    (results.differences.len())
                    @if unexplained(results) > 0 {
                        " " span.missing { "(" (unexplained(results)) " unexplained)" }
                    }
                }
                td.number.far[!results.lost_runs.is_empty()] data-label="lost runs" { (results.lost_runs.len()) }
            } } }
        } }
    }
}

fn verdicts(results: &Results) -> Markup {
    let count = |outcome| results.verdicts.iter().filter(|v| v.outcome == outcome).count();
    html! {
        @for outcome in OUTCOMES { @if count(outcome) > 0 { (badge(outcome, Some(count(outcome)))) " " } }
        @if results.verdicts.is_empty() { span.quiet { "no claims" } }
    }
}

fn experiment(results: &Results, id: &str, most_points: usize) -> Markup {
    html! {
        section id=(id) {
            h2 { (results.title) }
            p.quiet { (results.source) }
            @for paragraph in results.text.split("\n\n").filter(|p| !p.trim().is_empty()) { p { (prose(paragraph)) } }
            p.quiet {
                code { (results.experiment) } ": " (counted(results.runs as usize, "run")) " of each point, "
                (short(results.duration_s, 6)) " s each, seeds from " (results.seed) ", "
                (if results.real_time { "real sockets in real time" } else { "simulated" })
                ", Braidcast " (results.version)
            }
            (findings::claims(&results.verdicts))
            @if !results.plots.is_empty() {
                div.figures { @for plot in &results.plots { (figure::figure(results, plot, most_points)) } }
            }
            (findings::differences(results))
            @if !results.rows.is_empty() { h3 { "Values" } (tables::tables(results)) }
            (findings::lost(&results.lost_runs))
            p.up { a href="#" { "↑ to the top" } }
        }
    }
}
