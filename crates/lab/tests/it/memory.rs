//! Memory is flat over a simulated hour: what hosts keep is bounded, however long they run.

use braidcast_core::Instant;
use braidcast_lab::experiment::{Experiment, Measures};
use braidcast_lab::plan::{Done, Plan};
use braidcast_lab::{Job, Request, Scenario};
use core::sync::atomic::AtomicBool;
use core::time::Duration;
use std::path::Path;

const HOUR: &str = r#"name = "hour"
title = "An hour at 10 messages a second"
experiment = "transfer"
duration = "1h"
runs = 1
[link.a]
rate = "100kbit"
rtt = "40ms"
loss = "1%"
outage = "every:60s,3s"
[link.b]
rate = "100kbit"
rtt = "60ms"
[traffic]
source = "cbr:16kbit,200B"
sample = "100ms"
[sctp]
preset = "prompt"
"#;

/// How much the hosts keep in the end, as metrics.
const SIZES: Experiment =
    Experiment { name: "sizes", text: "", fixed_length: false, build: Plan::of, measure: |_, done| sizes(done) };

fn sizes(done: &Done<'_>) -> Measures {
    let mut measures = Measures::default();
    let mut size = |name: &str, value: usize| measures.metric(name, "", value as f64);
    let sender = done.sender("main").and_then(|host| host.sctp_sender()).unwrap();
    let times: Vec<Instant> = sender.samples.iter().map(|sample| sample.at).collect();
    let gap = |gap: &[Instant]| gap[1] - gap[0];
    size("samples", times.len());
    size("hours sampled", (*times.last().unwrap() - times[0]).as_secs().div_ceil(3600) as usize);
    size("even", usize::from(times.windows(2).map(gap).all(|gap| gap >= Duration::from_millis(200))));
    size("changes", sender.changes.len());
    let delivered = &done.receiver("main").and_then(|host| host.sctp_receiver()).unwrap().delivered;
    size("received", delivered.meter.received() as usize);
    size("intervals", delivered.meter.series().intervals().len());
    size("log", delivered.log.capacity());
    measures
}

#[test]
fn an_hour_of_samples_and_meters_is_bounded() {
    let scenario = Scenario::read("my.toml", HOUR, Path::new(".")).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    let results = Job::by(&SIZES, &scenario, &Request::default()).unwrap().run(&AtomicBool::new(false), &|| {});
    assert_eq!(results.lost_runs, Vec::<String>::new());
    let size = |name: &str| results.rows.iter().find(|row| row.metric == name).unwrap().mean as usize;
    assert!((35_000..=36_000).contains(&size("received")), "{}", size("received"));
    // 36000 samples were asked for: every second one went when there were 32768.
    assert!((16_384..=32_768).contains(&size("samples")), "{}", size("samples"));
    assert_eq!((size("hours sampled"), size("even"), size("log")), (1, 1, 0));
    // The goodput of each 100 ms, and a path that goes down and comes up in each outage.
    assert!(size("intervals") <= 36_300 && (60..400).contains(&size("changes")), "{} changes", size("changes"));
}
