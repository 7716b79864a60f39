//! Frames that are lost in flight because a part of them is (THESIS §9.1), and what an encoder
//! made.

use super::{Experiment, Measures, datagrams};
use crate::host::FrameLog;
use crate::plan::{Done, Plan, Run};
use braidcast_sim::traffic::Kind;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "encoder",
    text: "frames of which a part is lost, by kind, in % of all frames, of a source over DCCP (needs `log = true`)",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let Some(flow) = run.point.flows.first() else { return measures };
    let (Some(sender), Some(receiver)) = (done.sender(&flow.name), done.receiver(&flow.name)) else { return measures };
    let (Some(sent), Some(came)) = (sender.frame_log(), receiver.frame_log()) else { return measures };
    let Some(from) = sender.window().opens() else { return measures };
    let until = from + sender.window().duration().saturating_sub(flow.traffic.deadline);
    let counts = sent.frames().filter(|((at, ..), _)| (from..until).contains(at));
    let frames: Vec<(Kind, bool)> =
        counts.map(|(id, frame)| (id.2, FrameLog::frame(came, id).packets < frame.packets)).collect();
    if frames.is_empty() {
        return measures;
    }
    let percent = |which: &dyn Fn(&(Kind, bool)) -> bool| {
        100.0 * frames.iter().filter(|it| which(it)).count() as f64 / frames.len() as f64
    };
    measures.metric("frames lost", "%", percent(&|(_, is_lost)| *is_lost));
    for kind in [Kind::I, Kind::P, Kind::B] {
        if frames.iter().any(|it| it.0 == kind) {
            measures.metric(format!("{kind} frames lost"), "% of all", percent(&|it| *it == (kind, true)));
        }
    }
    if let Some(goodput) = receiver.goodput() {
        measures.metric("goodput", "kbit/s", goodput / 1e3);
    }
    if let Some(sender) = sender.dccp() {
        datagrams::curves("", sender, &mut measures);
    }
    measures
}
