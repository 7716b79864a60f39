//! What runs in the field goes on: who is at home ends only what is at home (the table in
//! docs/tools.md).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real time, real files and real signals")]

use crate::common::{Running, free_port, len, transport_stream, until};
use std::path::Path;
use std::process::{Command, Stdio};

/// The flag with a key that was drawn.
fn new_key(dir: &Path) -> String {
    format!("--key {}", Running::start(dir, "key new --json").finish().json()["short"].as_str().unwrap())
}

fn listen(dir: &Path, args: &str) -> Running {
    Running::start(dir, &format!("receive {args}")).wait_for("listening")
}

fn send(dir: &Path, port: u16, flags: &str) -> Running {
    Running::start(dir, &format!("send clip.ts --to 127.0.0.1:{port} {flags}"))
}

/// `braidcast receive` whose stdout goes to a program that has seen enough after 20 kB, as a player that is closed.
fn into_a_player(dir: &Path, args: &str) -> Running {
    let mut shell = Command::new("bash");
    let program = env!("CARGO_BIN_EXE_braidcast");
    shell.current_dir(dir).env_remove("BRAIDCAST_KEY").env("XDG_CONFIG_HOME", dir.join("config"));
    shell.args(["-c", &format!("exec {program} receive {args} > >(head -c 20000 >/dev/null)")]);
    Running::spawn(shell, Stdio::null()).wait_for("listening")
}

#[test]
fn who_is_at_home_ends_only_what_is_at_home() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    transport_stream(dir, 150);
    // Drawn keys: a passphrase takes its time at each start.
    let [key, other] = [(); 2].map(|()| new_key(dir));
    let mut sender = send(dir, port, &key);
    for (n, signal) in ["INT", "HUP", "TERM"].into_iter().enumerate() {
        let file = format!("{n}.ts");
        let receiver = listen(dir, &format!("127.0.0.1:{port} {file} {key}"));
        until(&file, || len(&dir.join(&file)) > 20_000);
        receiver.signal(signal);
        receiver.finish().says(0, &["written in"]);
    }
    into_a_player(dir, &format!("127.0.0.1:{port} - {key}")).finish().says(0, &["the program that read the stream"]);
    let full = listen(dir, &format!("127.0.0.1:{port} /dev/full {key}"));
    full.finish().says(1, &["cannot write /dev/full", "No space left"]);
    // Once it has had a receiver, a wrong key or name at that address may be anybody's.
    let stranger = listen(dir, &format!("127.0.0.1:{port} x.ts {other}")).wait_for("turned away");
    stranger.interrupt();
    stranger.finish().says(0, &["nothing was written"]);
    let named = listen(dir, &format!("127.0.0.1:{port} --accept cam9=y.ts {key}")).wait_for("turned away");
    named.interrupt();
    named.finish().says(0, &["nothing was written"]);
    let receiver = listen(dir, &format!("127.0.0.1:{port} last.ts {key}"));
    assert!(sender.is_running());
    until("last.ts", || len(&dir.join("last.ts")) > 50_000);
    sender.interrupt();
    let sent = sender.finish();
    sent.says(0, &["the receiver was stopped; reconnecting", "the receiver cannot write its output; reconnecting"]);
    sent.says(0, &["unknown name", "delivering what is already queued"]);
    receiver.finish().says(0, &[]);
}

#[test]
fn a_sender_ends_with_its_receiver_if_it_is_told_to() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    transport_stream(dir, 20);
    let receiver = listen(dir, &format!("127.0.0.1:{port} out.ts"));
    let sender = send(dir, port, "--end-with-receiver").wait_for("connected");
    receiver.interrupt();
    receiver.finish().says(0, &[]);
    sender.finish().says(1, &["not delivered to its end", "the receiver was stopped"]);
}

#[test]
fn a_closed_player_takes_only_its_own_output_along() {
    let (dir, ports) = (tempfile::tempdir().unwrap(), [free_port(), free_port()]);
    let dir = dir.path();
    transport_stream(dir, 40);
    // A recording beside it, and nothing beside it but --keep.
    for (port, outputs) in [(ports[0], "- out.ts"), (ports[1], "- --keep")] {
        let receiver = into_a_player(dir, &format!("127.0.0.1:{port} {outputs}"));
        let sender = send(dir, port, "");
        let receiver = receiver.wait_for("the program that read stdout is gone; the stream goes on without it");
        if outputs.contains("out.ts") {
            let had = len(&dir.join("out.ts"));
            until("the recording to go on", || len(&dir.join("out.ts")) > had + 50_000);
        } else {
            assert!(receiver.said().contains("nothing takes it now"), "{}", receiver.said());
            std::thread::sleep(std::time::Duration::from_millis(500));
        }
        sender.interrupt();
        sender.finish().says(0, &["delivering what is already queued"]);
        receiver.signal("INT");
        receiver.finish().says(0, &[]);
    }
}

#[test]
fn what_cannot_work_from_the_beginning_ends_at_once_and_says_what_would() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    let dir = dir.path();
    transport_stream(dir, 5);
    let receiver = listen(dir, &format!("127.0.0.1:{port} --accept cam9=y.ts"));
    send(dir, port, "--name cam1").finish().says(1, &["no connection", "unknown name", "give --name as one of"]);
    drop(receiver);
    let port = free_port();
    let server = Running::start(dir, &format!("perf server 127.0.0.1:{port} --keep")).wait_for("listening");
    let sent = send(dir, port, "").finish();
    sent.says(1, &["this is braidcast perf", "start `braidcast receive` there"]);
    assert!(!sent.stderr.contains("reconnecting"), "{}", sent.stderr);
    drop(server);
}
