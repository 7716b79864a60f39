//! `braidcast key`, and keys in files.

use super::ticket;
use crate::args::{KeyArgs, KeyCommand};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::{json, text};
use braidcast_secure::identity::{Identity, new_secret};
use braidcast_secure::{Failed, PrivateKey};
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use zeroize::Zeroizing;

#[derive(Serialize)]
struct IdentityDocument<'a> {
    file: &'a Path,
    fingerprint: String,
}

#[derive(Serialize)]
struct Document<'a> {
    words: &'a str,
    short: &'a str,
}

pub(super) fn run(args: &KeyArgs, as_json: bool) -> Outcome {
    match &args.command {
        KeyCommand::Identity { file } => {
            if !file.exists() {
                make(file)?;
            }
            let fingerprint = private(file, "", &Live::new(false))?.fingerprint().to_string();
            if as_json {
                return json::print("key identity", &IdentityDocument { file, fingerprint });
            }
            text::print(&format!("{fingerprint}\n"))
        }
        KeyCommand::Ticket { name, relay, to, until } => ticket::show(name, relay, to, *until, as_json),
        KeyCommand::Tickets => ticket::list(as_json),
        KeyCommand::Revoke { name } => ticket::revoke(name),
        KeyCommand::New => {
            let secret = new_secret().map_err(no_randomness)?;
            let (words, short) = (secret.words(), secret.short());
            if as_json {
                return json::print("key new", &Document { words: &words, short: &short });
            }
            text::print(&format!("{}\n{}\n", *words, *short))
        }
    }
}

/// A new private key in a file that was not there.
fn make(path: &Path) -> Outcome {
    let (_, key) = Identity::generate().map_err(no_randomness)?;
    let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| {
        file.write_all(key.text().as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    });
    written.map_err(|error| {
        Failure::new(format!("cannot make the private key {}: {error}", path.display()), "choose another FILE")
    })
}

/// The private key in the file at `path`, which `--identity` names.
pub(crate) fn identity(path: &Path, live: &Live) -> Outcome<Identity> {
    private(path, "--identity ", live)
}

/// The same; `flag` stands before the file in messages.
fn private(path: &Path, flag: &str, live: &Live) -> Outcome<Identity> {
    let key: PrivateKey = read(path, live)?.parse().map_err(|error| {
        Failure::usage(
            format!("{flag}{}: {error}", path.display()),
            "choose a FILE that is not there: braidcast key identity FILE makes a private key in it",
        )
    })?;
    Identity::own(&key).map_err(no_randomness)
}

/// The first line of the file at `path`.
pub(super) fn read(path: &Path, live: &Live) -> Outcome<Zeroizing<String>> {
    let failed = |error| {
        let what = format!("cannot read the key in {}: {error}", path.display());
        Failure::new(
            what,
            "give the name of a text file with the key in its first line; `braidcast key new` and `braidcast key identity` make keys",
        )
    };
    let text = Zeroizing::new(fs::read_to_string(path).map_err(failed)?);
    warn_if_open(path, live);
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
}

/// Says so if others may read the key in the file at `path`.
pub(super) fn warn_if_open(path: &Path, live: &Live) {
    let Ok(metadata) = fs::metadata(path) else { return };
    let mode = metadata.permissions().mode();
    // What systemd shows to a service is a service's own, though its group may read it.
    let credential = std::env::var_os("CREDENTIALS_DIRECTORY").is_some_and(|folder| path.starts_with(folder));
    if mode & 0o077 != 0 && !credential {
        let path = path.display();
        live.warn(format!("others on this machine may read the key in {path}; to end that: chmod 600 {path}"));
    }
}

pub(crate) fn no_randomness(_: Failed) -> Failure {
    Failure::new("the cryptographic library failed", "check that the system has randomness to give, and memory")
}
