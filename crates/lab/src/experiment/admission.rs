//! Which calls are carried, and their quality (THESIS §4.9).

use super::{Experiment, Measures, quality};
use crate::host::Host;
use crate::plan::{Done, Plan, Run};
use braidcast_dccp::Admission;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "admission",
    text: "what `quality` measures of calls, how many are carried to the end, their quality, and how many were ended again",
    fixed_length: false,
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
        let admission = done.sender(&flow.name).and_then(Host::dccp).and_then(|it| it.admission.as_ref());
        let is_carried = |call: u16| admission.is_none_or(|it| it.is_carried(&call));
        let carried = jitter_buffers.streams().filter(|(call, _)| is_carried(*call));
        let rated: Vec<f64> = carried.map(|(_, heard)| quality::call(&heard, &flow.traffic).quality.r).collect();
        measures.metric(format!("{prefix}calls carried"), "", rated.len() as f64);
        measures.metric(format!("{prefix}calls carried well"), "", rated.iter().filter(|r| **r >= GOOD).count() as f64);
        if !rated.is_empty() {
            measures.metric(format!("{prefix}R of those carried"), "", rated.iter().sum::<f64>() / rated.len() as f64);
        }
        let turned_out = admission.map_or(0, Admission::turned_out);
        measures.metric(format!("{prefix}turned out again"), "", turned_out as f64);
    }
    measures
}
