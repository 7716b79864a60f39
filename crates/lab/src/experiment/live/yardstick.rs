//! What senders could have shown that know links as they are, and not as they will be.

use super::{Seen, links, routes, wanted};
use crate::experiment::Measures;
use crate::oracle::{Line, STEPS, causal};
use crate::plan::Run;
use crate::scenario::FlowSpec;
use braidcast_core::{Instant, Rng};
use core::time::Duration;

pub(super) fn add(
    prefix: &str,
    run: &Run<'_>,
    flow: &FlowSpec,
    seen: &[Seen],
    begin: Instant,
    limit: Duration,
    measures: &mut Measures,
) {
    let wanted = wanted(seen, begin);
    let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return };
    let (begin, end) = (first.at, last.at + limit);
    let links = links(run);
    let loss = |path: &Vec<usize>| {
        1.0 - path.iter().map(|&link| 1.0 - links[link].there.loss.mean().unwrap_or(0.0)).product::<f64>()
    };
    let routes = routes(run, flow, begin, end);
    let lines = flow.paths.iter().zip(&routes).map(|(path, route)| Line::of(route, loss(path), begin, end));
    let lines: Vec<Line> = lines.collect();
    for (name, rules) in STEPS {
        let mut rng = Rng::from_seed(run.seed).stream(name);
        let shown = causal(&wanted, &lines, limit, &rules, &mut rng);
        measures.metric(format!("{prefix}{name}"), "%", 100.0 * shown);
    }
}
