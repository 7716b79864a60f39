//! Send queues over SCTP in the lab.

use braidcast_lab::results::Results;
use braidcast_lab::{Job, Request, Scenario};
use core::sync::atomic::AtomicBool;
use std::path::Path;

const CONFERENCE: &str = r#"
name = "conference"
title = "A conference over two paths that carry two thirds of it"
experiment = "partial-reliability"
runs = 1
duration = "30s"
[link.a]
rate = "150kbit"
rtt = "40ms"
queue = "20p"
[link.b]
rate = "100kbit"
rtt = "160ms"
queue = "20p"
[traffic]
source = "conference"
unordered = true
lifetime = "200ms"
[sctp]
preset = "prompt"
send_queue = 32
[[variant]]
name = "off"
sctp.queue = "off"
[[variant]]
name = "fifo"
sctp.queue = "fifo"
[[variant]]
name = "ring-sbpn2"
sctp.queue = "ring-sbpn2"
[[variant]]
name = "under"
sctp.queue = "ring-sbpn2"
sctp.queue_scope = "under"
traffic.by_kind = true
"#;

fn read(text: &str) -> Result<Scenario, String> {
    Scenario::read("test.toml", text, Path::new(".")).map_err(|error| error.to_string())
}

fn mean(results: &Results, variant: &str, metric: &str) -> f64 {
    let found = results.rows.iter().find(|row| row.variant == variant && row.metric == metric);
    found.unwrap_or_else(|| panic!("no {metric} of {variant} in {:#?}", results.rows)).mean
}

#[test]
fn a_queue_gives_up_what_would_be_late_before_it_is_sent() {
    let results =
        Job::new(&read(CONFERENCE).unwrap(), &Request::default()).unwrap().run(&AtomicBool::new(false), &|| ());
    for queue in ["ring-sbpn2", "under"] {
        let unsent = mean(&results, queue, "given up unsent");
        assert!(unsent > 100.0, "{queue}: {unsent} messages");
        let (begun, without) =
            (mean(&results, queue, "given up in flight"), mean(&results, "off", "given up in flight"));
        assert!(begun < without, "{queue}: {begun} messages in flight, without a queue {without}");
    }
    // What is refused is lost at the application.
    assert_eq!(mean(&results, "fifo", "given up unsent"), 0.0);
}

/// The same measure as over DCCP: every packet is on time, late or lost, and the queue decides which.
#[test]
fn a_conference_is_measured_over_sctp_too() {
    let text = CONFERENCE.replace("partial-reliability", "conference").replace("[sctp]", "log = true\n[sctp]");
    let results = Job::new(&read(&text).unwrap(), &Request::default()).unwrap().run(&AtomicBool::new(false), &|| ());
    for variant in ["off", "fifo", "ring-sbpn2", "under"] {
        for what in ["audio", "video"] {
            let share = |fate: &str| mean(&results, variant, &format!("{what} {fate}"));
            let (on_time, all) = (share("on time"), share("on time") + share("late") + share("loss"));
            assert!((all - 100.0).abs() < 1e-9, "{variant}: {all} % of {what}");
            assert!((0.0..100.0).contains(&on_time), "{variant}: {on_time} % of {what}, where only two thirds fit");
        }
        let second = mean(&results, variant, "share of path 2");
        assert!((1.0..50.0).contains(&second), "{variant}: {second} % over the slower path");
    }
    let audio = |variant| mean(&results, variant, "audio on time");
    assert!(audio("ring-sbpn2") > 1.5 * audio("fifo"), "{} and {} %", audio("ring-sbpn2"), audio("fifo"));
    assert!(mean(&results, "fifo", "refused") > 100.0 && mean(&results, "ring-sbpn2", "expired") > 100.0);
}

#[test]
fn a_queue_that_there_is_not_is_told_from_those_that_there_are() {
    let error =
        read(&CONFERENCE.replace("\"ring-sbpn2\"\nsctp.queue_scope", "\"best\"\nsctp.queue_scope")).unwrap_err();
    assert!(error.contains("no queue is called 'best'") && error.contains("ring-sbpn2"), "{error}");
    let error = read(&CONFERENCE.replace("\"under\"\ntraffic", "\"below\"\ntraffic")).unwrap_err();
    assert!(error.contains("no scope of a queue is called 'below'; there are: alone, under"), "{error}");
}
