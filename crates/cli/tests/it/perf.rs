//! The two ends of a measurement, and what the bench harness relies on.

use crate::common::{Running, free_port, free_ports};

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
fn a_stream_does_not_take_a_measurement_for_a_receiver() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port}")).wait_for("listening");
    std::fs::write(dir.path().join("some.bin"), vec![1; 10_000]).unwrap();
    let args = format!("send some.bin --reliable --to 127.0.0.1:{port} --give-up 10s");
    let sender = Running::start(dir.path(), &args).wait_for("this is braidcast perf, and the other end is not");
    sender.kill();
    server.wait_for("a client ended before it sent anything to measure").kill();
}

#[test]
fn a_measurement_does_not_take_a_receiver_for_its_server() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let receiver = Running::start(dir.path(), &format!("receive 127.0.0.1:{port} out.ts")).wait_for("listening");
    let client = Running::start(dir.path(), &format!("perf client 127.0.0.1:{port} --bytes 1MB")).finish();
    client.says(
        1,
        &[
            "this is braidcast receive, and the other end is not braidcast send",
            "check that `braidcast perf server` of the same version runs there",
        ],
    );
    receiver.wait_for("a sender was turned away: this is braidcast receive").kill();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "how long it takes is the question")]
fn a_sender_without_a_receiver_soon_says_so() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    std::fs::write(dir.path().join("some.bin"), vec![1; 10_000]).unwrap();
    let start = std::time::Instant::now();
    let sender = Running::start(dir.path(), &format!("send some.bin --reliable --to 127.0.0.1:{port} --give-up 1min"));
    let sender = sender.wait_for("no receiver answers yet");
    assert!(start.elapsed() < std::time::Duration::from_secs(15), "{:?}", start.elapsed());
    sender.kill();
}

#[test]
fn redundancy_goes_on_top_of_the_rate() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --json")).wait_for("listening");
    let args = format!("perf client 127.0.0.1:{port} --bytes 2MB --rate 16mbit --fec block:10,9 --json");
    let client = Running::start(dir.path(), &args).finish();
    client.says(0, &[]);
    let document = client.json();
    let rate = document["bits_per_second"].as_f64().unwrap();
    assert!((4e6..17e6).contains(&rate), "{document}");
    let sent = document["paths"][0]["sent_bytes"].as_f64().unwrap();
    assert!(sent > 2e6 * 1.1, "{document}");
    assert_eq!(server.finish().json()["clients"][0]["bytes"], 2_000_000);
}

#[test]
fn a_test_of_some_seconds_ends_soon_after_them() {
    let (dir, port, link) = (tempfile::tempdir().unwrap(), free_port(), free_port());
    let server = Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --json")).wait_for("listening");
    let args = format!("emulate 127.0.0.1:{link} 127.0.0.1:{port} --rate 4mbit --queue 100ms");
    let _link = Running::start(dir.path(), &args).wait_for("listening");
    let client = Running::start(dir.path(), &format!("perf client 127.0.0.1:{link} --duration 1s --json")).finish();
    client.says(0, &[]);
    let document = client.json();
    // All that the send buffer holds, 4 MiB, would take eight seconds.
    let seconds = document["seconds"].as_f64().unwrap();
    assert!((1.0..4.0).contains(&seconds), "{document}");
    assert_eq!(server.finish().json()["clients"][0]["bytes"], document["bytes"]);
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

#[test]
fn dccp_is_measured_alike() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server =
        Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --dccp ccid2 --json")).wait_for("listening");
    let args = format!("perf client 127.0.0.1:{port} --dccp ccid3 --bytes 5MB --json --probe probe.csv");
    let client = Running::start(dir.path(), &args).finish();
    client.says(0, &[]);
    let document = client.json();
    assert_eq!((&document["bytes"], &document["messages"]), (&5_000_000.into(), &3572.into()));
    // The server likes CCID 2, the client decides.
    assert_eq!((&document["dccp"]["sending"], &document["dccp"]["receiving"]), (&"ccid3".into(), &"ccid3".into()));
    assert!(document["dccp"]["allowed_bits_per_second"].as_f64() > Some(0.0), "{document}");
    assert!(document["paths"][0]["rtt_ms"].is_number(), "{document}");
    let served = server.finish().json()["clients"][0].clone();
    assert_eq!(served["complete"], true);
    assert!(served["bytes"].as_u64() > Some(1_000_000), "{served}");
    let probe = std::fs::read_to_string(dir.path().join("probe.csv")).unwrap();
    assert!(probe.lines().count() > 3572, "{} lines", probe.lines().count());
}

#[test]
fn a_latency_test_of_dccp_knows_both_ways_and_one() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server =
        Running::start(dir.path(), &format!("perf server 127.0.0.1:{port} --dccp ccid2 --json")).wait_for("listening");
    let args = "--dccp ccid2 --latency-test --duration 1s --rate 800kbit --size 1000 --json";
    let client = Running::start(dir.path(), &format!("perf client 127.0.0.1:{port} {args}")).finish();
    client.says(0, &[]);
    let document = client.json();
    let round_trip = document["round_trip_us"]["p50"].as_f64().unwrap();
    let server = server.finish().json();
    let one_way = server["clients"][0]["latency_us"]["p50"].as_f64().unwrap();
    assert!(0.0 < one_way && one_way < round_trip, "{one_way} {round_trip}");
}

#[test]
fn dccp_runs_straight_over_ip_for_those_who_may() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let mut server = Running::start(dir.path(), &format!("perf server 127.0.0.2:{port} --dccp ccid2 --native --json"));
    let args = format!("perf client 127.0.0.2:{port} --dccp ccid2 --native --via 127.0.0.1 --bytes 2MB --json");
    let client = Running::start(dir.path(), &args).finish();
    if client.stderr.contains("CAP_NET_RAW") {
        // Who is not root is told so, and how to go on, by both ends.
        client.says(1, &["IP protocol 33", "run as root"]);
        server.finish().says(1, &["IP protocol 33", "run as root"]);
        return;
    }
    client.says(0, &[]);
    assert_eq!(client.json()["dccp"]["sending"], "ccid2");
    let _ = server.is_running();
    assert_eq!(server.finish().json()["clients"][0]["complete"], true);
}

#[test]
fn dccp_is_encrypted_unless_both_ends_say_plain() {
    for (flags, cipher) in
        [("--key some-long-passphrase", Some("AES-128-GCM")), ("", Some("AES-128-GCM")), ("--plain", None)]
    {
        let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
        let run = format!("perf server 127.0.0.1:{port} --dccp ccid2 --json {flags}");
        let server = Running::start(dir.path(), &run).wait_for("listening");
        let args = format!("perf client 127.0.0.1:{port} --dccp ccid2 --bytes 1MB --json {flags}");
        let client = Running::start(dir.path(), &args).finish();
        client.says(0, &[]);
        let (client, server) = (client.json(), server.finish().json());
        for security in [&client["security"], &server["clients"][0]["security"]] {
            assert_eq!(security["cipher"].as_str(), cipher, "{flags}");
            assert_eq!(security["authenticated"].as_bool().unwrap_or_default(), flags.starts_with("--key"));
        }
    }
}

#[test]
fn dccp_ends_that_do_not_go_together_say_which() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let server = Running::start(
        dir.path(),
        &format!("perf server 127.0.0.1:{port} --dccp ccid2 --keep --key right-right-right"),
    )
    .wait_for("listening");
    for (flags, at_client) in [
        ("--key wrong-wrong-wrong", "the other end has another key"),
        ("", "the other end has a key, and this end has none"),
        ("--plain", "the other end encrypts, and this end does not"),
    ] {
        let client =
            Running::start(dir.path(), &format!("perf client 127.0.0.1:{port} --dccp ccid2 --bytes 1MB {flags}"));
        client.finish().says(1, &["no secure connection", at_client]);
    }
    drop(server.wait_for("the other end does not encrypt, and this end insists"));
}

/// Who dials and who sends are two separate choices here too.
#[test]
fn a_server_calls_a_client_over_two_networks() {
    let (dir, [port, other]) = (tempfile::tempdir().unwrap(), free_ports());
    let dir = dir.path();
    let key = "--key open-sesame-2026";
    let none = Running::start(dir, &format!("perf server --from 127.0.0.1:{port} --plain"));
    // Long enough for the second path to join; by turns, as a loopback that has always room keeps all to itself.
    let turns = "--duration 3s --scheduler round-robin";
    let client = format!("perf client --at 127.0.0.1:{port},127.0.0.1:{other} {turns} --json {key}");
    let client = Running::start(dir, &client).wait_for("waiting for a server at");
    none.finish().says(1, &["no client was there"]);
    let server = format!("perf server --from 127.0.0.1:{port},127.0.0.1:{other} --json {key}");
    let server = Running::start(dir, &server).finish();
    server.says(0, &["calling 127.0.0.1"]);
    let client = client.finish();
    client.says(0, &["connected"]);
    let sent = client.json()["bytes"].clone();
    let served = &server.json()["clients"][0];
    assert_eq!((&served["bytes"], &served["complete"]), (&sent, &true.into()), "{served}");
    assert_eq!(served["security"]["authenticated"], true);
    let paths = client.json()["paths"].as_array().unwrap().clone();
    assert!(paths.len() == 2 && paths.iter().all(|it| it["sent_bytes"].as_u64() > Some(100_000)), "{paths:?}");
}

#[test]
fn a_server_that_calls_remembers_the_key_of_its_client() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    Running::start(dir, "key identity field").finish().says(0, &[]);
    for said in ["for the first time", "authenticated by its own key"] {
        let client = Running::start(dir, &format!("perf client --at 127.0.0.1:{port} --bytes 1MB --identity field"));
        let client = client.wait_for("waiting for a server at");
        Running::start(dir, &format!("perf server --from 127.0.0.1:{port}")).finish().says(0, &["connected", said]);
        client.finish().says(0, &[]);
    }
    let client = Running::start(dir, &format!("perf client --at 127.0.0.1:{port}")).wait_for("waiting for a server at");
    let server = Running::start(dir, &format!("perf server --from 127.0.0.1:{port}")).finish();
    server.says(1, &["no client was there", "known_peers:1 says that its key was"]);
    client.kill();
}
