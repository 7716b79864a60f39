//! Interfaces that appear and vanish while a stream runs, in network namespaces of the test's own.

use crate::common::transport_stream;
use std::process::Command;

/// Two namespaces joined by two cables, va1-vb1 and va2-vb2, the second of which is plugged in late, pulled out and
/// plugged in again. Prints the sender's report.
const SCRIPT: &str = r#"
set -e
plug() {
    ip link add va$1 type veth peer name vb$1
    ip link set vb$1 netns $far
    ip addr add 10.9.$1.1/24 dev va$1
    ip link set va$1 up
    nsenter -t $far -n ip addr add 10.9.$1.2/24 dev vb$1
    nsenter -t $far -n ip link set vb$1 up
}
ip link set lo up
unshare -n sleep 60 & far=$!
trap 'kill $far' EXIT
sleep 0.3
nsenter -t $far -n ip link set lo up
plug 1
nsenter -t $far -n "$BRAIDCAST" receive 9000 out.ts --quiet & receiver=$!
sleep 0.3
"$BRAIDCAST" send clip.ts --to 10.9.1.2:9000 --to 10.9.2.2:9000 --via va1 --via va2 --json & sender=$!
sleep 1.5; plug 2
sleep 2; ip link del va2
sleep 1.5; plug 2
wait $sender
wait $receiver
"#;

/// Containers often forbid namespaces, and then there is nothing to be plugged.
fn namespaces_are_allowed() -> bool {
    let probe = Command::new("unshare").args(["-rnm", "ip", "link", "set", "lo", "up"]).output();
    probe.is_ok_and(|out| out.status.success())
}

#[test]
fn paths_join_and_leave_with_their_interfaces() {
    if !namespaces_are_allowed() {
        eprintln!("skipped: no user namespaces here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let clip = transport_stream(dir.path(), 8);
    let out = Command::new("timeout")
        .args(["60", "unshare", "-rnm", "bash", "-c", SCRIPT])
        .env("BRAIDCAST", env!("CARGO_BIN_EXE_braidcast"))
        .current_dir(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    for word in ["there is no va2 now", "va2 is there and joins", "va2 is gone", "va2 has left"] {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
    let report: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let paths = report["paths"].as_array().unwrap();
    let seen: Vec<_> =
        paths.iter().map(|path| (path["name"].as_str().unwrap(), path["state"].as_str().unwrap())).collect();
    assert_eq!(seen, [("va1", "active"), ("va2", "left"), ("va2", "active")], "{said}");
    // How much each carries is the scheduler's business.
    assert!(paths.iter().all(|path| path["sent_bytes"].as_u64().unwrap() > 0), "{report}");
    assert!(std::fs::read(dir.path().join("out.ts")).unwrap() == std::fs::read(clip).unwrap(), "not the same bytes");
}
