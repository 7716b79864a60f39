//! Ends that are known by keys of their own.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "real processes and sockets")]

use crate::common::{Ran, Running, Test, free_port};
use std::path::Path;

/// The fingerprint of the private key in `file`, made anew if it is not there.
fn fingerprint(dir: &Path, file: &str) -> String {
    let ran = Running::start(dir, &format!("key identity {file}")).finish();
    ran.says(0, &[]);
    ran.out().trim().to_owned()
}

fn send(dir: &Path, port: u16, flags: &str) -> Ran {
    Running::start(dir, &format!("send in.bin --to 127.0.0.1:{port} {flags}")).finish()
}

#[test]
fn a_private_key_is_made_once_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let first = fingerprint(dir.path(), "me");
    assert_eq!(first.len(), 64);
    assert_eq!(fingerprint(dir.path(), "me"), first);
    assert_eq!(std::fs::metadata(dir.path().join("me")).unwrap().permissions().mode() & 0o777, 0o600);
    Test::new("receive 1 out.ts --identity me")
        .file("me", "braid1qqqq")
        .run()
        .says(2, &["--identity me", "not a private key"]);
}

#[test]
fn a_receiver_s_key_is_remembered_and_another_one_is_not_taken_any_more() {
    let dir = tempfile::tempdir().unwrap();
    let (port, ours) = (free_port(), fingerprint(dir.path(), "home"));
    std::fs::write(dir.path().join("in.bin"), [7; 5000]).unwrap();
    let receive = |flags: &str| {
        Running::start(dir.path(), &format!("receive {port} out.bin --overwrite {flags}")).wait_for("listening")
    };
    let receiver = receive("--identity home");
    send(dir.path(), port, "").says(0, &["for the first time", &ours, "not authenticated"]);
    receiver.finish().says(0, &[]);
    let known = std::fs::read_to_string(dir.path().join("config/braidcast/known_peers")).unwrap();
    assert_eq!(known, format!("127.0.0.1:{port} {ours}\n"));

    let receiver = receive("--identity home");
    send(dir.path(), port, "").says(0, &["authenticated by its own key"]);
    receiver.finish().says(0, &[]);

    fingerprint(dir.path(), "stranger");
    for flags in ["--identity stranger", ""] {
        let receiver = receive(flags);
        let changed = send(dir.path(), port, "");
        changed.says(
            1,
            &["no secure connection", "known_peers:1 says that its key was", "somebody else answers in its place"],
        );
        receiver.kill();
    }
}

#[test]
fn secrets_are_logged_only_where_that_is_asked_for_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.bin")).wait_for("listening");
    let log = dir.path().join("keys.log");
    let send = Test::new(&format!("send in.bin --to 127.0.0.1:{port}")).file("in.bin", [7; 5000]);
    send.env("SSLKEYLOGFILE", log.to_str().unwrap()).run().says(0, &["warning: SSLKEYLOGFILE", "can read everything"]);
    receiver.finish().says(0, &[]);
    // NSS key log format: a label, the client's random number, a secret.
    let text = std::fs::read_to_string(log).unwrap();
    let line = text.lines().find(|line| line.starts_with("EXPORTER_SECRET ")).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(line.split(' ').nth(1).map(str::len), Some(64));
}

#[test]
fn only_who_has_the_fingerprint_is_talked_to() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let (home, away) = (fingerprint(dir.path(), "home"), fingerprint(dir.path(), "away"));
    std::fs::write(dir.path().join("in.bin"), [7; 5000]).unwrap();
    let receiver = Running::start(dir.path(), &format!("receive {port} out.bin --identity home --peer-key {away}"))
        .wait_for("listening");
    send(dir.path(), port, "")
        .says(1, &["the other end takes only keys that it knows", "give this end a key of its own by --identity FILE"]);
    send(dir.path(), port, "--identity home").says(1, &["does not accept our key"]);
    send(dir.path(), port, &format!("--identity away --peer-key {away}")).says(
        1,
        &["the other end has another key", &format!("--peer-key says {away}, and the other end shows {home}")],
    );
    send(dir.path(), port, &format!("--identity away --peer-key {home}")).says(0, &["authenticated by its own key"]);
    receiver.finish().says(0, &["authenticated by its own key", &away]);
}

#[test]
fn a_list_of_keys_says_who_sends_what_where_and_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    let [_home, one, two] = ["home", "one", "two"].map(|name| fingerprint(dir.path(), name));
    let list = |text: &str| std::fs::write(dir.path().join("list"), text).unwrap();
    std::fs::write(dir.path().join("in.bin"), [7; 5000]).unwrap();
    list(&format!("# who\n{one} cam1 first.bin max-rate=50mbit\n{two} cam2 until=2020-01-01\n"));
    let run = format!("receive {port} {{name}}.bin --keep --identity home --authorized list");
    let receiver = Running::start(dir.path(), &run).wait_for("listening");
    send(dir.path(), port, "--identity one").says(0, &[]);
    send(dir.path(), port, "--identity one --name cam2").says(1, &["unknown name"]);
    send(dir.path(), port, "--identity two").says(1, &["does not accept our key"]);
    list(&format!("{two} cam2\n"));
    receiver.signal("HUP");
    let receiver = receiver.wait_for("list was read again");
    send(dir.path(), port, "--identity two").says(0, &[]);
    send(dir.path(), port, "--identity one").says(1, &["does not accept our key"]);
    list("nonsense\n");
    receiver.signal("HUP");
    let receiver = receiver.wait_for("list:1: a fingerprint has 64 hexadecimal digits");
    receiver.interrupt();
    receiver.finish().says(0, &[]);
    for file in ["cam1.bin", "first.bin", "cam2.bin"] {
        assert_eq!(std::fs::read(dir.path().join(file)).unwrap().len(), 5000, "{file}");
    }
}
