use crate::args::{KeyArgs, KeyCommand, SharedArgs};
use crate::failure::{Failure, Outcome};
use crate::out::live::Live;
use crate::out::{json, text};
use braidcast_sctp::SecurityOptions;
use braidcast_secure::identity::{Identity, new_secret};
use braidcast_secure::tls::{Tls, Trust};
use braidcast_secure::{Failed, Limits, Passphrase, SharedKey, Suite};
use serde::Serialize;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

#[derive(Serialize)]
struct Document<'a> {
    words: &'a str,
    short: &'a str,
}

pub(super) fn run(args: &KeyArgs, as_json: bool) -> Outcome {
    match args.command {
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

/// How what goes is protected; `None` with `--plain`.
pub(super) fn security(args: &SharedArgs, live: &Live) -> Outcome<Option<SecurityOptions>> {
    let (text, place) = match (&args.key, &args.key_file) {
        (Some(key), _) => (key.0.clone(), "--key or BRAIDCAST_KEY".to_owned()),
        (None, Some(path)) => (read(path, live)?, format!("--key-file {}", path.display())),
        (None, None) if args.plain => {
            live.note("--plain: nothing is encrypted; whoever is on the way can read and change it");
            return Ok(None);
        }
        (None, None) => return protection(Identity::ephemeral().map_err(no_randomness)?, Trust::Anyone),
    };
    let shared: SharedKey = text.parse().map_err(|error| {
        Failure::usage(format!("{place}: {error}"), "give both ends the same key, made by: braidcast key new")
    })?;
    if let SharedKey::Passphrase(passphrase) = &shared
        && passphrase.is_short()
    {
        live.warn(format!(
            "the passphrase has less than {} characters: who takes the place of the other end may find it by trying; \
             `braidcast key new` makes a key that cannot be found",
            Passphrase::SHORT
        ));
    }
    let identity = Identity::shared(&shared).map_err(no_randomness)?;
    let trust = Trust::Only(vec![identity.fingerprint()]);
    protection(identity, trust)
}

fn protection(identity: Identity, trust: Trust) -> Outcome<Option<SecurityOptions>> {
    let method = Arc::new(Tls::new(identity, trust, &Suite::ALL));
    Ok(Some(SecurityOptions { method, limits: Limits::default() }))
}

/// The first line of the file at `path`.
fn read(path: &Path, live: &Live) -> Outcome<Zeroizing<String>> {
    let failed = |error| {
        let what = format!("cannot read the key in {}: {error}", path.display());
        Failure::new(what, "give the name of a text file with the key in its first line")
    };
    let text = Zeroizing::new(fs::read_to_string(path).map_err(failed)?);
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & 0o077 != 0 {
        let path = path.display();
        live.warn(format!("others on this machine may read the key in {path}; to end that: chmod 600 {path}"));
    }
    Ok(Zeroizing::new(text.lines().next().unwrap_or_default().to_owned()))
}

fn no_randomness(_: Failed) -> Failure {
    Failure::new("the cryptographic library failed", "check that the system has randomness to give, and memory")
}
