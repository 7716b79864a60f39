//! The rate against the equation, RFC 4828's aim and ns-2.

use super::*;

/// The rate of a greedy flow in bytes per second, over `periods` losses after as many again of warm-up.
fn long_run(config: Config, rtt: u64, p: f64, counted: bool, periods: f64) -> f64 {
    let fair = throughput(1460.0, ms(rtt), p);
    let span = periods / p * 1460.0 / fair;
    let mut net = Loop::new(config, App::Greedy, ms(rtt), p, 1);
    net.counted = counted;
    net.run_until(at(2.0 * span));
    net.sent_rate(at(span), at(2.0 * span))
}

/// The equation's rate for packets lost at random: it takes loss events, and what is lost in the round trip after a
/// loss belongs to the same; so events are 1/p and a round trip's packets apart.
fn fair(rtt: u64, p: f64) -> f64 {
    (0..20).fold(throughput(1460.0, ms(rtt), p), |rate, _| {
        throughput(1460.0, ms(rtt), 1.0 / (1.0 / p + rate * ms(rtt).as_secs_f64() / 1460.0))
    })
}

#[test]
fn a_greedy_flow_sends_what_the_equation_says() {
    for counted in [false, true] {
        for rtt in [20, 100, 300, 600] {
            for p in [0.001, 0.01, 0.03, 0.1] {
                let share = long_run(Config::default(), rtt, p, counted, 300.0) / fair(rtt, p);
                println!("counted {counted}, RTT {rtt} ms, p {p}: {share:.3} of the equation");
                assert!((0.8..1.2).contains(&share), "counted {counted}, RTT {rtt} ms, p {p}: {share}");
            }
        }
    }
}

/// RFC 4828 §3: in bytes with headers, small packets get about what TCP with 1460-byte packets gets at the same loss
/// rate.
#[test]
fn small_packets_get_the_bytes_of_large_ones() {
    let config = Config { variant: Variant::TfrcSp, segment_size: 100, ..Config::default() };
    for p in [0.03, 0.05, 0.1] {
        let bytes = long_run(config, 600, p, true, 300.0) * 140.0 / 100.0;
        let share = bytes / long_run(Config::default(), 600, p, true, 300.0);
        println!("p {p}: TFRC-SP sends {share:.3} of TFRC's bytes");
        assert!((0.75..1.25).contains(&share), "p {p}: {share}");
    }
    let fast = long_run(config, 100, 0.01, true, 30.0);
    assert!((fast / 10_000.0 - 1.0).abs() < 0.01, "no more than a hundred packets each second: {fast}");
}

/// ns-2.35's Agent/TFRC and Agent/DCCP/TFRC (the steering repository's reference/ns2, experiment G): 1468 bytes, 100 ms
/// and 1500 bytes' serialisation at 10 Mbit/s, 300 s after a minute, 10 seeds.
#[test]
fn near_ns_2() {
    let config = Config { segment_size: 1468, ..Config::default() };
    for line in include_str!("../testdata/ns2_tfrc.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let (loss, theirs): (f64, f64) = (fields[2].parse().unwrap(), fields[6].parse().unwrap());
        let ours = (1..=10).map(|seed| {
            let mut net = Loop::new(config, App::Greedy, Duration::from_micros(101_300), loss / 100.0, seed);
            net.counted = fields[0] == "dccp";
            net.run_until(at(360.0));
            net.sent_rate(at(60.0), at(360.0)) * 8e-3 * (1.0 - loss / 100.0)
        });
        let ratio = ours.sum::<f64>() / 10.0 / theirs;
        println!("{} at {loss} %: {ratio:.3} of ns-2's {theirs} kbit/s", fields[0]);
        assert!((0.88..1.12).contains(&ratio), "{} at {loss} %: {ratio} of ns-2's", fields[0]);
    }
}
