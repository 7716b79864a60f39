//! Tickets that last: a file for each in the user's folder for configuration.

use super::{end_of, is_over, moment, print, reach};
use crate::args::values::Remote;
use crate::cmd::key::no_randomness;
use crate::failure::{Failure, Outcome};
use crate::out::{json, text};
use braidcast_relay::{OwnerSecret, Reach, Ticket};
use braidcast_secure::identity::{Identity, new_secret};
use braidcast_secure::{PrivateKey, Secret, SharedKey, known_peers};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The folder, below that for configuration (XDG Base Directory Specification).
const FOLDER: &str = "braidcast/tickets";

/// What stands in a file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    /// The receiver's private key.
    receiver: String,
    /// The secret of its circuit at relays.
    circuit: String,
    /// What the sender's key follows from.
    permission: String,
    /// The last day.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(default)]
    relays: Vec<String>,
    #[serde(default)]
    addresses: Vec<String>,
}

/// The secrets of a ticket and what else it says.
pub(super) struct Kept {
    pub(super) receiver: Identity,
    key: PrivateKey,
    pub(super) owner: OwnerSecret,
    pub(super) permission: Secret,
    until: Option<Date>,
    relays: Vec<Remote>,
    addresses: Vec<Remote>,
}

impl Kept {
    /// A new one, which nobody has.
    pub(super) fn new() -> Outcome<Self> {
        let (receiver, key) = Identity::generate().map_err(no_randomness)?;
        let secret = || new_secret().map_err(no_randomness);
        let (owner, permission) = (OwnerSecret(*secret()?.bytes()), secret()?);
        let (relays, addresses) = (Vec::new(), Vec::new());
        Ok(Self { receiver, key, owner, permission, until: None, relays, addresses })
    }

    /// When it ends, in s since 1970.
    pub(super) fn until(&self) -> Option<u64> {
        self.until.and_then(end_of)
    }

    /// The places where the receiver is reached, as far as the file says.
    fn reached(&self) -> Vec<Reach> {
        let relays = self.relays.iter().map(|it| reach(it, true));
        relays.chain(self.addresses.iter().map(|it| reach(it, false))).collect()
    }

    /// The ticket that leads there.
    pub(super) fn ticket(&self, reached: Vec<Reach>) -> Ticket {
        Ticket {
            receiver: self.receiver.fingerprint().0,
            permission: *self.permission.bytes(),
            circuit: self.owner.circuit(),
            until: self.until(),
            reached,
        }
    }

    /// Notes where the receiver is reached now. Returns `true` if that is new.
    pub(super) fn set_places(&mut self, relays: &[Remote], addresses: &[Remote]) -> bool {
        let is_new = self.relays != relays || self.addresses != addresses;
        (self.relays, self.addresses) = (relays.to_vec(), addresses.to_vec());
        is_new
    }

    fn parse(text: &str) -> Result<Self, String> {
        let lines: Lines = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let key: PrivateKey = lines.receiver.parse().map_err(|error| format!("receiver: {error}"))?;
        let Ok(SharedKey::Secret(permission)) = lines.permission.parse() else {
            return Err("permission: not a secret of `braidcast key ticket`".into());
        };
        let Ok(SharedKey::Secret(circuit)) = lines.circuit.parse() else {
            return Err("circuit: not a secret of `braidcast key ticket`".into());
        };
        let remotes = |all: &[String]| all.iter().map(|it| crate::args::values::peer(it)).collect::<Result<_, _>>();
        let until = lines.until.as_deref().map(crate::args::values::date).transpose()?;
        let receiver = Identity::own(&key).map_err(|error| error.to_string())?;
        let owner = OwnerSecret(*circuit.bytes());
        let (relays, addresses) = (remotes(&lines.relays)?, remotes(&lines.addresses)?);
        Ok(Self { receiver, key, owner, permission, until, relays, addresses })
    }

    /// Reads the file; `None` if there is none.
    pub(super) fn read(path: &Path) -> Outcome<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => Zeroizing::new(text.map_err(|error| unusable(path, &error.to_string()))?),
        };
        Self::parse(&text).map(Some).map_err(|why| unusable(path, &why))
    }

    /// Writes the file, for the user alone.
    pub(super) fn write(&self, path: &Path) -> Outcome {
        let names = |all: &[Remote]| all.iter().map(ToString::to_string).collect();
        let lines = Lines {
            receiver: self.key.text().to_string(),
            circuit: Secret::new(self.owner.0).short().to_string(),
            permission: self.permission.short().to_string(),
            until: self.until.map(|day| day.to_string()),
            relays: names(&self.relays),
            addresses: names(&self.addresses),
        };
        let text = Zeroizing::new(toml::to_string(&lines).map_err(|error| unusable(path, &error.to_string()))?);
        let written = || {
            if let Some(folder) = path.parent() {
                fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            }
            let new = path.with_extension("new");
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, path)
        };
        written().map_err(|error: io::Error| {
            Failure::new(format!("cannot keep the ticket in {}: {error}", path.display()), "check the folder")
        })
    }
}

fn unusable(path: &Path, why: &str) -> Failure {
    Failure::new(
        format!("cannot use the ticket in {}: {why}", path.display()),
        "fix the file, or delete it: `braidcast key ticket NAME` makes a new one",
    )
}

/// Where tickets are.
fn folder() -> Outcome<PathBuf> {
    known_peers::folder().map(|folder| folder.join(FOLDER)).ok_or_else(|| {
        Failure::new(
            "there is no folder to keep tickets in",
            "set HOME or XDG_CONFIG_HOME, or use --ticket without a name",
        )
    })
}

/// The file of the ticket called `name`.
pub(super) fn path_of(name: &str) -> Outcome<PathBuf> {
    Ok(folder()?.join(format!("{name}.toml")))
}

#[derive(Serialize)]
struct Document<'a> {
    name: &'a str,
    ticket: Option<String>,
    until: Option<String>,
    over: bool,
    reached: Vec<String>,
}

impl<'a> Document<'a> {
    fn new(name: &'a str, kept: &Kept) -> Self {
        let reached = kept.reached();
        let words = |it: &Reach| format!("{}{}:{}", if it.is_relay { "relay " } else { "" }, it.host, it.port);
        Self {
            name,
            until: kept.until().map(moment),
            over: is_over(kept.until()),
            reached: reached.iter().map(words).collect(),
            ticket: (!reached.is_empty()).then(|| kept.ticket(reached).text()),
        }
    }
}

/// `braidcast key ticket`: shows the ticket called `name`, after the changes that are asked for.
pub(crate) fn show(name: &str, relays: &[Remote], to: &[Remote], until: Option<Date>, as_json: bool) -> Outcome {
    let path = path_of(name)?;
    let (mut kept, is_new) = match Kept::read(&path)? {
        Some(kept) => (kept, false),
        None => (Kept::new()?, true),
    };
    let moves = !relays.is_empty() || !to.is_empty();
    if is_new && !moves {
        return Err(Failure::usage(
            format!("there is no ticket called {name}"),
            "to make it, say where the receiver is reached: --relay HOST:PORT, or --to HOST:PORT",
        ));
    }
    if moves {
        kept.set_places(relays, to);
    }
    kept.until = until.or(kept.until);
    if is_new || moves || until.is_some() {
        kept.write(&path)?;
    }
    let document = Document::new(name, &kept);
    if as_json {
        return json::print("key ticket", &document);
    }
    document.ticket.as_deref().map_or_else(|| text::print("it leads nowhere yet"), print)
}

#[derive(Serialize)]
struct All<'a> {
    tickets: Vec<Document<'a>>,
}

/// `braidcast key tickets`.
pub(crate) fn list(as_json: bool) -> Outcome {
    let folder = folder()?;
    let mut names: Vec<String> = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        all => all
            .map_err(|error| unusable(&folder, &error.to_string()))?
            .filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(".toml")?.to_owned()))
            .collect(),
    };
    names.sort_unstable();
    let mut tickets = Vec::new();
    for name in &names {
        let Some(kept) = Kept::read(&path_of(name)?)? else { continue };
        // The line itself is a secret, and is shown one at a time.
        tickets.push(Document { ticket: None, ..Document::new(name, &kept) });
    }
    if as_json {
        return json::print("key tickets", &All { tickets });
    }
    for it in &tickets {
        let until = match (&it.until, it.over) {
            (None, _) => "no last day".to_owned(),
            (Some(until), true) => format!("was good until {until}"),
            (Some(until), false) => format!("good until {until}"),
        };
        text::print(&format!("{}: {}, {until}", it.name, it.reached.join(", ")))?;
    }
    if tickets.is_empty() { text::print("there is no ticket") } else { Ok(()) }
}

/// `braidcast key revoke`.
pub(crate) fn revoke(name: &str) -> Outcome {
    let path = path_of(name)?;
    fs::remove_file(&path).map_err(|error| {
        let what = match error.kind() {
            io::ErrorKind::NotFound => format!("there is no ticket called {name}"),
            _ => format!("cannot delete {}: {error}", path.display()),
        };
        Failure::usage(what, "`braidcast key tickets` lists them")
    })?;
    text::print(&format!("{name} is revoked: a receiver at work notices within 2 s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_comes_back_as_it_was_kept_and_is_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tickets/cam1.toml");
        let mut kept = Kept::new().unwrap();
        kept.until = Some("2027-01-31".parse().unwrap());
        assert!(kept.set_places(&[crate::args::values::peer("relay.example:9000").unwrap()], &[]));
        kept.write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let again = Kept::read(&path).unwrap().unwrap();
        assert_eq!(again.ticket(again.reached()), kept.ticket(kept.reached()));
        assert_eq!(again.owner, kept.owner);
        fs::write(&path, "receiver = \"x\"\n").unwrap();
        assert!(Kept::read(&path).is_err_and(|failure| failure.to_string().contains("cannot use the ticket in")));
        assert!(Kept::read(&dir.path().join("none.toml")).unwrap().is_none());
    }
}
