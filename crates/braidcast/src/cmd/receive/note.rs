//! The note beside a recording that is being written: whose bytes these are, so that they can be gone on with.

use braidcast_session::Identity;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The first line of such a file.
const HEAD: &str = "braidcast recording 1";
/// What its name ends with.
const ENDING: &str = "braidcast";

/// What is noted of the last stream in a recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Note {
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
        for line in lines {
            match line.split_once(' ')? {
                ("identity", text) => identity = identity_of(text),
                ("reliable", text) => reliable = text.parse().ok(),
                ("base", text) => base = text.parse().ok(),
                _ => {}
            }
        }
        Some(Self { identity: identity?, reliable: reliable?, base: base? })
    }

    /// Writes it, whole or not at all.
    pub(super) fn write(&self, file: &Path) -> io::Result<()> {
        let path = Self::path(file);
        let mut fresh = path.as_os_str().to_owned();
        fresh.push(".new");
        let mut out = File::create(&fresh)?;
        let Self { identity, reliable, base } = self;
        write!(out, "{HEAD}\nidentity {identity}\nreliable {reliable}\nbase {base}\n")?;
        out.sync_all()?;
        fs::rename(&fresh, &path)
    }

    /// The stream is over. A note that stays behind does no more harm than a question too many.
    pub(super) fn remove(file: &Path) {
        let _gone = fs::remove_file(Self::path(file));
    }

    /// A recording in `folder` of the stream with this identity that was not finished.
    pub(super) fn find(folder: &Path, identity: Identity) -> Option<PathBuf> {
        fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path()).find_map(|path| {
            let file = path.file_name()?.to_str()?.strip_suffix(ENDING)?.strip_suffix('.')?;
            let file = folder.join(file);
            Self::read(&file).filter(|note| note.identity == identity && note.reliable).map(|_| file)
        })
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

    #[test]
    fn a_note_is_read_as_written_and_found_by_its_stream() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("show.ts");
        let note = Note { identity: Identity([0xa7; 16]), reliable: true, base: 1234 };
        assert_eq!(Note::read(&file), None);
        note.write(&file).unwrap();
        assert_eq!(Note::read(&file), Some(note));
        assert_eq!(Note::find(dir.path(), note.identity), Some(file.clone()));
        assert_eq!(Note::find(dir.path(), Identity([0; 16])), None);
        Note::remove(&file);
        assert_eq!(Note::read(&file), None);
    }

    #[test]
    fn what_is_no_note_is_none() {
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
