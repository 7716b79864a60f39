use super::*;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);
const MTU: usize = 1400;

/// The window in packets, whose size no test depends on.
trait Packets {
    fn cwnd(&self) -> u32;
    fn threshold(&self) -> u32;
    fn on_ack(&mut self, now: Instant, acked: u32, was_full: bool, srtt: Duration);
    fn on_rtt(&mut self, rtt: Duration, round_is_over: bool);
    fn on_congestion(&mut self);
}

fn path(now: Instant, srtt: Option<Duration>) -> Conditions<'static> {
    Conditions { now, mtu: MTU, srtt, ..Conditions::default() }
}

fn cubic(packets: u32) -> Cubic {
    Cubic::new(&Setup { initial: packets as usize * MTU, ..Setup::new(Standard::RFC_4341, MTU) })
}

impl Packets for Cubic {
    fn cwnd(&self) -> u32 {
        (self.window() / MTU) as u32
    }

    fn threshold(&self) -> u32 {
        u32::try_from(self.ssthresh() / MTU).unwrap_or(u32::MAX)
    }

    fn on_ack(&mut self, now: Instant, acked: u32, full: bool, srtt: Duration) {
        let bytes = acked as usize * MTU;
        self.on_acked(&path(now, Some(srtt)), &Acked { bytes, may_grow: full, was_full: full, ..Acked::default() });
    }

    fn on_rtt(&mut self, rtt: Duration, ends_round: bool) {
        self.on_acked(&path(Instant::ZERO, None), &Acked { rtt: Some(rtt), ends_round, ..Acked::default() });
    }

    fn on_congestion(&mut self) {
        self.on_lost(&path(Instant::ZERO, None), &Signal { bytes: MTU, new_round: true });
    }
}

/// Returns how long `window` grows, one acknowledged packet at a time, until `done` agrees.
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
    let mut window = cubic(packets);
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
    assert_eq!((window.cwnd(), window.threshold()), (700, 700));
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
    let mut window = cubic(100);
    window.on_timeout(&path(Instant::ZERO, None));
    assert_eq!((window.cwnd(), window.threshold()), (1, 70));
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
    let mut window = cubic(10);
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
    assert!(window.threshold() < 2000, "{}", window.threshold());
}

#[test]
fn after_a_loss_slow_start_is_the_standard_one() {
    let mut window = cubic(100);
    let rounds =
        [100_u64, 100, 150].into_iter().flat_map(|ms| (0..8).map(move |n| (Duration::from_millis(ms), n == 7)));
    rounds.for_each(|(rtt, over)| window.on_rtt(rtt, over));
    let grown = |window: &mut Cubic| {
        let before = window.cwnd();
        window.on_ack(Instant::ZERO, 8, true, RTT);
        window.cwnd() - before
    };
    assert_eq!(grown(&mut window), 2, "conservative: a quarter");
    window.on_timeout(&path(Instant::ZERO, None));
    assert_eq!(grown(&mut window), 8, "RFC 9406 §4.3: the first only");
}

#[test]
fn a_spurious_timeout_is_undone() {
    let mut window = reduced_from(1000);
    let mut now = Instant::ZERO;
    grow(&mut window, &mut now, RTT, |it| it.cwnd() >= 900);
    let before = (window.cwnd, window.ssthresh, window.max);
    (0..2).for_each(|_| window.on_timeout(&path(now, None)));
    assert_eq!(window.cwnd(), 1);
    window.on_spurious_timeout();
    assert_eq!((window.cwnd, window.ssthresh, window.max), before);
}

#[test]
fn another_size_of_packets_leaves_the_bytes_of_the_window() {
    let mut window = reduced_from(100);
    let before = window.window();
    window.on_acked(&Conditions { mtu: 700, ..path(Instant::ZERO, None) }, &Acked::default());
    assert_eq!((window.window(), window.cwnd / ONE, window.max / ONE), (before, 140, 200));
}

proptest! {
    /// Whatever happens: one packet at least, never more than acknowledged, seven tenths after a congestion event.
    #[test]
    fn the_window_keeps_its_bounds(
        initial in 1_u32..100_000,
        steps in prop::collection::vec((0_u8..10, 1_u32..50, 0_u64..5000, any::<bool>()), 1..300),
    ) {
        let mut window = cubic(initial);
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
                1 => window.on_timeout(&path(Instant::ZERO, None)),
                2 => window.on_idle(&path(now, None), 4 * MTU),
                3 => window.settle(&path(now, None), window.window()),
                4 => window.settle(&path(now, None), window.window().saturating_sub(MTU)),
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
