//! How long messages wait for others: for what was lost before them on their stream, and for longer
//! ones in flight.

use super::{Curve, Experiment, Measures};
use crate::host::{Arrival, SctpReceiver};
use crate::plan::{Done, Plan, Run};
use crate::scenario::FlowSpec;
use braidcast_sctp::LossDetection;
use braidcast_sim::link::{LinkModel, Loss};
use braidcast_sim::traffic::{Histogram, Kind, Stream, Traffic};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "head-of-line",
    text: "delay of messages, its quantiles and distribution, for each kind of message; the delay that a model expects",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// Delays that the curve of a run shows, at most.
const SHOWN: usize = 500;

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    for flow in &run.point.flows {
        let Some(receiver) = done.receiver(&flow.name).and_then(|host| host.sctp_receiver()) else { continue };
        let log = &receiver.delivered.log;
        if flow.traffic.by_kind {
            for (name, kind) in Kind::ALL {
                delays(&format!("delay of {name}"), log.iter().filter(|it| it.header.kind == kind), &mut measures);
            }
        } else {
            delays("delay", log.iter(), &mut measures);
            if let Some(model) = model(flow, run) {
                measures.metric("delay, model", "ms", model * 1e3);
            }
            measures.curves.push(shown(receiver));
        }
        measures.metric("goodput", "kbit/s", receiver.delivered.goodput() / 1e3);
    }
    measures
}

/// Mean and quantiles of the delay of these messages, if there are any.
fn delays<'a>(name: &str, messages: impl Iterator<Item = &'a Arrival>, measures: &mut Measures) {
    let (mut histogram, mut sum) = (Histogram::default(), 0.0);
    for message in messages {
        let delay = message.at - message.header.sent;
        histogram.add(delay);
        sum += delay.as_secs_f64();
    }
    if histogram.total() == 0 {
        return;
    }
    measures.metric(name, "ms", sum * 1e3 / histogram.total() as f64);
    for (quantile, text) in [(0.5, "50 %"), (0.95, "95 %"), (0.99, "99 %")] {
        let delay = histogram.quantile(quantile).unwrap_or_default();
        measures.metric(format!("{name}, {text}"), "ms", delay.as_secs_f64() * 1e3);
    }
}

/// Delays of messages spread over the run.
fn shown(receiver: &SctpReceiver) -> Curve {
    let log = &receiver.delivered.log;
    let point = |it: &Arrival| [it.at.as_secs_f64(), (it.at - it.header.sent).as_secs_f64() * 1e3];
    let points = log.iter().step_by(log.len().div_ceil(SHOWN).max(1)).map(point).collect();
    Curve { name: "delay of messages".to_owned(), x: "time (s)", y: "delay (ms)", points }
}

/// The mean delay in seconds that follows from the loss alone, for messages of a constant rate over one link, each in a
/// packet of its own, with a SACK for each; none for anything else.
///
/// A message that is lost once comes `wait` later, one that is lost again the pause until that is noticed after it,
/// and so on. A message in order is handed over when it and all before it on its stream are there. So the probability
/// that it waits at most x is Π F(x + k · interval · streams), F being that of a message's own wait.
fn model(flow: &FlowSpec, run: &Run<'_>) -> Option<f64> {
    let [[link]] = flow.paths.iter().map(Vec::as_slice).collect::<Vec<_>>()[..] else { return None };
    let LinkModel { delay, loss, .. } = &run.point.links[*link].there;
    let back = run.point.links[*link].back.delay;
    let (&Loss::Uniform(loss), Traffic::Cbr(Stream { rate, size })) = (loss, &flow.traffic.source) else {
        return None;
    };
    let interval = *size as f64 * 8.0 / *rate as f64;
    let rtt = (*delay + back).as_secs_f64();
    let wait = |lost: i32| match flow.sctp.papers.loss_detection {
        // Three later messages report it missing (RFC 9260 §7.2.4); what is lost again waits for T3, each time longer.
        LossDetection::Count | LossDetection::PlainCount => {
            let timeouts = 2_f64.powi((lost - 1).max(0)) - 1.0;
            3.0 * interval + rtt + timeouts * flow.sctp.timers.rto.min.as_secs_f64()
        }
        // A quarter of the round trip after what was sent with it (RFC 8985 §6.2), again and again.
        LossDetection::Time => 1.25 * rtt * f64::from(lost),
    };
    // What is lost more than twice is too rare to matter.
    let (most, step) = (3, 2e-3);
    let apart = interval * f64::from(flow.traffic.streams);
    let before = if flow.traffic.unordered { 0 } else { (wait(most) / apart) as usize };
    // F(x) = 1 - loss^n, n being how often a message must be lost to wait longer than x.
    let longer_than = |x: f64| (1..=most).find(|&lost| wait(lost) > x).unwrap_or(most + 1);
    let within = |x: f64| (0..=before).map(|k| 1.0 - loss.powi(longer_than(x + k as f64 * apart))).product::<f64>();
    let steps = (wait(most) / step) as usize;
    let mean = (0..steps).map(|i| (1.0 - within((i as f64 + 0.5) * step)) * step).sum::<f64>();
    Some(delay.as_secs_f64() + mean)
}
