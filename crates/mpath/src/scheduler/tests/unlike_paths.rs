//! BLEST, ECF and sharing by rate, over a quick path and a slow one.

use super::*;

/// A path with a round trip in ms and a window in bytes.
fn unlike(ready: bool, srtt_ms: u64, cwnd: usize) -> PathView {
    PathView { active: true, cwnd, in_flight: if ready { 0 } else { cwnd }, ..path(ready, Some(srtt_ms)) }
}

#[test]
fn blest_leaves_the_window_to_the_quick_path() {
    let (quick, slow) = (unlike(false, 20, 12_000), unlike(true, 200, 12_000));
    let paths = [quick, slow];
    let view = |peer_room, ms| View {
        now: Instant::from_millis(ms),
        waiting: Waiting { bytes: 1 << 20, peer_room, ..Waiting::default() },
        ..view(&paths)
    };
    let mut scheduler = SchedulerKind::Blest.scheduler();
    // Ten rounds of 12,000 bytes and, in the mean, 5400 more: 174,000 bytes; 1200 are the slow path's own.
    assert_eq!(scheduler.pick(&view(174_000 + 1_200 - 12_000, 0)), Some(1));
    assert_eq!(scheduler.pick(&view(174_000 + 1_199 - 12_000, 0)), None);
    // The window was shut all the same: a tenth more is left, once for each round trip of the slow path.
    scheduler.on_held();
    assert_eq!(scheduler.pick(&view(174_000, 199)), Some(1));
    assert_eq!(scheduler.pick(&view(174_000, 200)), None);
    assert_eq!(scheduler.pick(&view(174_000, 400)), Some(1), "and less again when it was not");
    assert_eq!(scheduler.pick(&View { paths: &[unlike(true, 20, 1), slow], ..view(0, 400) }), Some(0));
}

#[test]
fn ecf_waits_for_the_quick_path_where_that_is_sooner() {
    let mut scheduler = SchedulerKind::Ecf.scheduler();
    let paths = [unlike(false, 20, 10_000), unlike(true, 200, 10_000)];
    let mut pick = |bytes| scheduler.pick(&View { waiting: Waiting { bytes, ..Waiting::default() }, ..view(&paths) });
    assert_eq!(pick(80_000), None, "nine rounds of 20 ms against 200");
    assert_eq!(pick(100_000), None, "eleven, but it waits already, and would stop at 250 ms");
    assert_eq!(pick(116_000), Some(1));
    assert_eq!(pick(100_000), Some(1), "now that it does not wait, eleven are too many");
    let alike = [unlike(false, 20, 10_000), unlike(true, 25, 10_000)];
    let mut other = SchedulerKind::Ecf.scheduler();
    let waiting = Waiting { bytes: 1000, ..Waiting::default() };
    assert_eq!(other.pick(&View { waiting, ..view(&alike) }), Some(1), "not worth two round trips");
}

#[test]
fn by_rate_shares_in_proportion_and_does_not_catch_up() {
    let mut scheduler = SchedulerKind::ByRate.scheduler();
    let mut paths = [1e6, 3e6, 2e6].map(|rate| PathView { rate: Some(rate), ..path(true, None) });
    let mut send = |paths: &[PathView]| {
        let mut counts = [0_i32; 3];
        for _ in 0..600 {
            let picked = scheduler.pick(&view(paths)).unwrap();
            scheduler.on_sent(picked, 1200);
            counts[picked] += 1;
        }
        counts
    };
    let near = |counts: [i32; 3], expected: [i32; 3]| counts.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1);
    assert!(near(send(&paths), [100, 300, 200]));
    paths[1].ready = false;
    assert!(near(send(&paths), [200, 0, 400]));
    paths[1].ready = true;
    let counts = send(&paths);
    // A tenth of a second's worth at most: 250 packets.
    assert!(counts[1] > 300 && counts[1] <= 300 + 250, "{counts:?}");
}

#[test]
fn only_redundant_goes_everywhere_and_only_daps_needs_one_way_delays() {
    for (_, kind) in SchedulerKind::ALL {
        assert_eq!(kind.scheduler().is_everywhere(), kind == SchedulerKind::Redundant);
        assert_eq!(kind.scheduler().heeds_forward_delay(), kind == SchedulerKind::Daps);
    }
}
