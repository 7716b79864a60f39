//! Runs of small scenarios.

use braidcast_lab::experiment::{Experiment, Measures};
use braidcast_lab::plan::Plan;
use braidcast_lab::results::{Outcome, Results, Row};
use braidcast_lab::{Job, Request, Scenario};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const TWO_LINKS: &str = r#"name = "two"
title = "Two links"
experiment = "transfer"
duration = "20s"
runs = 3
[network]
wrap = "ip"
vary_start = "100ms"
[link.a]
rate = "1mbit"
rtt = "20ms"
queue = "50p"
loss = "$loss"
[link.b]
rate = "1mbit"
rtt = "20ms"
queue = "50p"
[traffic]
message = 1452
[sctp]
preset = "classic"
send_buffer = 200000
[sweep]
loss = ["0%", "3%"]
[[variant]]
name = "both"
[[variant]]
name = "one"
flow.main.paths = [["a"]]
[[claim]]
text = "two paths carry more than one"
metric = "goodput"
higher = "both"
lower = "one"
"#;

fn run(text: &str, request: &Request) -> Results {
    let scenario = Scenario::read("my.toml", text, Path::new(".")).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    Job::new(&scenario, request).unwrap().run(&AtomicBool::new(false), &|| {})
}

fn row<'a>(results: &'a Results, variant: &str, loss: &str, metric: &str) -> &'a Row {
    let is_it = |row: &&Row| row.variant == variant && row.params["loss"] == loss && row.metric == metric;
    results.rows.iter().find(is_it).unwrap_or_else(|| panic!("no row {variant} {loss} {metric}: {results:?}"))
}

#[test]
fn a_clean_link_gives_its_rate_and_two_give_twice() {
    let results = run(TWO_LINKS, &Request::default());
    assert_eq!(results.lost_runs, Vec::<String>::new());
    // 1452 of 1500 bytes are payload: 968 kbit/s for each link.
    let goodput = |variant| row(&results, variant, "0%", "goodput");
    assert!((goodput("one").mean - 968.0).abs() < 10.0, "{:?}", goodput("one"));
    assert!((goodput("both").mean - 1936.0).abs() < 40.0, "{:?}", goodput("both"));
    assert_eq!((goodput("one").n, goodput("one").unit.as_str()), (3, "kbit/s"));
    assert!(row(&results, "one", "3%", "fast retransmissions").mean > 0.0);
    assert_eq!(results.verdicts[0].outcome, Outcome::Confirmed);
}

#[test]
fn the_same_seed_gives_the_same_rows_and_one_seed_can_be_repeated_alone() {
    let all = run(TWO_LINKS, &Request::default());
    assert_eq!(all, run(TWO_LINKS, &Request::default()));
    let params = vec![("loss".to_owned(), "3".to_owned())];
    let one = |seed| {
        let request = Request {
            runs: Some(1),
            seed,
            variant: Some("one".to_owned()),
            params: params.clone(),
            ..Request::default()
        };
        let results = run(TWO_LINKS, &request);
        let row = row(&results, "one", "3%", "goodput").clone();
        assert_eq!((row.n, row.ci95), (1, None));
        row.mean
    };
    let mean = (one(1) + one(2) + one(3)) / 3.0;
    assert!((mean - row(&all, "one", "3%", "goodput").mean).abs() < 1e-9);
    assert!(one(1) != one(2));
}

#[test]
fn stopping_keeps_what_is_done() {
    let scenario = Scenario::read("my.toml", TWO_LINKS, Path::new(".")).unwrap();
    let job = Job::new(&scenario, &Request { runs: Some(50), ..Request::default() }).unwrap();
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let results = job.run(&stop, &|| {
        if done.fetch_add(1, Ordering::Relaxed) >= 3 {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let runs: u32 = results.rows.iter().filter(|row| row.metric == "goodput").map(|row| row.n).sum();
    assert!((4..40).contains(&runs), "{runs} of 200 runs");
}

#[test]
fn all_scenarios_inside_run() {
    for scenario in Scenario::all().unwrap_or_else(|e| panic!("{e}; {}", e.fix)) {
        let fixed = Experiment::find(&scenario.experiment).unwrap().fixed_length;
        let duration = (!fixed).then_some(core::time::Duration::from_secs(3));
        let request = Request { runs: Some(1), duration, ..Request::default() };
        let results = Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {});
        assert!(!results.rows.is_empty() && results.lost_runs.is_empty(), "{}: {:?}", scenario.name, results.lost_runs);
    }
}

/// Fails for seed 2.
const FRAGILE: Experiment = Experiment {
    name: "fragile",
    text: "",
    fixed_length: false,
    build: |run| if run.seed == 2 { panic!("seed 2 is unlucky") } else { Plan::of(run) },
    measure: |_, _| {
        let mut measures = Measures::default();
        measures.metric("one", "", 1.0);
        measures
    },
};

#[test]
fn a_panic_loses_its_run_only_and_says_how_to_repeat_it() {
    let scenario = Scenario::read("my.toml", TWO_LINKS, Path::new(".")).unwrap();
    let params = vec![("loss".to_owned(), "3%".to_owned())];
    let request = Request { variant: Some("one".to_owned()), params, ..Request::default() };
    let results = Job::by(&FRAGILE, &scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {});
    assert_eq!(results.rows.iter().map(|row| row.n).collect::<Vec<_>>(), [2]);
    let command = "braidcast lab run my.toml --variant one --param loss=3% --seed 2 --runs 1";
    assert_eq!(results.lost_runs, [format!("panic: seed 2 is unlucky; run it again with: {command}")]);
}

/// A link that breaks for good: the sender's association ends after a few timeouts, the receiver
/// hears nothing of it.
const BROKEN: &str = r#"name = "broken"
title = "A link that breaks"
experiment = "transfer"
duration = "60s"
runs = 1
[network]
wrap = "ip"
[link.a]
rate = "1mbit"
rtt = "20ms"
queue = "50p"
outage = "10s-1000s"
[traffic]
message = 1452
source = "$source"
sample = "1s"
[sctp]
preset = "classic"
association_max_retrans = 2
[sweep]
source = ["bulk", "cbr:500kbit,1452B"]
[[variant]]
name = "plain"
"#;

#[test]
fn an_association_that_gives_up_ends_its_transfer_and_not_the_run() {
    let results = run(BROKEN, &Request::default());
    assert_eq!(results.lost_runs, Vec::<String>::new());
    for (source, rate) in [("bulk", 968.0), ("cbr:500kbit,1452B", 500.0)] {
        let value = |metric: &str| {
            let is_it = |row: &&Row| row.params["source"] == source && row.metric == metric;
            results.rows.iter().find(is_it).unwrap_or_else(|| panic!("no {metric}: {results:?}")).mean
        };
        let expected = rate * 10.0 / 60.0;
        assert!((0.9..1.02).contains(&(value("goodput") / expected)), "{source}: {} kbit/s", value("goodput"));
        assert_eq!(value("timeouts"), 3.0, "{source}: two may go unanswered");
    }
}

/// One point of a scenario inside, two runs.
fn embedded(name: &str, variant: &str, params: &[(&str, &str)], seconds: u64) -> Results {
    let scenario = Scenario::find(name).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    let request = Request {
        runs: Some(2),
        duration: Some(core::time::Duration::from_secs(seconds)),
        variant: Some(variant.to_owned()),
        params: params.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect(),
        ..Request::default()
    };
    Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {})
}

fn mean(results: &Results, metric: &str) -> f64 {
    let row = results.rows.iter().find(|row| row.metric == metric);
    row.unwrap_or_else(|| panic!("no {metric}: {results:?}")).mean
}

#[test]
fn a_failover_takes_the_sum_of_its_timeouts_and_the_policies_bridge_it() {
    for (pmr, expected) in [("1", 3.0), ("2", 7.0)] {
        let same = embedded("sctp-failover", "all-rtx-same", &[("pmr", pmr)], 45);
        assert_eq!(mean(&same, "failover time, theory"), expected);
        let time = mean(&same, "failover time");
        assert!((expected - 0.01..expected + 0.3).contains(&time), "PMR {pmr}: {time} s");
        assert!(mean(&same, "until data flows") >= time && mean(&same, "paths given up") == 1.0);
        for quick in ["fr-same-rto-alt", "quick-failover"] {
            let results = embedded("sctp-failover", quick, &[("pmr", pmr)], 45);
            assert!(mean(&results, "until data flows") < 1.5, "{quick}");
        }
    }
}

#[test]
fn streams_spare_the_wait_for_each_other_as_the_model_says() {
    let point = [("preset", "default"), ("loss_pct", "2")];
    let [one, many, free] =
        ["1 stream", "16 streams", "unordered"].map(|variant| embedded("sctp-multistreaming", variant, &point, 40));
    let delay = |results| mean(results, "delay");
    assert!(delay(&one) > delay(&many) + 10.0 && delay(&many) > delay(&free));
    for results in [&one, &many, &free] {
        let (delay, model) = (delay(results), mean(results, "delay, model"));
        assert!((delay / model - 1.0).abs() < 0.1, "{delay} ms, {model} ms by the model");
    }
}
