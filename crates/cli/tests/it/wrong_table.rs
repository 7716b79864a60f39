//! Forty and more wrong uses and what is said about each, in one table: a change of the words shows up as a
//! difference here. None of them needs a network.

use crate::common::Test;

/// What is typed behind `braidcast`; exit status 2 for each, and nothing on stdout.
const WRONG: &[&str] = &[
    // Addresses with the scheme of another program, or without what they need.
    "send x.ts --to http://127.0.0.1:9000",
    "send x.ts --to udp://home.example:9000",
    "send x.ts --to srt://home.example:9000?latency=500",
    "send x.ts --to udp:127.0.0.1:9000",
    "send x.ts --to me@home.example:9000",
    "send x.ts --to home.example:9000/live",
    "send x.ts --to 2001:db8::1",
    "send x.ts --to home.example:9000,other.example",
    "perf client 127.0.0.1:9000,127.0.0.2:9000",
    "send udp:127.0.0.1:5000 --to home.example:9000",
    "send 127.0.0.1:5000 --to home.example:9000",
    "send file:///tmp/x.ts --to home.example:9000",
    "receive 9000 udp:127.0.0.1:5000",
    "receive 9000 127.0.0.1:5000",
    "receive 9000 localhost:5000",
    "receive 9000 tcp://127.0.0.1:5000",
    // Networks.
    "send x.ts --to home.example:9000 --via wlan0,,wwan0",
    "send x.ts --to home.example:9000 --via wwan0?mtu=1400",
    "send x.ts --to home.example:9000 --via wlan0?name=O2,wwan0?name=O2",
    "receive 9000 x.ts --via wlan0",
    // Flags of other programs.
    "send x.ts --port 9000",
    "send x.ts --to home.example:9000 --bitrate 3M",
    "send x.ts --to home.example:9000 --passphrase secret",
    "send x.ts --to home.example:9000 --interface wlan0",
    "send x.ts --to home.example:9000 --delay 500ms",
    "send x.ts --to home.example:9000 --overwite",
    "send x.ts --to home.example:9000 -f mpegts",
    "send -i clip.ts --to home.example:9000",
    "send x.ts -to home.example:9000",
    "send x.ts home.example:9000",
    "receive --port 9000 x.ts",
    "receive 9000 x.ts --to home.example:9000",
    "receive 9000 x.ts --password secret",
    "receive 9000 -o x.ts",
    "perf client 127.0.0.1:9000 -t 10",
    "emulate 9001 127.0.0.1:9000 --bandwidth 8mbit",
    // A word in the place of a command.
    "version",
    "client home.example:9000",
    "clip.ts",
    "tunnel 9000",
    "tunnel there.example:9000",
    "tunnel client there.example:9000 --listen 5004",
    "perf 127.0.0.1:9000",
    "perf 9000",
    "lab live-two",
    "key stream.key",
    // Flags that have no effect together.
    "send x.ts --to home.example:9000 --reliable --latency 1s",
    "send x.ts --to home.example:9000 --reliable --queue fifo",
    "send x.ts --to home.example:9000 --reliable --end-with-receiver",
    "receive 9000 - --segment 10s",
    "receive 9000 udp://127.0.0.1:5000 --overwrite",
    "emulate 9001 127.0.0.1:9000 --queue 100p",
    "emulate 9001 127.0.0.1:9000 --trace-from 10s",
    "send - --to 127.0.0.1:9 --rate-interval 50ms",
    "send - --to 127.0.0.1:9 --rate-report rates.json,interval=50ms --rate-interval 50ms",
    "send x.ts --to home.example:9000 --rate-report rates.json,every=50ms",
    // What would be mixed up on stdout.
    "receive 9000 - --json",
    "receive 9000 --accept cam=- --json",
    "receive 9000 - --stats 1s",
    // Keys.
    "send - --to 127.0.0.1:9 --key=",
];

#[test]
fn each_is_told_what_was_meant() {
    let mut table = String::new();
    for line in WRONG {
        let ran = Test::new(line).run();
        assert_eq!((ran.status, ran.out()), (2, ""), "{line}: {}", ran.stderr);
        // How the command goes in general is behind `--help`.
        let told =
            ran.stderr.lines().filter(|it| !it.is_empty() && !it.starts_with("Usage:") && !it.starts_with("For more"));
        table += &format!("$ braidcast {line}\n{}\n\n", told.collect::<Vec<_>>().join("\n"));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_file_that_is_not_a_private_key_and_a_key_above_its_section_are_named() {
    let ran = Test::new("key identity stream.key").file("stream.key", "some words\n").run();
    ran.says(2, &["stream.key: this is not a private key, which begins with", "choose a FILE that is not there"]);
    let ran = Test::new("send --config x.toml").file("x.toml", "input = \"x.ts\"\n[send]\nto = \"a:1\"\n").run();
    ran.says(2, &["x.toml:1: unknown key 'input' at the top", "put it below the section of its command: [send]"]);
}

#[test]
fn a_stream_does_not_go_to_a_screen_and_does_not_come_from_a_keyboard() {
    for (args, words) in [
        ("receive 9000 -", "the OUTPUT - is this terminal"),
        ("send - --to 127.0.0.1:9", "the INPUT - is this terminal"),
    ] {
        let line = format!("{} {args}", env!("CARGO_BIN_EXE_braidcast"));
        let ran = std::process::Command::new("script").args(["-qec", &line, "/dev/null"]).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.code() == Some(2) && said.contains(words), "{said}");
    }
}

#[test]
fn with_nothing_typed_it_says_what_to_type_first() {
    let ran = Test::new("").run();
    ran.says(2, &["braidcast demo", "braidcast receive 9000 show.ts", "--via wlan0,wwan0"]);
}
