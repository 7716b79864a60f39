//! A live stream over bottlenecks that mark instead of dropping (ECN).

use crate::common::*;
use braidcast_sctp::{Algorithm, MarkResponse, Options, SchedulerKind};
use braidcast_session::{ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;

/// So many kbit/s, 60 ms, and CoDel, which marks what says that it can be marked and drops the rest.
fn bottleneck(kbit: u64) -> LinkModel {
    LinkModel { queue: "codel:5ms,100ms,ecn".parse().unwrap(), ..LinkModel::wire(kbit * 1000, ms(60)) }
}

/// What came of a stream of 20 s.
#[derive(Debug)]
struct Outcome {
    /// Units that did not come in time.
    missed: u64,
    dropped: u64,
    marked: u64,
}

/// A camera of 1.4 Mbit/s, played `latency` ms after the capture.
fn stream(change: impl FnOnce(&mut Options), latency: u64, links: &[LinkModel]) -> Outcome {
    // Loss is what Veno goes by, so a mark in its place is worth most to it.
    let (congestion, scheduler) = (Algorithm::Veno, SchedulerKind::LowestDelay);
    let send = SenderOptions::default().with(|it| {
        it.latency = ms(latency);
        it.queue = None;
        it.congestion = congestion;
        it.scheduler = scheduler;
    });
    let mut scene = Scene::with(send.transport().with(change), send, ReceiverOptions::default(), camera(20), links);
    scene.run_to_end(ms(40_000));
    let there: Vec<_> = scene.links.iter().map(|&(there, _)| scene.net.link(there).stats()).collect();
    Outcome {
        missed: scene.sink().report().kinds.iter().map(|kind| kind.captured - kind.on_time).sum(),
        dropped: there.iter().map(|link| link.dropped()).sum(),
        marked: there.iter().map(|link| link.marked).sum(),
    }
}

#[test]
fn where_the_bottlenecks_mark_fewer_frames_are_missed() {
    let mut missed = [0, 0];
    for (latency, links) in [
        (250, vec![bottleneck(1800)]),
        (350, vec![bottleneck(1600)]),
        (350, vec![bottleneck(1000); 2]),
        (500, vec![bottleneck(1600)]),
        (500, vec![bottleneck(900); 2]),
    ] {
        let without = stream(|it| it.congestion.ecn = false, latency, &links);
        let with = stream(|_| {}, latency, &links);
        println!("{latency} ms, {} links: without {without:?}, with {with:?}", links.len());
        assert!(without.marked == 0 && with.marked > 10 && with.dropped < without.dropped, "{with:?} {without:?}");
        missed = [missed[0] + with.missed, missed[1] + without.missed];
    }
    println!("{missed:?}");
    assert!(missed[0] * 4 < missed[1] * 3, "{missed:?}");
}

#[test]
fn a_mark_that_cost_more_than_a_loss_would_make_ecn_a_bad_bargain() {
    // Upon a loss without a queue the live preset keeps four fifths of its window (Veno).
    let links = [bottleneck(1600)];
    let halving = stream(|it| it.congestion.mark_response = MarkResponse::Halve, 350, &links);
    let abe = stream(|_| {}, 350, &links);
    assert!(abe.missed < halving.missed, "{abe:?} {halving:?}");
}
