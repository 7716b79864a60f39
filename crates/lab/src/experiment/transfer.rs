//! A transfer over each flow: how fast, how much was lost or repeated, how late.

use super::{Curve, Experiment, Measures, datagrams};
use crate::host::{Host, SctpReceiver, SctpSender, Snapshot};
use crate::plan::{Done, Plan, Run};
use crate::scenario::FlowSpec;
use braidcast_sctp::{PathReport, Reliability};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "transfer",
    text: "goodput, throughput, losses, retransmissions, delay and jitter of each flow",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// The only flow needs no name before its metrics.
pub(super) fn prefix(run: &Run<'_>, flow: &FlowSpec) -> String {
    if run.point.flows.len() == 1 { String::new() } else { format!("{} ", flow.name) }
}

pub(super) fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    for flow in &run.point.flows {
        let prefix = prefix(run, flow);
        let (sender, receiver) = (done.sender(&flow.name), done.receiver(&flow.name));
        if let Some(goodput) = receiver.and_then(Host::goodput) {
            measures.metric(format!("{prefix}goodput"), "kbit/s", goodput / 1e3);
        }
        if let Some(receiver) = receiver.and_then(Host::sctp_receiver) {
            received(&prefix, receiver, &mut measures);
            if flow.sctp.redundancy.fec.is_some() {
                decoded(&prefix, receiver, &mut measures);
            }
            if flow.traffic.reliability() != Reliability::Reliable {
                measures.metric(format!("{prefix}lost"), "%", 100.0 * lost(receiver));
            }
        }
        if let Some(sender) = sender.and_then(Host::sctp_sender) {
            sent(&prefix, sender, &mut measures);
            curves(&prefix, sender, &mut measures);
        }
        if let Some(sink) = receiver.and_then(Host::sink) {
            datagrams::received(&prefix, sink, &mut measures);
        }
        if let Some(sender) = sender.and_then(Host::dccp) {
            datagrams::sent(&prefix, sender, &mut measures);
            datagrams::curves(&prefix, sender, &mut measures);
        }
        if let Some(sender) = sender.and_then(Host::plain).and_then(|host| host.tcp_sender()) {
            let stats = sender.stats();
            measures.metric(format!("{prefix}retransmissions"), "packets", stats.retransmissions as f64);
            measures.metric(format!("{prefix}timeouts"), "", stats.timeouts as f64);
        }
    }
    measures
}

/// Share of the messages before the last one that came which did not come.
pub(super) fn lost(receiver: &SctpReceiver) -> f64 {
    let meter = &receiver.delivered.meter;
    let lost = meter.losses(None).lost();
    lost as f64 / (lost + meter.received()).max(1) as f64
}

fn received(prefix: &str, receiver: &SctpReceiver, measures: &mut Measures) {
    let meter = &receiver.delivered.meter;
    measures.metric(format!("{prefix}throughput"), "kbit/s", receiver.throughput() / 1e3);
    let share = 100.0 * receiver.return_traffic() / receiver.delivered.goodput().max(1.0);
    measures.metric(format!("{prefix}return traffic"), "% of goodput", share);
    if let Some(delay) = meter.delay_mean() {
        measures.metric(format!("{prefix}delay"), "ms", delay.as_secs_f64() * 1e3);
        measures.metric(format!("{prefix}jitter"), "ms", meter.jitter_mean().as_secs_f64() * 1e3);
    }
}

/// What came of the redundancy.
fn decoded(prefix: &str, receiver: &SctpReceiver, measures: &mut Measures) {
    let mut count = |name: &str, value: u64| measures.metric(format!("{prefix}{name}"), "packets", value as f64);
    count("recovered", receiver.grown(|stats| stats.recovered_chunks));
    count("redundancy not needed", receiver.grown(|stats| stats.redundancy_useless));
    count("redundancy too late", receiver.grown(|stats| stats.redundancy_late));
    count("redundancy evicted", receiver.grown(|stats| stats.redundancy_evicted));
    count("redundancy refused", receiver.grown(|stats| stats.redundancy_refused));
}

/// What an SCTP sender did.
pub(super) fn sent(prefix: &str, sender: &SctpSender, measures: &mut Measures) {
    let mut count = |name: &str, value: u64| measures.metric(format!("{prefix}{name}"), "packets", value as f64);
    count("retransmissions", sender.grown(|stats| stats.retransmissions));
    count("fast retransmissions", sender.grown(|stats| stats.fast_retransmissions));
    count("timeout retransmissions", sender.grown(|stats| stats.timeout_retransmissions));
    count("overtaken SACKs", sender.grown(|stats| stats.overtaken_sacks));
    count("spurious", sender.grown(|stats| stats.duplicates_reported));
    count("redundancy", sender.grown(|stats| stats.redundancy_sent));
    count("held for the code", sender.grown(|stats| stats.held_retransmissions));
    measures.metric(format!("{prefix}timeouts"), "", sender.grown(|stats| stats.t3_expiries) as f64);
    let chunks = sender.grown_by_path(|path| path.sent_chunks);
    let all = chunks.iter().sum::<u64>().max(1) as f64;
    // Repeats that were not needed (ECMT §III-A1); what redundancy overtook came twice as well, but cost nothing.
    let duplicates = sender.grown(|stats| stats.spurious_retransmissions);
    measures.metric(format!("{prefix}duplicates"), "%", 100.0 * duplicates as f64 / all);
    for (path, chunks) in chunks.iter().enumerate().skip(1) {
        measures.metric(format!("{prefix}share of path {}", path + 1), "", *chunks as f64 / all);
    }
}

/// Window and round-trip time of each path over time, if the scenario asks for samples.
pub(super) fn curves(prefix: &str, sender: &SctpSender, measures: &mut Measures) {
    let paths = sender.samples.iter().map(|sample| sample.paths.len()).max().unwrap_or(0);
    for path in 0..paths {
        let curve = |value: &dyn Fn(&PathReport) -> Option<f64>| {
            let point = |sample: &Snapshot| Some([sample.at.as_secs_f64(), value(sample.paths.get(path)?)?]);
            sender.samples.iter().filter_map(point).collect()
        };
        let name = |what: &str| format!("{prefix}{what} of path {}", path + 1);
        let cwnd = curve(&|path| Some(path.cwnd as f64 / 1e3));
        let srtt = curve(&|path| Some(path.srtt?.as_secs_f64() * 1e3));
        let x = "time (s)";
        measures.curves.push(Curve { name: name("cwnd"), x, y: "window (kB)", points: cwnd });
        measures.curves.push(Curve { name: name("SRTT"), x, y: "SRTT (ms)", points: srtt });
    }
}
