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
