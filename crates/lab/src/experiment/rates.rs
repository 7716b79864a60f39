//! How fast the rate of a DCCP sender with TFRC grows: at the start, after losses, after a silence.

use super::{Experiment, Measures, datagrams};
use crate::host::{DccpHost, DccpSample, Host};
use crate::plan::{Done, Plan, Run};
use braidcast_cc::tfrc::{FeedbackRate, least_feedback_delay, slow_start};
use braidcast_core::Instant;
use braidcast_dccp::{Ccid, Options};
use braidcast_sim::traffic::Traffic;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "rates",
    text: "how long a DCCP sender takes in slow start, after its first losses, and after a silence of its source",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let Some(flow) = run.point.flows.first() else { return measures };
    let Some(sender) = done.sender(&flow.name).and_then(Host::dccp) else { return measures };
    let Some(begin) = sender.window().first() else { return measures };
    if let Some(goodput) = done.receiver(&flow.name).and_then(Host::goodput) {
        measures.metric("goodput", "kbit/s", goodput / 1e3);
    }
    if let Some(sink) = done.receiver(&flow.name).and_then(Host::sink) {
        measures.metric("loss", "%", datagrams::loss(sink));
    }
    if let Some(link) = flow.paths.first().and_then(|path| path.first()) {
        measures.metric("drops in the queue", "packets", done.links[*link].there.dropped_queue as f64);
    }
    match &flow.traffic.source {
        Traffic::Interrupted(stream, from, until) => {
            let silence = (begin + *from, begin + *until);
            silenced(sender, begin, silence, stream.rate as f64 / 8.0, &mut measures);
        }
        _ => {
            let rates =
                flow.paths[0].iter().filter_map(|&link| run.point.links[link].there.rate.mean_bits_per_second());
            let capacity = rates.min().map_or(f64::INFINITY, |rate| rate as f64 / 8.0);
            greedy(sender, begin, (capacity, reports(&flow.dccp)), &mut measures);
        }
    }
    datagrams::curves("", sender, &mut measures);
    measures
}

/// A source that wants `wanted` bytes per second but for a silence.
fn silenced(sender: &DccpHost, begin: Instant, silence: (Instant, Instant), wanted: f64, measures: &mut Measures) {
    // Before the first packet its size is not known, and so no rate that is counted in packets.
    let samples = || sender.samples.iter().skip_while(|it| it.report.stats.sent_messages == 0);
    let reaches = |from: Instant| {
        let at = samples().find(|it| it.at >= from && allowed(it) >= wanted).map(|it| it.at);
        at.map(|at| (at - from).as_secs_f64())
    };
    let last = |before: Instant| samples().take_while(|it| it.at < before).last();
    if let Some(first) = samples().next() {
        measures.metric("first rate", "packets/RTT", per_rtt(first));
    }
    if let Some(time) = reaches(begin) {
        measures.metric("start-up", "s", time);
    }
    if let Some(rate) = last(silence.0).map(allowed) {
        measures.metric("rate before the silence", "kbit/s", rate * 8e-3);
    }
    if let Some(sample) = last(silence.1) {
        measures.metric("rate after the silence", "packets/RTT", per_rtt(sample));
    }
    if let Some(time) = reaches(silence.1) {
        measures.metric("recovery", "s", time);
    }
}

/// How often the receiver of a connection with these options reports.
fn reports(options: &Options) -> FeedbackRate {
    let usual = if options.ccids.first() == Some(&Ccid::Four) {
        options.tfrc.ccid4.feedback()
    } else {
        FeedbackRate::default()
    };
    options.tfrc.feedback.unwrap_or(usual)
}

/// A source that always has something, over a link of `capacity` bytes per second, and reports as often as `reports`
/// says. Slow start ends with the first loss that is reported. The sender has recovered when nine tenths of the link
/// are allowed again.
fn greedy(sender: &DccpHost, begin: Instant, (capacity, reports): (f64, FeedbackRate), measures: &mut Measures) {
    let lossless = |it: &&DccpSample| it.report.ccid.loss_event_rate.is_none_or(|p| p == 0.0);
    let (start, later) = sender.samples.split_at(sender.samples.iter().take_while(lossless).count());
    let Some(left) = later.first() else { return };
    measures.metric("slow start", "s", (left.at - begin).as_secs_f64());
    let reached = start.iter().map(allowed).fold(0.0, f64::max);
    measures.metric("rate in slow start", "kbit/s", reached * 8e-3);
    if let (Some(first), Some(rtt)) = (start.first(), start.iter().filter_map(|it| it.report.ccid.srtt).min()) {
        let reports = reports.per_rtt(rtt, f64::INFINITY, 1.0);
        let time = slow_start(allowed(first), reached, rtt, reports);
        measures.metric("slow start by eq. 4.12", "s", time.as_secs_f64());
        measures.metric("least feedback delay", "s", least_feedback_delay(rtt, reports, Duration::ZERO).as_secs_f64());
    }
    let mut fallen = later.iter().skip_while(|it| allowed(it) >= 0.9 * capacity);
    let lowest =
        fallen.clone().take_while(|it| allowed(it) < 0.9 * capacity).map(allowed).fold(f64::INFINITY, f64::min);
    if lowest.is_finite() {
        measures.metric("lowest rate after it", "kbit/s", lowest * 8e-3);
    }
    if let Some(back) = fallen.find(|it| allowed(it) >= 0.9 * capacity) {
        measures.metric("recovery", "s", (back.at - left.at).as_secs_f64());
    }
}

/// X, bytes per second.
fn allowed(sample: &DccpSample) -> f64 {
    sample.report.ccid.allowed_rate.unwrap_or(0.0)
}

/// X in packets of mean size per round trip.
fn per_rtt(sample: &DccpSample) -> f64 {
    let ccid = &sample.report.ccid;
    let rtt = ccid.srtt.map_or(0.0, |rtt| rtt.as_secs_f64());
    allowed(sample) * rtt / ccid.segment_size.unwrap_or(1.0)
}
