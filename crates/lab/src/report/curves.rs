//! Plots of series: as they are, or as the distribution of their values. Long ones are thinned without losing a peak.

use super::panel::{Axis, Curve, Origin, Panel, Point, by_layer, look};
use super::params::{labels, sentence, varying};
use super::rows::groups;
use super::scale::Scale;
use crate::results::{Plot, Results, Series};

/// The panels of a plot of series: one for each name and parameters, with a curve for each variant.
pub(super) fn panels(
    results: &Results,
    plot: &Plot,
    variants: &[&str],
    most_points: usize,
    distribution: bool,
) -> Vec<Panel> {
    let mut panels = Vec::new();
    for name in &plot.metrics {
        let all: Vec<&Series> = results.series.iter().filter(|s| s.name == *name).collect();
        let (others, _) = varying(all.iter().map(|s| &s.params));
        for (key, group) in groups(&all, |s| labels(&s.params, &others)) {
            let mut title = sentence(&key);
            if plot.metrics.len() > 1 {
                title = if title.is_empty() { name.clone() } else { format!("{name}, {title}") };
            }
            panels.push(panel(title, &group, variants, plot.log_y, most_points, distribution));
        }
    }
    panels
}

fn panel(
    title: String,
    group: &[&Series],
    variants: &[&str],
    log_y: bool,
    most_points: usize,
    distribution: bool,
) -> Panel {
    let mut curves: Vec<Curve> = group
        .iter()
        .map(|series| {
            let points =
                if distribution { steps(&series.points, most_points) } else { thinned(&series.points, most_points) };
            let points = points.into_iter().map(|[x, y]| Point { x, y, ci: None, tip: String::new() }).collect();
            Curve { look: look(variants, &series.variant), origin: Origin::Ours, points }
        })
        .collect();
    by_layer(&mut curves);
    let values = |of: fn(&Point) -> f64| curves.iter().flat_map(move |c| c.points.iter().map(of));
    let (x, y) = group.first().map_or(("", ""), |s| (s.x.as_str(), s.y.as_str()));
    let y_scale =
        if log_y { Scale::logarithmic(values(|p| p.y)) } else { Scale::linear(values(|p| p.y), distribution) };
    let x_scale = if distribution { Scale::linear(values(|p| p.x), false) } else { Scale::tight(values(|p| p.x)) };
    let (x, y) = if distribution { (y, "share of values, %") } else { (x, y) };
    Panel {
        title,
        x: Axis { label: x.into(), scale: x_scale, names: None },
        y: Axis { label: y.into(), scale: y_scale, names: None },
        bars: false,
        curves,
    }
}

/// At most about `most` points: of each stretch of the series the first, the last, the lowest and the highest. Values
/// that are no numbers stay as gaps.
fn thinned(points: &[[f64; 2]], most: usize) -> Vec<[f64; 2]> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil((most / 4).max(1));
    let mut kept = Vec::new();
    for part in points.chunks(stretch) {
        let numbers = || part.iter().enumerate().filter(|(_, p)| p[1].is_finite());
        let lowest = numbers().min_by(|a, b| a.1[1].total_cmp(&b.1[1])).map(|(i, _)| i);
        let highest = numbers().max_by(|a, b| a.1[1].total_cmp(&b.1[1])).map(|(i, _)| i);
        let mut indices = vec![0, lowest.unwrap_or(0), highest.unwrap_or(0), part.len() - 1];
        indices.sort_unstable();
        indices.dedup();
        kept.extend(indices.into_iter().map(|i| part[i]));
    }
    kept
}

/// The share of values, in percent, that are not larger than x, as a staircase of at most about `most` corners.
fn steps(points: &[[f64; 2]], most: usize) -> Vec<[f64; 2]> {
    let mut values: Vec<f64> = points.iter().map(|p| p[1]).filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    let stairs = count.min((most / 2).max(1));
    let mut corners = Vec::with_capacity(2 * stairs);
    let mut below = 0.0;
    for stair in 1..=stairs {
        let rank = stair * count / stairs;
        let share = 100.0 * rank as f64 / count as f64;
        corners.extend([[values[rank - 1], below], [values[rank - 1], share]]);
        below = share;
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends_and_every_peak() {
        let mut points: Vec<[f64; 2]> = (0..10_000).map(|i| [f64::from(i), 1.0]).collect();
        points[5_003][1] = 90.0;
        points[7_777][1] = -90.0;
        let kept = thinned(&points, 400);
        assert!(kept.len() <= 400, "{}", kept.len());
        assert_eq!((kept[0][0], kept[kept.len() - 1][0]), (0.0, 9_999.0));
        assert!(kept.contains(&[5_003.0, 90.0]) && kept.contains(&[7_777.0, -90.0]));
        assert!(kept.windows(2).all(|w| w[0][0] < w[1][0]), "in their order, each once");
    }

    #[test]
    fn a_distribution_climbs_to_all_of_the_values() {
        let points = [[0.0, 30.0], [1.0, 10.0], [2.0, f64::NAN], [3.0, 20.0], [4.0, 20.0]];
        assert_eq!(
            steps(&points, 100),
            [[10., 0.], [10., 25.], [20., 25.], [20., 50.], [20., 50.], [20., 75.], [30., 75.], [30., 100.]]
        );
        let many: Vec<[f64; 2]> = (0..1000).map(|i| [0.0, f64::from(i)]).collect();
        let few = steps(&many, 20);
        assert_eq!((few.len(), few[19]), (20, [999.0, 100.0]));
        assert!(steps(&[], 100).is_empty());
    }
}
