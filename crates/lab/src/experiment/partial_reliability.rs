//! Data that is late is abandoned: what that does to the window and to what arrives (PRCMT §6.1).

use super::{Curve, Experiment, Measures};
use crate::host::{Host, SctpReceiver, SctpSender, Snapshot};
use crate::plan::{Done, Plan, Run};
use braidcast_sctp::PathReport;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "partial-reliability",
    text: "throughput and window of the SCTP flow `main`, messages abandoned, losses noticed",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(_: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    if let Some(receiver) = done.receiver("main").and_then(Host::sctp_receiver) {
        measures.metric("throughput", "kbit/s", receiver.throughput() / 1e3);
        measures.metric("goodput", "kbit/s", receiver.delivered.goodput() / 1e3);
        measures.curves.push(throughput(receiver));
    }
    if let Some(sender) = done.sender("main").and_then(Host::sctp_sender) {
        sent(sender, &mut measures);
    }
    measures
}

fn sent(sender: &SctpSender, measures: &mut Measures) {
    let on_first = |count: fn(&PathReport) -> u64| sender.grown_by_path(count).first().copied().unwrap_or(0) as f64;
    let (sent, lost) = (on_first(|path| path.sent_chunks), on_first(|path| path.lost_chunks));
    measures.metric("losses noticed", "%", 100.0 * lost / sent.max(1.0));
    measures.metric("timeouts", "", sender.grown(|stats| stats.t3_expiries) as f64);
    measures.metric("given up in flight", "messages", sender.grown(|stats| stats.abandoned_sent) as f64);
    measures.metric("given up unsent", "messages", sender.grown(|stats| stats.abandoned_unsent) as f64);
    let window = |sample: &Snapshot| Some([sample.at.as_secs_f64(), sample.paths.first()?.cwnd as f64 / 1e3]);
    let points: Vec<[f64; 2]> = sender.samples.iter().filter_map(window).collect();
    let mean = points.iter().map(|point| point[1]).sum::<f64>() / points.len().max(1) as f64;
    measures.metric("mean cwnd", "kB", mean);
    measures.curves.push(Curve { name: "cwnd".into(), x: "time (s)", y: "window (kB)", points });
}

/// What was handed over in each whole second.
fn throughput(receiver: &SctpReceiver) -> Curve {
    let series = receiver.delivered.meter.series();
    let in_a_second = (1.0 / series.interval().as_secs_f64()).round().max(1.0) as usize;
    let seconds = series.intervals().chunks_exact(in_a_second).enumerate();
    let points = seconds.map(|(at, bytes)| [at as f64, bytes.iter().sum::<u64>() as f64 / 1e3]).collect();
    Curve { name: "throughput".into(), x: "time (s)", y: "kB in each second", points }
}
