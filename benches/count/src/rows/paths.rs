//! A decision of the default scheduler.

use super::PAYLOAD;
use crate::counted;
use braidcast_core::Instant;
use braidcast_mpath::{Delay, PathView, SchedulerKind, View, Waiting};
use core::time::Duration;

const DECISIONS: u64 = 2_000;

/// Paths of 10 ms and more, each slower than the one before. The first one is full half of the time.
fn decide(paths: usize) -> u64 {
    let mut scheduler = SchedulerKind::EarliestDelivery.scheduler();
    let mut views: Vec<PathView> = (0..paths as u32)
        .map(|n| {
            let srtt = Duration::from_millis(20) * (n + 1);
            PathView {
                ready: true,
                active: true,
                cwnd: 60_000,
                ssthresh: 60_000,
                in_flight: 30_000,
                rate: Some(1e6 / f64::from(n + 1)),
                loss_rate: 0.01,
                srtt: Some(srtt),
                forward_delay: Some(Delay::half_of(srtt, Duration::from_millis(2))),
                return_delay: Some(Delay::half_of(srtt, Duration::from_millis(2))),
                ..PathView::default()
            }
        })
        .collect();
    let mut picked = vec![0_u64; paths];
    for n in 0..DECISIONS {
        let now = Instant::from_millis(n);
        views[0].ready = n % 2 == 0;
        let deadline = Some(now + Duration::from_millis(200));
        let waiting =
            Waiting { bytes: 40_000, head: PAYLOAD, deadline, priority: 2, peer_room: 1 << 20, ..Waiting::default() };
        counted(&mut || {
            if let Some(path) = scheduler.pick(&View { now, paths: &views, waiting }) {
                scheduler.on_sent(path, PAYLOAD);
                picked[path] += 1;
            }
        });
    }
    assert!(picked[0] > 0, "{picked:?}");
    DECISIONS
}

pub(super) fn two() -> u64 {
    decide(2)
}

pub(super) fn eight() -> u64 {
    decide(8)
}
