use std::fs::OpenOptions;
use std::io::Write;

/// The environment variable that names the file of what other programs were tried; `tools/peers.sh` reads it.
const LOG: &str = "BRAIDCAST_PEERS";

/// A test speaks to `peer`, another implementation.
pub fn met(peer: &str) {
    note(peer, "run", "");
}

/// It does not, as `why` says: something is not installed.
pub fn lacks(peer: &str, why: &str) {
    note(peer, "lacks", why);
}

/// All is there for it, and it does not run all the same.
pub fn fails(peer: &str, why: &str) {
    note(peer, "fails", why);
}

/// A line for each test, from whichever process; a line that cannot be written makes the summary
/// speak of a peer that was not met.
fn note(peer: &str, what: &str, why: &str) {
    let Some(path) = std::env::var_os(LOG) else { return };
    let why = why.replace(['\n', '\t'], " ");
    if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(path) {
        let _ = file.write_all(format!("{peer}\t{what}\t{why}\n").as_bytes());
    }
}
