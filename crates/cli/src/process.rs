//! What others on this machine see of the process, and what it may do.

use crate::cmd::security;
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use braidcast_secure::SharedKey;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set, set_capabilities, set_no_new_privs,
};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
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
        // With a file of settings it is not known yet what the passphrase is for.
        Some(SharedKey::Passphrase(passphrase)) if value_of(&rest, "--config").is_none() => {
            let name = value_of(&rest, "--key-name");
            security::warn_weak(key.to_str().unwrap_or_default(), name.as_deref(), &Live::new(true));
            OsString::from(&**passphrase.stretched(name.as_deref()).text())
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

/// What `flag` is given in `argv`, as `FLAG VALUE` or `FLAG=VALUE`.
fn value_of(argv: &[OsString], flag: &str) -> Option<String> {
    let args = || argv.iter().take_while(|arg| *arg != "--").map(|arg| arg.to_string_lossy());
    let joined = args().find_map(|arg| Some(arg.strip_prefix(flag)?.strip_prefix('=')?.to_owned()));
    joined.or_else(|| args().skip_while(|arg| arg != flag).nth(1).map(Into::into))
}

/// Says that files which others may write are taken all the same.
const LAX: &str = "BRAIDCAST_LAX_FILES";

/// Refuses a file that says who may do what, or what is run, if others than its owner may write it
/// (as ssh's StrictModes).
pub(crate) fn refuse_writable(flag: &str, path: &Path) -> Outcome {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(()) };
    let lax = std::env::var_os(LAX).is_some_and(|value| value == "1");
    if lax || !metadata.is_file() || !others_may_write(&metadata) {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::usage(
        format!("{flag} {path}: others on this machine may write it"),
        format!("chmod go-w {path}, or set {LAX}=1 if that is meant"),
    ))
}

/// Others than the user who runs this and root; a group counts unless it has the name of nobody
/// else.
fn others_may_write(metadata: &std::fs::Metadata) -> bool {
    let (mode, owner) = (metadata.mode(), metadata.uid());
    let foreign = owner != 0 && owner != geteuid().as_raw();
    // A group of one's own, as many systems give each user, has the user's number.
    let group = mode & 0o020 != 0 && metadata.gid() != owner;
    mode & 0o002 != 0 || group || foreign
}

/// A command that gets no secret of ours.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(VARIABLE);
    command
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
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    // If there is none to drop, a filter of system calls may refuse to set any.
    if capabilities(None).map_err(failed)? != none {
        set_capabilities(None, none).map_err(failed)?;
    }
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
        let named = |line: &str| value_of(&line.split_whitespace().map(Into::into).collect::<Vec<_>>(), "--key-name");
        assert_eq!(named("b send x --key-name home").as_deref(), Some("home"));
        assert_eq!(named("b send x --key-name=home --to a").as_deref(), Some("home"));
        assert_eq!(named("b send -- --key-name home"), None);
    }
}
