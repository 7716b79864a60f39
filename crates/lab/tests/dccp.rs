//! DCCP in the lab.

use braidcast_lab::results::Results;
use braidcast_lab::{Job, Request, Scenario};
use core::sync::atomic::AtomicBool;
use std::path::Path;

fn run(text: &str, runs: u32) -> Results {
    let scenario = Scenario::read("test.toml", text, Path::new(".")).unwrap();
    let request = Request { runs: Some(runs), ..Request::default() };
    Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| ())
}

/// The mean of `metric` for `variant`.
fn mean(results: &Results, variant: &str, metric: &str) -> f64 {
    let found = results.rows.iter().find(|row| row.variant == variant && row.metric == metric);
    found.unwrap_or_else(|| panic!("no {metric} of {variant} in {:#?}", results.rows)).mean
}

const TWO_CALLS: &str = r#"
name = "two-calls"
title = "Two calls one way, one the other"
experiment = "transfer"
duration = "60s"
[network]
wrap = "ip"
[link.a]
rate = "2mbit"
rtt = "100ms"
loss = "1%"
[flow.main]
agent = "dccp"
[traffic]
source = "g711:calls=2"
[dccp]
send_queue = 5
[[variant]]
name = "udp"
flow.main.agent = "udp"
[[variant]]
name = "ccid2"
dccp.ccid = "ccid2"
[[variant]]
name = "ccid3"
dccp.ccid = "ccid3"
[[variant]]
name = "both ways"
dccp.ccid = "ccid3"
flow.main.back = "g729"
[[variant]]
name = "bulk"
dccp.ccid = "ccid3"
traffic.source = "bulk"
[[variant]]
name = "4 MB"
dccp.ccid = "ccid3"
traffic.source = "bulk:4MB"
"#;

#[test]
fn calls_and_bulk_data_go_over_dccp_and_are_measured_as_over_udp() {
    let results = run(TWO_CALLS, 2);
    assert!(results.lost_runs.is_empty(), "{:?}", results.lost_runs);
    // Two calls of 64 kbit/s lose what the link loses, and what slow start does not let out. They need ten packets in a
    // round trip, about as many as the mean window of CCID 2 has at this loss.
    for (variant, most) in [("udp", 2.0), ("ccid2", 20.0), ("ccid3", 3.0), ("both ways", 3.0)] {
        let (goodput, loss) = (mean(&results, variant, "goodput"), mean(&results, variant, "loss"));
        assert!((0.5..most).contains(&loss), "{variant}: {loss} % lost");
        assert!((goodput / 1.28 - (100.0 - loss)).abs() < 1.0, "{variant}: {goodput} kbit/s with {loss} % lost");
        let delay = mean(&results, variant, "delay");
        assert!((50.0..if variant == "ccid2" { 110.0 } else { 65.0 }).contains(&delay), "{variant}: {delay} ms");
    }
    assert!(mean(&results, "ccid3", "loss before sending") < 2.0);
    // A full packet has 1360 of 1424 bytes, with DCCP's header of 16 to 24 and IP's; at 1 % loss TFRC fills 2 Mbit/s nearly.
    assert!((1200.0..1915.0).contains(&mean(&results, "bulk", "goodput")));
    let limited = mean(&results, "4 MB", "goodput") * 60.0 / 8.0;
    assert!((3950.0..=4000.0).contains(&limited), "{limited} kB of 4 MB less 1 %");
}
