//! Goodput of TCP against the response function and against ns-2's on the same links.

use super::{Transfer, lossy, ms, secs};
use braidcast_cc::RtoBounds;
use braidcast_sim::link::{Loss, QueueLimit};
use braidcast_sim::tcp::Config;
use braidcast_sim::traffic::Traffic;
use braidcast_sim::{Duplex, LinkModel};
use core::time::Duration;
use std::collections::BTreeMap;

const WARM: u64 = 10;
const END: u64 = 310;

/// What `tests/data/tcp.tcl` sets.
fn config(min_rto: Duration) -> Config {
    let rto = RtoBounds::default().with_min(min_rto);
    Config { delayed_ack: ms(100), rto, receive_window: 2000 * 1460, ..Config::default() }
}

/// Goodput in bit/s, repeats and timeouts of each flow.
fn run(seed: u64, config: Config, duplex: Duplex, flows: usize) -> Vec<[f64; 3]> {
    let mut transfer = Transfer::new(seed, config, duplex, &vec![Traffic::Bulk(None); flows]);
    let measure = |flow| {
        let goodput = transfer.goodput(flow, secs(WARM), secs(END));
        let stats = transfer.sender(flow).stats();
        [goodput, stats.retransmissions as f64, stats.timeouts as f64]
    };
    (0..flows).map(measure).collect()
}

fn mean(rows: &[[f64; 3]]) -> [f64; 3] {
    [0, 1, 2].map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / rows.len() as f64)
}

/// Bit/s of TCP with delayed acknowledgements (RFC 5348 §3.1, b = 2 as in Padhye et al., t_RTO = 4 R).
fn response(p: f64, rtt: f64) -> f64 {
    let (b, t_rto) = (2.0, 4.0 * rtt);
    let root = rtt * (2.0 * b * p / 3.0).sqrt();
    let timeouts = t_rto * 3.0 * (3.0 * b * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    1460.0 * 8.0 / (root + timeouts)
}

#[test]
fn goodput_under_random_loss_follows_the_response_function() {
    for loss in [0.005, 0.01, 0.02, 0.04] {
        let rows: Vec<_> = (0..8).map(|seed| run(seed, config(ms(400)), lossy(Loss::Uniform(loss)), 1)[0]).collect();
        let [goodput, ..] = mean(&rows);
        let ratio = goodput / response(loss, 0.1);
        println!("loss {loss}: {:.0} kbit/s, {ratio:.3} of the formula", goodput / 1000.0);
        assert!((0.85..1.15).contains(&ratio), "loss {loss}: {ratio}");
    }
}

/// Rows of `tests/data/tcp.csv` by agent, rate, queue, loss and flows.
fn reference() -> BTreeMap<[String; 5], Vec<[f64; 3]>> {
    let mut cases: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for line in include_str!("../../data/tcp.csv").lines().skip(1) {
        let cells: Vec<_> = line.split(',').collect();
        let number = |i: usize| cells[i].parse::<f64>().unwrap_or_else(|_| panic!("{line}"));
        let case = [0, 1, 3, 4, 5].map(|i| cells[i].to_owned());
        cases.entry(case).or_default().push([number(8), number(9), number(10)]);
    }
    cases
}

#[test]
fn goodput_is_that_of_ns_2_on_the_same_links() {
    let cases = reference();
    assert_eq!(cases.len(), 12);
    for ([agent, rate, queue, loss, flows], theirs) in cases {
        let number = |text: &str| text.parse::<f64>().unwrap_or_else(|_| panic!("{text}"));
        let queue = QueueLimit::Packets(number(&queue) as usize);
        let config = Config { sack: agent == "Sack1", ..config(ms(200)) };
        let back = LinkModel::wire(number(&rate) as u64, ms(50));
        let there = LinkModel { queue: queue.into(), loss: Loss::Uniform(number(&loss)), ..back.clone() };
        let duplex = Duplex::new(there, back);
        let rows = (0..10).flat_map(|seed| run(seed, config, duplex.clone(), number(&flows) as usize));
        let (ours, theirs) = (mean(&rows.collect::<Vec<_>>()), mean(&theirs));
        let ratio = ours[0] / theirs[0];
        println!(
            "{agent}, {rate} bit/s, loss {loss}, {flows} flows: ours {ours:.1?}, ns-2 {theirs:.1?}, ratio {ratio:.3}"
        );
        // With SACK they are within 2 %; ns-2's NewReno repeats more than ours and is up to 7 % faster at 4 % loss.
        let tolerance = if agent == "Sack1" { 0.05 } else { 0.1 };
        assert!(
            (ratio - 1.0).abs() < tolerance,
            "{agent}, {rate} bit/s, loss {loss}, {flows} flows: {ours:?}, ns-2 {theirs:?}"
        );
    }
}
