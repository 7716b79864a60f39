//! Slow start, silence, and what THESIS table 4.9 and fig. 4.7 say of the two editions: 160 bytes each 20 ms, 250 ms
//! one way, silent from 10 to 20 s.

use super::*;

const RTT: f64 = 0.5;
const SIZE: f64 = 160.0;

fn voice(config: Config) -> Loop {
    let app = App::Voice { interval: ms(20), silent: (at(10.0), at(20.0)) };
    let mut net = Loop::new(Config { segment_size: SIZE as usize, ..config }, app, ms(500), 0.0, 1);
    net.run_until(at(40.0));
    net
}

/// X in packets per round trip at `secs`.
fn per_rtt(net: &Loop, secs: f64) -> f64 {
    net.rate_at(at(secs)) * RTT / SIZE
}

/// Seconds after the silence until the codec's 8000 bytes/s are allowed.
fn recovery(net: &Loop) -> f64 {
    let back = net.rates.iter().find(|it| it.0 > at(20.0) && it.1 >= 8000.0);
    back.map_or(f64::INFINITY, |it| (it.0 - at(20.0)).as_secs_f64())
}

#[test]
fn slow_start_doubles_with_each_measured_round_trip_and_no_faster() {
    for rules in Rules::ALL {
        let mut net = Loop::new(Config { rules: rules.1, ..Config::default() }, App::Greedy, ms(200), 0.0, 1);
        net.run_until(at(2.6));
        for &(when, rate) in net.rates.iter().skip(1) {
            let before = net.rate_at(when - ms(200));
            assert!(before == 0.0 || rate <= 2.02 * before, "{}: {before} to {rate} at {when:?}", rules.0);
        }
        let doublings = (net.rate_at(at(2.6)) / net.rate_at(at(0.6))).log2();
        println!("{}: {doublings:.1} doublings in ten round trips", rules.0);
        assert!(
            (4.9..=6.1).contains(&doublings),
            "THESIS eq. 4.11: the round trip of a doubling and that of its measurement: {doublings}"
        );
    }
}

#[test]
fn more_reports_start_faster() {
    let reach = |feedback| {
        let config = Config { feedback: Some(feedback), rules: Rules::Rfc3448, ..Config::default() };
        let mut net = Loop::new(config, App::Greedy, ms(1000), 0.0, 1);
        while net.sender.allowed_rate() < 125_000.0 && net.now < at(60.0) {
            net.run_until(net.now + ms(100));
        }
        net.now.as_secs_f64()
    };
    let [once, dynamic] = [FeedbackRate::Times(1), FeedbackRate::Dynamic].map(reach);
    println!("1 Mbit/s at 1 s RTT: {once:.1} s with one report per RTT, {dynamic:.1} s with dynamic feedback");
    // THESIS eq. 4.11 and 4.12: a doubling takes 2 RTT, or (N + 1) / N of one.
    assert!(dynamic < 0.75 * once);
}

#[test]
fn the_two_editions_after_a_silence() {
    let with = |rules| voice(Config { rules, ..Config::default() });
    let (old, new) = (with(Rules::Rfc3448), with(Rules::Rfc5348));
    let first = |net: &Loop| net.rates[0].1 * RTT / SIZE;
    assert_eq!([first(&old), first(&new)].map(f64::round), [1.0, 4.0], "initial slow-start rate");
    let floors = [per_rtt(&old, 20.0), per_rtt(&new, 20.0)];
    println!(
        "after the silence {floors:.1?} packets per RTT, back after {:.1} and {:.1} s",
        recovery(&old),
        recovery(&new)
    );
    assert!((2.0..4.0).contains(&floors[0]) && (4.0..8.0).contains(&floors[1]), "idle period recover rate: {floors:?}");
    assert!(recovery(&new) < recovery(&old) && recovery(&new) < 4.0);
}

#[test]
fn ccid_3_makes_rfc_3448_start_at_four_packets_and_idle_there() {
    let net = voice(Config { rules: Rules::Rfc4342, ..Config::default() });
    assert_eq!((net.rates[0].1 * RTT / SIZE).round(), 4.0, "RFC 4342 §5");
    let floor = per_rtt(&net, 20.0);
    assert!((4.0..8.0).contains(&floor), "RFC 4342 §5.1: {floor}");
}

#[test]
fn faster_restart_quadruples() {
    let with = |rules, faster_restart| voice(Config { rules, faster_restart, ..Config::default() });
    for (name, rules) in Rules::ALL {
        let (plain, faster) = (with(rules, false), with(rules, true));
        println!("{name}: back after {:.1} s, with Faster Restart {:.1} s", recovery(&plain), recovery(&faster));
        assert!(
            (8.0..16.0).contains(&per_rtt(&faster, 20.0)),
            "eight small packets per RTT: {}",
            per_rtt(&faster, 20.0)
        );
        assert!(recovery(&faster) < recovery(&plain));
    }
}

#[test]
fn a_data_limited_flow_keeps_its_rate_in_rfc_5348_only() {
    // A packet each 500 ms, then each 20 ms: X must be there at once, or grow.
    let late = |rules| {
        let mut net = voice(Config { rules, ..Config::default() });
        net.run_until(at(60.0));
        let before = net.rate_at(at(60.0));
        net.app = App::Voice { interval: ms(500), silent: (at(0.0), at(0.0)) };
        net.run_until(at(70.0));
        net.rate_at(at(70.0)) / before
    };
    let kept = [late(Rules::Rfc3448), late(Rules::Rfc5348)];
    println!("after ten seconds at a twenty-fifth of the rate, X is {kept:.3?} of what it was");
    assert!(kept[0] < 0.1 && kept[1] > 0.9);
}

#[test]
fn ccid4_n_starts_at_the_rate_of_large_packets() {
    let first = |variant| voice(Config { variant, header_size: 36, ..Config::default() }).rates[0].1;
    let correction = 160.0 / 196.0;
    assert_eq!(first(Variant::TfrcSp), 4.0 * 160.0 / RTT, "eq. 4.3");
    assert_eq!(first(Variant::Ccid4N), 4380.0 / RTT * correction, "eq. 4.7");
    assert_eq!(first(Variant::Ccid4N100), 43_800.0 * correction, "eq. 4.13");
    let nominal_rtt = Duration::from_millis(50);
    let twice = voice(Config { variant: Variant::Ccid4N100, header_size: 36, nominal_rtt, ..Config::default() });
    assert_eq!(twice.rates[0].1, 87_600.0 * correction, "half the nominal RTT");
    // So the codec's packets wait and are dropped after a silence with CCID4, and not with CCID4-N100.
    let dropped = |variant| {
        let net = voice(Config { variant, header_size: 36, ..Config::default() });
        1.0 - net.sent_rate(at(20.0), at(22.0)) / 8000.0
    };
    let dropped = [Variant::TfrcSp, Variant::Ccid4N, Variant::Ccid4N100].map(dropped);
    println!("dropped in the two seconds after the silence: {dropped:.3?}");
    assert!(dropped[0] > 0.1 && dropped[1] < dropped[0] && dropped[2] == 0.0, "{dropped:?}");
}
