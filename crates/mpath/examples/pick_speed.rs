//! What a pick costs, in nanoseconds, with 8 paths: `cargo run --release -p braidcast-mpath --example pick_speed`.
#![allow(clippy::disallowed_methods, reason = "it measures real time")]

use braidcast_core::Instant;
use braidcast_mpath::{Delay, PathView, SchedulerKind, View, Waiting};
use core::hint::black_box;
use core::time::Duration;

const PATHS: usize = 8;
const ROUNDS: u32 = 10_000;

fn main() {
    let paths: [PathView; PATHS] = core::array::from_fn(|i| {
        let srtt = Duration::from_millis(90 - 10 * i as u64);
        let delay = Some(Delay::half_of(srtt, srtt / 8));
        PathView {
            // Only the slowest has room: what waits for others is asked of all of them.
            ready: i == 0,
            active: true,
            cwnd: 30_000,
            in_flight: 20_000,
            rate: Some(300_000.0 + 1e4 * i as f64),
            srtt: Some(srtt),
            forward_delay: delay,
            return_delay: delay,
            ..PathView::default()
        }
    });
    for (name, kind) in SchedulerKind::ALL {
        let mut scheduler = kind.scheduler();
        let mut best = Duration::MAX; // Of many rounds, as others disturb.
        for _ in 0..2000 {
            let start = std::time::Instant::now();
            for round in 0..ROUNDS {
                let waiting = Waiting { bytes: 1 << 20, peer_room: 1 << 20, ..Waiting::default() };
                let view = View { now: Instant::ZERO, paths: black_box(&paths), waiting };
                if let Some(path) = black_box(scheduler.pick(&view)) {
                    black_box(scheduler.ahead(&view, path));
                    scheduler.on_sent(path, 1200);
                }
                if round % 16 == 0 {
                    scheduler.on_acknowledged();
                }
            }
            best = best.min(start.elapsed());
        }
        println!("{name}: {:.1} ns", best.as_nanos() as f64 / f64::from(ROUNDS));
    }
}
