//! Other ends that were connected with before, and the keys that they showed: as ssh's known_hosts.

use crate::failure::{Failure, Outcome};
use braidcast_secure::Fingerprint;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Below the folder for configuration (XDG Base Directory Specification).
const FILE: &str = "braidcast/known_peers";

/// What the file says of the other end.
pub(super) struct KnownPeers {
    /// None where the user has no home.
    path: Option<PathBuf>,
    names: Vec<String>,
    /// The line of each key, from 1.
    found: Vec<(usize, Fingerprint)>,
}

impl KnownPeers {
    /// What is known of who is reached by any of `names`, HOST:PORT.
    pub(super) fn read(names: &[String]) -> Outcome<Self> {
        Self::read_at(folder().map(|folder| folder.join(FILE)), names)
    }

    fn read_at(path: Option<PathBuf>, names: &[String]) -> Outcome<Self> {
        let text = path.as_deref().map_or(Ok(String::new()), |path| match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            other => other.map_err(|error| {
                Failure::new(format!("cannot read {}: {error}", path.display()), "fix it, or give --peer-key or --key")
            }),
        })?;
        let mut found = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let mut words = text.split_whitespace();
            let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { continue };
            let (Some(key), None) = (words.next().and_then(|word| word.parse().ok()), words.next()) else {
                let place = path.as_deref().map_or_else(String::new, |path| path.display().to_string());
                return Err(Failure::usage(
                    format!("{place}:{line}: not HOST:PORT and a fingerprint"),
                    "fix the line, or delete it",
                ));
            };
            if names.iter().any(|it| it == name) {
                found.push((line, key));
            }
        }
        Ok(Self { path, names: names.to_vec(), found })
    }

    /// Keys that the other end may show; none if it was never seen.
    pub(super) fn keys(&self) -> Vec<Fingerprint> {
        self.found.iter().map(|(_, key)| *key).collect()
    }

    /// Remembers the key; what to tell the user of it.
    pub(super) fn add(&mut self, key: Fingerprint) -> Result<String, String> {
        let names = self.names.join(", ");
        let Some(path) = self.path.as_deref().filter(|_| self.found.is_empty()) else {
            return Err(format!("{names} shows the key {key}, and there is no home folder to remember it in"));
        };
        let lines: String = self.names.iter().map(|name| format!("{name} {key}\n")).collect();
        append(path, &lines).map_err(|error| {
            format!("{names} shows the key {key}, which cannot be remembered in {}: {error}", path.display())
        })?;
        self.found = vec![(0, key)];
        Ok(format!(
            "{names} shows the key {key} for the first time; no other is taken from now on ({})",
            path.display()
        ))
    }

    /// What a user whose other end shows another key than before may do.
    pub(super) fn hint(&self) -> Option<String> {
        let (line, key) = self.found.first()?;
        let path = self.path.as_deref()?.display();
        let place = if *line == 0 { path.to_string() } else { format!("{path}:{line}") };
        Some(format!(
            "{place} says that its key was {key}. If the other end has a new one, delete that line; if not, somebody else answers in its place"
        ))
    }
}

fn append(path: &Path, lines: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(lines.as_bytes())
}

fn folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))
}
