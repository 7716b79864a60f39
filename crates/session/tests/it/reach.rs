//! Networks as people have them: far away, and with packets shorter than usual.

use crate::common::*;
use braidcast_session::{Event, ReceiverOptions, SenderOptions};
use braidcast_sim::LinkModel;

/// When the sender of a scene is connected, from its start; at most 40 s are waited.
fn connected_after(scene: &mut Scene) -> Option<u64> {
    (0..4000).map(|n| n * 10).find(|_| {
        scene.net.run_for(ms(10));
        scene.source().events.contains(&Event::Connected)
    })
}

fn scene(links: &[LinkModel]) -> Scene {
    let options = SenderOptions::default().with(|it| it.latency = ms(5_000));
    Scene::new(options, ReceiverOptions::default(), camera(30), links)
}

/// Satellites, and LTE whose buffers are full. A handshake with keys takes three round trips.
#[test]
fn a_far_end_is_connected_with_in_six_round_trips_and_a_second() {
    for one_way in [125, 300, 600, 1_000] {
        let mut scene = scene(&[LinkModel::wire(2_000_000, ms(one_way))]);
        let after = connected_after(&mut scene);
        assert!(after.is_some_and(|it| it <= 12 * one_way + 1_000), "one-way delay {one_way} ms: {after:?}");
    }
}

/// IP packets of 1228, 1000 and 576 bytes, less the headers of IPv4 and UDP, from the start.
#[test]
fn a_narrow_path_is_connected_over_and_carries_the_stream() {
    for longest in [1_472, 1_172, 1_000, 972, 548] {
        let link = LinkModel { mtu: longest, ..LinkModel::wire(8_000_000, ms(20)) };
        let mut scene = scene(&[link]);
        let after = connected_after(&mut scene);
        assert!(after.is_some_and(|it| it < 6_000), "packets of {longest} bytes: {after:?}");
        scene.net.run_for(ms(20_000));
        assert!(scene.sink().bytes.len() > 100_000, "packets of {longest} bytes: {}", scene.sink().bytes.len());
    }
}
