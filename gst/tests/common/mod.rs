//! Running braidcast beside GStreamer: for the tests of the encoder's program and of the plugin.

use serde_json::Value;
use std::net::UdpSocket;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The program that BRAIDCAST names; tests without one are left out, and say so.
pub(crate) fn braidcast() -> Option<PathBuf> {
    let path = std::env::var_os("BRAIDCAST").map(PathBuf::from);
    if path.is_none() {
        eprintln!("left out: BRAIDCAST names no program; `make encode` and `make plugin-test` set it");
    }
    path
}

/// A command of braidcast with `--json`; killed when dropped.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts it with a variable of its environment.
    pub(crate) fn start(program: &Path, args: &str, (name, value): (&str, &str)) -> Self {
        let mut command = Command::new(program);
        command.args(args.split_whitespace()).arg("--json").env(name, value).stdout(Stdio::piped()).process_group(0);
        Self(command.spawn().unwrap())
    }

    /// Waits for its end, and reads what it printed.
    pub(crate) fn document(mut self) -> Value {
        let begun = Instant::now();
        while self.0.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(50));
        }
        serde_json::from_reader(self.0.stdout.take().unwrap()).unwrap()
    }
}

pub(crate) fn free_port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
