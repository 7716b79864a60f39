//! Which calls are carried, and how they sound (THESIS §4.9).

use super::{Experiment, Measures, quality};
use crate::host::Host;
use crate::plan::{Done, Plan, Run};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "admission",
    text: "what `quality` measures of calls, how many were heard, and how many of them well",
    build: Plan::of,
    measure,
};

/// "Some users dissatisfied" begins below (ITU-T G.107, Annex B).
const GOOD: f64 = 80.0;

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = quality::measure(run, done);
    let flows = &run.point.flows;
    for flow in flows {
        let prefix = if flows.len() == 1 { String::new() } else { format!("{} ", flow.name) };
        let Some(jitter_buffers) = done.receiver(&flow.name).and_then(Host::jitter_buffers) else { continue };
        let rated: Vec<f64> = quality::calls(jitter_buffers, &flow.traffic).map(|call| call.quality.r).collect();
        measures.metric(format!("{prefix}calls heard"), "", rated.len() as f64);
        measures.metric(format!("{prefix}calls heard well"), "", rated.iter().filter(|r| **r >= GOOD).count() as f64);
    }
    measures
}
