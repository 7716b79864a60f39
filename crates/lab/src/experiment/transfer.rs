//! A transfer over each flow: how fast, how much was repeated, how late.

use super::{Curve, Experiment, Measures};
use crate::host::SctpSender;
use crate::plan::{Done, Plan, Run};

pub(super) const EXPERIMENT: Experiment =
    Experiment { name: "transfer", text: "goodput, retransmissions and delay of each flow", build: Plan::of, measure };

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    for flow in &run.point.flows {
        // The only flow needs no name before its metrics.
        let prefix = if run.point.flows.len() == 1 { String::new() } else { format!("{} ", flow.name) };
        let name = |metric: &str| format!("{prefix}{metric}");
        if let Some(delivered) = done.host(&format!("{}.receiver", flow.name)).and_then(|host| host.delivered()) {
            measures.metric(name("goodput"), "kbit/s", delivered.goodput() / 1e3);
            measures.metric(name("delay"), "ms", delivered.delay_mean() * 1e3);
        }
        if let Some(sender) = done.host(&format!("{}.sender", flow.name)).and_then(|host| host.sctp_sender()) {
            measures.metric(name("retransmissions"), "chunks", sender.grown(|path| path.retransmitted_chunks) as f64);
            measures.metric(name("timeouts"), "", sender.grown(|path| path.timeouts) as f64);
            curves(&prefix, sender, &mut measures);
        }
    }
    measures
}

/// Window and round-trip time of each path over time, where the scenario asks for samples.
fn curves(prefix: &str, sender: &SctpSender, measures: &mut Measures) {
    let paths = sender.samples.iter().map(|sample| sample.paths.len()).max().unwrap_or(0);
    for path in 0..paths {
        let curve = |value: &dyn Fn(&braidcast_sctp::PathReport) -> Option<f64>| {
            let point =
                |sample: &crate::host::Snapshot| Some([sample.at.as_secs_f64(), value(sample.paths.get(path)?)?]);
            sender.samples.iter().filter_map(point).collect()
        };
        let number = path + 1;
        let cwnd = curve(&|path| Some(path.cwnd as f64 / 1e3));
        let srtt = curve(&|path| Some(path.srtt?.as_secs_f64() * 1e3));
        let x = "time (s)";
        measures.curves.push(Curve {
            name: format!("{prefix}cwnd of path {number}"),
            x,
            y: "window (kB)",
            points: cwnd,
        });
        measures.curves.push(Curve { name: format!("{prefix}SRTT of path {number}"), x, y: "SRTT (ms)", points: srtt });
    }
}
