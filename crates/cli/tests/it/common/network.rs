//! Two networks with a cable between them, as root or in a user namespace.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const INSIDE: &str = "BRAIDCAST_TEST_NAMESPACE";

/// Runs `inside` in a new network and mount namespace, as the only test of a new process; says so
/// if that is not possible.
pub(crate) fn in_namespace(test: &str, inside: impl FnOnce(&Path)) {
    if std::env::var_os(INSIDE).is_some() {
        let dir = tempfile::tempdir().unwrap();
        return inside(dir.path());
    }
    let possible = |flags| runs(Command::new("unshare").args([flags, "ip", "link"]));
    let Some(flags) = ["-nm", "-rnm"].into_iter().find(|flags| possible(*flags)) else {
        eprintln!("skipped: {test}: it needs root or user namespaces, and the tools unshare and ip");
        return;
    };
    let mut command = Command::new("unshare");
    let exact = ["--exact", test, "--nocapture", "--include-ignored"];
    command.arg(flags).arg(std::env::current_exe().unwrap()).args(exact).env(INSIDE, "1");
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    assert!(output.status.success() && said.contains("ok. 1 passed"), "{test} failed in there, or is not its name");
}

pub(crate) fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

/// Returns `true` if there is nft to make NATs and firewalls with.
///
/// # Panics
/// If there is none and nothing is to be skipped, as in `make test`.
pub(crate) fn has_nft() -> bool {
    let there = runs(Command::new("nft").arg("--version"));
    assert!(there || std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "nft is not installed");
    if !there {
        eprintln!("skipped: there is no nft (tools/setup.sh test installs it)");
    }
    there
}

pub(crate) fn ip(words: &str) {
    assert!(runs(Command::new("ip").args(words.split(' '))), "ip {words} failed");
}

/// A process that is killed when the test ends.
pub(crate) struct Killed(pub(crate) Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network of its own, which lasts as long as a process in it.
pub(crate) struct Namespace(Killed);

impl Namespace {
    pub(crate) fn new() -> Self {
        let own = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let new = Self(Killed(Command::new("unshare").args(["-n", "sleep", "100000"]).spawn().unwrap()));
        while own(&new.pid()) == own("self") {
            std::thread::sleep(Duration::from_millis(5));
        }
        new.ip("link set lo up");
        new
    }

    /// The process by which `ip link … netns` knows it.
    pub(crate) fn pid(&self) -> String {
        self.0.0.id().to_string()
    }

    /// A command that runs there.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.pid(), "-n", program]);
        command
    }

    pub(crate) fn ip(&self, words: &str) {
        assert!(self.tries("ip", words), "ip {words} failed there");
    }

    /// Returns `true` if a program with these arguments succeeds there.
    pub(crate) fn tries(&self, program: &str, words: &str) -> bool {
        runs(self.command(program).args(words.split(' ')))
    }
}

/// The network of the other end.
pub(crate) struct There(Namespace);

impl There {
    /// With a cable to it: 10.9.0.1 is here, 10.9.0.2 there.
    pub(crate) fn new() -> Self {
        ip("link set lo up");
        let there = Namespace::new();
        ip(&format!("link add here type veth peer name there netns {}", there.pid()));
        ip("addr add 10.9.0.1/24 dev here");
        ip("link set here up");
        there.ip("addr add 10.9.0.2/24 dev there");
        there.ip("link set there up");
        // Its carrier is told of a moment later.
        let is_up = || {
            let said = Command::new("ip").args(["link", "show", "here"]).output().unwrap();
            String::from_utf8_lossy(&said.stdout).contains("state UP")
        };
        let end = Instant::now() + Duration::from_secs(5);
        while !is_up() {
            assert!(Instant::now() < end, "the cable has no carrier");
            std::thread::sleep(Duration::from_millis(10));
        }
        Self(there)
    }

    /// A command that runs there.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.0.command(program)
    }
}
