use super::*;
use proptest::prelude::*;

const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

fn report(now: u64, recv_rate: f64, p: f64) -> Report {
    Report { sent_at: at(now) - RTT, elapsed: Duration::ZERO, recv_rate, loss_event_rate: p, new_loss: false }
}

/// A sender that has had its first report at 100 ms, RTT 100 ms, 1000-byte packets.
fn started(config: Config) -> Sender {
    let mut sender = Sender::new(at(0), Config { segment_size: 1000, ..config });
    sender.on_sent(at(0), 1000);
    sender.on_feedback(at(100), &report(100, 0.0, 0.0));
    sender
}

/// The timeout that is due; `busy` if something was sent before it.
fn time_out(sender: &mut Sender, busy: bool) -> Instant {
    let due = sender.poll_timeout();
    if busy {
        sender.on_sent(due - RTT, 1000);
    }
    sender.on_timeout(due);
    due
}

fn rates<const N: usize>(sender: &mut Sender, busy: bool) -> [f64; N] {
    core::array::from_fn(|_| {
        time_out(sender, busy);
        sender.allowed_rate()
    })
}

#[test]
fn without_a_round_trip_the_rate_halves_from_a_packet_per_second() {
    let mut sender = Sender::new(at(0), Config { segment_size: 1000, ..Config::default() });
    assert_eq!((sender.allowed_rate(), sender.poll_timeout()), (1000.0, at(2000)));
    assert_eq!(rates(&mut sender, true), [500.0, 250.0, 125.0]);
    let last: [f64; 9] = rates(&mut sender, true);
    assert_eq!(last[8], 1000.0 / 64.0, "a packet each 64 s");
    let mut idle = Sender::new(at(0), Config { segment_size: 1000, ..Config::default() });
    assert_eq!(rates(&mut idle, false), [1000.0, 1000.0], "RFC 5348 spares who had nothing to send");
}

/// A server that keeps nothing before the handshake is over answers a key message by a few bytes first.
#[test]
fn a_small_first_packet_does_not_hold_back_those_after_it() {
    let mut sender = Sender::new(at(0), Config { segment_size: 1000, ..Config::default() });
    sender.on_sent(at(0), 9);
    sender.on_sent(at(1000), 900);
    assert!(sender.ready_at() <= at(2000), "a packet each second: {:?}", sender.ready_at());
    sender.on_feedback(at(1300), &report(1300, 0.0, 0.0));
    let interval = Duration::from_secs_f64(sender.segment_size() / sender.allowed_rate());
    assert!(sender.ready_at() <= at(1000) + interval, "the round trip is known: {:?}", sender.ready_at());
}

#[test]
fn the_first_report_sets_the_initial_rate() {
    assert_eq!(started(Config::default()).allowed_rate(), 40_000.0);
    assert_eq!(started(Config { rules: Rules::Rfc3448, ..Config::default() }).allowed_rate(), 10_000.0);
    assert_eq!(started(Config::default()).poll_timeout(), at(500), "four round trips");
}

#[test]
fn the_first_report_leaves_the_initial_rate_that_a_handshake_allowed() {
    // A report of one packet says 0. RFC 5348 doubles for it, as its receive rates begin with infinity.
    for (rules, first, second) in [
        (Rules::Rfc3448, 10_000.0, 14_000.0),
        (Rules::Rfc4342, 40_000.0, 14_000.0),
        (Rules::Rfc5348, 80_000.0, 40_000.0),
    ] {
        let mut sender = Sender::new(at(0), Config { segment_size: 1000, rules, ..Config::default() });
        sender.on_rtt(at(0), RTT);
        sender.on_sent(at(0), 1000);
        sender.on_feedback(at(100), &report(100, 0.0, 0.0));
        assert_eq!(sender.allowed_rate(), first, "{rules}");
        sender.on_feedback(at(200), &report(200, 7000.0, 0.0));
        assert_eq!(sender.allowed_rate(), second, "{rules}");
    }
}

#[test]
fn the_first_packets_weigh_alike_in_the_mean_size() {
    let mut sender = Sender::new(at(0), Config::default());
    let sizes = [1026, 214, 214, 214].map(|size| {
        sender.on_sent(at(0), size);
        sender.segment_size()
    });
    assert_eq!(sizes.map(f64::round), [1026.0, 620.0, 485.0, 417.0]);
    for _ in 0..32 {
        sender.on_sent(at(0), 214);
    }
    assert!(sender.segment_size() > 214.0 && sender.segment_size() < 300.0, "{}", sender.segment_size());
}

#[test]
fn timeouts_halve_the_rate_and_idling_stops_at_the_recover_rate() {
    for p in [0.0, 0.01] {
        let sender = || {
            let mut sender = started(Config::default());
            (2..9).for_each(|i| sender.on_feedback(at(100 * i), &report(100 * i, 1e6, p)));
            sender
        };
        let mut busy = sender();
        let before = busy.allowed_rate();
        assert_eq!(rates(&mut busy, true), [before / 2.0, before / 4.0, before / 8.0], "p = {p}");
        let idle: [f64; 20] = rates(&mut sender(), false);
        assert!((40_000.0..80_000.0).contains(&idle[19]), "p = {p}: {idle:?}");
    }
}

/// RFC 5348 §4.3 step 4: after losses X is the equation's rate, but not more than twice what arrived.
#[test]
fn the_equation_and_the_receive_rate_limit() {
    let mut sender = started(Config::default());
    let mut after = |round: u64, recv_rate| {
        // Data has to wait all the time, so that reports are not of data-limited intervals.
        for now in (0..20).map(|i| at(100 * round + 5 * i)) {
            while sender.try_send(now).is_ok() {
                sender.on_sent(now, 1000);
            }
        }
        let now = 100 * round + 100;
        sender.on_feedback(at(now), &report(now, recv_rate, 0.02));
        sender.allowed_rate()
    };
    let fair = throughput(1000.0, RTT, 0.02);
    assert_eq!([1, 2].map(|round| after(round, 20_000.0)), [fair, fair], "no limit in the first two round trips");
    assert_eq!([3, 4].map(|round| after(round, 20_000.0)), [40_000.0; 2]);
}

/// Data waits when the first packet after an idle hour leaves, so the interval is not data-limited.
#[test]
fn a_receiver_that_counts_silence_does_not_stop_the_sender() {
    let mut sender = started(Config::default());
    let now = at(3_600_000);
    sender.on_sent(now, 1000);
    while sender.try_send(now).is_ok() {
        sender.on_sent(now, 1000);
    }
    sender.on_feedback(at(3_600_100), &report(3_600_100, 0.3, 0.001));
    assert_eq!(sender.allowed_rate(), 20_000.0, "twice one packet each round trip");
}

#[test]
fn a_loss_in_a_data_limited_interval() {
    let mut sender = started(Config::default());
    (2..5).for_each(|i| sender.on_feedback(at(100 * i), &report(100 * i, 20_000.0, 0.001)));
    assert_eq!(sender.allowed_rate(), 40_000.0);
    sender.on_feedback(at(500), &Report { new_loss: true, ..report(500, 8000.0, 0.001) });
    assert_eq!(sender.allowed_rate(), 10_000.0, "half of the largest before, more than 0.85 of what arrived now");
}

#[test]
fn faster_restart_quadruples_up_to_what_the_path_has_carried() {
    let steps = |faster_restart| {
        let mut sender = started(Config { rules: Rules::Rfc3448, faster_restart, ..Config::default() });
        sender.on_feedback(at(100), &report(100, 80_000.0, 1e-6));
        sender.on_feedback(at(200), &report(200, 100_000.0, 1e-6));
        [10_000.0, 30_000.0, 60_000.0].map(|recv_rate| {
            sender.on_feedback(at(300), &report(300, recv_rate, 1e-6));
            sender.allowed_rate()
        })
    };
    assert_eq!(steps(false), [20_000.0, 60_000.0, 120_000.0]);
    assert_eq!(steps(true), [40_000.0, 100_000.0, 120_000.0], "100,000 are known; beyond that twice as ever");
}

#[test]
fn a_growing_round_trip_slows_sending_down() {
    let mut sender = started(Config::default());
    let slow = Report { sent_at: at(0), ..report(200, 40_000.0, 0.0) };
    sender.on_feedback(at(200), &slow);
    let ratio = sender.sending_rate() / sender.allowed_rate();
    let by_hand = (0.9 * 0.1_f64.sqrt() + 0.1 * 0.2_f64.sqrt()) / 0.2_f64.sqrt();
    assert!((ratio - by_hand).abs() < 1e-9, "{ratio}, by hand {by_hand}");
    assert_eq!(sender.rtt(), Some(Duration::from_millis(110)), "q = 0.9");
}

/// RFC 4828 §4.2's example: 120-byte packets get three quarters, 40-byte packets half.
#[test]
fn headers_count_with_small_packets() {
    let fair = |size| {
        let mut sender = Sender::new(at(0), Config { variant: Variant::TfrcSp, ..Config::default() });
        sender.on_sent(at(0), size);
        sender.on_feedback(at(100), &report(100, 0.0, 0.0));
        sender.on_feedback(at(200), &report(200, 1e6, 0.01));
        sender.fair_rate().unwrap() / throughput(1460.0, RTT, 0.01)
    };
    assert!((fair(120) - 0.75).abs() < 1e-12 && (fair(40) - 0.5).abs() < 1e-12);
}

#[test]
fn a_turn_that_is_skipped_comes_an_interval_later_and_leaves_the_rate() {
    let (mut sender, mut other) = (started(Config::default()), started(Config::default()));
    let rate = sender.allowed_rate();
    let ready = sender.ready_at().max(at(100));
    for sender in [&mut sender, &mut other] {
        sender.on_sent(ready, 1000);
    }
    sender.skip_turn(ready);
    sender.skip_turn(ready);
    let interval = duration(1000.0 / rate);
    assert_eq!(sender.ready_at(), other.ready_at() + 2 * interval);
    assert!(sender.allowed_rate() == rate && sender.segment_size() == other.segment_size());
}

#[test]
fn what_the_application_wants() {
    let mut sender = started(Config { max_rate: Some(8000.0), min_rate: Some(5000.0), ..Config::default() });
    assert_eq!((sender.sending_rate(), sender.is_below_minimum()), (8000.0, false));
    sender.set_wanted(Some(50_000.0), None);
    assert_eq!((sender.sending_rate(), sender.is_below_minimum()), (40_000.0, true));
}

fn any_config() -> impl Strategy<Value = Config> {
    let choices = (0..4_usize, any::<bool>(), any::<bool>(), any::<bool>(), 1..3000_usize, 0..12_u8);
    choices.prop_map(|(variant, old, faster_restart, reduce_oscillations, segment_size, feedback)| Config {
        variant: Variant::ALL[variant].1,
        rules: Rules::ALL[usize::from(old)].1,
        faster_restart,
        reduce_oscillations,
        segment_size,
        feedback: Some(if feedback == 0 { FeedbackRate::Dynamic } else { FeedbackRate::Times(feedback) }),
        ..Config::default()
    })
}

/// What happens to a sender: what, and a number.
fn any_life() -> impl Strategy<Value = Vec<(u8, u64, f64, f64)>> {
    let number = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(0.0), 0.0..1e7_f64];
    let p = prop_oneof![Just(f64::NAN), Just(0.0), Just(2.0), 0.0..1.0_f64, 1e-9..1e-3_f64];
    proptest::collection::vec((0..4_u8, 0..5_000_000_u64, number, p), 1..200)
}

proptest! {
    /// X is a positive number, above the equation's rate never, above twice what arrived (four times with Faster
    /// Restart) and the initial rate only before receive rates limit it; and no timeout raises it.
    #[test]
    fn the_rate_is_what_the_rules_allow(config in any_config(), life in any_life()) {
        let mut sender = Sender::new(at(0), config);
        let (mut now, mut best) = (at(0), 0.0_f64);
        for (what, micros, number, p) in life {
            now += Duration::from_micros(micros);
            let before = sender.allowed_rate();
            match what {
                0 => sender.on_sent(now, micros as usize % 9000),
                1 => prop_assert!(sender.try_send(now).is_ok() || sender.ready_at() > now),
                2 => {
                    sender.on_timeout(now);
                    prop_assert!(sender.allowed_rate() <= before.max(sender.min_rate()));
                }
                _ => {
                    let back = Duration::from_micros(micros % 700_000);
                    let report = Report { sent_at: now - back, elapsed: Duration::ZERO, recv_rate: number,
                        loss_event_rate: p, new_loss: micros % 2 == 0 };
                    sender.on_feedback(now, &report);
                    best = if number > 0.0 { best.max(number) } else { best };
                    if let Some(fair) = sender.fair_rate() {
                        prop_assert!(sender.allowed_rate() <= fair.max(sender.min_rate()));
                    } else if sender.recv_set.max().is_finite() {
                        let most = (FasterRestart::FACTOR * best).max(sender.initial_rate()).max(before);
                        let rate = sender.allowed_rate();
                        prop_assert!(rate <= most.min(Sender::MAX_RATE), "{} > {}", rate, most);
                    }
                }
            }
            let rate = sender.allowed_rate();
            prop_assert!(rate.is_finite() && rate > 0.0 && sender.sending_rate() > 0.0, "{}", rate);
            prop_assert!(sender.poll_timeout() > now || what != 3);
            prop_assert!(sender.not_limited.len() <= Sender::NOT_LIMITED);
        }
    }

    /// All else equal, more loss is never more rate.
    #[test]
    fn more_loss_is_less_rate(config in any_config(), p in 1e-6..0.9_f64, recv in 100.0..1e6_f64) {
        let rate = |p| {
            let mut sender = started(config);
            (2..6).for_each(|i| sender.on_feedback(at(100 * i), &report(100 * i, recv, p)));
            sender.allowed_rate()
        };
        prop_assert!(rate(p * 1.1) <= rate(p));
    }
}
