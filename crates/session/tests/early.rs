//! Frames handed out as soon as they are in order, over a link that does not carry all of them.

mod common;

use braidcast_media::Kind;
use braidcast_session::{ReceiverOptions, Redundancy, SenderOptions};
use braidcast_sim::LinkModel;
use common::*;
use core::time::Duration;

/// Of all packets that came out: how long after their capture half of them had.
fn median(sink: &Sink, units: &Units) -> Duration {
    let mut delays: Vec<Duration> = delays(sink, units).into_iter().map(|(_, delay)| delay).collect();
    delays.sort_unstable();
    delays[delays.len() / 2]
}

#[test]
fn what_was_given_up_holds_up_nothing() {
    let units = camera(20);
    let latency = ms(2_000);
    let run = |early| {
        let send = SenderOptions { latency, redundancy: Redundancy::None, ..SenderOptions::default() };
        let receive = ReceiverOptions { early, ..ReceiverOptions::default() };
        let links = [LinkModel::wire(1_000_000, ms(20))];
        let mut scene = Scene::new(send, receive, units.clone(), &links);
        scene.run_to_end(ms(40_000));
        let sink = scene.sink();
        let missing: u64 = [Kind::I, Kind::P, Kind::B].map(|kind| sink.kind(kind).missing).iter().sum();
        (median(sink, &units), missing, sink.bytes.len())
    };
    let (steady, early) = (run(false), run(true));
    assert!(early.1 > 50, "{early:?}: frames were given up");
    // Half of that is time in the queue; without being told it is nearly all of the latency.
    assert!(early.0 * 3 < steady.0 * 2, "{steady:?} and {early:?}");
    assert!(early.2 * 100 > steady.2 * 98, "{steady:?} and {early:?}: as much is shown");
}
