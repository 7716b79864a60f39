//! A plot of an experiment: its panels side by side and one legend for all of them.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::panel::{ON_BARS, Origin, Panel, look_class, marker};
use super::{counted, curves, rows};
use crate::results::{Plot, PlotKind, Results};

/// Maximum number of panels in a figure; the tables have the rest.
const MOST_PANELS: usize = 24;

/// The variants of an experiment, in the order in which they appear. A variant looks the same in all its plots.
pub(super) fn variants(results: &Results) -> Vec<&str> {
    let mut known = BTreeSet::new();
    let all = results.rows.iter().map(|r| r.variant.as_str()).chain(results.series.iter().map(|s| s.variant.as_str()));
    all.filter(|v| known.insert(*v)).collect()
}

/// How many curves of series the plots of an experiment draw.
pub(super) fn series_drawn(results: &Results) -> usize {
    let drawn = |plot: &Plot| results.series.iter().filter(|s| plot.metrics.contains(&s.name)).count();
    let plots = results.plots.iter().filter(|p| matches!(p.kind, PlotKind::Series | PlotKind::Cdf));
    plots.map(drawn).sum()
}

/// The figure; `most_points` bounds each curve of a series.
pub(super) fn figure(results: &Results, plot: &Plot, most_points: usize) -> Markup {
    let variants = variants(results);
    let mut panels = match plot.kind {
        PlotKind::Line => rows::panels(results, plot, &variants, false),
        PlotKind::Bars => rows::panels(results, plot, &variants, true),
        PlotKind::Series => curves::panels(results, plot, &variants, most_points, false),
        PlotKind::Cdf => curves::panels(results, plot, &variants, most_points, true),
    };
    panels.retain(|p| !p.is_empty());
    let several_scales = panels.windows(2).any(|p| p[0].y.label == p[1].y.label && p[0].y.scale != p[1].y.scale);
    let unseen: usize = panels.iter().map(Panel::unseen).sum();
    let left_out = panels.len().saturating_sub(MOST_PANELS);
    panels.truncate(MOST_PANELS);
    html! {
        figure.several[panels.len() > 1] {
            figcaption { (plot.title) }
            @if panels.is_empty() {
                p.nothing { "Nothing to draw: no values of " (plot.metrics.join(", ")) "." }
            } @else {
                (legend(&panels, &variants))
                div.panels {
                    @for panel in &panels {
                        div.panel {
                            @if !panel.title.is_empty() { p.panel-title { (panel.title) } }
                            (panel.svg(&description(plot, panel)))
                        }
                    }
                }
                @if several_scales { p.nothing { "The vertical axes differ from panel to panel." } }
                @if unseen > 0 { p.nothing { "Not on the logarithmic axis: " (counted(unseen, "value")) " of zero or less." } }
                @if left_out > 0 { p.nothing { (left_out) " more panels are left out; the tables have their values." } }
            }
        }
    }
}

fn description(plot: &Plot, panel: &Panel) -> String {
    let part = if panel.title.is_empty() { String::new() } else { format!(", {}", panel.title) };
    format!("{}{part}: {} over {}", plot.title, panel.y.label, panel.x.label)
}

fn legend(panels: &[Panel], variants: &[&str]) -> Markup {
    let all = || panels.iter().flat_map(|p| &p.curves);
    let looks: BTreeSet<usize> = all().map(|c| c.look).collect();
    let origins: BTreeSet<Origin> = all().map(|c| c.origin).collect();
    let bars = panels.iter().any(|p| p.bars);
    let intervals = all().flat_map(|c| &c.points).any(|p| p.ci.is_some_and(|ci| ci > 0.0));
    html! {
        ul.legend {
            @for look in looks {
                li { (swatch(look, Origin::Ours, bars, false, &look_class(look))) (variants.get(look).unwrap_or(&"")) }
            }
            @if origins.len() > 1 || intervals {
                @for origin in origins {
                    li.origin {
                        (swatch(0, origin, bars, intervals && origin == Origin::Ours, "plain"))
                        (origin.name()) @if origin == Origin::Ours && intervals { ", 95 % confidence" }
                    }
                }
            }
        }
    }
}

fn swatch(look: usize, origin: Origin, bars: bool, interval: bool, class: &str) -> Markup {
    html! {
        svg.swatch viewBox="0 0 34 14" aria-hidden="true" {
            g class={ (class) " " (origin.class()) @if bars && origin != Origin::Ours { " on-bar" } } {
                @if bars && origin == Origin::Ours {
                    rect x="8" y="2" width="18" height="10" {}
                    @if interval { path.error d="M17 0V5m-3-5h6m-6 5h6" {} }
                } @else {
                    @if interval { rect.band y="1" width="34" height="12" {} }
                    @if !bars { path.line d="M1 7H33" {} }
                    (marker(if bars { ON_BARS } else { look }, origin, (17.0, 7.0), ""))
                }
            }
        }
    }
}
