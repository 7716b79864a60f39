//! A stream in a file: never over what is there, and gone on with where it was interrupted.

use super::note::{Holder, Note};
use super::place::Place;
use crate::cmd::watch::OutputFigures;
use crate::failure::{Failure, Outcome};
use braidcast_session::{Content, Offer};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// What to do about a file that is there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Existing {
    /// Leave it alone.
    Keep,
    /// Write behind it.
    Append,
    /// Replace it.
    Overwrite,
}

/// Bytes that are read again at once of what is there already.
const PIECE: usize = 4 << 20;

/// A file, or one after the other.
pub(super) struct Recording {
    place: Place,
    existing: Existing,
    open: Option<Open>,
    /// Bytes that are to be looked at before a stream can go on.
    check: Option<Check>,
}

struct Open {
    path: PathBuf,
    file: File,
    note: Note,
    /// Bytes of the file.
    len: u64,
}

struct Check {
    file: File,
    content: Content,
    left: u64,
}

/// What there is of a stream that begins.
pub(super) enum Begun {
    /// This content is there already.
    With(Content),
    /// That has yet to be found out: call [`Recording::check`].
    Checking,
}

impl Recording {
    /// A recording at `place`, checked as far as that is possible before there is a stream; nothing is made or changed.
    pub(super) fn new(place: Place, existing: Existing) -> Outcome<Self> {
        let recording = Self { place, existing, open: None, check: None };
        if let Some(path) = recording.place.fixed() {
            Self::look(&path)?;
        }
        Ok(recording)
    }

    fn path(&self) -> PathBuf {
        self.open.as_ref().map_or_else(PathBuf::new, |open| open.path.clone())
    }

    fn name(&self) -> String {
        self.open.as_ref().map_or_else(|| self.place.to_string(), |open| open.path.display().to_string())
    }

    /// How it stands; `None` before there is a file.
    pub(super) fn figures(&self) -> Option<OutputFigures> {
        let open = self.open.as_ref()?;
        let disk = rustix::fs::fstatvfs(&open.file).ok();
        let free_bytes = disk.map(|it| it.f_bavail.saturating_mul(it.f_frsize));
        Some(OutputFigures { name: open.path.display().to_string(), bytes: open.len, free_bytes })
    }

    /// The file, if it has another name than was asked for.
    pub(super) fn other_name(&self) -> Option<String> {
        let fixed = self.place.fixed()?;
        self.open.as_ref().filter(|open| open.path != fixed).map(|open| open.path.display().to_string())
    }

    /// Returns `true` if `path` could be written.
    fn look(path: &Path) -> Outcome {
        match path.metadata() {
            Ok(there) if there.is_dir() => {
                Err(Failure::new(format!("cannot write {}: it is a folder", path.display()), "give a file in it"))
            }
            Ok(_) => OpenOptions::new().append(true).open(path).map(drop).map_err(|e| cannot(path, &e)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).map_err(|e| cannot(path, &e.into()))
            }
            Err(e) => Err(cannot(path, &e)),
        }
    }

    /// A stream begins: opens its file, and finds out what of it is there.
    pub(super) fn begin(&mut self, offer: &Offer) -> Outcome<Begun> {
        if let Some(open) = &mut self.open {
            let unfinished = Note::read(&open.path).filter(|note| note.reliable);
            let same = unfinished.as_ref().is_some_and(|note| {
                offer.reliable && note.identity == offer.identity && note.holder == Holder::of(offer)
            });
            // One stream after the other in one file; what broke off goes on, if it is the same.
            if same || (unfinished.is_none() && self.place.fixed().is_some()) {
                let base = unfinished.map_or(open.len, |note| note.base);
                open.note =
                    Note { holder: Holder::of(offer), identity: offer.identity, reliable: offer.reliable, base };
                open.note.write(&open.path).map_err(|e| cannot(&open.path, &e))?;
                return self.look_back();
            }
        }
        let (path, mut file) = self.choose(offer)?;
        let there = Note::read(&path)
            .filter(|note| note.reliable && note.identity == offer.identity && note.holder == Holder::of(offer));
        if self.existing == Existing::Overwrite && there.is_none() {
            file.set_len(0).map_err(|e| cannot(&path, &e))?;
        }
        let len = file.seek(SeekFrom::End(0)).map_err(|e| cannot(&path, &e))?;
        let base = there.map_or(len, |note| note.base).min(len);
        let note = Note { holder: Holder::of(offer), identity: offer.identity, reliable: offer.reliable, base };
        note.write(&path).map_err(|e| cannot(&path, &e))?;
        let before = self.open.replace(Open { path, file, note, len });
        if let Some(before) = before.filter(|before| !before.note.reliable && before.path != self.path()) {
            sync(&before)?;
            Note::remove(&before.path);
        }
        self.look_back()
    }

    /// The file for a stream that begins, open and ours alone: one in which it was interrupted, or
    /// one in which nothing is lost.
    fn choose(&self, offer: &Offer) -> Outcome<(PathBuf, File)> {
        let holder = Holder::of(offer);
        let goes_on = |path: &Path| {
            Note::read(path).is_some_and(|note| {
                note.reliable == offer.reliable
                    && note.holder == holder
                    && (!note.reliable || note.identity == offer.identity)
            })
        };
        let Some(fixed) = self.place.fixed() else {
            let left =
                if offer.reliable { Note::find(&self.place.folder(), &holder, offer.identity) } else { Vec::new() };
            for path in left {
                if let Some(file) = open_alone(&path)? {
                    return Ok((path, file));
                }
            }
            return self.open_next();
        };
        let takes = |path: &Path| match self.existing {
            Existing::Overwrite => true,
            Existing::Append => goes_on(path) || Note::read(path).is_none(),
            Existing::Keep => goes_on(path) || path.metadata().map_or(true, |there| there.len() == 0),
        };
        for path in self.place.candidates().filter(|path| takes(path)) {
            Self::look(&path)?;
            match open_alone(&path)? {
                Some(file) => return Ok((path, file)),
                // Under its own name or under another one: never into what somebody else writes.
                None if self.existing == Existing::Keep => {}
                None => return Err(in_use(&path)),
            }
        }
        Err(in_use(&fixed))
    }

    /// The next file that is not there or empty, open and ours alone.
    fn open_next(&self) -> Outcome<(PathBuf, File)> {
        let free = |path: &PathBuf| path.metadata().map_or(true, |there| there.len() == 0);
        for path in self.place.candidates().filter(free) {
            Self::look(&path)?;
            if let Some(file) = open_alone(&path)? {
                return Ok((path, file));
            }
        }
        Err(in_use(&self.place.next()))
    }

    /// Has what is there of a reliable stream looked at, if there is any.
    fn look_back(&mut self) -> Outcome<Begun> {
        let Some(open) = &self.open else { return Ok(Begun::With(Content::default())) };
        let left = open.len - open.note.base;
        if !open.note.reliable || left == 0 {
            return Ok(Begun::With(Content::default()));
        }
        let look = || {
            let mut file = File::open(&open.path)?;
            file.seek(SeekFrom::Start(open.note.base))?;
            Ok(file)
        };
        let file = look().map_err(|e| cannot(&open.path, &e))?;
        self.check = Some(Check { file, content: Content::default(), left });
        Ok(Begun::Checking)
    }

    /// Returns `true` if [`check`](Self::check) has something to do.
    pub(super) const fn is_checking(&self) -> bool {
        self.check.is_some()
    }

    /// Reads on in what is already there; returns it once all is read.
    pub(super) fn check(&mut self) -> Outcome<Option<Content>> {
        let name = self.name();
        let Some(check) = &mut self.check else { return Ok(None) };
        let mut piece = vec![0; PIECE.min(usize::try_from(check.left).unwrap_or(PIECE))];
        check.file.read_exact(&mut piece).map_err(|e| cannot(Path::new(&name), &e))?;
        check.content.update(&piece);
        check.left -= piece.len() as u64;
        if check.left > 0 {
            return Ok(None);
        }
        Ok(self.check.take().map(|check| check.content))
    }

    /// The sender's bytes are others: the stream begins anew where it began.
    pub(super) fn begin_anew(&mut self) -> Outcome {
        let Some(open) = &mut self.open else { return Ok(()) };
        let base = open.note.base;
        let cut = open.file.set_len(base).and_then(|()| open.file.seek(SeekFrom::Start(base)));
        open.len = cut.map_err(|e| cannot(&open.path, &e))?;
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Outcome {
        if let Some(open) = &mut self.open {
            open.file.write_all(bytes).map_err(|e| cannot(&open.path, &e))?;
            open.len += bytes.len() as u64;
        }
        Ok(())
    }

    /// Another file from here on; the stream is live.
    pub(super) fn cut(&mut self) -> Outcome {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        sync(&open)?;
        let (path, mut file) = match self.place.fixed() {
            None => self.open_next()?,
            Some(path) => {
                Self::look(&path)?;
                let file = open_alone(&path)?.ok_or_else(|| in_use(&path))?;
                (path, file)
            }
        };
        if self.existing == Existing::Overwrite {
            file.set_len(0).map_err(|e| cannot(&path, &e))?;
        }
        file.seek(SeekFrom::End(0)).map_err(|e| cannot(&path, &e))?;
        open.note.base = 0;
        open.note.write(&path).map_err(|e| cannot(&path, &e))?;
        Note::remove(&open.path);
        self.open = Some(Open { path, file, len: 0, note: open.note });
        Ok(())
    }

    /// Bytes of the present stream in the file.
    pub(super) fn stream_bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.len - open.note.base)
    }

    /// Has all of it put on the disk.
    pub(super) fn flush(&mut self) -> Outcome {
        self.open.as_ref().map_or(Ok(()), sync)
    }

    /// The stream is over; unless `whole`, one that is reliable may go on another time.
    pub(super) fn end(&mut self, whole: bool) -> Outcome {
        self.check = None;
        let Some(open) = &self.open else { return Ok(()) };
        sync(open)?;
        if whole || !open.note.reliable {
            Note::remove(&open.path);
        }
        if self.place.fixed().is_none() {
            self.open = None;
        }
        Ok(())
    }
}

/// Opens the file for this writer alone; `None` if another one has it, in this process or another.
/// It is given back when it is closed. If the file system has no locks, nobody can be told
/// apart.
fn open_alone(path: &Path) -> Outcome<Option<File>> {
    let how = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = how.map_err(|e| cannot(path, &e))?;
    // A device is nobody's alone.
    if file.metadata().is_ok_and(|it| !it.is_file()) {
        return Ok(Some(file));
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

fn in_use(path: &Path) -> Failure {
    Failure::new(
        format!("cannot write {}: another receiver or another stream writes it", path.display()),
        "give each receiver and each stream an output of its own",
    )
}

fn sync(open: &Open) -> Outcome {
    match open.file.sync_all() {
        // A device has no disk to be put on.
        Err(e) if e.kind() != io::ErrorKind::InvalidInput => Err(cannot(&open.path, &e)),
        _ => Ok(()),
    }
}

fn cannot(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::WriteZero => "make room or choose another output",
        _ => "check that the folder exists and may be written to, and that there is room",
    };
    Failure::new(format!("cannot write {}: {error}", path.display()), hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_sctp::Fingerprint;
    use braidcast_session::Identity;

    /// What two senders offer whose files have equal name, size and beginning.
    fn offer(name: &str, key: u8) -> Offer {
        let key = Some(Fingerprint([key; 32]));
        Offer { identity: Identity([9; 16]), name: name.into(), reliable: true, size: Some(20), key }
    }

    fn recording(path: &Path, existing: Existing) -> Recording {
        let place = Place::new(path, "", false).unwrap_or_else(|e| panic!("{e}"));
        Recording::new(place, existing).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn two_writers_never_share_a_file() {
        let dir = tempfile::tempdir().unwrap();
        for pattern in ["clip.bin", "%Y-clip.bin"] {
            let path = dir.path().join(pattern);
            let (mut one, mut other) = (recording(&path, Existing::Keep), recording(&path, Existing::Keep));
            for (to, name, key) in [(&mut one, "alice", 1), (&mut other, "bob", 2)] {
                assert!(to.begin(&offer(name, key)).is_ok());
                assert!(to.write(name.as_bytes()).is_ok());
            }
            assert_ne!(one.path(), other.path());
            assert!(one.end(false).is_ok() && other.end(false).is_ok());
            let (of_one, of_other) = (one.path(), other.path());
            drop((one, other));
            // Interrupted, each goes on where its own bytes are, and nobody where others' are.
            let mut third = recording(&path, Existing::Keep);
            assert!(third.begin(&offer("carol", 3)).is_ok());
            assert!(third.path() != of_one && third.path() != of_other, "{:?}", third.path());
        }
    }

    #[test]
    fn what_another_one_writes_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("show.ts");
        let (mut one, mut other) = (recording(&path, Existing::Overwrite), recording(&path, Existing::Overwrite));
        assert!(one.begin(&offer("alice", 1)).is_ok() && one.write(b"alice").is_ok());
        let refused = other.begin(&offer("bob", 2)).err().map(|failure| failure.to_string());
        assert!(refused.is_some_and(|text| text.contains("another receiver or another stream writes it")));
        assert_eq!(std::fs::read(&path).unwrap(), b"alice");
    }
}
