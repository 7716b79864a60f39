//! Clips in sessions over simulated links, beside the oracle.

use braidcast_lab::results::{Results, Row};
use braidcast_lab::{Job, Request, Scenario};
use core::fmt::Write;
use core::sync::atomic::AtomicBool;
use std::path::Path;

const TWO_LINKS: &str = r#"name = "two"
title = "Two links"
experiment = "live"
duration = "8s"
runs = 1
[link.a]
rate = "$rate"
delay = "20ms"
queue = "300ms"
loss = "1%"
[link.b]
rate = "1mbit"
delay = "40ms"
queue = "300ms"
outage = "6s-8s"
[live]
clip = "test-1.7"
latency = "500ms"
[traffic]
sample = "200ms"
[sweep]
rate = ["1mbit", "20mbit"]
[[variant]]
name = "both"
[[variant]]
name = "one"
flow.main.paths = [["a"]]
"#;

fn run(text: &str, request: &Request) -> Results {
    let scenario = Scenario::read("my.toml", text, Path::new(".")).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    Job::new(&scenario, request).unwrap().run(&AtomicBool::new(false), &|| {})
}

fn value(results: &Results, variant: &str, rate: &str, metric: &str) -> f64 {
    let is_it = |row: &&Row| row.variant == variant && row.params["rate"] == rate && row.metric == metric;
    results.rows.iter().find(is_it).unwrap_or_else(|| panic!("no {metric}: {results:?}")).mean
}

#[test]
fn a_wide_link_shows_everything_and_a_narrow_one_no_more_than_the_oracle() {
    let results = run(TWO_LINKS, &Request::default());
    assert_eq!(results.lost_runs, Vec::<String>::new());
    for metric in ["on time", "playable", "audio on time", "oracle on time", "oracle playable"] {
        assert_eq!(value(&results, "one", "20mbit", metric), 100.0, "{metric}");
    }
    assert_eq!(value(&results, "one", "20mbit", "longest freeze"), 0.0);
    // Within 20 ms of the link's own pace a packet of 1240 bytes waits for at most the frame that
    // it belongs to.
    assert!(value(&results, "one", "20mbit", "queueing delay") < 20.0);
    let cost = value(&results, "one", "20mbit", "sent for each byte shown");
    assert!((1.0..1.2).contains(&cost), "{cost}");
    // 1 Mbit/s carries 57 % of 1.74 Mbit/s at most.
    let (ours, oracle) =
        (value(&results, "one", "1mbit", "playable"), value(&results, "one", "1mbit", "oracle playable"));
    assert!(ours < oracle && (30.0..70.0).contains(&oracle), "{ours} {oracle}");
    assert!(value(&results, "both", "1mbit", "oracle playable") > oracle);
    let share = value(&results, "one", "1mbit", "share of the oracle playable");
    assert!((share - 100.0 * ours / oracle).abs() < 1e-9, "{share}");
}

#[test]
fn the_same_seed_gives_the_same_values_and_curves() {
    let request = Request { params: vec![("rate".into(), "1mbit".into())], ..Request::default() };
    let (first, second) = (run(TWO_LINKS, &request), run(TWO_LINKS, &request));
    assert_eq!((&first.rows, &first.series), (&second.rows, &second.series));
    assert!(first.series.iter().any(|it| it.name == "rate of path 2" && it.points.len() > 30));
    let other = run(TWO_LINKS, &Request { seed: 2, ..request });
    assert_ne!(first.rows, other.rows);
}

/// Every value of one short run: whoever changes what a session does sees here what that changes.
#[test]
fn one_short_run() {
    let params = vec![("rate".into(), "1mbit".into())];
    let results = run(TWO_LINKS, &Request { params, variant: Some("both".into()), ..Request::default() });
    let mut page = String::new();
    for row in &results.rows {
        writeln!(page, "{}: {:.2} {}", row.metric, row.mean, row.unit).unwrap();
    }
    insta::assert_snapshot!(page);
}

#[test]
fn options_of_send_and_of_sctp_go_by_name() {
    for (old, new) in [
        ("latency = \"500ms\"", "latency = \"500ms\"\nqueue = \"off\""),
        ("latency = \"500ms\"", "latency = \"500ms\"\nscheduler = \"round-robin\""),
        ("latency = \"500ms\"", "latency = \"500ms\"\ncc = \"cubic\""),
        ("latency = \"500ms\"", "latency = \"500ms\"\nfec = \"tetrys:5,4,100\""),
        ("latency = \"500ms\"", "latency = \"150ms\""),
        ("latency = \"500ms\"", "latency = \"500ms\"\nrate = \"3mbit\""),
        ("latency = \"500ms\"", "latency = \"500ms\"\npath = \"best-delay\""),
        ("latency = \"500ms\"", "latency = \"500ms\"\nquick_failover = \"off\"\nretransmission = \"rtx-same\""),
        ("[sweep]", "[sctp]\nmtu = 600\n[sweep]"),
    ] {
        let params = vec![("rate".into(), "1mbit".into())];
        let request = Request { params, variant: Some("both".into()), ..Request::default() };
        let (plain, other) = (run(TWO_LINKS, &request), run(&TWO_LINKS.replacen(old, new, 1), &request));
        assert_eq!(other.lost_runs, Vec::<String>::new(), "{new}");
        assert_ne!(plain.rows, other.rows, "{new}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_what_would_be_right() {
    for (old, new, line, words) in [
        ("\"test-1.7\"", "\"gone.clip\"", 17, "there is no clip 'gone.clip'"),
        ("\"test-1.7\"", "\"gone.clip\"", 17, "clips inside: test-1.7, test-3.6, bunny-1.7, bunny-3.6"),
        ("\"500ms\"", "\"0ms\"", 18, "the latency is 0"),
        ("\"500ms\"", "\"500ms\"\nrate = \"1kbit\"", 19, "a packet for each video frame"),
        ("\"500ms\"", "\"500ms\"\nfec = \"much\"", 19, "none or auto"),
        ("\"500ms\"", "\"500ms\"\nscheduler = \"best\"", 19, "scheduler"),
        ("\"500ms\"", "\"500ms\"\ntime_guard = \"2min\"", 19, "not a time from 0ns to 60s"),
        ("\"500ms\"", "\"500ms\"\npath_max_retrans = 21", 19, "whole number from 0 to 20"),
        ("clip =", "clipp =", 17, "did you mean"),
        ("delay = \"40ms\"", "trace = \"lte-drive.up\"\ntrace-from = \"1h\"", 14, "behind the end"),
        ("delay = \"40ms\"", "trace-from = \"1s\"", 13, "without a trace"),
    ] {
        let text = TWO_LINKS.replacen(old, new, 1);
        let wrong = Scenario::read("my.toml", &text, Path::new("/nowhere")).expect_err(new);
        assert_eq!(wrong.place, format!("my.toml:{line}"), "{wrong}; {}", wrong.fix);
        assert!(format!("{wrong}; {}", wrong.fix).contains(words), "{wrong}; {}", wrong.fix);
    }
}

const FOLLOWS: &str = r#"name = "follows"
title = "An encoder that follows"
experiment = "live"
duration = "20s"
runs = 2
[link.a]
rate = "$rate"
delay = "20ms"
queue = "300ms"
back-rate = "unlimited"
[link.b]
rate = "1mbit"
delay = "40ms"
queue = "300ms"
back-rate = "unlimited"
[live]
encoder = "follow"
rate_range = "100kbit-4mbit"
fps = 25
[sweep]
rate = ["2mbit", "0s:3mbit,12s:1mbit"]
[[variant]]
name = "both"
[[variant]]
name = "one"
flow.main.paths = [["a"]]
"#;

#[test]
fn an_encoder_that_follows_uses_what_links_carry_and_stays_on_time() {
    let results = run(FOLLOWS, &Request::default());
    assert_eq!(results.lost_runs, Vec::<String>::new());
    for (variant, rate, most) in [("one", "2mbit", 2_000.0), ("both", "2mbit", 3_000.0)] {
        let of = |metric: &str| value(&results, variant, rate, metric);
        assert!(
            of("on time") >= 99.0 && of("longest freeze") <= 0.3,
            "{variant}: {} {}",
            of("on time"),
            of("longest freeze")
        );
        // Foresight has all but headers of what the links carry, also after the last frame was captured.
        assert!((0.9 * most..1.05 * most).contains(&of("oracle rate")), "{variant}: {}", of("oracle rate"));
        let share = 100.0 * of("rate") / of("oracle rate");
        assert!(share > 70.0 && (share - of("share of the oracle rate")).abs() < 1.0, "{variant}: {share}");
        assert_eq!((of("oracle on time"), of("oracle longest freeze")), (100.0, 0.0), "{variant}");
    }
    // A fall to a third is followed within the latency, mostly: the rate before it would be late for 8 s.
    let fell = value(&results, "one", "0s:3mbit,12s:1mbit", "on time");
    assert!(fell > 90.0, "{fell}");
    assert_eq!(run(FOLLOWS, &Request::default()).rows, results.rows);
}
