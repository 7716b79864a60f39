//! A film over the flow `main`: which of its frames can be shown when they are due (PRCMT §6.2).

use super::freeze::{self, Missing};
use super::{Curve, Experiment, Measures};
use crate::host::Host;
use crate::plan::{Done, Plan, Run};
use braidcast_core::Rng;
use braidcast_media::{Frame, Kind, playable};
use braidcast_sim::traffic::{self, Emission};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "playable-frames",
    text: "frames of a film that can be shown in time, gaps between them, PSNR if ffmpeg is there",
    fixed_length: false,
    build: Plan::of,
    measure,
};

/// A frame of the film, in the order of showing.
struct Shown {
    film: Emission,
    on_time: bool,
    /// On time, and so is all that it was predicted from.
    playable: bool,
}

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let Some(frames) = frames(run, done) else { return measures };
    let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
    let count = |wanted: &dyn Fn(&Shown) -> bool| frames.iter().filter(|frame| wanted(frame)).count();
    measures.metric("playable", "%", share(count(&|it| it.playable), frames.len()));
    measures.metric("on time", "%", share(count(&|it| it.on_time), frames.len()));
    for kind in [traffic::Kind::I, traffic::Kind::P, traffic::Kind::B] {
        let (all, good) = (count(&|it| it.film.kind == kind), count(&|it| it.film.kind == kind && it.playable));
        measures.metric(format!("playable {kind} frames"), "%", share(good, all));
    }
    let on_time = count(&|it| it.on_time);
    measures.metric("on time, not playable", "%", share(on_time - count(&|it| it.playable), on_time));
    let gaps = gaps(&frames);
    measures.metric("longest gap", "s", gaps.iter().copied().fold(0.0, f64::max));
    measures.metric("gaps over 1 s", "", gaps.iter().filter(|gap| **gap > 1.0).count() as f64);
    curves(&frames, &mut measures);
    let seen: Vec<bool> = frames.iter().map(|it| it.playable).collect();
    if let Some(psnr) = freeze::psnr(&seen, Missing::White) {
        measures.metric("PSNR, white for what is missing", "dB", psnr.iter().sum::<f64>() / psnr.len() as f64);
    }
    if let Some(psnr) = freeze::psnr(&seen, Missing::LastShown) {
        measures.metric("PSNR", "dB", psnr.iter().sum::<f64>() / psnr.len() as f64);
        let points = psnr.iter().enumerate().map(|(n, psnr)| [n as f64, *psnr]).collect();
        measures.curves.push(Curve { name: "PSNR".into(), x: "frame", y: "PSNR (dB)", points });
    }
    if let Some(receiver) = done.receiver("main").and_then(Host::sctp_receiver) {
        measures.metric("throughput", "kB/s", receiver.throughput() / 8e3);
    }
    if let Some(sender) = done.sender("main").and_then(Host::sctp_sender) {
        measures.metric("given up once begun", "frames", sender.grown(|stats| stats.abandoned_sent) as f64);
        measures.metric("given up unsent", "frames", sender.grown(|stats| stats.abandoned_unsent) as f64);
    }
    measures
}

/// Every frame of the film, and what became of it.
fn frames(run: &Run<'_>, done: &Done<'_>) -> Option<Vec<Shown>> {
    let traffic = &run.point.flows.iter().find(|flow| flow.name == "main")?.traffic;
    let log = &done.receiver("main")?.sctp_receiver()?.delivered.log;
    // Only types and times of the frames are wanted, and these are not drawn.
    let film = traffic.source.source(Rng::from_seed(run.seed)).take_while(|frame| frame.at < run.duration);
    let mut frames: Vec<Shown> = film.map(|film| Shown { film, on_time: false, playable: false }).collect();
    // The receiver begins to show the film one deadline after its first frame came (PRCMT §6.2:
    // "buffer time before the playout").
    let start = log.first().map(|first| first.at + traffic.deadline)?;
    for arrival in log {
        if let Some(frame) = frames.get_mut(arrival.header.frame as usize) {
            frame.on_time = arrival.at <= start + frame.film.at;
        }
    }
    let order = decoding_order(&frames);
    let decoded: Vec<Frame> = order.iter().map(|&n| coded(n, &frames[n])).collect();
    for (&n, shown) in order.iter().zip(playable(&decoded).shown) {
        frames[n].playable = shown;
    }
    Some(frames)
}

/// The frames as a decoder takes them: an I or P before the B that are shown before it and need it.
fn decoding_order(frames: &[Shown]) -> Vec<usize> {
    let (mut order, mut waiting) = (Vec::with_capacity(frames.len()), Vec::new());
    for (n, frame) in frames.iter().enumerate() {
        if frame.film.kind == traffic::Kind::B {
            waiting.push(n);
        } else {
            order.push(n);
            order.append(&mut waiting);
        }
    }
    order.append(&mut waiting);
    order
}

fn coded(n: usize, frame: &Shown) -> Frame {
    let kind = match frame.film.kind {
        traffic::Kind::I => Kind::I,
        traffic::Kind::B => Kind::B,
        _ => Kind::P,
    };
    Frame { kind, reference: kind != Kind::B, pts: n as u64, on_time: frame.on_time }
}

/// Returns how long the video stood still each time that frames were missing, in seconds.
fn gaps(frames: &[Shown]) -> Vec<f64> {
    let mut gaps = Vec::new();
    let mut missing: Option<f64> = None;
    for frame in frames {
        let at = frame.film.at.as_secs_f64();
        if frame.playable {
            gaps.extend(missing.take().map(|since| at - since));
        } else {
            missing.get_or_insert(at);
        }
    }
    let end = frames.last().map_or(0.0, |frame| frame.film.at.as_secs_f64());
    gaps.extend(missing.map(|since| end - since));
    gaps
}

/// How many frames could be shown in each second of the film (PRCMT fig. 15), and up to each frame (fig. 16).
fn curves(frames: &[Shown], measures: &mut Measures) {
    let (mut rate, mut so_far) = (Vec::<[f64; 2]>::new(), Vec::new());
    let mut total = 0.0;
    for (n, frame) in frames.iter().enumerate() {
        let second = frame.film.at.as_secs();
        while rate.len() as u64 <= second {
            rate.push([rate.len() as f64, 0.0]);
        }
        let one = f64::from(u8::from(frame.playable));
        rate[second as usize][1] += one;
        total += one;
        so_far.push([n as f64, total]);
    }
    let curve = |name: &str, x, y, points| Curve { name: name.into(), x, y, points };
    measures.curves.push(curve("playable in each second", "time in the film (s)", "frames", rate));
    measures.curves.push(curve("playable up to a frame", "frame", "frames", so_far));
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn film(kinds: &str) -> Vec<Shown> {
        let frame = |(n, kind): (usize, char)| {
            let kind = match kind {
                'I' => traffic::Kind::I,
                'P' => traffic::Kind::P,
                _ => traffic::Kind::B,
            };
            let at = Duration::from_millis(100 * n as u64);
            let film = Emission { at, bytes: 1, kind, flow: 0, frame: n as u64 };
            Shown { film, on_time: true, playable: kind != traffic::Kind::B }
        };
        kinds.chars().enumerate().map(frame).collect()
    }

    #[test]
    fn a_decoder_takes_what_b_frames_need_before_them() {
        assert_eq!(decoding_order(&film("IBBPBBIB")), [0, 3, 1, 2, 6, 4, 5, 7]);
    }

    #[test]
    fn a_gap_lasts_until_the_next_frame_that_is_shown() {
        let gaps = gaps(&film("IBBPBIBBB"));
        assert_eq!(gaps.iter().map(|gap| (gap * 10.0).round()).collect::<Vec<_>>(), [2.0, 1.0, 2.0]);
    }
}
