//! What a sender takes for the round-trip time of each path, beside what it is (THESIS §6.2.4).

use super::{Experiment, Measures, transfer};
use crate::host::{Host, Snapshot};
use crate::plan::{Done, LinkDone, Plan, Run};
use crate::scenario::LinkSpec;
use braidcast_core::Instant;
use braidcast_sctp::PathReport;
use braidcast_sim::link::{LinkModel, LinkStats};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "rtt-estimate",
    text: "SRTT and RTO of each path, beside its true round trip with and without the time in queues",
    fixed_length: false,
    build,
    measure,
};

/// Links count as SRTT does: what slow start puts into queues belongs to neither.
fn build(run: &Run<'_>) -> Plan {
    let warm = run.point.flows.iter().map(|flow| flow.traffic.start + flow.traffic.warmup).max();
    Plan { warm: warm.map(|warm| Instant::ZERO + warm), ..Plan::of(run) }
}

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = (transfer::EXPERIMENT.measure)(run, done);
    let flow = &run.point.flows[0];
    let Some(sender) = done.sender(&flow.name).and_then(Host::sctp_sender) else { return measures };
    let Some(opened) = &sender.opened else { return measures };
    let samples: Vec<&Snapshot> = sender.samples.iter().filter(|sample| sample.at >= opened.at).collect();
    for (path, links) in flow.paths.iter().enumerate() {
        let mean = |value: fn(&PathReport) -> Option<f64>| {
            let values: Vec<f64> = samples.iter().filter_map(|it| value(it.paths.get(path)?)).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        };
        let mut metric = |what: &str, value: f64| measures.metric(format!("{what} of path {}", path + 1), "ms", value);
        metric("SRTT", mean(|path| Some(path.srtt?.as_secs_f64() * 1e3)));
        metric("RTO", mean(|path| Some(path.rto.as_secs_f64() * 1e3)));
        let sum = |time: fn(&LinkSpec, &LinkDone) -> f64| {
            links.iter().map(|&link| time(&run.point.links[link], &done.links[link])).sum::<f64>() * 1e3
        };
        metric("empty RTT", sum(|spec, _| (spec.there.delay + spec.back.delay).as_secs_f64()));
        metric(
            "true RTT",
            sum(|spec, done| {
                let [there, back] = done.before;
                took(&spec.there, &done.there, &there) + took(&spec.back, &done.back, &back)
            }),
        );
    }
    measures
}

/// Seconds that a packet took over a link on the average since `before`: from entering the queue to
/// having left it, by Little's law (mean length over rate of departures), and propagation.
fn took(model: &LinkModel, stats: &LinkStats, before: &LinkStats) -> f64 {
    let left = |stats: &LinkStats| stats.offered.saturating_sub(stats.dropped_queue);
    let nanos = stats.queue_packet_nanos - before.queue_packet_nanos;
    nanos as f64 / 1e9 / (left(stats) - left(before)).max(1) as f64 + model.delay.as_secs_f64()
}
