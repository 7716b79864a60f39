//! Quality of calls and video that came over DCCP or as datagrams: R and MOS (ITU-T G.107), and the
//! video part of G.1070.

use super::{Experiment, Measures, datagrams};
use crate::host::{Host, JitterBuffers};
use crate::plan::{Done, Plan, Run};
use crate::scenario::Traffic;
use braidcast_media::video::Screen;
use braidcast_media::voice::{Conditions, Heard, Quality};
use braidcast_sim::traffic::Traffic as Source;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "quality",
    text: "R and mean opinion score of calls (E-model) and the score of video (G.1070), as a listener with `playout` has it",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// Frames per second of video whose quality is asked for: what THESIS §8.2.2 says, and what fits
/// its table 5.3.
const FPS: f64 = 30.0;

pub(super) fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let flows = &run.point.flows;
    for flow in flows {
        let Some(receiver) = done.receiver(&flow.name) else { continue };
        let prefix = if flows.len() == 1 { String::new() } else { format!("{} ", flow.name) };
        let goodput = receiver.goodput().unwrap_or(0.0) / 1e3;
        measures.metric(format!("{prefix}goodput"), "kbit/s", goodput);
        let Some(jitter_buffers) = receiver.jitter_buffers() else { continue };
        match &flow.traffic.source {
            Source::Voice(_) => rate_calls(&prefix, jitter_buffers, &flow.traffic, &mut measures),
            _ => rate_video(&prefix, jitter_buffers, goodput, &mut measures),
        }
        if let Some(sender) = done.sender(&flow.name).and_then(Host::dccp) {
            datagrams::sent(&prefix, sender, &mut measures);
        }
        if let Some(buffer) = receiver.dccp().and_then(|it| it.closed).and_then(|it| it.report.reorder) {
            measures.metric(format!("{prefix}longest wait"), "ms", buffer.longest_delay.as_secs_f64() * 1e3);
        }
    }
    measures
}

/// A call that was heard: the conditions that it met, and its quality.
pub(super) struct Call {
    met: Conditions,
    pub(super) quality: Quality,
}

/// Returns the quality of a call of this traffic of which `heard` arrived.
pub(super) fn call(heard: &Heard, traffic: &Traffic) -> Call {
    let packet = if let Source::Voice(voice) = &traffic.source { voice.packet } else { Duration::ZERO };
    let delay = heard.delay() + traffic.emodel.codec.delay(packet);
    let met = Conditions { delay, loss: heard.loss(), burst_ratio: heard.burst_ratio() };
    Call { quality: traffic.emodel.rate(&met), met }
}

/// The mean over calls.
fn rate_calls(prefix: &str, jitter_buffers: &JitterBuffers, traffic: &Traffic, measures: &mut Measures) {
    let values = |Call { met, quality }: Call| {
        [quality.r, quality.mos, 100.0 * met.loss, met.delay.as_secs_f64() * 1e3, met.burst_ratio]
    };
    let (sums, calls) = jitter_buffers
        .heard()
        .map(|heard| values(call(&heard, traffic)))
        .fold(([0.0; 5], 0), |(sums, calls), values| (core::array::from_fn(|i| sums[i] + values[i]), calls + 1));
    if calls == 0 {
        return;
    }
    let names = [("R", ""), ("MOS", ""), ("loss heard", "%"), ("mouth to ear", "ms"), ("burst ratio", "")];
    for ((name, unit), sum) in names.into_iter().zip(sums) {
        measures.metric(format!("{prefix}{name}"), unit, sum / f64::from(calls));
    }
}

/// Video at the rate that came through.
fn rate_video(prefix: &str, jitter_buffers: &JitterBuffers, goodput: f64, measures: &mut Measures) {
    let (lost, all) =
        jitter_buffers.heard().fold((0, 0), |(lost, all), it| (lost + it.lost, all + it.lost + it.played));
    let loss = lost as f64 / (all as f64).max(1.0);
    measures.metric(format!("{prefix}loss seen"), "%", 100.0 * loss);
    measures.metric(format!("{prefix}MOS"), "", Screen::Mpeg4Qvga.mos(goodput, FPS, loss));
}
