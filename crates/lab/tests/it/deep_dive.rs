//! What the experiments of THESIS §6.2 are about, on short runs.

use braidcast_lab::results::{Results, Row};
use braidcast_lab::{Job, Request, Scenario};
use core::time::Duration;
use std::sync::atomic::AtomicBool;

/// Runs two seeds of the scenario `name`, each of `seconds`, at the points where the parameters
/// have these values.
fn run(name: &str, seconds: u64, params: &[(&str, &str)]) -> Results {
    let scenario = Scenario::find(name).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    let params = params.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let request = Request { runs: Some(2), duration: Some(Duration::from_secs(seconds)), params, ..Request::default() };
    let results = Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {});
    assert_eq!(results.lost_runs, Vec::<String>::new());
    results
}

fn mean(results: &Results, variant: &str, metric: &str) -> f64 {
    let is_it = |row: &&Row| row.variant == variant && row.metric == metric;
    results.rows.iter().find(is_it).unwrap_or_else(|| panic!("no {metric} of {variant}")).mean
}

#[test]
fn the_model_tells_blocking_where_queues_are_empty_and_only_there() {
    let results = run("cmt-blocking", 10, &[("asymmetry", "bandwidth"), ("bw2_kbps", "600")]);
    let model = mean(&results, "sack", "model");
    assert!((model - 1460.0 * 8.0 * (1.0 / 600.0 - 1.0 / 1000.0)).abs() < 1e-6, "{model}");
    // Delays that vary by 1 % are 0.2 ms.
    let small = mean(&results, "3 packets", "longest blocking");
    assert!((small - model).abs() < 0.25, "{small} {model}");
    assert!(mean(&results, "sack", "blocking") > 10.0 * model);
}

#[test]
fn sacks_that_overtake_each_other_make_only_the_plain_rule_repeat_for_nothing() {
    let results = run("cmt-sack-reordering", 10, &[("paths", "3G and Wi-Fi"), ("sack", "every-packet")]);
    for rule in ["count", "time", "ours", "live"].map(|rule| format!("{rule}, slow")) {
        assert!(mean(&results, &rule, "overtaken SACKs") > 10.0, "{rule}");
        assert_eq!(mean(&results, &rule, "spurious"), 0.0, "{rule}");
    }
    assert!(mean(&results, "plain-count, slow", "spurious") > 10.0);
}

#[test]
fn a_sack_from_another_path_makes_a_short_path_look_long_unless_it_is_told_apart() {
    let results = run("cmt-rtt-estimate", 10, &[("rtt_3g_ms", "100"), ("sack", "every-packet")]);
    let [papers, ours] = ["SACKs over 3G", "ours"].map(|variant| mean(&results, variant, "SRTT of path 1"));
    // 10 ms there and 11.7 to send it; 50 ms back, or 10.
    assert!(papers > 70.0 && (20.0..40.0).contains(&ours), "{papers} {ours}");
}

#[test]
fn two_paths_with_one_window_are_slower_than_the_better_one_unless_the_window_is_divided() {
    let results = run("cmt-wifi-3g", 20, &[]);
    let goodput = |variant| mean(&results, variant, "goodput");
    assert!(goodput("sack") < goodput("wifi alone"));
    assert!(goodput("receiver-split") > goodput("sack") * 1.2);
    let curve = |name: &str| results.series.iter().find(|it| it.variant == "sack" && it.name == name).unwrap();
    let last = |name: &str| curve(name).points.last().unwrap()[1];
    // Of what came over both paths in ten seconds, all but a window has been handed over.
    let held = last("arrived over path 1") + last("arrived over path 2") - last("handed over");
    assert!((0.0..50.0).contains(&held), "{held}");
}
