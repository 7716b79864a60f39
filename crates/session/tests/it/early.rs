//! Frames handed out as soon as they are in order, over a link that does not carry all of them.

use crate::common::*;
use braidcast_media::Kind;
use braidcast_session::{ReceiverOptions, Redundancy, SenderOptions};
use braidcast_sim::LinkModel;
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
    let run = |early, rate| {
        let send = SenderOptions { latency, redundancy: Redundancy::None, ..SenderOptions::default() };
        let receive = ReceiverOptions { early, ..ReceiverOptions::default() };
        let links = [LinkModel::wire(rate, ms(20))];
        let mut scene = Scene::new(send, receive, units.clone(), &links);
        scene.run_to_end(ms(40_000));
        let sink = scene.sink();
        let missing: u64 = [Kind::I, Kind::P, Kind::B].map(|kind| sink.kind(kind).missing).iter().sum();
        (median(sink, &units), missing, sink.bytes.len())
    };
    let mut shown = [0, 0];
    for rate in (820_000..=1_000_000).step_by(30_000) {
        let (steady, early) = (run(false, rate), run(true, rate));
        assert!(early.1 > 50, "{early:?}: frames were abandoned");
        // Without being told it is nearly all of the latency.
        assert!(early.0 * 5 < steady.0 * 4, "{steady:?} and {early:?}");
        shown = [shown[0] + steady.2, shown[1] + early.2];
    }
    // Which frames go missing differs from rate to rate, by some hundredths of all.
    assert!(shown[1] * 100 > shown[0] * 98, "{shown:?} bytes: as much is shown");
}
