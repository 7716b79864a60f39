//! [`Options::classic`] beside ns-2.35's CMT-SCTP, experiment D of the mission's reference results:
//! two paths of 1 Mbit/s and 100 ms, queues of 50 packets, Bernoulli loss on data.

use crate::common::{Pair, bulk, ms};
use braidcast_sctp::{Options, Stats};
use braidcast_sim::Duplex;
use braidcast_sim::link::{LinkModel, Loss, Rate};

/// Payload of a data chunk: 1500 bytes less 20 (IP), 12 and 16.
const PAYLOAD: usize = 1452;

/// Goodput in kbit/s and what was counted, over `seconds` after the paths are up.
fn experiment_d(options: &Options, loss: f64, seconds: u64, seed: u64) -> (f64, Stats) {
    // The test's packets have a UDP header; the rate makes up for its 8 bytes.
    let wire =
        LinkModel { rate: Rate::Bits(1_005_333), delay: ms(50), queue: "50p".parse().unwrap(), ..LinkModel::default() };
    let there = LinkModel { loss: Loss::Uniform(loss), ..wire.clone() };
    let links = vec![Duplex::new(there.clone(), wire.clone()), Duplex::new(there, wire)];
    let mut pair = Pair::seeded(seed, options, links);
    pair.until(ms(120_000), "connect", |pair| {
        pair.server_exists() && pair.on_client(|it, _| it.paths().filter(|path| path.srtt.is_some()).count()) == 2
    });
    let received = bulk(&mut pair, PAYLOAD, ms(seconds * 1000)) as u64;
    let stats = pair.on_client(|it, _| it.stats());
    ((received * PAYLOAD as u64 * 8) as f64 / seconds as f64 / 1000.0, stats)
}

/// Prints our mean beside ns-2's.
fn compare(what: &str, options: &Options, table: &[(f64, f64)], seeds: u64) -> Vec<f64> {
    let row = |&(loss, theirs): &(f64, f64)| {
        let runs: Vec<_> = (1..=seeds).map(|seed| experiment_d(options, loss, 300, seed)).collect();
        let mean = |of: &dyn Fn(&(f64, Stats)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let ours = mean(&|run| run.0);
        println!(
            "{what} loss {loss}: {ours:.0} kbit/s, ns-2 {theirs:.0} ({:+.1} %); fast {:.0} timeout {:.0} t3 {:.1} duplicates {:.1}",
            (ours / theirs - 1.0) * 100.0,
            mean(&|run| run.1.fast_retransmissions as f64),
            mean(&|run| run.1.timeout_retransmissions as f64),
            mean(&|run| run.1.t3_expiries as f64),
            mean(&|run| run.1.duplicates_reported as f64),
        );
        ours / theirs - 1.0
    };
    table.iter().map(row).collect()
}

#[test]
fn goodput_is_near_that_of_ns2() {
    // D_lossy_symmetric.csv, goodput_kbps_mean.
    let dac = compare("cmt-sack", &Options::classic(), &[(0.01, 1673.11), (0.03, 1284.0), (0.05, 886.72)], 3);
    let sack = Options::classic().with(|it| (it.sack.every, it.sack.dac) = (1, false)).sack;
    let every = Options::classic().with(|it| it.sack = sack);
    let every = compare("sack-every-packet", &every, &[(0.02, 1552.82), (0.05, 954.53)], 3);
    // With 50 seeds ns-2's standard deviation is 18 to 40 kbit/s a run.
    assert!(dac.iter().chain(&every).all(|off| off.abs() < 0.15), "{dac:?} {every:?}");
}
