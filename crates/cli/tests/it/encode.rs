//! What encoders are told. `braidcast encode` itself needs GStreamer: `make encode` (gst/tests).
#![allow(clippy::disallowed_types, clippy::disallowed_methods, reason = "a reader of a real server over a real socket")]

use crate::common::{Running, Test, free_port, transport_stream};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn an_encoder_is_told_what_it_may_make() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 4);
    std::fs::write(
        dir.path().join("send.toml"),
        "[send]\non-rate = 'echo \"$BRAIDCAST_RATE $BRAIDCAST_VIDEO_RATE\" >>told'\n",
    )
    .unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    let how = "--rate-report rates --rate-interval 50ms --rate-range 200kbit-3mbit --config send.toml";
    Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} {how}")).finish().says(0, &[]);
    receiver.finish().says(0, &[]);
    let lines = std::fs::read_to_string(dir.path().join("rates")).unwrap();
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 20, "{} lines in 4 s", lines.len());
    for line in &lines {
        let rate = line["rate_bits_per_second"].as_f64().unwrap();
        assert!((200e3..=3e6).contains(&rate) && line["version"] == 1 && line["lost_lines"] == 0, "{line}");
    }
    assert!(lines.iter().any(|line| line["connected"] == true && line["next_frame_bits"].as_u64() > Some(0)));
    let told = std::fs::read_to_string(dir.path().join("told")).unwrap();
    let rates: Vec<u64> = told.split_whitespace().map(|rate| rate.parse().unwrap()).collect();
    assert!(rates.len() >= 2 && rates.iter().all(|rate| *rate <= 3_000_000), "{told}");
}

#[test]
fn a_page_can_listen_to_the_rate_and_a_target_has_a_price() {
    let (dir, port, events) = (tempfile::tempdir().unwrap(), free_port(), free_tcp_port());
    transport_stream(dir.path(), 3);
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    let how = format!("--rate-report sse:{events} --target-quality 4 --rate-interval 50ms");
    let sender = Running::start(dir.path(), &format!("send clip.ts --to 127.0.0.1:{port} {how}"));
    let begun = Instant::now();
    let mut page = loop {
        if let Ok(page) = TcpStream::connect(("127.0.0.1", events)) {
            break page;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "nobody listens");
        std::thread::sleep(Duration::from_millis(20));
    };
    page.write_all(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let data = |line: Result<String, _>| line.unwrap().strip_prefix("data: ").map(str::to_owned);
    let lines = BufReader::new(page).lines().filter_map(data).take(5);
    let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(&line).unwrap()).collect();
    assert!(lines.len() == 5 && lines.iter().all(|line| line["version"] == 1), "{lines:?}");
    let quality = &lines[4]["quality"];
    // G.1070, H.264 VGA: 4 takes 1 to 2 Mbit/s at 25 and at 30 frames a second.
    let price = quality["target_bits_per_second"].as_f64().unwrap();
    assert!((5e5..3e6).contains(&price) && quality["target_mos"] == 4.0, "{quality}");
    // Audio as well, once the receiver has said what came of it.
    assert!(quality["audio"].is_null() || quality["audio"]["listening_mos"].as_f64() > Some(1.0), "{quality}");
    assert!((1.0..=5.0).contains(&quality["mos"].as_f64().unwrap()), "{quality}");
    sender.finish().says(0, &[]);
    receiver.finish().says(0, &[]);
}

fn free_tcp_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn what_cannot_be_is_refused() {
    for (args, words) in [
        ("send a.ts --to 127.0.0.1:1 --rate-range 3mbit", "for example 300kbit-8mbit"),
        ("send a.ts --to 127.0.0.1:1 --rate-range 3mbit-1mbit", "no more than the second"),
        ("send a.ts --to 127.0.0.1:1 --rate-interval 1ms", "every 20ms to 60s"),
        ("send a.ts --to 127.0.0.1:1 --rate-report", "--rate-report"),
        ("send a.ts --to 127.0.0.1:1 --rate-report sse:x", "neither PORT nor ADDR:PORT"),
        ("send a.ts --to 127.0.0.1:1 --target-quality 6", "for example 4"),
        ("encode test --to 127.0.0.1:1 --size 1279x720", "two even numbers"),
        ("encode test --to 127.0.0.1:1 --fps 0", "1..=240"),
        ("encode test --to 127.0.0.1:1 --encoder x264enc!", "name an element"),
        ("encode test --to 127.0.0.1:1 --audio microphone", "auto, none, test, mic, or gst:PIPELINE"),
        ("encode test --to 127.0.0.1:1 --audio-rate 1mbit", "6kbit to 512kbit"),
        ("encode test --to 127.0.0.1:1 --reliable", "--reliable does not go with encode"),
    ] {
        Test::new(args).run().says(2, &[words]);
    }
    let file = Test::new("send a.bin --to 127.0.0.1:1 --on-rate true").file("a.bin", "no transport stream").run();
    file.says(2, &["need a live stream"]);
    let nowhere = Test::new("send a.ts --to 127.0.0.1:1 --target-quality 4").file("a.ts", [0x47; 1880]).run();
    nowhere.says(2, &["--target-quality needs --rate-report"]);
    let both = Test::new("send a.ts --to 127.0.0.1:1 --rate-report - --json").file("a.ts", [0x47; 1880]).run();
    both.says(2, &["cannot both go to stdout"]);
}

#[test]
fn an_encoder_that_ends_is_no_cause_for_a_warning() {
    // It takes no more lines while its last frames are still in flight.
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 2);
    let (copy, encoder) = (dir.path().join("braidcast"), dir.path().join("braidcast-encode"));
    std::fs::copy(env!("CARGO_BIN_EXE_braidcast"), &copy).unwrap();
    std::fs::write(&encoder, "#!/bin/sh\ncat clip.ts\nexec <&-\nsleep 1\n").unwrap();
    std::fs::set_permissions(&encoder, Permissions::from_mode(0o755)).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts")).wait_for("listening");
    let args = ["encode", "test", "--to", &format!("127.0.0.1:{port}")];
    let ran = Command::new(copy).args(args).current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && !said.contains("warning"), "{said}");
    receiver.finish().says(0, &[]);
}

#[test]
fn without_the_encoders_program_it_is_said_how_to_have_it() {
    // If there is none beside it.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("braidcast");
    std::fs::copy(env!("CARGO_BIN_EXE_braidcast"), &copy).unwrap();
    let ran =
        Command::new(copy).args(["encode", "test", "--to", "127.0.0.1:1"]).env("PATH", dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.code() == Some(1) && said.contains("no program braidcast-encode") && said.contains("make gst"),
        "{said}"
    );
}
