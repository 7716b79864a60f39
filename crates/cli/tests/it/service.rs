//! As systemd runs it: ready when it listens, heard of again and again, and its end announced.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a real process takes real time")]

use crate::common;
use crate::common::Running;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};

#[test]
fn systemd_hears_that_a_receiver_is_ready_that_it_goes_on_and_that_it_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(common::PATIENCE)).unwrap();
    let next = || {
        let mut buf = [0; 256];
        let len = socket.recv(&mut buf).expect("systemd hears something");
        String::from_utf8_lossy(&buf[..len]).trim().to_owned()
    };
    // systemd names the process that it watches; a tenth of a second between two signs of life,
    // though nothing is shown.
    let script = "WATCHDOG_PID=$$ exec \"$0\" receive 127.0.0.1:0 x.ts --quiet --keep";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_braidcast")]).current_dir(dir.path());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "200000").env_remove("BRAIDCAST_KEY");
    let running = Running::spawn(command, Stdio::null());
    assert_eq!(next(), "READY=1");
    assert_eq!([next(), next(), next()], ["WATCHDOG=1"; 3]);
    running.signal("TERM");
    let mut last = next();
    while last == "WATCHDOG=1" {
        last = next();
    }
    assert_eq!(last, "STOPPING=1");
    running.finish().says(0, &[]);
}

/// As `SystemCallFilter=~@privileged` of a unit has it: `capset` fails with EPERM. The program has
/// no capability.
const FILTERED: &str = r#"
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
DROP_BOUNDING, NO_NEW_PRIVS, SECCOMP, FILTER = 24, 38, 22, 2
for capability in range(64):
    libc.prctl(DROP_BOUNDING, capability, 0, 0, 0)
libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0)
capset = {"x86_64": 126, "aarch64": 91}[platform.machine()]
# Load the number; if it is capset's, EPERM; else allow it.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, capset), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
if libc.prctl(SECCOMP, FILTER, ctypes.c_void_p(ctypes.addressof(program)), 0, 0):
    sys.exit(f"no filter: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[test]
fn who_has_no_capability_need_not_be_allowed_to_drop_any() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new("python3");
    command.args([
        "-c",
        FILTERED,
        env!("CARGO_BIN_EXE_braidcast"),
        "receive",
        "127.0.0.1:0",
        "udp://127.0.0.1:9",
        "--keep",
    ]);
    command.current_dir(dir.path()).env_remove("BRAIDCAST_KEY");
    let running = Running::spawn(command, Stdio::null()).wait_for("listening");
    running.signal("TERM");
    running.finish().says(0, &[]);
}
