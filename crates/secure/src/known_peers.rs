//! Other ends that were connected with before, and the keys that they showed, in a file: as ssh's known_hosts.
//!
//! Each line is `HOST:PORT FINGERPRINT`; `#` begins a comment. How HOST is spelt does not matter:
//! `LOCALHOST.:9000` is `localhost:9000`, and an address may be written in any form.

use crate::Fingerprint;
use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Below the folder for configuration (XDG Base Directory Specification).
const FILE: &str = "braidcast/known_peers";

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KnownPeersError {
    /// It is there and cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A line says something else.
    #[error("{}:{line}: not HOST:PORT and a fingerprint", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
}

/// What the file says of one other end.
#[derive(Debug)]
pub struct KnownPeers {
    /// None if the user has no home.
    path: Option<PathBuf>,
    names: Vec<String>,
    /// The line of each key, from 1.
    found: Vec<(usize, Fingerprint)>,
}

impl KnownPeers {
    /// What this user knows of who is reached by any of `names`, HOST:PORT. The file is
    /// `braidcast/known_peers` in the user's folder for configuration; if it is not there, nobody
    /// is known.
    pub fn of_user(names: &[String]) -> Result<Self, KnownPeersError> {
        Self::read(folder().map(|folder| folder.join(FILE)), names)
    }

    fn read(path: Option<PathBuf>, names: &[String]) -> Result<Self, KnownPeersError> {
        let mut found = Vec::new();
        if let Some(path) = &path {
            let text = match fs::read_to_string(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
                other => other.map_err(|error| KnownPeersError::Unreadable { path: path.clone(), error })?,
            };
            for (line, text) in (1..).zip(text.lines()) {
                let mut words = text.split_whitespace();
                let Some(name) = words.next().filter(|name| !name.starts_with('#')) else { continue };
                let (Some(key), None) = (words.next().and_then(|word| word.parse().ok()), words.next()) else {
                    return Err(KnownPeersError::Line { path: path.clone(), line });
                };
                if names.iter().any(|it| canonical(it) == canonical(name)) {
                    found.push((line, key));
                }
            }
        }
        Ok(Self { path, names: names.to_vec(), found })
    }

    /// Keys that the other end may show; none if it was never seen.
    pub fn keys(&self) -> Vec<Fingerprint> {
        self.found.iter().map(|(_, key)| *key).collect()
    }

    /// Whom to trust: the keys that are known, or the first one that comes if none is.
    #[cfg(feature = "tls")]
    pub fn trust(&self) -> crate::tls::Trust {
        let keys = self.keys();
        if keys.is_empty() { crate::tls::Trust::First } else { crate::tls::Trust::Only(keys) }
    }

    /// Remembers the key that the other end showed for the first time.
    ///
    /// Returns a sentence for the user; as an error if the key cannot be kept.
    pub fn remember(&mut self, key: Fingerprint) -> Result<String, String> {
        let names = self.names.join(", ");
        let Some(path) = self.path.as_deref().filter(|_| self.found.is_empty()) else {
            return Err(format!("{names} shows the key {key}, and there is no home folder to remember it in"));
        };
        let lines: String = self.names.iter().map(|name| format!("{} {key}\n", canonical(name))).collect();
        append(path, &lines).map_err(|error| {
            format!("{names} shows the key {key}, which cannot be remembered in {}: {error}", path.display())
        })?;
        self.found = vec![(0, key)];
        Ok(format!(
            "{names} shows the key {key} for the first time; no other is taken from now on ({})",
            path.display()
        ))
    }

    /// What a user may do whose other end shows another key than before; `None` if it was not known.
    pub fn hint(&self) -> Option<String> {
        let (line, key) = self.found.first()?;
        let path = self.path.as_deref()?.display();
        let place = if *line == 0 { path.to_string() } else { format!("{path}:{line}") };
        Some(format!(
            "{place} says that its key was {key}. If the other end has a new one, delete that line; if not, somebody else answers in its place"
        ))
    }
}

/// The one spelling of HOST:PORT: names in small letters and without the dot at the end, addresses
/// as the standard library writes them.
fn canonical(name: &str) -> String {
    let Some((host, port)) = name.rsplit_once(':') else { return name.to_lowercase() };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = port.parse::<u16>().map_or_else(|_| port.to_owned(), |port| port.to_string());
    match bare.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Ok(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        Ok(address) => format!("{address}:{port}"),
        Err(_) => format!("{}:{port}", bare.strip_suffix('.').unwrap_or(bare).to_lowercase()),
    }
}

fn append(path: &Path, lines: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(lines.as_bytes())
}

/// The user's folder for configuration (XDG Base Directory Specification); `None` without a home.
pub fn folder() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_spelling() {
        for (name, same) in [
            ("LOCALHOST.:09000", "localhost:9000"),
            ("[2001:DB8:0::1]:9000", "[2001:db8::1]:9000"),
            ("[::ffff:192.0.2.1]:9000", "192.0.2.1:9000"),
        ] {
            assert_eq!(canonical(name), same);
            assert_eq!(canonical(same), same);
        }
        assert_ne!(canonical("home:9000"), canonical("home:9001"));
    }

    #[test]
    fn a_key_is_found_again_by_each_name_and_a_wrong_line_is_named() {
        let folder = std::env::temp_dir().join(format!("braidcast-known-peers-{}", std::process::id()));
        let path = folder.join("known_peers");
        let names = ["home:9000", "192.0.2.1:9000"].map(String::from);
        let read = |names: &[String]| KnownPeers::read(Some(path.clone()), names);
        let key: Fingerprint = "7f".repeat(32).parse().unwrap();
        let mut known = read(&names).unwrap();
        assert!(known.keys().is_empty() && known.hint().is_none());
        assert!(known.remember(key).unwrap().contains("for the first time"));
        assert!(known.hint().unwrap().contains("says that its key was"));
        for name in &names {
            let again = read(std::slice::from_ref(name)).unwrap();
            assert_eq!(again.keys(), [key]);
        }
        assert!(read(&["home:9001".to_owned()]).unwrap().keys().is_empty());
        append(&path, "# a comment\n\nhome:9001 12\n").unwrap();
        assert!(read(&names).unwrap_err().to_string().ends_with("known_peers:5: not HOST:PORT and a fingerprint"));
        assert!(KnownPeers::read(None, &names).unwrap().remember(key).unwrap_err().contains("no home folder"));
        let _ = fs::remove_dir_all(folder);
    }
}
