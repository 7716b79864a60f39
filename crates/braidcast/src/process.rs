//! What others on this machine see of the process, and what it may do.

use crate::cmd::security;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_secure::SharedKey;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities, set_no_new_privs};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// The flag that everybody on the machine could read in the process list.
const FLAG: &str = "--key";
/// What only the user who runs it may read.
pub(crate) const VARIABLE: &str = "BRAIDCAST_KEY";

/// If `argv`, which clap has taken, has a key: the same program takes the place of this one, with
/// the key in its environment. Nothing overwrites the arguments of a process in safe Rust; this
/// leaves them in the list for a moment. A passphrase is stretched before, so that neither it nor
/// the memory that this takes goes along. Comes back if there is no key, or with the error if the
/// system refuses.
pub(crate) fn hide_key(argv: &[OsString]) -> Option<io::Error> {
    let (key, rest) = without_key(argv)?;
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return Some(error),
    };
    let shared = key.to_str().and_then(|text| text.parse().ok());
    let key = match shared {
        Some(SharedKey::Passphrase(passphrase)) => {
            passphrase.is_short().then(|| security::warn_short(&Live::new(true)));
            OsString::from(&**passphrase.stretched().text())
        }
        // What cannot be a key is refused in words later.
        _ => key,
    };
    let mut command = Command::new(program);
    command.args(rest.iter().skip(1)).env(VARIABLE, key);
    if let Some(name) = rest.first() {
        command.arg0(name);
    }
    Some(command.exec())
}

/// The key and the other arguments.
fn without_key(argv: &[OsString]) -> Option<(OsString, Vec<OsString>)> {
    let end = argv.iter().position(|arg| arg == "--").unwrap_or(argv.len());
    let joined = |arg: &OsStr| {
        Some(OsStr::from_bytes(arg.as_bytes().strip_prefix(FLAG.as_bytes())?.strip_prefix(b"=")?).to_owned())
    };
    let at = argv[..end].iter().position(|arg| arg == FLAG || joined(arg).is_some())?;
    let (key, len) = match joined(&argv[at]) {
        Some(key) => (key, 1),
        None => (argv.get(at + 1)?.clone(), 2),
    };
    Some((key, [&argv[..at], &argv[at + len..]].concat()))
}

/// From now on: no capability, and none by starting another program. Sockets that are open stay so.
pub(crate) fn drop_privileges() -> Outcome {
    let failed = |error| {
        let what = format!("cannot drop privileges: {error}");
        Failure::new(what, "start it as a user who has none")
    };
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none }).map_err(failed)?;
    // Kernels before 4.3 have none.
    let _unknown = clear_ambient_capability_set();
    set_no_new_privs(true).map_err(failed)
}

/// Root without capabilities may write only where root's own permissions let it; better said before
/// a stream comes than then.
pub(crate) fn check_folder(folder: &Path) -> Outcome {
    use rustix::fs::{Access, access};
    if !geteuid().is_root() || access(folder, Access::WRITE_OK | Access::EXEC_OK) != Err(rustix::io::Errno::ACCESS) {
        return Ok(());
    }
    Err(Failure::new(
        format!("root without its capabilities, which braidcast drops, cannot write in {}", folder.display()),
        "start it as the user to whom the folder belongs; ports below 1024 need only: setcap cap_net_bind_service=ep",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Option<(String, String)> {
        let argv: Vec<OsString> = line.split_whitespace().map(Into::into).collect();
        let (key, rest) = without_key(&argv)?;
        Some((key.into_string().ok()?, rest.join(OsStr::new(" ")).into_string().ok()?))
    }

    #[test]
    fn the_key_and_nothing_else_leaves_the_arguments() {
        let found = |line: &str| split(line).unwrap_or_default();
        assert_eq!(found("b send x --key k --to a:1"), ("k".into(), "b send x --to a:1".into()));
        assert_eq!(found("b send --key=k x --key-file f"), ("k".into(), "b send x --key-file f".into()));
        assert_eq!(split("b send x --key-file f"), None);
        assert_eq!(split("b send -- --key k"), None);
    }
}
