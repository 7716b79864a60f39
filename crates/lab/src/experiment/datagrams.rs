//! What is measured of messages that may get lost: over DCCP, or as datagrams without any control.

use super::{Curve, Measures};
use crate::host::{DccpHost, DccpSample};
use braidcast_sim::traffic::{DatagramSink, FlowMeter};
use core::time::Duration;

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The mean of `value` over the streams of a sink, by the messages in each.
fn mean(sink: &DatagramSink, value: impl Fn(&FlowMeter) -> f64) -> f64 {
    let (sum, count) = sink
        .meters()
        .values()
        .fold((0.0, 0), |(sum, count), meter| (sum + value(meter) * meter.received() as f64, count + meter.received()));
    sum / count.max(1) as f64
}

fn max(sink: &DatagramSink, value: impl Fn(&FlowMeter) -> Duration) -> f64 {
    sink.meters().values().map(|meter| ms(value(meter))).fold(0.0, f64::max)
}

/// Share in percent of the messages before the last one that came which did not come: those that the sender's queue
/// refused are among them.
pub(super) fn loss(sink: &DatagramSink) -> f64 {
    let lost = sink.meters().values().map(|meter| meter.losses(None).lost()).sum::<u64>();
    let received = sink.meters().values().map(FlowMeter::received).sum::<u64>();
    100.0 * lost as f64 / (lost + received).max(1) as f64
}

/// What the receiver of a flow got.
pub(super) fn received(prefix: &str, sink: &DatagramSink, measures: &mut Measures) {
    if sink.meters().is_empty() {
        return;
    }
    let mut metric = |name: &str, unit, value| measures.metric(format!("{prefix}{name}"), unit, value);
    metric("loss", "%", loss(sink));
    metric("delay", "ms", mean(sink, |meter| meter.delay_mean().map_or(0.0, ms)));
    metric("jitter", "ms", mean(sink, |meter| ms(meter.jitter_mean())));
    metric("largest jitter", "ms", max(sink, FlowMeter::jitter_max));
}

/// What a DCCP sender did, and how its congestion control felt.
pub(super) fn sent(prefix: &str, host: &DccpHost, measures: &mut Measures) {
    let mut metric = |name: &str, unit, value| measures.metric(format!("{prefix}{name}"), unit, value);
    let departed = &host.departed;
    if !departed.meters().is_empty() {
        metric("loss before sending", "%", loss(departed));
        metric("wait before sending", "ms", mean(departed, |meter| meter.delay_mean().map_or(0.0, ms)));
        metric("sender's jitter", "ms", mean(departed, |meter| ms(meter.jitter_mean())));
        metric("sender's largest jitter", "ms", max(departed, FlowMeter::jitter_max));
    }
    let (Some(opened), Some(closed)) = (&host.opened, &host.closed) else { return };
    let (before, after) = (&opened.report.ccid, &closed.report.ccid);
    metric("loss events", "", after.loss_events.saturating_sub(before.loss_events) as f64);
    metric("timeouts", "", after.timeouts.saturating_sub(before.timeouts) as f64);
    if let Some(p) = after.loss_event_rate {
        metric("loss event rate", "%", 100.0 * p);
    }
    if let Some(rtt) = after.srtt {
        metric("RTT", "ms", ms(rtt));
    }
}

/// Rates, round trip and loss event rate over time, if the scenario asks for samples.
pub(super) fn curves(prefix: &str, host: &DccpHost, measures: &mut Measures) {
    let mut curve = |name: &str, y, value: &dyn Fn(&DccpSample) -> Option<f64>| {
        let points: Vec<_> = host.samples.iter().filter_map(|it| Some([it.at.as_secs_f64(), value(it)?])).collect();
        if !points.is_empty() {
            measures.curves.push(Curve { name: format!("{prefix}{name}"), x: "time (s)", y, points });
        }
    };
    let kbit = |rate: f64| rate * 8e-3;
    curve("allowed rate", "rate (kbit/s)", &|it| it.report.ccid.allowed_rate.map(kbit));
    curve("receive rate", "rate (kbit/s)", &|it| it.report.ccid.recv_rate.map(kbit));
    curve("window", "packets", &|it| it.report.ccid.cwnd.map(f64::from));
    curve("RTT", "RTT (ms)", &|it| it.report.ccid.srtt.map(ms));
    curve("loss event rate", "loss event rate (%)", &|it| it.report.ccid.loss_event_rate.map(|p| 100.0 * p));
    let sent = host.departed.meters().values().fold(Vec::new(), |mut all: Vec<u64>, meter| {
        let intervals = meter.series().intervals();
        all.resize(all.len().max(intervals.len()), 0);
        all.iter_mut().zip(intervals).for_each(|(sum, bytes)| *sum += bytes);
        all
    });
    if !host.samples.is_empty() {
        // Intervals of 100 ms, as `Series` has them by default.
        let point = |(at, bytes): (usize, u64)| [at as f64 * 0.1, kbit(bytes as f64 * 10.0)];
        let points = sent.into_iter().enumerate().map(point).collect();
        let name = format!("{prefix}sending rate");
        measures.curves.push(Curve { name, x: "time (s)", y: "rate (kbit/s)", points });
    }
}
