//! A survey as people read it.

use super::{Of, Told, again, settings_of};
use crate::args::LabSurveyArgs;
use crate::failure::Outcome;
use crate::out::style::Style;
use crate::out::table::{Table, Tone};
use crate::out::text;
use braidcast_lab::survey::{Figure, Judged, Link, Subset, Survey, Value, What};

pub(super) fn print(survey: &Survey, surveys: &[Of<'_>], args: &LabSurveyArgs) -> Outcome {
    let style = Style::stdout();
    text::print(&style.bold(title(survey, surveys)))?;
    if args.set_index.is_some() {
        return surveys.iter().try_for_each(|of| of.results.iter().try_for_each(|told| one(of, told, style)));
    }
    text::print(&format!("\n{}\n\n{}", sums(surveys, style), legend(survey.what)))?;
    let Some(first) = surveys.first().filter(|_| args.show > 0) else { return Ok(()) };
    let mut worst: Vec<(&Told, &Judged)> =
        first.results.iter().filter_map(|it| Some((it, it.judged.as_ref()?))).collect();
    worst.sort_by(|(_, a), (_, b)| a.rank().total_cmp(&b.rank()));
    worst.truncate(args.show);
    let Some((told, _)) = worst.first() else { return Ok(()) };
    text::print(&format!("\n{}", sets(&worst, style)))?;
    text::print(&format!("\none of them again: {}", again(args, settings_of(args, 0), told.result.index)))
}

const fn legend(what: What) -> &'static str {
    match what {
        What::Clip => "hurt: over 1 point of playable frames below the best subset; intervals and ± are of 95 %",
        What::Encoder => {
            "aims: 99 % on time, no freeze over 300 ms, 85 % of the rate that foresight has; of best alone: the rate over all\n\
             links, of that over the best link; possible: the same with foresight; intervals and ± are of 95 %"
        }
        What::Bulk { .. } => {
            "slower: below 98 % of the best subset's goodput; sum: of each link alone; intervals and ± are of 95 %"
        }
    }
}

fn title(survey: &Survey, surveys: &[Of<'_>]) -> String {
    let Survey { seed, links: (least, most), runs, .. } = survey;
    let sets = surveys.iter().map(|it| it.results.len()).max().unwrap_or(0);
    let links = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let kinds: Vec<String> = survey.kinds.iter().map(ToString::to_string).collect();
    let without: Vec<String> = survey.without.iter().map(ToString::to_string).collect();
    let without = if without.is_empty() { String::new() } else { format!(" without {}", without.join(" and ")) };
    let seeds = if seed % 2 == 0 { "even: for choosing constants" } else { "odd: for judging" };
    let what = match survey.what {
        What::Clip => {
            let (low, high) = survey.load;
            format!("load {low} to {high}, latency {} ms", survey.latency.as_millis())
        }
        What::Encoder => {
            let (low, high) = survey.load;
            format!("an encoder that follows, load {low} to {high}, latency {} ms", survey.latency.as_millis())
        }
        What::Bulk { receive_buffer: None } => "bulk transfers".to_owned(),
        What::Bulk { receive_buffer: Some(bytes) } => format!("bulk transfers with a receive buffer of {bytes} bytes"),
    };
    let runs = if *runs == 1 { "1 run each".to_owned() } else { format!("{runs} runs each") };
    let sets = if sets == 1 { "1 set".to_owned() } else { format!("{sets} sets") };
    format!("{sets} of {links} links ({}){without}, {what}, {runs}, seed {seed} ({seeds})", kinds.join(", "))
}

/// A line for each of the settings.
fn sums(surveys: &[Of<'_>], style: Style) -> Table {
    let figures: Vec<Vec<Figure>> = surveys.iter().map(|of| of.sums.figures()).collect();
    let head: Vec<&str> = [""].into_iter().chain(figures.iter().take(1).flatten().map(|it| it.head)).collect();
    let mut table = Table::new(&head, style);
    for (of, figures) in surveys.iter().zip(&figures) {
        let cell = |figure: &Figure| {
            let text = match figure.value {
                Value::Share(it) => {
                    let [low, high] = it.ci95_percent;
                    format!("{:.1} ({low:>3.0} to {high:>3.0})", it.percent)
                }
                Value::Mean(it) => value(it.mean, it.ci95),
                Value::Worst(it) => it.map_or_else(|| "-".to_owned(), |it| value(it.value, it.ci95)),
            };
            let tone = figure.is_good.map_or(Tone::Plain, |is_good| if is_good { Tone::Good } else { Tone::Bad });
            (text, tone)
        };
        table.row([(of.settings.to_owned(), Tone::Plain)].into_iter().chain(figures.iter().map(cell)));
    }
    table
}

/// Sets with what makes them bad.
fn sets(worst: &[(&Told, &Judged)], style: Style) -> Table {
    let cells: Vec<_> = worst.iter().map(|(_, it)| it.cells()).collect();
    let heads = cells.iter().take(1).flatten().map(|(head, _)| *head);
    let head: Vec<&str> = ["links", "set"].into_iter().chain(heads).collect();
    let mut table = Table::new(&head, style);
    for ((told, _), cells) in worst.iter().zip(cells) {
        let own = [links(told), told.result.index.to_string()];
        let all = own.into_iter().chain(cells.into_iter().map(|(_, cell)| cell));
        table.row(all.map(|text| (text, Tone::Plain)));
    }
    table
}

fn links(told: &Told) -> String {
    told.result.links.iter().map(Link::words).collect::<Vec<_>>().join(" + ")
}

/// One set: a column for each subset, a line for each metric.
fn one(of: &Of<'_>, told: &Told, style: Style) -> Outcome {
    let subsets = &told.result.subsets;
    let head: Vec<&str> = [of.settings].into_iter().chain(subsets.iter().map(|it| it.name.as_str())).collect();
    let mut table = Table::new(&head, style);
    for metric in subsets.first().into_iter().flat_map(|it| it.values.keys()) {
        let digits = if metric.starts_with("sent") { 3 } else { 1 };
        let cell = |it: &Subset| (format!("{:.digits$}", it.mean(metric)), Tone::Plain);
        table.row([(metric.clone(), Tone::Plain)].into_iter().chain(subsets.iter().map(cell)));
    }
    text::print(&format!("\nset {}: {}\n\n{table}", told.result.index, links(told)))
}

/// Value and interval, so wide that they stand under each other.
fn value(value: f64, ci95: Option<f64>) -> String {
    ci95.map_or_else(|| format!("{value:.1}"), |ci95| format!("{value:.1} ± {ci95:>4.1}"))
}
