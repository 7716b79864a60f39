//! The experiments about CMT, short: what each is about, not its figures.

use braidcast_lab::results::{Results, Row};
use braidcast_lab::{Job, Request, Scenario};
use core::time::Duration;
use std::sync::atomic::AtomicBool;

/// Two seeds of a minute, at the points with these parameters.
fn run(name: &str, params: &[(&str, &str)]) -> Results {
    let scenario = Scenario::find(name).unwrap();
    let params = params.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let request = Request { runs: Some(2), duration: Some(Duration::from_secs(60)), params, ..Request::default() };
    Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {})
}

fn row<'a>(results: &'a Results, variant: &str, metric: &str) -> &'a Row {
    let is_it = |row: &&Row| row.variant == variant && row.metric == metric;
    results.rows.iter().find(is_it).unwrap_or_else(|| panic!("no {metric} of {variant}: {results:?}"))
}

fn mean(results: &Results, variant: &str, metric: &str) -> f64 {
    row(results, variant, metric).mean
}

/// How far a row is from ns-2's, as a share of that.
fn off(results: &Results, variant: &str, metric: &str) -> f64 {
    let row = row(results, variant, metric);
    row.mean / row.ns2.unwrap_or_else(|| panic!("ns-2 has no {metric} of {variant}")) - 1.0
}

#[test]
fn ns2_loses_goodput_over_a_long_path_by_filling_paths_in_turn() {
    let results = run("cmt-rtt-asymmetry", &[("rtt2_ms", "400"), ("queue", "50")]);
    assert!(mean(&results, "cmt-sack", "goodput") > 1.25 * mean(&results, "cmt-sack as ns-2", "goodput"));
    assert!(off(&results, "cmt-sack as ns-2", "goodput").abs() < 0.1, "{results:?}");
    assert_eq!(mean(&results, "sack", "retransmissions"), 0.0, "44 packets of window cannot overflow a queue of 50");
}

#[test]
fn two_paths_that_alternate_carry_twice_what_the_slower_one_does() {
    let results = run("cmt-bandwidth-asymmetry", &[("bw2_kbps", "400"), ("queue", "50")]);
    assert!((mean(&results, "sack", "goodput") / (2.0 * 0.4 * 968.0) - 1.0).abs() < 0.03, "{results:?}");
    assert!(off(&results, "cmt-sack as ns-2", "goodput").abs() < 0.1, "{results:?}");
}

#[test]
fn delayed_sacks_leave_a_lossy_path_more_of_the_window() {
    let results = run("cmt-loss-asymmetry", &[("loss2_pct", "8")]);
    for metric in ["goodput", "fast retransmissions", "share of path 2"] {
        assert!(mean(&results, "cmt-sack", metric) > mean(&results, "sack", metric), "{metric}: {results:?}");
    }
    let parts = mean(&results, "sack", "fast retransmissions") + mean(&results, "sack", "timeout retransmissions");
    assert_eq!(parts, mean(&results, "sack", "retransmissions"));
}

#[test]
fn growth_in_recovery_is_what_ns2_has_more_under_loss() {
    let results = run("cmt-loss", &[("loss_pct", "4")]);
    assert!(mean(&results, "sack as ns-2", "goodput") > 1.05 * mean(&results, "sack", "goodput"), "{results:?}");
    assert!(off(&results, "sack as ns-2", "goodput").abs() < 0.15, "{results:?}");
}

#[test]
fn a_lossless_path_is_full_and_losses_come_back_fast() {
    let clean = run("sctp-loss", &[("loss_pct", "0")]);
    assert!(off(&clean, "sack", "goodput").abs() < 0.005, "{clean:?}");
    let lossy = run("sctp-loss", &[("loss_pct", "3")]);
    assert!(mean(&lossy, "sack", "goodput") > mean(&lossy, "delayed", "goodput"));
    assert!(mean(&lossy, "sack", "fast retransmissions") > 5.0 * mean(&lossy, "sack", "timeout retransmissions"));
}
