//! A clip in a session over each flow that has one: what comes in time, what can be shown, what an
//! oracle could have done.

mod curves;
mod follow;
mod outages;
mod yardstick;

use super::transfer::prefix;
use super::{Experiment, Measures};
use crate::clip::{FrameKind, Shot};
use crate::host::{Came, Host, LiveReceiver};
use crate::oracle::{Possible, Route, Wanted, chances, possible};
use crate::plan::{Done, Plan, Run};
use crate::scenario::{Agent, FlowSpec, LinkSpec};
use braidcast_core::{Instant, PathId};
use braidcast_media::{Frame, playable};
use braidcast_sim::link::LinkStats;
use core::time::Duration;

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "live",
    text: "frames of a clip in time and fit to be shown, audio, freezes, cost, and what an oracle could have done",
    fixed_length: false,
    build,
    measure,
};

/// Time beyond its latency at which a packet may still come out: the pace of playout, and a
/// player's own buffer.
const TOLERANCE: Duration = Duration::from_millis(50);

fn build(run: &Run<'_>) -> Plan {
    Plan { links: links(run), ..Plan::of(run) }
}

/// The links with what is drawn for this run.
fn links(run: &Run<'_>) -> Vec<LinkSpec> {
    outages::settled(Plan::links(run), run)
}

/// A frame that was sent and what became of it.
#[derive(Clone, Copy)]
struct Seen {
    shot: Shot,
    /// The longest that a packet of it took; `None` if one never came.
    took: Option<Duration>,
    on_time: bool,
    /// How much too late it was whole, and over which path the last of it came.
    late: Option<(Duration, PathId)>,
    /// `true` if it is on time, and so is all that it references; audio and tables reference
    /// nothing.
    playable: bool,
}

fn measure(run: &Run<'_>, done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    for flow in run.point.flows.iter().filter(|flow| flow.agent == Agent::Live) {
        let Some(receiver) = done.receiver(&flow.name).and_then(Host::live_receiver) else { continue };
        let prefix = prefix(run, flow);
        let latency = flow.live.sender.latency;
        if let (Some(encoding), Some(sender)) =
            (&flow.live.encoder, done.sender(&flow.name).and_then(Host::live_sender))
        {
            let begin = receiver.window().first().unwrap_or(Instant::ZERO).since(Instant::ZERO);
            let routes = routes(run, flow, begin, begin + run.duration + latency);
            follow::add(&prefix, encoding, latency, (sender, receiver), &routes, &mut measures);
            continue;
        }
        let limit = latency + TOLERANCE;
        let (seen, longest_freeze) = seen(receiver, limit);
        let begin = receiver.window().first().unwrap_or(Instant::ZERO);
        let oracle = oracle(run, flow, &seen, begin, limit);
        frames(&prefix, &seen, oracle, &mut measures);
        if flow.live.yardstick {
            yardstick::add(&prefix, run, flow, &seen, begin, limit, &mut measures);
        }
        measures.metric(format!("{prefix}longest freeze"), "s", longest_freeze.as_secs_f64());
        misses(&prefix, flow.paths.len(), &seen, &mut measures);
        cost(&prefix, run, flow, &seen, done, &mut measures);
        curves::add(&prefix, &seen, done.sender(&flow.name).and_then(Host::live_sender), &mut measures);
    }
    for flow in run.point.flows.iter().filter(|flow| flow.agent != Agent::Live) {
        if let Some(goodput) = done.receiver(&flow.name).and_then(Host::goodput) {
            measures.metric(format!("{}goodput", prefix(run, flow)), "kbit/s", goodput / 1e3);
        }
    }
    measures
}

/// What became of each frame, and the longest freeze.
fn seen(receiver: &LiveReceiver, limit: Duration) -> (Vec<Seen>, Duration) {
    let begin = receiver.window().first().unwrap_or(Instant::ZERO);
    let seen = |(&shot, came): (&Shot, &Came)| {
        let took = (came.packets >= shot.packets).then_some(came.slowest);
        let on_time = took.is_some_and(|took| took <= limit);
        let due = begin + shot.captured + (limit - TOLERANCE);
        let late = came.whole.filter(|_| !on_time).map(|(at, path)| (at.since(due), path));
        Seen { shot, took, on_time, late, playable: on_time }
    };
    let mut all: Vec<Seen> = receiver.timeline().shots().iter().zip(&receiver.came).map(seen).collect();
    let coded = |it: &Seen| {
        let (kind, reference) = (it.shot.kind.kind(), it.shot.kind.is_reference());
        Some(Frame { kind, reference, pts: it.shot.pts?, on_time: it.on_time })
    };
    let pictures: Vec<Frame> = all.iter().filter_map(coded).collect();
    let playback = playable(&pictures);
    let shown = all.iter_mut().filter(|it| it.shot.pts.is_some()).zip(&playback.shown);
    shown.for_each(|(it, shown)| it.playable = *shown);
    (all, playback.longest_freeze)
}

/// What could have been in time over the flow's paths, as the run had them.
fn oracle(run: &Run<'_>, flow: &FlowSpec, seen: &[Seen], begin: Instant, limit: Duration) -> Possible {
    let wanted = wanted(seen, begin);
    let begin = begin.since(Instant::ZERO);
    let end = wanted.last().map_or(begin, |it| it.at) + limit;
    possible(&wanted, &routes(run, flow, begin, end), limit)
}

/// The frames of a clip that begins at `begin`, as an oracle sees them.
fn wanted(seen: &[Seen], begin: Instant) -> Vec<Wanted> {
    let begin = begin.since(Instant::ZERO);
    let wanted = |it: &Seen| Wanted { at: begin + it.shot.at, bytes: it.shot.bytes(), kind: it.shot.kind };
    seen.iter().map(wanted).collect()
}

/// The flow's paths as an oracle sees them, as the run had them.
fn routes(run: &Run<'_>, flow: &FlowSpec, begin: Duration, end: Duration) -> Vec<Route> {
    let links = links(run);
    let route = |path: &Vec<usize>| {
        let models: Vec<_> = path.iter().map(|&link| &links[link].there).collect();
        chances(&models, begin, end)
    };
    flow.paths.iter().map(route).collect()
}

/// Shares of frames, and of what the oracle has.
fn frames(prefix: &str, seen: &[Seen], oracle: Possible, measures: &mut Measures) {
    let share = |of: &dyn Fn(&Seen) -> bool, good: &dyn Fn(&Seen) -> bool| {
        let (mut all, mut come) = (0_u32, 0_u32);
        for it in seen.iter().filter(|it| of(it)) {
            all += 1;
            come += u32::from(good(it));
        }
        100.0 * f64::from(come) / f64::from(all.max(1))
    };
    let video = |it: &Seen| it.shot.kind.is_video();
    let mut add = |name: &str, value: f64| measures.metric(format!("{prefix}{name}"), "%", value);
    let (on_time, shown) = (share(&video, &|it| it.on_time), share(&video, &|it| it.playable));
    let audio = share(&|it| it.shot.kind == FrameKind::Audio, &|it| it.on_time);
    add("on time", on_time);
    add("playable", shown);
    add("audio on time", audio);
    for (name, kinds) in [("I", &[FrameKind::I][..]), ("P", &[FrameKind::P]), ("B", &[FrameKind::R, FrameKind::B])] {
        add(&format!("{name} on time"), share(&|it| kinds.contains(&it.shot.kind), &|it| it.on_time));
    }
    add("oracle on time", 100.0 * oracle.video);
    add("oracle playable", 100.0 * oracle.playable);
    add("oracle audio", 100.0 * oracle.audio);
    let of = |ours: f64, oracle: f64| if oracle > 0.0 { ours / oracle } else { 100.0 };
    add("share of the oracle on time", of(on_time, oracle.video));
    add("share of the oracle playable", of(shown, oracle.playable));
}

/// Records why video frames were not on time.
fn misses(prefix: &str, paths: usize, seen: &[Seen], measures: &mut Measures) {
    let missed: Vec<&Seen> = seen.iter().filter(|it| it.shot.kind.is_video() && !it.on_time).collect();
    let mut count = |name: &str, of: &dyn Fn(&Seen) -> bool| {
        let frames = missed.iter().filter(|it| of(it)).count() as f64;
        measures.metric(format!("{prefix}{name}"), "frames", frames);
    };
    count("never whole", &|it| it.late.is_none());
    count("late by 50 ms at most", &|it| it.late.is_some_and(|(late, _)| late <= TOLERANCE));
    for path in 0..paths {
        let name = format!("last of it late over path {}", path + 1);
        count(&name, &|it| it.late.is_some_and(|(_, over)| usize::from(over.0) == path));
    }
}

/// What it cost.
fn cost(prefix: &str, run: &Run<'_>, flow: &FlowSpec, seen: &[Seen], done: &Done<'_>, measures: &mut Measures) {
    let shown: u64 = seen.iter().filter(|it| it.playable).map(|it| it.shot.bytes()).sum();
    if let Some(sender) = done.sender(&flow.name).and_then(Host::live_sender)
        && let Some(report) = sender.report()
    {
        let sent: u64 = report.paths.iter().map(|path| path.sent_bytes).sum();
        measures.metric(format!("{prefix}sent for each byte shown"), "", sent as f64 / shown.max(1) as f64);
        let count =
            |of: &dyn Fn(&braidcast_session::KindReport) -> u64| report.kinds.iter().map(of).sum::<u64>() as f64;
        measures.metric(format!("{prefix}never sent"), "frames", count(&|it| it.unsent));
        measures.metric(format!("{prefix}given up"), "frames", count(&|it| it.abandoned));
        measures.metric(format!("{prefix}came late"), "frames", count(&|it| it.late));
    }
    // Little's law: packets that wait, summed over time, over packets that came through.
    let links: Vec<_> =
        flow.paths.iter().flatten().filter_map(|&link| done.links.get(link)).map(|it| it.there).collect();
    let waited: u128 = links.iter().map(|link| link.queue_packet_nanos).sum();
    let entered = |link: &LinkStats| link.offered - link.dropped_policed - link.dropped_queue - link.dropped_early;
    let through: u64 = links.iter().map(entered).sum();
    measures.metric(format!("{prefix}queueing delay"), "ms", waited as f64 / 1e6 / through.max(1) as f64);
    let lost: u64 = links.iter().map(|link| link.dropped_queue).sum();
    measures.metric(format!("{prefix}lost in full queues"), "packets", lost as f64);
    if flow.paths.iter().flatten().any(|&link| run.point.links[link].there.policer.is_some()) {
        let [offered, policed] = [|it: &LinkStats| it.offered, |it: &LinkStats| it.dropped_policed]
            .map(|count| links.iter().map(count).sum::<u64>() as f64);
        measures.metric(format!("{prefix}policed"), "%", 100.0 * policed / offered.max(1.0));
    }
}
