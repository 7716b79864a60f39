//! Scenarios on real sockets: links that flows share, links behind each other, TCP. The bounds hold
//! on a busy machine too.

use braidcast_lab::results::Results;
use braidcast_lab::{Job, Request, Scenario};
use core::sync::atomic::AtomicBool;
use std::path::Path;

const SHARED: &str = r#"name = "shared"
title = "Flows that share a link"
experiment = "fairness"
duration = "4s"
runs = 1
[network]
wrap = "ip"
[link.access-1]
rate = "20mbit"
delay = "1ms"
[link.access-2]
rate = "20mbit"
delay = "1ms"
[link.bottleneck]
rate = "2mbit"
delay = "10ms"
queue = "30p"
[traffic]
message = 1452
warmup = "1s"
[flow.first]
agent = "$first"
paths = [["access-1", "bottleneck"]]
[flow.second]
agent = "tcp"
paths = [["access-2", "bottleneck"]]
[sweep]
first = ["sctp", "dccp", "tcp"]
"#;

fn run(text: &str) -> Results {
    let scenario = Scenario::read("my.toml", text, Path::new(".")).unwrap_or_else(|e| panic!("{e}; {}", e.fix));
    let request = Request { real_time: true, ..Request::default() };
    let results = Job::new(&scenario, &request).unwrap().run(&AtomicBool::new(false), &|| {});
    assert_eq!(results.lost_runs, Vec::<String>::new());
    results
}

#[test]
fn flows_share_a_link_in_real_time_with_tcp_among_them() {
    let results = run(SHARED);
    for first in ["sctp", "dccp", "tcp"] {
        let goodput = |flow: &str| {
            let metric = format!("goodput of {flow}");
            let row = results.rows.iter().find(|row| row.params["first"] == first && row.metric == metric);
            row.unwrap_or_else(|| panic!("{metric} beside {first}: {:?}", results.rows)).mean
        };
        let (of_first, of_second) = (goodput("first"), goodput("second"));
        let both = of_first + of_second;
        // 2 Mbit/s and what waited in the queue when the window opened; a link for each would carry twice that.
        assert!((1000.0..2200.0).contains(&both), "{first}: {of_first} and {of_second} kbit/s");
        assert!(of_first > 50.0 && of_second > 50.0, "{first}: {of_first} and {of_second} kbit/s");
    }
}
