//! Audio and video over one connection whose queue decides what goes next: what came on time, and
//! the quality of the call (SBPN §4.6).

use super::{Experiment, Measures, Metric, datagrams, transfer};
use crate::host::{DccpHost, Frame, FrameLog, Host, SctpSender};
use crate::plan::{Done, Plan, Run};
use crate::scenario::{FlowSpec, Traffic};
use braidcast_media::voice::Conditions;
use braidcast_sim::traffic::Kind;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "conference",
    text: "audio and video on time, lost and late, and Ie, Id and MOS of video conferences, the mean over all calls over DCCP, SCTP and UDP (needs `log = true`)",
    fixed_length: false,
    build: Plan::of,
    measure,
};

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let (mut measures, mut calls) = (Measures::default(), Vec::new());
    for flow in &run.point.flows {
        let (sender, receiver) = (done.sender(&flow.name), done.receiver(&flow.name));
        if let Some(frames) = sender.zip(receiver).and_then(|(sender, receiver)| frames(sender, receiver, flow)) {
            let mut call = Measures::default();
            rate_audio(&frames, &flow.traffic, &mut call);
            rate_pictures(&frames, &mut call);
            if let Some(sender) = sender.and_then(Host::dccp) {
                queue(sender, &mut call);
                datagrams::curves(&transfer::prefix(run, flow), sender, &mut measures);
            }
            if let Some(sender) = sender.and_then(Host::sctp_sender) {
                sctp_queue(sender, &mut call);
                transfer::curves(&transfer::prefix(run, flow), sender, &mut measures);
            }
            calls.push(call);
        } else if let Some(goodput) = receiver.and_then(Host::goodput).filter(|_| run.point.flows.len() <= MAX_GOODPUTS)
        {
            measures.metric(format!("{} goodput", flow.name), "kbit/s", goodput / 1e3);
        }
    }
    measures.metrics.splice(0..0, means(&calls));
    measures
}

/// Maximum number of flows at which each one's goodput is reported.
const MAX_GOODPUTS: usize = 4;

/// The mean of each metric over the calls that have it.
fn means(calls: &[Measures]) -> Vec<Metric> {
    let mut sums: Vec<(Metric, f64)> = Vec::new();
    for metric in calls.iter().flat_map(|call| &call.metrics) {
        match sums.iter_mut().find(|(sum, _)| sum.name == metric.name) {
            Some((sum, count)) => (sum.value, *count) = (sum.value + metric.value, *count + 1.0),
            None => sums.push((metric.clone(), 1.0)),
        }
    }
    sums.into_iter().map(|(sum, count)| Metric { value: sum.value / count, ..sum }).collect()
}

/// A frame as it was sent, and what came of it.
struct FrameOutcome {
    kind: Kind,
    sent: u32,
    came: Frame,
}

/// The frames that were sent while the window was open and had time to come before it closed; none
/// if nobody kept a log.
fn frames(sender: &Host, receiver: &Host, flow: &FlowSpec) -> Option<Vec<FrameOutcome>> {
    let (sent, came, from) = (sender.frame_log()?, receiver.frame_log()?, sender.window().opens()?);
    let until = from + sender.window().duration().saturating_sub(flow.traffic.deadline);
    let counts = sent.frames().filter(|((at, ..), _)| (from..until).contains(at));
    Some(
        counts
            .map(|(id, frame)| FrameOutcome { kind: id.2, sent: frame.packets, came: FrameLog::frame(came, id) })
            .collect(),
    )
}

/// Packets of some frames.
#[derive(Default)]
struct Packets {
    sent: u32,
    came: u32,
    on_time: u32,
    delay: Duration,
}

impl Packets {
    fn of<'a>(frames: impl Iterator<Item = &'a FrameOutcome>) -> Self {
        frames.fold(Self::default(), |sum, it| Self {
            sent: sum.sent + it.sent,
            came: sum.came + it.came.packets,
            on_time: sum.on_time + it.came.on_time,
            delay: sum.delay + it.came.delay,
        })
    }

    fn share(&self, packets: u32) -> f64 {
        f64::from(packets) / f64::from(self.sent.max(1))
    }

    fn tell(&self, what: &str, measures: &mut Measures) {
        let mut metric = |name: &str, unit, value| measures.metric(format!("{what} {name}"), unit, value);
        metric("on time", "%", 100.0 * self.share(self.on_time));
        metric("loss", "%", 100.0 * self.share(self.sent - self.came));
        metric("late", "%", 100.0 * self.share(self.came - self.on_time));
        if let Some(delay) = self.delay.checked_div(self.came) {
            metric("delay", "ms", delay.as_secs_f64() * 1e3);
        }
    }
}

/// Each run is rated by its own loss and delay, where the source rates the means over all runs.
fn rate_audio(frames: &[FrameOutcome], traffic: &Traffic, measures: &mut Measures) {
    let audio = Packets::of(frames.iter().filter(|it| it.kind == Kind::Audio));
    if audio.sent == 0 {
        return;
    }
    audio.tell("audio", measures);
    let delay = audio.delay.checked_div(audio.came).unwrap_or_default();
    let loss = audio.share(audio.sent - audio.came);
    let quality = traffic.emodel.rate(&Conditions { delay, loss, burst_ratio: 1.0 });
    measures.metric("I_e", "", quality.equipment_impairment);
    measures.metric("I_d", "", quality.delay_impairment);
    measures.metric("MOS", "", quality.mos);
    // A listener who plays each packet at the deadline has no use for what comes later.
    let loss = audio.share(audio.sent - audio.on_time);
    let played = traffic.emodel.rate(&Conditions { delay: traffic.deadline, loss, burst_ratio: 1.0 });
    measures.metric("MOS, played at the deadline", "", played.mos);
}

fn rate_pictures(frames: &[FrameOutcome], measures: &mut Measures) {
    let pictures = || frames.iter().filter(|it| matches!(it.kind, Kind::Video | Kind::I | Kind::P | Kind::B));
    let whole = |it: &&FrameOutcome| it.came.on_time == it.sent;
    let share = |kind: Option<Kind>| {
        let of_kind = || pictures().filter(|it| kind.is_none_or(|kind| it.kind == kind));
        (of_kind().count() > 0).then(|| 100.0 * of_kind().filter(whole).count() as f64 / of_kind().count() as f64)
    };
    let Some(all) = share(None) else { return };
    Packets::of(pictures()).tell("video", measures);
    measures.metric("frames on time", "%", all);
    for kind in [Kind::I, Kind::P, Kind::B] {
        if let Some(share) = share(Some(kind)) {
            measures.metric(format!("{kind} frames on time"), "%", share);
        }
    }
    if pictures().any(|it| it.kind == Kind::I) {
        let shown = shown(pictures().map(|it| (it.kind, whole(&it))));
        measures.metric("frames shown", "%", 100.0 * shown as f64 / pictures().count() as f64);
    }
}

/// How many frames can be shown, given the kind of each and whether it is whole, in the order of
/// sending: a P needs the I or P before it, and so does a B, which nothing needs, as live encoders
/// make them.
fn shown(frames: impl Iterator<Item = (Kind, bool)>) -> usize {
    let mut intact = false;
    let shown = |(kind, whole): (Kind, bool)| {
        match kind {
            Kind::B => return whole && intact,
            Kind::P => intact &= whole,
            _ => intact = whole,
        }
        intact
    };
    frames.map(shown).filter(|shown| *shown).count()
}

/// What the sender's queue did, and what it was given to do it with.
fn queue(sender: &DccpHost, measures: &mut Measures) {
    let (Some(opened), Some(closed)) = (&sender.opened, &sender.closed) else { return };
    let (before, after) = (&opened.report, &closed.report);
    let mut count = |name: &str, from: u64, to: u64| measures.metric(name, "packets", to.saturating_sub(from) as f64);
    count("sent", before.stats.sent_messages, after.stats.sent_messages);
    count("expired", before.stats.expired, after.stats.expired);
    count("replaced", before.stats.crowded_out, after.stats.crowded_out);
    let waited = sender.departed.meters().iter().find(|(id, _)| id.kind == Kind::Audio);
    if let Some(wait) = waited.and_then(|(_, meter)| meter.delay_mean()) {
        measures.metric("audio waited", "ms", wait.as_secs_f64() * 1e3);
    }
    let mut count = |name: &str, from: u64, to: u64| measures.metric(name, "packets", to.saturating_sub(from) as f64);
    count("padding", before.stats.padding, after.stats.padding);
    measures.metric("refused", "packets", sender.refused as f64);
    measures.metric("loss event rate", "%", 100.0 * after.ccid.loss_event_rate.unwrap_or(0.0));
    if let Some(rate) = after.ccid.allowed_rate {
        measures.metric("allowed rate at the end", "kbit/s", rate * 8e-3);
    }
}

/// The same of an SCTP sender, and how its paths were used.
fn sctp_queue(sender: &SctpSender, measures: &mut Measures) {
    let mut count = |name: &str, value: u64| measures.metric(name, "packets", value as f64);
    count(
        "sent",
        sender.grown(|stats| stats.messages_sent).saturating_sub(sender.grown(|stats| stats.abandoned_unsent)),
    );
    count("expired", sender.grown(|stats| stats.expired));
    count("replaced", sender.grown(|stats| stats.crowded_out));
    count("refused", sender.refused);
    count("given up once begun", sender.grown(|stats| stats.abandoned_sent));
    count("repeated", sender.grown(|stats| stats.retransmissions));
    let chunks = sender.grown_by_path(|path| path.sent_chunks);
    let all = chunks.iter().sum::<u64>().max(1) as f64;
    for (path, chunks) in chunks.iter().enumerate().skip(1) {
        measures.metric(format!("share of path {}", path + 1), "%", 100.0 * *chunks as f64 / all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_picture_takes_those_with_it_that_refer_to_it() {
        let film = |words: &str| {
            let frame = |word: &str| {
                (
                    if word.starts_with('I') {
                        Kind::I
                    } else if word.starts_with('P') {
                        Kind::P
                    } else {
                        Kind::B
                    },
                    !word.ends_with('-'),
                )
            };
            shown(words.split(' ').map(frame).collect::<Vec<_>>().into_iter())
        };
        assert_eq!(film("I B P B- P B I"), 6, "nothing refers to a B");
        assert_eq!(film("I B P- B P B I B"), 4, "until the next I");
        assert_eq!(film("P B I- B P"), 0);
    }
}
