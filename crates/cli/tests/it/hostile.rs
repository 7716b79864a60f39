//! What a sender, or somebody on the same machine, must not bring about.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes and sockets")]

use crate::common::{Running, command, free_port, transport_stream};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Processor time that a process has used.
fn used(id: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    // Fields 14 and 15 of proc_pid_stat(5), in hundredths of a second.
    let ticks: u64 = rest.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
    Some(Duration::from_millis(10 * ticks))
}

#[test]
fn a_receiver_ends_within_seconds_of_a_signal_whatever_latency_its_sender_chose() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 20);
    let receiver = Running::start(dir.path(), &format!("receive {port} /dev/null --keep")).wait_for("listening");
    let send = format!("send clip.ts --to 127.0.0.1:{port} --latency 60s");
    let sender = Running::start(dir.path(), &send).wait_for("connected");
    std::thread::sleep(Duration::from_millis(500));
    sender.kill();
    let (id, begun) = (receiver.id(), Instant::now());
    let before = used(id).unwrap();
    receiver.signal("TERM");
    let mut receiver = receiver;
    let mut last = before;
    while receiver.is_running() {
        last = used(id).unwrap_or(last);
        assert!(begun.elapsed() < Duration::from_secs(12), "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    // It waits, and does not spin meanwhile: this was a second of processor time for each second.
    assert!(last - before < Duration::from_millis(1500), "{:?} of processor time", last - before);
}

#[test]
fn what_it_starts_gets_no_key() {
    let (dir, port) = (tempfile::tempdir().unwrap(), free_port());
    transport_stream(dir.path(), 2);
    std::fs::write(dir.path().join("send.toml"), "[send]\non-rate = 'env >>told'\n").unwrap();
    let made = Running::start(dir.path(), "key new").finish();
    let key = made.out().lines().find(|line| line.starts_with("braid1")).unwrap();
    std::fs::write(dir.path().join("k"), key).unwrap();
    std::fs::set_permissions(dir.path().join("k"), Permissions::from_mode(0o600)).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.ts --key-file k")).wait_for("listening");
    let mut send = command(dir.path());
    let flags = format!("send clip.ts --to 127.0.0.1:{port} --rate-interval 50ms --config send.toml");
    send.args(flags.split_whitespace());
    send.env("BRAIDCAST_KEY", key);
    Running::spawn(send, Stdio::null()).finish().says(0, &["authenticated by the shared key"]);
    receiver.finish().says(0, &[]);
    let told = std::fs::read_to_string(dir.path().join("told")).unwrap();
    assert!(told.contains("BRAIDCAST_RATE=") && !told.contains(key), "{told}");
}

#[test]
fn a_list_or_settings_that_others_may_write_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    Running::start(dir.path(), "key identity me").finish().says(0, &[]);
    let refused = |flags: &str, file: &str, text: &str| {
        let path = dir.path().join(file);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let run = format!("receive {} {{name}}.bin --identity me {flags}", free_port());
        let ran = Running::start(dir.path(), &run).finish();
        ran.says(2, &[file, "others on this machine may write it", "BRAIDCAST_LAX_FILES=1"]);
        let mut lax = command(dir.path());
        lax.args(run.split_whitespace()).env("BRAIDCAST_LAX_FILES", "1");
        Running::spawn(lax, Stdio::null()).wait_for("listening").kill();
    };
    let list = format!("{} cam1\n", "ab".repeat(32));
    refused("--keep --authorized list", "list", &list);
    refused("--config settings.toml", "settings.toml", "[receive]\nkeep = true\n");
}
