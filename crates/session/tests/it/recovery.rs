//! Trouble ends, and so do its effects: nothing that networks do for a while may cripple a session for good.

use crate::common::*;
use braidcast_core::Instant;
use braidcast_sctp::{Method, SchedulerKind};
use braidcast_session::{ReceiverOptions, Redundancy, SenderOptions};
use braidcast_sim::LinkModel;
use braidcast_sim::link::Outage;
use braidcast_sim::testing::cases;
use proptest::prelude::*;

/// By then all trouble is over, seconds.
const TROUBLE: u64 = 16;
/// The stream is as before from here on, seconds, to its end.
const WELL: u64 = 26;
const END: u64 = 32;

/// Wide enough for the camera, and away or standing still now and then in the beginning.
fn links() -> impl Strategy<Value = Vec<LinkModel>> {
    let outage = (500..TROUBLE * 1000 - 4000, 50_u64..4000, any::<bool>());
    let link = (4_000_000_u64..20_000_000, 1_u64..100, prop::collection::vec(outage, 0..4));
    let link = link.prop_map(|(rate, delay, outages)| {
        let at = |millis| Instant::from_millis(START + millis);
        let outages = outages.into_iter().map(|(from, length, held)| {
            let outage = Outage::window(at(from), at(from + length));
            if held { outage.holding() } else { outage }
        });
        LinkModel { outages: outages.collect(), ..LinkModel::wire(rate, ms(delay)) }
    });
    prop::collection::vec(link, 1..=2)
}

fn options() -> impl Strategy<Value = SenderOptions> {
    let scheduler = prop::sample::select(&SchedulerKind::ALL[..]).prop_map(|(_, it)| it);
    let queue = prop::sample::select(vec![None, Some(Method::RingSbpn2), Some(Method::InTime)]);
    let redundancy = prop::sample::select(vec![Redundancy::None, Redundancy::Auto]);
    (scheduler, queue, redundancy).prop_map(|(scheduler, queue, redundancy)| {
        SenderOptions::default().with(|it| {
            it.scheduler = scheduler;
            it.queue = queue;
            it.redundancy = redundancy;
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(20), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_stream_is_whole_again_ten_seconds_after_its_networks_are(send in options(), links in links()) {
        let units = camera(END);
        let mut scene = Scene::new(send, ReceiverOptions::default(), units.clone(), &links);
        scene.run_to_end(ms(START + END * 1000 + 60_000));
        let late: Vec<_> = units.iter().filter(|(at, _)| *at > Instant::from_millis(START + WELL * 1000)).collect();
        let first = late.iter().map(|(_, unit)| unit.first_index()).min().unwrap();
        let sent: u64 = late.iter().map(|(_, unit)| u64::from(unit.runs[0].count)).sum();
        let came = indexes(&scene.sink().bytes).into_iter().filter(|&index| index >= first).count();
        prop_assert!(came as f64 >= 0.95 * sent as f64, "{came} of {sent} packets");
    }
}

/// Found by soak: copies that were owed to no path had the pace of data fall to what the path had delivered, for good.
#[test]
fn everything_over_all_paths_is_no_slower_over_one() {
    let held = Outage::window(Instant::from_millis(START + 500), Instant::from_millis(START + 1650)).holding();
    let link = LinkModel { outages: vec![held], ..LinkModel::wire(4_150_000, ms(26)) };
    let units = camera(END);
    let send = SenderOptions::default().with(|it| it.scheduler = SchedulerKind::Redundant);
    let mut scene = Scene::new(send, ReceiverOptions::default(), units.clone(), &[link]);
    scene.run_to_end(ms(START + END * 1000 + 60_000));
    let sent: u64 = units.iter().map(|(_, unit)| u64::from(unit.runs[0].count)).sum();
    let came = indexes(&scene.sink().bytes).len();
    assert!(came as f64 >= 0.9 * sent as f64, "{came} of {sent} packets");
}
