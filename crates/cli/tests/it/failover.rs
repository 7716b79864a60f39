//! A path fails in the middle of a live stream: the audio goes on, the video hardly stops.
#![allow(clippy::disallowed_methods, reason = "this test is about real time")]

use crate::common::{Running, free_ports, transport_stream};
use std::time::{Duration, Instant};

/// Time at which the first path fails, from the start of its emulator.
const CUT: Duration = Duration::from_secs(5);

#[test]
fn a_path_cut_during_live_video_makes_no_audio_late_and_no_freeze_above_half_a_second() {
    let dir = tempfile::tempdir().unwrap();
    transport_stream(dir.path(), 10);
    let [port, a, b] = free_ports();
    let receive = format!("receive 127.0.0.1:{port} out.ts --json --log log.csv");
    let receiver = Running::start(dir.path(), &receive).wait_for("listening");
    let link = |listen: u16, flags: &str| {
        let args = format!("emulate 127.0.0.1:{listen} 127.0.0.1:{port} --rate 4mbit --loss 0.5% {flags}");
        Running::start(dir.path(), &args).wait_for("listening")
    };
    let begun = Instant::now();
    let _links = [link(a, "--delay 15ms --outage 5s-1h"), link(b, "--delay 35ms")];
    let args = format!("send clip.ts --to 127.0.0.1:{a} --to 127.0.0.1:{b}");
    let sender = Running::start(dir.path(), &args).wait_for(&format!("127.0.0.1:{a} does not answer"));
    let noticed = begun.elapsed();
    assert!(noticed < CUT + Duration::from_secs(1), "noticed {noticed:?} after the emulator began, cut at {CUT:?}");
    sender.finish().says(0, &[]);
    let received = receiver.finish();
    received.says(0, &[]);
    let report = received.json();
    let audio = report["kinds"].as_array().unwrap().iter().find(|kind| kind["kind"] == "audio").unwrap();
    assert_eq!(audio["on_time_share"].as_f64(), Some(1.0), "{audio}");
    let log = std::fs::read_to_string(dir.path().join("log.csv")).unwrap();
    let freeze = longest_freeze(&log);
    assert!(freeze <= 0.5, "{freeze} s without a new frame");
}

/// Returns the longest time, in seconds, between frames that arrived on time, by their presentation
/// times. Columns: sequence,kind,reference,bytes,pts,…,on_time.
fn longest_freeze(log: &str) -> f64 {
    let mut shown: Vec<f64> = log
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>())
        .filter(|row| matches!(row[1], "I" | "P" | "B") && row.last() == Some(&"1"))
        .map(|row| row[4].parse::<f64>().unwrap() / 90_000.0)
        .collect();
    shown.sort_by(f64::total_cmp);
    assert!(shown.len() > 100, "only {} frames", shown.len());
    shown.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max)
}
