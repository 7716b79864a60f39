//! One set of axes with curves or bars in it, as SVG. Colours, dashes and fonts are left to the style sheet.

use maud::{Markup, html};

use super::number::short;
use super::scale::Scale;

const WIDTH: f64 = 440.0;
const HEIGHT: f64 = 270.0;
const TOP: f64 = 26.0;
const RIGHT: f64 = 14.0;
/// Width of a usual character, for what has to keep clear of text.
const CHARACTER: f64 = 7.2;
/// Longest name below an axis, in characters.
const LONGEST_NAME: usize = 20;
/// The look whose marker stands on all bars, a diamond: there the position shows the variant.
pub(super) const ON_BARS: usize = 3;
/// From this number of points on, a curve has only a few markers.
const MANY: usize = 40;

/// Whose values they are; each has its own stroke and marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// Measured here.
    Ours,
    /// Printed in the source.
    Published,
    /// From ns-2.
    Ns2,
}

impl Origin {
    /// Class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Published => "published",
            Self::Ns2 => "ns2",
        }
    }

    /// Name in legends and tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Published => "published",
            Self::Ns2 => "ns-2",
        }
    }
}

/// A value with its confidence.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
    /// Half the width of the 95 % confidence interval.
    pub(super) ci: Option<f64>,
    /// What a pointer on it shows; empty for none.
    pub(super) tip: String,
}

/// Points that belong together, by x.
#[derive(Debug, Clone)]
pub(super) struct Curve {
    /// Number of the variant: its colour and the shape of its markers.
    pub(super) look: usize,
    pub(super) origin: Origin,
    pub(super) points: Vec<Point>,
}

/// An axis.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    /// What it shows, with the unit.
    pub(super) label: String,
    pub(super) scale: Scale,
    /// Names at 0, 1, … instead of numbers.
    pub(super) names: Option<Vec<String>>,
}

impl Axis {
    /// An axis of names side by side.
    pub(super) fn of_names(label: String, names: Vec<String>) -> Self {
        Self { label, scale: Scale::tight([-0.5, names.len().max(1) as f64 - 0.5]), names: Some(names) }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        match &self.names {
            Some(names) => names.iter().enumerate().map(|(i, name)| (i as f64, name.clone())).collect(),
            None => self.scale.ticks().into_iter().map(|v| (v, short(v, 6))).collect(),
        }
    }
}

/// One set of axes.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    /// What distinguishes it from its neighbours.
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) bars: bool,
    pub(super) curves: Vec<Curve>,
}

/// Position of the axes in the plot.
struct Area {
    left: f64,
    bottom: f64,
    slanted: bool,
}

impl Area {
    fn of(panel: &Panel) -> Self {
        let longest = |axis: &Axis| axis.ticks().iter().map(|(_, t)| t.chars().count()).max().unwrap_or(0) as f64;
        let left = 12.0 + longest(&panel.y).max(2.0) * CHARACTER;
        let names = panel.x.names.as_ref().map_or(0, Vec::len) as f64;
        let slanted = names > 0.0 && longest(&panel.x) * CHARACTER + 8.0 > (WIDTH - left - RIGHT) / names;
        let below = if slanted { 14.0 + longest(&panel.x).min(LONGEST_NAME as f64) * CHARACTER * 0.5 } else { 20.0 };
        Self { left, bottom: HEIGHT - below - 18.0, slanted }
    }

    fn width(&self) -> f64 {
        WIDTH - RIGHT - self.left
    }

    fn x(&self, place: f64) -> f64 {
        self.left + place * self.width()
    }

    fn y(&self, place: f64) -> f64 {
        self.bottom - place * (self.bottom - TOP)
    }
}

impl Panel {
    /// Returns `true` if anything in it can be drawn.
    pub(super) fn is_empty(&self) -> bool {
        !self.curves.iter().flat_map(|c| &c.points).any(|p| self.spot(p).is_some())
    }

    /// How many values a logarithmic axis cannot show.
    pub(super) fn unseen(&self) -> usize {
        let points = self.curves.iter().flat_map(|c| &c.points);
        points.filter(|p| self.y.scale.is_log() && p.y <= 0.0).count()
    }

    /// Draws the plot. `description` is for those who cannot see it.
    pub(super) fn svg(&self, description: &str) -> Markup {
        let area = Area::of(self);
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label=(description) {
                (self.grid(&area))
                @if self.bars {
                    @for (i, curve) in self.ours().enumerate() { (self.bars_of(&area, curve, i)) }
                    @for curve in self.curves.iter().filter(|c| c.origin != Origin::Ours) {
                        g class={ (look_class(curve.look)) " on-bar " (curve.origin.class()) } {
                            @for point in &curve.points { (self.marker_on_bar(&area, curve, point)) }
                        }
                    }
                } @else {
                    @for curve in &self.curves { (self.line_of(&area, curve)) }
                }
            }
        }
    }

    fn ours(&self) -> impl Iterator<Item = &Curve> {
        self.curves.iter().filter(|c| c.origin == Origin::Ours)
    }

    /// Places along both axes.
    fn spot(&self, point: &Point) -> Option<(f64, f64)> {
        Some((self.x.scale.place(point.x)?, self.y.scale.place(point.y)?))
    }

    fn grid(&self, area: &Area) -> Markup {
        let x_ticks = self.x.ticks();
        let widest = x_ticks.iter().map(|(_, t)| t.chars().count()).max().unwrap_or(0) as f64 * CHARACTER + 8.0;
        let room = if area.slanted { 15.0 } else { widest };
        let each = (x_ticks.len() as f64 * room / area.width()).ceil().max(1.0) as usize;
        html! {
            g class="grid" {
                @for (value, text) in self.y.ticks() {
                    @if let Some(place) = self.y.scale.place(value) {
                        path d={ "M" (px(area.left)) " " (px(area.y(place))) "H" (px(WIDTH - RIGHT)) } {}
                        text.tick x=(px(area.left - 6.0)) y=(px(area.y(place) + 4.0)) text-anchor="end" { (text) }
                    }
                }
                path.axis d={ "M" (px(area.left)) " " (px(area.bottom)) "H" (px(WIDTH - RIGHT)) } {}
                @for (value, text) in x_ticks.into_iter().step_by(each) {
                    @if let Some(place) = self.x.scale.place(value) {
                        @let x = px(area.x(place));
                        @if self.x.names.is_none() { path.axis d={ "M" (x) " " (px(area.bottom)) "v4" } {} }
                        @if area.slanted {
                            @let y = px(area.bottom + 14.0);
                            text.tick x=(x) y=(y) text-anchor="end" transform={ "rotate(-30 " (x) " " (y) ")" } {
                                (clipped(&text)) @if clipped(&text) != text { title { (text) } }
                            }
                        } @else {
                            text.tick x=(x) y=(px(area.bottom + 17.0)) text-anchor="middle" { (text) }
                        }
                    }
                }
                text.label x="2" y="14" { (self.y.label) @if self.y.scale.is_log() { " (log)" } }
                text.label x=(px(WIDTH - RIGHT)) y=(px(HEIGHT - 5.0)) text-anchor="end" {
                    (self.x.label) @if self.x.scale.is_log() { " (log)" }
                }
            }
        }
    }

    fn line_of(&self, area: &Area, curve: &Curve) -> Markup {
        let spots: Vec<Option<(f64, f64)>> =
            curve.points.iter().map(|p| self.spot(p).map(|(x, y)| (area.x(x), area.y(y)))).collect();
        let spread: Vec<Option<(f64, f64, f64)>> = curve.points.iter().map(|p| self.spread(area, p)).collect();
        let few = curve.points.len() <= MANY;
        let every = if few { 1 } else { curve.points.len().div_ceil(7) };
        let first = if few { 0 } else { (curve.look * every / 5) % every };
        html! {
            g class={ (look_class(curve.look)) " " (curve.origin.class()) @if !few { " dense" } } {
                @for run in runs(&spread) {
                    @if let [only] = run[..] { (error_bar(only)) } @else { path.band d=(band(&run)) {} }
                }
                path.line d=(runs(&spots).map(|run| path(run.iter().copied())).collect::<String>()) {}
                @for (point, spot) in curve.points.iter().zip(&spots).skip(first).step_by(every) {
                    @if let Some(spot) = spot { (marker(curve.look, curve.origin, *spot, &point.tip)) }
                }
            }
        }
    }

    /// x and both ends of the confidence interval, in the plot.
    fn spread(&self, area: &Area, point: &Point) -> Option<(f64, f64, f64)> {
        let ci = point.ci.filter(|ci| ci.is_finite() && *ci > 0.0)?;
        let (x, _) = self.spot(point)?;
        let (low, high) = (self.y.scale.nearest(point.y - ci)?, self.y.scale.nearest(point.y + ci)?);
        Some((area.x(x), area.y(low), area.y(high)))
    }

    /// Width of a bar, and how far the one of variant `look` stands from the middle of its place.
    fn bar(&self, area: &Area, index: usize) -> (f64, f64) {
        let places = self.x.names.as_ref().map_or(1, |names| names.len().max(1)) as f64;
        let side_by_side = self.abreast() as f64;
        let width = (area.width() / places * 0.8 / side_by_side).min(40.0);
        (width, (index as f64 + 0.5 - side_by_side / 2.0) * width)
    }

    /// How many bars stand at one place: one if no two curves share a place.
    fn abreast(&self) -> usize {
        let mut places: Vec<f64> = self.ours().flat_map(|c| c.points.iter().map(|p| p.x)).collect();
        let points = places.len();
        places.sort_by(f64::total_cmp);
        places.dedup();
        if places.len() == points { 1 } else { self.ours().count().max(1) }
    }

    fn bars_of(&self, area: &Area, curve: &Curve, index: usize) -> Markup {
        let (width, aside) = self.bar(area, if self.abreast() == 1 { 0 } else { index });
        let foot = area.y(self.y.scale.place(self.y.scale.foot()).unwrap_or(0.0));
        html! {
            g class={ (look_class(curve.look)) " ours" } {
                @for point in &curve.points {
                    @if let Some((x, y)) = self.spot(point) {
                        @let (x, y) = (area.x(x) + aside, area.y(y));
                        rect x=(px(x - width * 0.46)) width=(px(width * 0.92))
                            y=(px(y.min(foot))) height=(px((foot - y).abs())) {
                            @if !point.tip.is_empty() { title { (point.tip) } }
                        }
                        @if let Some((_, low, high)) = self.spread(area, point) { (error_bar((x, low, high))) }
                    }
                }
            }
        }
    }

    fn marker_on_bar(&self, area: &Area, curve: &Curve, point: &Point) -> Markup {
        let index = self.ours().position(|c| c.look == curve.look).unwrap_or(0);
        let (_, aside) = self.bar(area, if self.abreast() == 1 { 0 } else { index });
        html! {
            @if let Some((x, y)) = self.spot(point) {
                (marker(ON_BARS, curve.origin, (area.x(x) + aside, area.y(y)), &point.tip))
            }
        }
    }
}

/// The number of a variant among `variants`, by which legends and plots agree; 0 for one that is
/// not there.
pub(super) fn look(variants: &[&str], variant: &str) -> usize {
    variants.iter().position(|v| *v == variant).unwrap_or(0)
}

/// Sorts by what is drawn first: references below, ours on top of them.
pub(super) fn by_layer(curves: &mut [Curve]) {
    curves.sort_by_key(|c| (std::cmp::Reverse(c.origin), c.look));
}

/// Classes of the variant's colour, of which there are eight.
pub(super) fn look_class(look: usize) -> String {
    format!("v{}{}", look % 8, if look >= 8 { " again" } else { "" })
}

/// The marker of a variant; that of ns-2 is a cross for all.
pub(super) fn marker(look: usize, origin: Origin, (x, y): (f64, f64), tip: &str) -> Markup {
    // As many shapes as have no factor in common with the eight colours: 56 pairs.
    let shape = match (origin, look % 7) {
        (Origin::Ns2, _) => "m-4-4l8 8m0-8l-8 8",
        (_, 0) => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        (_, 1) => "m-3.6-3.6h7.2v7.2h-7.2z",
        (_, 2) => "m0-5l4.6 8.2h-9.2z",
        (_, 3) => "m0-5.2l5 5.2l-5 5.2l-5-5.2z",
        (_, 4) => "m0 5l4.6-8.2h-9.2z",
        (_, 5) => "m-1.6-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
        _ => "m-4.6-1l4.6-4l4.6 4l-1.8 5.4h-5.6z",
    };
    html! {
        path.marker d={ "M" (px(x)) " " (px(y)) (shape) } { @if !tip.is_empty() { title { (tip) } } }
    }
}

fn error_bar((x, low, high): (f64, f64, f64)) -> Markup {
    html! {
        path.error d={ "M" (px(x)) " " (px(low)) "V" (px(high)) "m-3 0h6M" (px(x - 3.0)) " " (px(low)) "h6" } {}
    }
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.enumerate().map(|(i, (x, y))| format!("{}{} {}", if i == 0 { "M" } else { "L" }, px(x), px(y))).collect()
}

fn band(run: &[(f64, f64, f64)]) -> String {
    let there = run.iter().map(|(x, _, high)| (*x, *high));
    path(there.chain(run.iter().rev().map(|(x, low, _)| (*x, *low)))) + "Z"
}

/// The stretches without a gap.
fn runs<T: Copy>(points: &[Option<T>]) -> impl Iterator<Item = Vec<T>> {
    points.split(Option::is_none).map(|run| run.iter().flatten().copied().collect()).filter(|r: &Vec<T>| !r.is_empty())
}

/// A tenth of a pixel is enough.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_string)
}

fn clipped(text: &str) -> String {
    if text.chars().count() <= LONGEST_NAME {
        return text.into();
    }
    text.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}
