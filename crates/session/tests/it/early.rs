//! Frames handed out as soon as they are in order, over a link that does not carry all of them.

use crate::common::*;
use braidcast_core::Instant;
use braidcast_media::Kind;
use braidcast_session::{ReceiverOptions, Redundancy, SenderOptions};
use braidcast_sim::LinkModel;
use core::time::Duration;
use std::collections::BTreeMap;

/// Of all units that came out: how long half of them were held after they and all before them that
/// came had arrived.
fn median_held(sink: &mut Sink, units: &Units) -> Duration {
    let delays: BTreeMap<u64, Duration> = delays(sink, units).into_iter().collect();
    let mut log: Vec<_> = sink.receiver.take_log().map(|entry| (&units[entry.sequence as usize].1, entry)).collect();
    log.sort_by_key(|(unit, _)| unit.first_index());
    let mut all_arrived = Instant::ZERO;
    let mut held = Vec::new();
    for (unit, entry) in log {
        all_arrived = all_arrived.max(entry.arrived);
        let out = delays.get(&(unit.runs[0].end() - 1)).map(|delay| unit.last_captured + *delay);
        held.extend(out.map(|out| out.since(all_arrived)));
    }
    held.sort_unstable();
    held[held.len() / 2]
}

#[test]
fn what_was_given_up_holds_up_nothing() {
    let units = camera(20);
    let latency = ms(2_000);
    let run = |early, rate| {
        let send = SenderOptions::default().with(|it| {
            it.latency = latency;
            it.redundancy = Redundancy::None;
        });
        let receive = ReceiverOptions::default().with(|it| {
            it.early = early;
            it.log = true;
        });
        let links = [LinkModel::wire(rate, ms(20))];
        let mut scene = Scene::new(send, receive, units.clone(), &links);
        scene.run_to_end(ms(40_000));
        let sink = scene.sink_mut();
        let held = median_held(sink, &units);
        let missing: u64 = [Kind::I, Kind::P, Kind::B].map(|kind| sink.kind(kind).missing).iter().sum();
        (held, missing, sink.bytes.len())
    };
    let mut shown = [0, 0];
    for rate in (820_000..=1_000_000).step_by(30_000) {
        let (steady, early) = (run(false, rate), run(true, rate));
        assert!(early.1 > 50, "{early:?}: frames were discarded");
        // Without being told, frames wait for those that do not come until these are due.
        println!("{rate} bit/s: half are held {:?}, or {:?}", steady.0, early.0);
        assert!(early.0 * 5 < steady.0 * 4, "{steady:?} and {early:?}");
        shown = [shown[0] + steady.2, shown[1] + early.2];
    }
    // Which frames go missing differs from rate to rate, by some hundredths of all.
    assert!(shown[1] * 100 > shown[0] * 98, "{shown:?} bytes: as much is shown");
}
