//! DCCP over a path that delivers out of order, with and without the reordering buffer (THESIS ch. 5).

use super::equation::Felt;
use super::scheduling::path_of;
use super::{Experiment, Measures, datagrams};
use crate::host::Host;
use crate::plan::{Done, Plan, Run};
use braidcast_sim::traffic::FlowMeter;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "reordering",
    text: "what out-of-order delivery costs DCCP; with flows named 'buffer' and 'plain', THESIS's efficiency ratios",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// What is measured of each flow.
const MEASURED: [(&str, &str); 4] = [("goodput", "kbit/s"), ("loss event rate", "%"), ("RTT", "ms"), ("jitter", "ms")];

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let flows = &run.point.flows;
    let mut all = Vec::new();
    for flow in flows {
        let (sender, receiver) = (done.sender(&flow.name), done.receiver(&flow.name));
        let Some((sender, receiver)) = sender.and_then(Host::dccp).zip(receiver) else { continue };
        let prefix = if flows.len() == 1 { String::new() } else { format!("{} ", flow.name) };
        let felt = Felt::of(flow, sender, receiver);
        let jitter = receiver.sink().and_then(|sink| sink.meters().values().next()).map(FlowMeter::jitter_mean);
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let values = [felt.goodput, 100.0 * felt.loss_event_rate, ms(felt.rtt), jitter.map_or(0.0, ms)];
        for ((name, unit), value) in MEASURED.into_iter().zip(values) {
            measures.metric(format!("{prefix}{name}"), unit, value);
        }
        measures.metric(format!("{prefix}equation"), "kbit/s", felt.equation());
        if let Some(buffer) = receiver.dccp().and_then(|it| it.closed).and_then(|it| it.report.reorder) {
            let most = flow.dccp.reorder.map_or(Duration::ZERO, |it| it.max_delay);
            measures.metric(format!("{prefix}D_max and 1 ms"), "ms", ms(most) + 1.0);
            measures.metric(format!("{prefix}longest wait"), "ms", ms(buffer.longest_delay));
            measures.metric(format!("{prefix}most held"), "kB", buffer.most_bytes as f64 / 1e3);
            // Q = R_peak · D_max (THESIS §5.1.1): nothing enters the buffer faster than the slowest link carries it.
            if let Some((peak, _)) = path_of(flow.paths[0].iter().map(|&link| &run.point.links[link]).collect()) {
                measures.metric(format!("{prefix}held by eq. 5.2"), "kB", peak / 8.0 * most.as_secs_f64() / 1e3);
            }
            let holes = (buffer.filled + buffer.given_up).max(1) as f64;
            measures.metric(format!("{prefix}holes filled"), "%", 100.0 * buffer.filled as f64 / holes);
        }
        datagrams::curves(&prefix, sender, &mut measures);
        all.push((flow.name.as_str(), values));
    }
    let values = |name: &str| all.iter().find(|(flow, _)| *flow == name).map(|(_, values)| values);
    if let (Some(with), Some(without)) = (values("buffer"), values("plain")) {
        for (i, (name, _)) in MEASURED.into_iter().enumerate() {
            // ε(z) = z_b / (z_nb + z_b) (THESIS §5.2.1).
            let (with, without) = (with[i], without[i]);
            if with + without > 0.0 {
                measures.metric(format!("{name} ratio"), "", with / (without + with));
            }
        }
    }
    measures
}
