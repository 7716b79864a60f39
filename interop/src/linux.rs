//! A Linux kernel in QEMU as the peer: `shared/interop/linux-peer`, beside the repository and no part of it.

use braidcast_testing::peers;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

/// What the summary calls it.
const PEER: &str = "Linux";
/// Set in the process that has the network namespace to itself.
const INSIDE: &str = "BRAIDCAST_LINUX_PEER_INSIDE";
/// The host's address on each of the two links.
pub const HOST: [&str; 2] = ["10.77.1.1", "10.77.2.1"];
/// The guest's address on each of the two links.
pub const GUEST: [&str; 2] = ["10.77.1.2", "10.77.2.2"];
/// The host's IPv6 address on each of the two links.
pub const HOST_V6: [&str; 2] = ["fd77:1::1", "fd77:2::1"];
/// The guest's IPv6 address on each of the two links.
pub const GUEST_V6: [&str; 2] = ["fd77:1::2", "fd77:2::2"];

/// The guest's network cards: `linux-peer`'s own choice but for `event_idx`.
///
/// An emulating QEMU before 8.1 (its commit c914d46d0a64) leaves out the memory barriers of a guest
/// with one processor. On a busy machine the guest and the card then miss each other's index, and
/// with `event_idx` the interrupt or kick that is lost is the last one: the link is dead, ARP
/// included. Without it the next packet makes good for it.
const CARD: &str = "virtio-net-pci,event_idx=off,csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,\
guest_ecn=off,guest_ufo=off,host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off,mrg_rxbuf=on";

/// A guest that runs until it is dropped.
#[derive(Debug)]
pub struct Guest {
    scripts: PathBuf,
    out: PathBuf,
    run: PathBuf,
}

/// Runs `story` against a guest, in a network namespace of its own, so that neither its interfaces
/// nor its ports meet anybody else's. If that is not possible, it says why and does nothing.
///
/// For this the test with the name `test`, which calls it, is run again as a process of its own.
/// `out` is where the guest's kernel and files are made, once (`LP_OUT` overrides it).
///
/// # Panics
/// If the test fails in there.
pub fn with_guest(test: &str, out: &str, story: impl FnOnce(&Guest)) {
    let out = std::env::var_os("LP_OUT").map_or_else(|| PathBuf::from(out), PathBuf::from);
    let scripts = std::env::var_os("BRAIDCAST_LINUX_PEER")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/interop/linux-peer"), PathBuf::from);
    let outcome = if std::env::var_os(INSIDE).is_some() {
        let guest = Guest::boot(scripts, out).inspect_err(|why| peers::fails(PEER, why));
        guest.map(|guest| {
            peers::met(PEER);
            story(&guest);
        })
    } else {
        let prepared = prepare(&scripts, &out).inspect_err(|why| peers::lacks(PEER, why));
        prepared.and_then(|unshare| again(unshare, test).inspect_err(|why| peers::fails(PEER, why)))
    };
    if let Err(why) = outcome {
        // Past the test harness, which keeps what passing tests print to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED: Linux's own stack as a peer: {why}");
    }
}

/// Looks for what a guest needs and makes its files; the flags for `unshare`, or why there can be no guest.
fn prepare(scripts: &Path, out: &Path) -> Result<&'static str, String> {
    if !scripts.join("run.sh").exists() {
        return Err(format!("{} is not there (BRAIDCAST_LINUX_PEER names another place)", scripts.display()));
    }
    for (tool, package) in [
        ("qemu-system-x86_64", "qemu-system-x86"),
        ("unshare", "util-linux"),
        ("ip", "iproute2"),
        ("python3", "python3"),
    ] {
        if Command::new(tool).arg("--version").output().is_err() {
            return Err(format!("{tool} is not installed (Debian: {package})"));
        }
    }
    // With -r, in a user namespace, for those who are not root.
    let may = |flags: &&str| {
        let tap = ["ip", "tuntap", "add", "dev", "braidcast0", "mode", "tap"];
        Command::new("unshare").arg(flags).args(tap).output().is_ok_and(|output| output.status.success())
    };
    let flags = ["-n", "-rn"].into_iter().find(may).ok_or("a tap needs root or user namespaces, and /dev/net/tun")?;
    if !out.join("initramfs.cpio").exists() {
        let output = Command::new(scripts.join("build.sh")).env("LP_OUT", out).output();
        succeeded("build.sh", output)?;
    }
    Ok(flags)
}

/// Runs the test inside of a new network namespace.
fn again(flags: &str, test: &str) -> Result<(), String> {
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new("unshare");
    command.arg(flags).arg(me).args(["--exact", test, "--nocapture", "--include-ignored"]).env(INSIDE, "1");
    let status = command.status().map_err(|error| error.to_string())?;
    assert!(status.success(), "{test} failed in its namespace: {status}");
    Ok(())
}

/// What a program printed, or what went wrong with it.
fn succeeded(what: &str, output: std::io::Result<Output>) -> Result<String, String> {
    let output = output.map_err(|error| format!("{what}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    Err(format!("{what} failed: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

impl Guest {
    fn boot(scripts: PathBuf, out: PathBuf) -> Result<Self, String> {
        succeeded("ip", Command::new("ip").args(["link", "set", "lo", "up"]).output())?;
        let run = out.join(format!("run-{}", std::process::id()));
        let guest = Self { scripts, out, run };
        succeeded("run.sh", guest.script("run.sh").output())?;
        Ok(guest)
    }

    fn script(&self, name: &str) -> Command {
        let mut command = Command::new(self.scripts.join(name));
        command.env("LP_OUT", &self.out).env("LP_RUN", &self.run);
        if std::env::var_os("LP_NIC").is_none() {
            command.env("LP_NIC", CARD);
        }
        command
    }

    /// Runs `command` in the guest's shell, for at most 30 s. Returns what it printed and how it
    /// ended.
    ///
    /// # Panics
    /// If the guest does not answer.
    pub fn shell(&self, command: &str) -> (String, ExitStatus) {
        let output = self.script("guest").args(["-t", "30", command]).output().expect("the guest script runs");
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status)
    }

    /// Runs `script`, each line of it, in the guest's shell.
    ///
    /// # Panics
    /// If a line fails, with what was printed.
    pub fn run(&self, script: &str) {
        let (said, status) = self.shell(&format!("set -e; exec 2>&1\n{script}"));
        assert!(status.success(), "{said}");
    }

    /// `netem` works on what leaves a device, so what comes over the first link leaves through `ifb0` from now on.
    ///
    /// # Panics
    /// If the guest's kernel cannot do that.
    pub fn take_in_through_ifb0(&self) {
        // The kernel's module may make the device unasked.
        self.run(
            "ip link add ifb0 type ifb || ip link show ifb0
             ip link set ifb0 up
             tc qdisc add dev net1 ingress
             tc filter add dev net1 parent ffff: matchall action mirred egress redirect dev ifb0",
        );
    }

    /// Builds the program of ours in `programs/NAME.c` and puts it into the guest. Returns its path
    /// there.
    ///
    /// # Panics
    /// If it cannot be built, or the guest does not take it.
    pub fn program(&self, name: &str) -> String {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).with_extension("c");
        let built = self.run.join(name);
        // Static, as the guest has no libraries.
        let status = Command::new("cc").args(["-O1", "-static", "-s", "-o"]).arg(&built).arg(&source).status();
        assert!(status.is_ok_and(|status| status.success()), "cc {}", source.display());
        let there = format!("/tmp/{name}");
        let input = std::fs::File::open(&built).expect("what was built");
        let put = format!("cat > {there} && chmod +x {there}");
        let output = self.script("guest").args(["-i", "-t", "30", &put]).stdin(input).output();
        let output = output.expect("the guest script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        there
    }

    /// Starts `program` in the guest, in the background; [`stop`](Self::stop) ends it.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(&self, name: &str, program: &str) {
        let (said, status) = self.shell(&format!("lp-start {name} {program}"));
        assert!(status.success(), "{program}: {said}");
    }

    /// Ends what was started as `name`; all that it printed.
    pub fn stop(&self, name: &str) -> String {
        self.shell(&format!("lp-stop {name}")).0
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It ends the guest by its recorded process id; the taps go with the namespace.
        let _ = self.script("stop.sh").output();
        let _ = std::fs::remove_dir_all(&self.run);
    }
}
