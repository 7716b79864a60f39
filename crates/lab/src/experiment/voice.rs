//! Telephone calls: what `transfer` measures, and the quality of the calls by the E-model (ITU-T
//! G.107) as THESIS §4.6.2 has it.

use super::{Experiment, Measures, transfer};
use crate::host::Host;
use crate::plan::{Done, Plan, Run};
use braidcast_media::voice::{Codec, Conditions, EModel, Form};
use braidcast_sim::traffic::{Codec as Coded, DatagramSink, FlowMeter, Traffic};

/// Advantage factor for who has no other way to call (THESIS §4.6.2).
const ADVANTAGE: f64 = 40.0;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "voice",
    text: "what `transfer` measures, and R and MOS of calls that are played at the deadline",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = transfer::measure(run, done);
    for flow in &run.point.flows {
        let prefix = transfer::prefix(run, flow);
        let sink = done.receiver(&flow.name).and_then(Host::sink).filter(|sink| !sink.meters().is_empty());
        let (Traffic::Voice(voice), Some(sink)) = (&flow.traffic.source, sink) else { continue };
        let codec = match voice.codec {
            Coded::G711 => Codec::G711,
            Coded::G729 => Codec::G729,
            Coded::Speex => Codec::Speex,
        };
        let unheard = unheard(sink);
        // A fixed jitter buffer plays each packet when the deadline after its sending has come.
        let conditions =
            Conditions { delay: flow.traffic.deadline + codec.delay(voice.packet), loss: unheard, burst_ratio: 1.0 };
        let quality = EModel { advantage: ADVANTAGE, ..EModel::new(Form::G107, codec) }.rate(&conditions);
        measures.metric(format!("{prefix}not played"), "%", 100.0 * unheard);
        measures.metric(format!("{prefix}R"), "", quality.r);
        measures.metric(format!("{prefix}MOS"), "", quality.mos);
    }
    measures
}

/// The share of packets that did not come, or came after the deadline.
fn unheard(sink: &DatagramSink) -> f64 {
    let sent = |meter: &FlowMeter| meter.received() + meter.losses(None).lost();
    let all = sink.meters().values().map(sent).sum::<u64>();
    let on_time = sink.meters().values().map(FlowMeter::on_time).sum::<u64>();
    1.0 - on_time as f64 / all.max(1) as f64
}
