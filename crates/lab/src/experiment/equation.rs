//! Rate of DCCP beside that of TCP's throughput equation (THESIS eq. 3.1) for the loss and the
//! round-trip time that it met.

use super::{Experiment, Measures, datagrams};
use crate::host::{DccpHost, DccpSample, Host};
use crate::plan::{Done, Plan, Run};
use crate::scenario::FlowSpec;
use braidcast_cc::tfrc::throughput;
use braidcast_dccp::{Ccid, CcidReport};
use braidcast_sim::link::{LinkModel, Loss};
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "equation",
    text: "bulk data over DCCP beside TCP's throughput equation, for the loss events that it felt and for the link's loss",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let Some(flow) = run.point.flows.first() else { return measures };
    let hosts = done.sender(&flow.name).and_then(Host::dccp).zip(done.receiver(&flow.name));
    let Some((sender, receiver)) = hosts else { return measures };
    let felt = Felt::of(flow, sender, receiver);
    measures.metric("goodput", "kbit/s", felt.goodput);
    measures.metric("loss event rate", "%", 100.0 * felt.loss_event_rate);
    measures.metric("RTT", "ms", felt.rtt.as_secs_f64() * 1e3);
    measures.metric("equation", "kbit/s", felt.equation());
    measures.metric("equation less 15 %", "kbit/s", 0.85 * felt.equation());
    measures.metric("equation and 15 %", "kbit/s", 1.15 * felt.equation());
    let links = || flow.paths.iter().flatten().map(|&link| &run.point.links[link]);
    let rtt = links().map(|link| link.there.delay + link.back.delay).sum::<Duration>();
    let passed = links().map(|link| 1.0 - loss_of(&link.there)).product::<f64>();
    let nominal = throughput(felt.size, rtt, 1.0 - passed) * 8e-3;
    measures.metric("equation for the link", "kbit/s", nominal);
    measures.metric("share of the equation", "", felt.goodput / felt.equation());
    measures.metric("share of the equation for the link", "", felt.goodput / nominal);
    datagrams::curves("", sender, &mut measures);
    measures
}

/// The share of packets that a link loses at random.
fn loss_of(link: &LinkModel) -> f64 {
    if let Loss::Uniform(share) = link.loss { share } else { 0.0 }
}

/// The equation's segment: the message, and for CCID 4 1460 · s / (s + oh) bytes (THESIS eq. 4.6),
/// oh = 36 (RFC 5622 §5).
fn segment(flow: &FlowSpec) -> f64 {
    let s = flow.traffic.message as f64;
    if flow.dccp.ccids.contains(&Ccid::Four) { 1460.0 * s / (s + 36.0) } else { s }
}

/// How a flow fared, in the mean over the time that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Felt {
    /// In kbit/s.
    pub(super) goodput: f64,
    /// What the congestion control takes for it; if it has no such thing, loss events for each packet. 0 to 1.
    pub(super) loss_event_rate: f64,
    pub(super) rtt: Duration,
    /// The equation's segment, bytes.
    size: f64,
}

impl Felt {
    /// Round trip and loss event rate come from the samples, so the scenario has to say `sample`.
    pub(super) fn of(flow: &FlowSpec, sender: &DccpHost, receiver: &Host) -> Self {
        let opens = sender.window().opens();
        let reports =
            || sender.samples.iter().filter(|it| opens.is_some_and(|at| it.at >= at)).map(|it| it.report.ccid);
        let mean = |value: &dyn Fn(&CcidReport) -> Option<f64>| {
            let values = reports().filter_map(|it| value(&it));
            let (sum, count) = values.fold((0.0, 0), |(sum, count), x| (sum + x, count + 1));
            (count > 0).then(|| sum / f64::from(count))
        };
        let per_packet = || {
            let (opened, closed) = sender.opened.as_ref().zip(sender.closed.as_ref())?;
            let grown = |value: &dyn Fn(&DccpSample) -> u64| value(closed).saturating_sub(value(opened)) as f64;
            Some(grown(&|it| it.report.ccid.loss_events) / grown(&|it| it.report.stats.sent_messages).max(1.0))
        };
        Self {
            goodput: receiver.goodput().unwrap_or(0.0) / 1e3,
            loss_event_rate: mean(&|it| it.loss_event_rate).or_else(per_packet).unwrap_or(0.0),
            rtt: Duration::from_secs_f64(mean(&|it| it.srtt.map(|rtt| rtt.as_secs_f64())).unwrap_or(0.0)),
            size: segment(flow),
        }
    }

    /// Returns the rate by eq. 3.1 for this, kbit/s.
    pub(super) fn equation(&self) -> f64 {
        throughput(self.size, self.rtt, self.loss_event_rate) * 8e-3
    }
}
