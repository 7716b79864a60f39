//! What SCTP gets through over several lossy paths beside the model of ECMT eq. 6 to 11.

use super::{Experiment, Measures, transfer};
use crate::host::{Host, SctpSender};
use crate::multihomed::{ModelPath, throughput};
use crate::plan::{Done, Plan, Run};
use crate::scenario::FlowSpec;
use braidcast_sctp::Code;
use braidcast_sim::link::LinkModel;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "multihomed-model",
    text: "bulk goodput of the SCTP flow `main` beside the model of ECMT eq. 6 to 11, fed with the links' loss or, where there is a flow \
           `unreliable`, with what it loses",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let main = run.point.flows.iter().find(|flow| flow.name == "main");
    let (Some(flow), Some(receiver)) = (main, done.receiver("main").and_then(Host::sctp_receiver)) else {
        return measures;
    };
    let goodput = receiver.delivered.goodput() / 1e3;
    measures.metric("goodput", "kbit/s", goodput);
    let link = |path: usize| &run.point.links[flow.paths[path][0]].there;
    let residual = done.receiver("unreliable").and_then(Host::sctp_receiver).map(transfer::lost);
    let loss = |path: usize| residual.unwrap_or_else(|| link(path).loss.mean().unwrap_or(0.0));
    measures.metric("loss fed in", "%", 100.0 * (0..flow.paths.len()).map(loss).sum::<f64>() / flow.paths.len() as f64);
    let ideal = |path: usize| {
        let links = flow.paths[path].iter().map(|&link| &run.point.links[link]);
        links.map(|link| link.there.delay + link.back.delay).sum::<Duration>()
    };
    let model = |rtt: &dyn Fn(usize) -> Duration| {
        let paths = (0..flow.paths.len()).map(|path| ModelPath {
            loss: loss(path),
            rtt: rtt(path).as_secs_f64(),
            rto: flow.sctp.timers.rto.min.as_secs_f64(),
            max_window: flow.sctp.limits.receive_buffer as f64 / flow.traffic.message as f64,
        });
        let rates = throughput(&paths.collect::<Vec<_>>(), f64::from(flow.sctp.sack.every));
        let kbit = |packets: f64| packets * flow.traffic.message as f64 * 8e-3;
        let usable = |path: usize| usable(run, flow, link(path));
        rates.into_iter().enumerate().map(|(path, rate)| kbit(rate).min(usable(path))).sum::<f64>()
    };
    measures.metric("model", "kbit/s", model(&ideal));
    if let Some(sender) = done.sender("main").and_then(Host::sctp_sender) {
        let felt = |path: usize| mean_srtt(sender, path).unwrap_or_else(|| ideal(path));
        measures.metric("model, measured RTT", "kbit/s", model(&felt));
        measures.metric("RTT", "ms", felt(0).as_secs_f64() * 1e3);
        transfer::sent("", sender, &mut measures);
    }
    measures
}

/// What a link can carry of messages, kbit/s: none of it headers or redundancy, which the model
/// does not know (ECMT §IV: 1800 of 2000 kbit/s).
fn usable(run: &Run<'_>, flow: &FlowSpec, link: &LinkModel) -> f64 {
    let rate = link.rate.mean_bits_per_second().map_or(f64::INFINITY, |rate| rate as f64 / 1e3);
    let message = flow.traffic.message as f64;
    let redundancy = flow.sctp.redundancy.fec.map_or(0.0, Code::redundancy);
    (1.0 - redundancy) * rate * message / (message + run.point.network.wrap.bytes() as f64 + HEADERS)
}

/// SCTP's common header and that of a DATA chunk, bytes.
const HEADERS: f64 = 28.0;

/// The mean of the smoothed round trips in the samples.
fn mean_srtt(sender: &SctpSender, path: usize) -> Option<Duration> {
    let all: Vec<f64> = sender.samples.iter().filter_map(|it| Some(it.paths.get(path)?.srtt?.as_secs_f64())).collect();
    (!all.is_empty()).then(|| Duration::from_secs_f64(all.iter().sum::<f64>() / all.len() as f64))
}
