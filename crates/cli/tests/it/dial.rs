//! Who dials and who sends are two separate choices: `receive --from` calls `send --at`.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time and real datagrams")]

use crate::common::{Running, Test, free_port, free_ports, len, noise, transport_stream, until};
use std::fs;

/// Over two networks of the receiver's, with a key; each end names the paths as it knows them.
#[test]
fn a_receiver_calls_over_two_networks_and_the_stream_comes_as_it_went_in() {
    let (dir, [port, wifi, lte]) = (tempfile::tempdir().unwrap(), free_ports());
    let clip = transport_stream(dir.path(), 4);
    let emulate = |at: u16, how: &str| {
        Running::start(dir.path(), &format!("emulate 127.0.0.1:{at} 127.0.0.1:{port} {how}")).wait_for("listening")
    };
    let _links = (emulate(wifi, "--delay 10ms --loss 2%"), emulate(lte, "--delay 40ms --loss 2%"));
    let sender = Running::start(
        dir.path(),
        &format!("send clip.ts --at 127.0.0.1:{port} --latency 2s --key open-sesame-2026 --json"),
    )
    .wait_for("listening on");
    let receive =
        format!("receive --from 127.0.0.1:{wifi} --from 127.0.0.1:{lte} out.ts --key open-sesame-2026 --json");
    let received = Running::start(dir.path(), &receive).finish();
    received.says(0, &["calling", &format!("127.0.0.1:{wifi} is up"), &format!("127.0.0.1:{lte} is up")]);
    let sent = sender.finish();
    sent.says(0, &["connected", "path from 127.0.0.1:"]);
    assert!(fs::read(dir.path().join("out.ts")).unwrap() == fs::read(clip).unwrap(), "not the same bytes");
    let names: Vec<_> = received.json()["paths"].as_array().unwrap().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, [format!("127.0.0.1:{wifi}"), format!("127.0.0.1:{lte}")]);
    assert_eq!(sent.json()["security"]["authenticated"], true, "{}", sent.json());
}

#[test]
fn a_file_goes_on_where_it_was_when_either_end_was_killed() {
    let (dir, [port, link]) = (tempfile::tempdir().unwrap(), free_ports());
    let (input, out) = (noise(6_000_000), dir.path().join("out.bin"));
    fs::write(dir.path().join("in.bin"), &input).unwrap();
    let emulate = format!("emulate 127.0.0.1:{link} 127.0.0.1:{port} --rate 16mbit --delay 5ms");
    let _link = Running::start(dir.path(), &emulate).wait_for("listening");
    let send = || Running::start(dir.path(), &format!("send in.bin --at 127.0.0.1:{port} --reliable"));
    let receive = || Running::start(dir.path(), &format!("receive --from 127.0.0.1:{link} out.bin"));
    let (sender, receiver) = (send(), receive());
    until("a part", || len(&out) > 1_000_000);
    receiver.kill();
    let receiver = receive();
    let had = len(&out);
    until("another part", || len(&out) > had + 500_000);
    sender.kill();
    let sender = send();
    sender.finish().says(0, &["going on from there"]);
    receiver.finish().says(0, &[]);
    assert!(fs::read(&out).unwrap() == input, "{} bytes", len(&out));
}

#[test]
fn another_key_ends_the_call_and_not_the_sender() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let clip = transport_stream(dir.path(), 1);
    let sender =
        Running::start(dir.path(), &format!("send clip.ts --at {port} --key one-key-of-many")).wait_for("listening on");
    let receive =
        |key: &str| Running::start(dir.path(), &format!("receive --from 127.0.0.1:{port} out.ts --key {key}"));
    receive("another-key-of-many").finish().says(1, &["no connection", "give both ends the same --key"]);
    receive("one-key-of-many").finish().says(0, &[]);
    sender.finish().says(0, &["a receiver was turned away"]);
    assert!(fs::read(dir.path().join("out.ts")).unwrap() == fs::read(clip).unwrap());
}

#[test]
fn wrong_uses_say_what_is_missing() {
    for (args, words) in [
        ("send in.ts", &["--to <HOST:PORT>"] as &[&str]),
        ("send in.ts --at 9000 --to a:1", &["--at", "--to"]),
        ("send in.ts --at nonsense", &["neither PORT nor ADDR:PORT"]),
        ("receive --from a:1", &["no <OUTPUT>"]),
        ("receive --from a out.ts", &["a port is missing"]),
        ("receive 9000 out.ts --via lo", &["--from"]),
        ("receive one.ts two.ts", &["<LISTEN>", "neither PORT nor ADDR:PORT"]),
    ] {
        Test::new(args).run().says(2, words);
    }
}
