//! Wireshark's dissector (Debian `tshark`) as a judge of what we send.

use braidcast_testing::peers;
use std::path::Path;
use std::process::Command;

/// Returns `true` if `tshark` is there; `false` if it is not and the caller may skip.
///
/// # Panics
/// If it is not installed although `BRAIDCAST_REQUIRE_TOOLS` is set, as in `make test`.
pub fn is_installed() -> bool {
    if Command::new("tshark").arg("--version").output().is_ok_and(|output| output.status.success()) {
        peers::met("tshark");
        return true;
    }
    peers::lacks("tshark", "it is not installed");
    assert!(std::env::var_os("BRAIDCAST_REQUIRE_TOOLS").is_none(), "tshark is not installed");
    eprintln!("skipped: tshark is not installed (tools/setup.sh test installs it)");
    false
}

/// What `tshark` prints about `capture` with `args`; checksums are verified.
///
/// # Panics
/// If it fails.
pub fn read(capture: &Path, args: &[&str]) -> String {
    let output = Command::new("tshark")
        .args(["-n", "-o", "sctp.checksum:CRC 32c", "-r"])
        .arg(capture)
        .args(args)
        .output()
        .expect("tshark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
