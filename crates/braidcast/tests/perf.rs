//! The two ends of a measurement, and what the bench harness relies on.

mod common;
use common::{Running, free_port};

#[test]
fn a_server_says_ready_and_then_the_result() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port}")).wait_for("listening");
    let client = Running::start(dir.path(), &format!("perf client 127.0.0.1:{port} --bytes 20MB --json")).finish();
    client.says(0, &[]);
    let document = client.json();
    assert_eq!((&document["bytes"], &document["messages"]), (&20_000_000.into(), &14_286.into()));
    assert!(document["bits_per_second"].as_f64().unwrap() > 1e6);
    assert_eq!(document["paths"][0]["name"], format!("127.0.0.1:{port}"));
    let server = server.finish();
    server.says(0, &[]);
    let lines: Vec<&str> = server.out().lines().collect();
    assert_eq!(lines[0], "READY");
    assert!(lines[1].starts_with("RESULT bytes=20000000 msgs=14286 secs="), "{lines:?}");
}

#[test]
fn a_latency_test_knows_both_ways_and_one() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --json")).wait_for("listening");
    let args = format!("perf client 127.0.0.1:{port} --latency-test --duration 1s --rate 4mbit --size 1000 --json");
    let client = Running::start(dir.path(), &args).finish();
    client.says(0, &[]);
    let document = client.json();
    assert!((document["messages"].as_u64().unwrap() as f64 - 500.0).abs() < 50.0, "{document}");
    let round_trip = document["round_trip_us"]["p50"].as_f64().unwrap();
    let server = server.finish().json();
    let one_way = server["clients"][0]["latency_us"]["p50"].as_f64().unwrap();
    assert!(0.0 < one_way && one_way < round_trip, "{one_way} {round_trip}");
    assert_eq!(server["clients"][0]["complete"], true);
}
