//! The note beside a recording that is being written: whose bytes these are, so that they can be gone on with.

use braidcast_core::words;
use braidcast_session::{Identity, Offer};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The first line of such a file.
const HEAD: &str = "braidcast recording 1";
/// What its name ends with.
const ENDING: &str = "braidcast";

/// Whose a recording is: the key that the sender proved, if it is one that this end knows, and the
/// name of its stream. Its content is no proof of that: others may have, or guess, what it begins
/// with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Holder(String);

impl Holder {
    /// The holder of what is recorded of this stream.
    pub(super) fn of(offer: &Offer) -> Self {
        let key = offer.key.map_or_else(|| "-".into(), |key| key.to_string());
        Self(format!("{key} {}", words(offer.name.as_bytes())))
    }

    /// Of notes of versions before this one, which say nothing of it.
    fn unknown() -> Self {
        Self("- ".into())
    }
}

/// What is noted of the last stream in a recording.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Note {
    pub(super) holder: Holder,
    pub(super) identity: Identity,
    pub(super) reliable: bool,
    /// Position in the file at which the stream begins, bytes.
    pub(super) base: u64,
}

impl Note {
    /// Returns the path of the note about the recording `file`.
    pub(super) fn path(file: &Path) -> PathBuf {
        let mut name = file.as_os_str().to_owned();
        name.push(".");
        name.push(ENDING);
        name.into()
    }

    /// The note of `file`; `None` if there is none that can be read.
    pub(super) fn read(file: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(Self::path(file)).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let (mut identity, mut reliable, mut base) = (None, None, None);
        let mut holder = Holder::unknown();
        for line in lines {
            match line.split_once(' ')? {
                ("identity", text) => identity = identity_of(text),
                ("reliable", text) => reliable = text.parse().ok(),
                ("base", text) => base = text.parse().ok(),
                ("holder", text) => holder = Holder(text.to_owned()),
                _ => {}
            }
        }
        Some(Self { holder, identity: identity?, reliable: reliable?, base: base? })
    }

    /// Writes it, whole or not at all.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let path = Self::path(file);
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let mut out = File::create(&fresh)?;
        let Self { holder: Holder(holder), identity, reliable, base } = self;
        write!(out, "{HEAD}\nidentity {identity}\nreliable {reliable}\nbase {base}\nholder {holder}\n")?;
        out.sync_all()?;
        fs::rename(&fresh, &path)
    }

    /// The stream is over. A note that stays behind does no more harm than a question too many.
    pub(super) fn remove(file: &Path) {
        let _gone = fs::remove_file(Self::path(file));
    }

    /// Recordings in `folder` of a reliable stream of this holder with this identity that were not
    /// finished.
    pub(super) fn find(folder: &Path, holder: &Holder, identity: Identity) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let recording = |path: PathBuf| {
            let file = path.file_name()?.to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?;
            let file = folder.join(file);
            let note = Self::read(&file)?;
            (note.reliable && note.identity == identity && note.holder == *holder).then_some(file)
        };
        entries.flatten().filter_map(|entry| recording(entry.path())).collect()
    }
}

fn identity_of(text: &str) -> Option<Identity> {
    let mut bytes = [0; 16];
    if text.len() != 32 {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..32).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(Identity(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_sctp::Fingerprint;

    fn offer(name: &str, key: Option<u8>) -> Offer {
        let key = key.map(|byte| Fingerprint([byte; 32]));
        Offer { identity: Identity([0xa7; 16]), name: name.into(), reliable: true, size: None, key }
    }

    #[test]
    fn a_note_is_read_as_written_and_found_by_its_stream() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("show.ts");
        let alice = Holder::of(&offer("alice", Some(1)));
        let note = Note { holder: alice.clone(), identity: Identity([0xa7; 16]), reliable: true, base: 1234 };
        assert_eq!(Note::read(&file), None);
        note.write(&file).unwrap();
        assert_eq!(Note::read(&file), Some(note.clone()));
        let find = |holder: &Holder| Note::find(dir.path(), holder, note.identity);
        assert_eq!(find(&alice), std::slice::from_ref(&file));
        assert_eq!(Note::find(dir.path(), &alice, Identity([0; 16])), [] as [PathBuf; 0]);
        // The same file by somebody else, by name or by key.
        for other in [offer("bob", Some(1)), offer("alice", Some(2)), offer("alice", None)] {
            assert_eq!(find(&Holder::of(&other)), [] as [PathBuf; 0]);
        }
        Note::remove(&file);
        assert_eq!(Note::read(&file), None);
    }

    #[test]
    fn what_is_no_note_is_none() {
        let old = "braidcast recording 1\nidentity a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7a7\nreliable true\nbase 5\n";
        assert_eq!(Note::parse(old).unwrap().holder, Holder::of(&offer("", None)));
        for text in [
            "",
            "braidcast recording 2\n",
            "braidcast recording 1\nidentity xy\nreliable true\nbase 0\n",
            "braidcast recording 1\n",
        ] {
            assert_eq!(Note::parse(text), None, "{text:?}");
        }
    }
}
