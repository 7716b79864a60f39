use super::*;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);

/// Grows `window` as long as `done` says no, a packet acknowledged at a time; how long that took.
fn grow(window: &mut Cubic, now: &mut Instant, rtt: Duration, mut done: impl FnMut(&Cubic) -> bool) -> Duration {
    let start = *now;
    while !done(window) {
        assert!(*now - start < Duration::from_secs(3600), "{window:?}");
        *now += rtt / window.cwnd();
        window.on_ack(*now, 1, true, rtt);
    }
    *now - start
}

/// In congestion avoidance since a loss at `packets`.
fn reduced_from(packets: u32) -> Cubic {
    let mut window = Cubic::new(packets);
    window.on_congestion();
    window
}

#[test]
fn the_cube_root_undoes_the_cube() {
    for ms in [0, 100, 999, 8434, 100_000, FARTHEST] {
        let root = cube_root(cubed(ms));
        assert!(root.abs_diff(ms) <= 1, "{ms} ms, {root} ms");
    }
    // RFC 9438 §4.2: K = ∛(W_max (1 − β) / C) seconds: ∛(1000 · 0.3 / 0.4) = 9.086.
    assert_eq!(cube_root(300 * ONE), 9085);
}

#[test]
fn a_loss_leaves_seven_tenths_which_take_k_seconds_to_make_up_for() {
    let mut window = reduced_from(1000);
    assert_eq!((window.cwnd(), window.ssthresh()), (700, 700));
    let mut now = Instant::ZERO;
    let back = grow(&mut window, &mut now, RTT, |it| it.cwnd() >= 999);
    assert!(back > Duration::from_millis(7600) && back < Duration::from_millis(9200), "{back:?}");
    // The plateau: hardly more in a second on either side of K, then faster and faster.
    let second = |window: &mut Cubic, now: &mut Instant| {
        let (before, end) = (window.cwnd(), *now + Duration::from_secs(1));
        while *now < end {
            *now += RTT / window.cwnd();
            window.on_ack(*now, 1, true, RTT);
        }
        window.cwnd() - before
    };
    let seconds: Vec<u32> = (0..10).map(|_| second(&mut window, &mut now)).collect();
    assert!(seconds[0] <= 2 && seconds[9] > 70 && seconds.windows(2).skip(2).all(|it| it[0] <= it[1]), "{seconds:?}");
}

#[test]
fn at_short_round_trips_it_grows_as_reno_would_on_average() {
    let rtt = Duration::from_millis(10);
    let mut window = reduced_from(20);
    let mut now = Instant::ZERO;
    // Reno takes 10 round trips from 10 to 20 packets; CUBIC with α = 9/17 takes about 11 from 14 to 20.
    let back = grow(&mut window, &mut now, rtt, |it| it.cwnd() >= 20);
    let rounds = back.as_millis() / rtt.as_millis();
    assert!(
        (10..=13).contains(&rounds),
        "{rounds} round trips, where the cubic alone would take {} ms",
        cube_root(6 * ONE)
    );
    // From cwnd_prior on a packet for each round trip.
    let more = grow(&mut window, &mut now, rtt, |it| it.cwnd() >= 30);
    assert!((9..=12).contains(&(more.as_millis() / rtt.as_millis())), "{more:?}");
}

#[test]
fn a_window_that_shrinks_twice_leaves_room_to_others() {
    let mut window = reduced_from(1000);
    let first = window.max;
    window.on_congestion();
    assert!(window.max < first * 6 / 10, "85 % of 700: {}", window.max / ONE);
}

#[test]
fn after_a_timeout_slow_start_leads_to_a_plateau_at_half_way() {
    let mut window = Cubic::new(100);
    window.on_timeout();
    assert_eq!((window.cwnd(), window.ssthresh()), (1, 70));
    let mut now = Instant::ZERO;
    grow(&mut window, &mut now, RTT, |it| it.cwnd() >= 70);
    window.on_ack(now, 1, true, RTT);
    assert_eq!((window.stage.unwrap().k, window.max / ONE), (0, 70));
}

#[test]
fn time_in_which_the_window_is_not_full_does_not_count() {
    let mut window = reduced_from(1000);
    let mut now = Instant::ZERO;
    window.on_ack(now, 1, true, RTT);
    let before = window.cwnd;
    for _ in 0..600 {
        now += RTT;
        window.on_ack(now, 1, false, RTT);
    }
    assert_eq!(window.cwnd, before);
    now += RTT;
    window.on_ack(now, 1, true, RTT);
    assert!(window.cwnd - before < ONE, "an hour of little data is no licence");
}

#[test]
fn a_queue_that_builds_up_ends_the_first_slow_start() {
    let mut window = Cubic::new(10);
    let mut now = Instant::ZERO;
    for round in 0..12_u64 {
        for n in 0..u64::from(window.cwnd()) {
            // From round 5 on each round finds 20 ms more of queue.
            let rtt = Duration::from_millis(100 + 20 * round.saturating_sub(4));
            now += rtt / window.cwnd();
            window.on_rtt(rtt, n == 0);
            window.on_ack(now, 1, true, rtt);
        }
    }
    assert!(window.ssthresh() < 2000, "{}", window.ssthresh());
}

proptest! {
    /// Whatever happens: one packet at least, never more than acknowledged, seven tenths after a congestion event.
    #[test]
    fn the_window_keeps_its_bounds(
        initial in 1_u32..100_000,
        steps in prop::collection::vec((0_u8..10, 1_u32..50, 0_u64..5000, any::<bool>()), 1..300),
    ) {
        let mut window = Cubic::new(initial);
        let mut now = Instant::ZERO;
        for (step, acked, ms, full) in steps {
            now += Duration::from_millis(ms);
            let before = window.cwnd();
            let acked = acked.min(before);
            match step {
                0 => {
                    window.on_congestion();
                    prop_assert!(window.cwnd() <= (before * 7).div_ceil(10).max(1) && window.cwnd() >= (before * 7 / 10).saturating_sub(1).max(1));
                }
                1 => window.on_timeout(),
                2 => window.on_idle(4),
                3 => window.leave_slow_start(),
                4 => window.shrink(),
                _ => {
                    window.on_rtt(Duration::from_millis(ms), full);
                    window.on_ack(now, acked, full, Duration::from_millis(ms));
                    prop_assert!(window.cwnd() >= before && window.cwnd() - before <= acked + 1);
                    prop_assert!(full || window.cwnd() == before);
                }
            }
            prop_assert!(window.cwnd() >= 1 && (step > 4 || window.cwnd() <= before));
        }
    }
}
