//! One path at a time, chosen by what is measured (PATHS §5.2, §5.3): how often calls go over to
//! another path, whether that comes to rest, and what they sound like.

use super::{Curve, Experiment, Measures};
use crate::host::{Arrival, Host, SctpReceiver, SctpSender};
use crate::plan::{Done, Plan, Run};
use crate::scenario::{Agent, FlowSpec, LinkSpec};
use braidcast_core::{Instant, PathId};
use braidcast_media::voice::{Codec, Conditions, EModel, Form};
use braidcast_sctp::PathReport;
use braidcast_sim::traffic::Traffic;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "selection",
    text: "handovers of calls between paths, whether they come to rest, delay and MOS; beside Poisson traffic the delay of all packets and M/D/1's (needs `log = true`)",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// All calls are at rest if none of them goes over in this last share of a run.
const REST: f64 = 0.2;
/// What a call takes beside the network: one packet of 20 ms, and what it takes to fill.
const PACKET: Duration = Duration::from_millis(20);

/// Headers of crossing traffic, bytes.
const UDP_AND_IP: usize = 28;

/// The calls of a run.
struct Calls<'a> {
    calls: Vec<(&'a SctpSender, &'a SctpReceiver)>,
    seconds: f64,
}

impl Calls<'_> {
    /// The mean over all calls of what one has, as far as it has.
    fn mean(&self, value: impl Fn(&SctpSender, &SctpReceiver) -> Option<f64>) -> Option<f64> {
        let values: Vec<f64> = self.calls.iter().filter_map(|(sender, receiver)| value(sender, receiver)).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Seconds into the run at which calls went over to another path, all of them, in order.
    fn handovers(&self) -> Vec<f64> {
        let within = |sender: &SctpSender| {
            let from = sender.opened.as_ref().map_or(Instant::ZERO, |opened| opened.at);
            sender
                .handovers
                .iter()
                .filter(move |at| **at >= from)
                .map(move |at| (*at - from).as_secs_f64())
                .collect::<Vec<_>>()
        };
        let mut all: Vec<f64> = self.calls.iter().flat_map(|(sender, _)| within(sender)).collect();
        all.retain(|at| *at <= self.seconds);
        all.sort_by(f64::total_cmp);
        all
    }
}

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let flows: Vec<&FlowSpec> = run.point.flows.iter().filter(|flow| flow.agent == Agent::Sctp).collect();
    let ends = |flow: &&FlowSpec| {
        let sender = done.sender(&flow.name).and_then(Host::sctp_sender)?;
        Some((sender, done.receiver(&flow.name).and_then(Host::sctp_receiver)?))
    };
    let calls = Calls { calls: flows.iter().filter_map(ends).collect(), seconds: run.duration.as_secs_f64() };
    let handovers = calls.handovers();
    measures.metric("handovers", "", handovers.len() as f64 / calls.calls.len().max(1) as f64);
    let last = handovers.last().copied().unwrap_or_default();
    measures.metric("last handover", "s", last);
    measures.metric("at rest", "", f64::from(u8::from(last <= calls.seconds * (1.0 - REST))));
    let by_path = calls.calls.iter().map(|(sender, _)| sender.grown_by_path(|path| path.sent_chunks));
    let sums = by_path.fold([0_u64; 2], |sum, path| [0, 1].map(|i| sum[i] + path.get(i).copied().unwrap_or_default()));
    measures.metric("share of path 2", "", sums[1] as f64 / (sums[0] + sums[1]).max(1) as f64);
    let ms = |it: Duration| it.as_secs_f64() * 1e3;
    if let Some(delay) = calls.mean(|_, receiver| receiver.delivered.meter.delay_mean().map(ms)) {
        measures.metric("delay", "ms", delay);
    }
    let talks = flows.iter().all(|flow| matches!(flow.traffic.source, Traffic::Voice(_)));
    if let Some(score) = calls.mean(|_, receiver| talks.then(|| opinion(receiver, calls.seconds))) {
        measures.metric("MOS", "", score);
    }
    if let (Some(call), [(sender, receiver)]) = (flows.first(), &calls.calls[..]) {
        crossing(run, done, (call, sender, receiver), &mut measures);
    }
    match calls.calls[..] {
        [(_, receiver)] => alone(receiver, &mut measures),
        _ => measures.curves.push(on_first_path(&calls)),
    }
    measures
}

/// G.711 without a jitter buffer, by its mean delay and the share of the packets of `seconds` that
/// did not come by the deadline.
fn opinion(receiver: &SctpReceiver, seconds: f64) -> f64 {
    let meter = &receiver.delivered.meter;
    let sent = seconds / PACKET.as_secs_f64();
    let loss = (1.0 - meter.on_time() as f64 / sent).clamp(0.0, 1.0);
    let codec = Codec::G711;
    let delay = meter.delay_mean().unwrap_or_default() + codec.delay(PACKET);
    EModel::new(Form::G107, codec).rate(&Conditions { delay, loss, burst_ratio: 1.0 }).mos
}

/// The load of the first link of a call by the call itself and the Poisson traffic that crosses it,
/// the delay that an M/D/1 queue with that load has for packets of the crossing traffic's size,
/// propagation included, and the mean delay of all packets of both (PATHS §5.2, fig. 7). Nothing
/// without such traffic.
fn crossing(
    run: &Run<'_>,
    done: &Done<'_>,
    (call, sender, receiver): (&FlowSpec, &SctpSender, &SctpReceiver),
    measures: &mut Measures,
) {
    let Some(&first) = call.paths.first().and_then(|path| path.first()) else { return };
    let link: &LinkSpec = &run.point.links[first];
    let Some(rate) = link.there.rate.mean_bits_per_second().map(|rate| rate as f64) else { return };
    let (mut bits, mut service, mut delays) = (0.0, 0.0, (0.0, 0_u64));
    for flow in run.point.flows.iter().filter(|flow| flow.agent == Agent::Udp && flow.paths[0].contains(&first)) {
        let Traffic::Poisson(stream) = &flow.traffic.source else { continue };
        let packet = (stream.size + UDP_AND_IP) as f64 * 8.0;
        bits += packet / stream.gap().as_secs_f64();
        service = packet / rate;
        let sink = done.receiver(&flow.name).and_then(Host::plain).and_then(|host| host.sink());
        for meter in sink.iter().flat_map(|sink| sink.meters().values()) {
            let mean = meter.delay_mean().unwrap_or_default().as_secs_f64();
            delays = (delays.0 + mean * meter.received() as f64, delays.1 + meter.received());
        }
    }
    if bits <= 0.0 {
        return;
    }
    let of_first =
        |count: &dyn Fn(&PathReport) -> u64| sender.grown_by_path(count).first().copied().unwrap_or_default();
    let wrapped =
        of_first(&|path| path.sent_bytes) + of_first(&|path| path.sent_packets) * run.point.network.wrap.bytes() as u64;
    let load = (bits + wrapped as f64 * 8.0 / run.duration.as_secs_f64()) / rate;
    measures.metric("load of the first link", "", load);
    if load < 1.0 {
        let delay = waiting(load, service) + link.there.delay.as_secs_f64();
        measures.metric("M/D/1 delay", "ms", delay * 1e3);
    }
    for it in receiver.delivered.log.iter().filter(|it| it.path == PathId(0)) {
        delays = (delays.0 + it.at.since(it.header.sent).as_secs_f64(), delays.1 + 1);
    }
    measures.metric("delay of all packets", "ms", delays.0 * 1e3 / delays.1.max(1) as f64);
}

/// Seconds in an M/D/1 system of this load whose service takes `service` seconds: `s + ρ s / (2 (1 - ρ))`.
fn waiting(load: f64, service: f64) -> f64 {
    service + load * service / (2.0 * (1.0 - load))
}

/// The delay of each packet of the only call, and the path that it took, by when it was made (PATHS figs. 16 and 17).
fn alone(receiver: &SctpReceiver, measures: &mut Measures) {
    let log = &receiver.delivered.log;
    let start = log.first().map_or(Instant::ZERO, |first| first.header.sent);
    let curve = |name: &str, y, value: &dyn Fn(&Arrival) -> f64| {
        let points = log.iter().map(|it| [it.header.sent.since(start).as_secs_f64(), value(it)]).collect();
        Curve { name: name.to_owned(), x: "time (s)", y, points }
    };
    let ms = |it: &Arrival| it.at.since(it.header.sent).as_secs_f64() * 1e3;
    let meter = &receiver.delivered.meter;
    for (name, delay) in [("shortest delay", meter.delay_min()), ("longest delay", meter.delay_max())] {
        delay.iter().for_each(|delay| measures.metric(name, "ms", delay.as_secs_f64() * 1e3));
    }
    measures.curves.push(curve("delay of each packet", "delay (ms)", &ms));
    measures.curves.push(curve("path of each packet", "path", &|it| f64::from(it.path.0) + 1.0));
}

/// How many calls are on the first path, by the time; all begin there (PATHS fig. 5).
fn on_first_path(calls: &Calls<'_>) -> Curve {
    let mut changes: Vec<(f64, bool)> = Vec::new();
    for (sender, _) in &calls.calls {
        let mut first = true;
        for at in &sender.handovers {
            first = !first;
            changes.push((at.as_secs_f64(), first));
        }
    }
    changes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut count = calls.calls.len() as f64;
    let mut points = vec![[0.0, count]];
    for (at, back) in changes {
        count += if back { 1.0 } else { -1.0 };
        points.push([at, count]);
    }
    Curve { name: "calls on the first path".to_owned(), x: "time (s)", y: "calls", points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_m_d_1_queue_waits_half_as_long_as_it_is_full() {
        // At a load of one half: half a service on the average; at none, none.
        assert!((waiting(0.5, 0.008) - 0.012).abs() < 1e-12);
        assert!((waiting(0.0, 0.008) - 0.008).abs() < 1e-12);
        assert!((waiting(0.9, 0.008) - 0.044).abs() < 1e-12);
    }
}
