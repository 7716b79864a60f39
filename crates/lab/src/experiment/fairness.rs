//! How flows share a bottleneck: Jain's index (Jain, Chiu, Hawe, DEC-TR-301, 1984), (Σx)² / (n ·
//! Σx²), of their goodput.

use super::{Experiment, Measures};
use crate::host::Host;
use crate::plan::{Done, Plan, Run};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "fairness",
    text: "goodput of each flow, and Jain's index of all",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let goodput = |flow: &str| done.receiver(flow).and_then(Host::goodput).unwrap_or(0.0);
    let rates: Vec<(&str, f64)> =
        run.point.flows.iter().map(|flow| (flow.name.as_str(), goodput(&flow.name))).collect();
    measures.metric("Jain's index", "", jain(rates.iter().map(|&(_, rate)| rate)));
    for &(flow, rate) in &rates {
        measures.metric(format!("goodput of {flow}"), "kbit/s", rate / 1e3);
    }
    if let [(_, first), (_, second)] = rates[..] {
        measures.metric("share of the first", "", first / (first + second).max(1.0));
    }
    measures
}

fn jain(rates: impl Iterator<Item = f64>) -> f64 {
    let (n, sum, squares) = rates.fold((0.0, 0.0, 0.0), |(n, sum, squares), x| (n + 1.0, sum + x, squares + x * x));
    if squares == 0.0 { 0.0 } else { sum * sum / (n * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_1_for_equals_and_1_over_n_for_one_who_has_all() {
        assert_eq!(jain([5.0, 5.0, 5.0].into_iter()), 1.0);
        assert_eq!(jain([5.0, 0.0].into_iter()), 0.5);
        assert_eq!(jain([0.0, 0.0].into_iter()), 0.0);
    }
}
