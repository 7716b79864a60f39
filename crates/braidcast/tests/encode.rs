//! What encoders are told. `braidcast encode` itself needs GStreamer: `make encode` (gst/tests).

mod common;
use common::{Running, Test, free_port, transport_stream};
use std::process::Command;

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
fn what_cannot_be_is_refused() {
    for (args, words) in [
        ("send a.ts --to 127.0.0.1:1 --rate-range 3mbit", "such as 300kbit-8mbit"),
        ("send a.ts --to 127.0.0.1:1 --rate-range 3mbit-1mbit", "no more than the second"),
        ("send a.ts --to 127.0.0.1:1 --rate-interval 1ms", "every 20ms to 60s"),
        ("send a.ts --to 127.0.0.1:1 --rate-report", "--rate-report"),
        ("encode test --to 127.0.0.1:1 --size 1279x720", "two even numbers"),
        ("encode test --to 127.0.0.1:1 --fps 0", "1..=240"),
        ("encode test --to 127.0.0.1:1 --encoder x264enc!", "name an element"),
        ("encode test --to 127.0.0.1:1 --reliable", "no use for --reliable"),
    ] {
        Test::new(args).run().says(2, &[words]);
    }
    let file = Test::new("send a.bin --to 127.0.0.1:1 --on-rate true").file("a.bin", "no transport stream").run();
    file.says(2, &["nothing to tell of a reliable stream"]);
    let both = Test::new("send a.ts --to 127.0.0.1:1 --rate-report - --json").file("a.ts", [0x47; 1880]).run();
    both.says(2, &["--rate-report would go to stdout"]);
}

#[test]
fn without_the_encoders_program_it_is_said_how_to_have_it() {
    // Where there is none beside it.
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
