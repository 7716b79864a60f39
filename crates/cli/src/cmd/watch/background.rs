//! A file that a thread of its own writes, so that a slow disk holds up nothing.

use crate::failure::{Failure, Outcome};
use crate::process;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Batches that wait for the disk at most; what comes beyond is left out.
const MOST_WAITING: usize = 256;

/// What such a file is.
#[derive(Clone, Copy)]
pub(super) struct About {
    /// `trace` or `capture`.
    pub(super) what: &'static str,
    /// The flag that asks for it.
    pub(super) flag: &'static str,
    /// For nobody but the user.
    pub(super) private: bool,
    /// What [`BackgroundFile::hand_over`] counts.
    pub(super) unit: &'static str,
}

/// The file, for who opened it.
pub(super) struct Background<T> {
    file: Arc<BackgroundFile<T>>,
    thread: Option<JoinHandle<()>>,
}

/// The file, for who fills it with batches.
pub(super) struct BackgroundFile<T> {
    about: About,
    path: PathBuf,
    /// `None` once it is over, or the disk takes no more.
    batches: Mutex<Option<SyncSender<T>>>,
    left_out: Mutex<u64>,
    failure: Mutex<Option<String>>,
}

impl<T: Send + 'static> Background<T> {
    /// Makes the file anew. `write` writes a batch into it, in the thread.
    pub(super) fn create(
        path: &Path,
        about: About,
        write: impl FnMut(&mut File, T) -> io::Result<()> + Send + 'static,
    ) -> Outcome<Self> {
        let About { what, flag, private, .. } = about;
        let refused = |e: io::Error| {
            Failure::new(
                format!("cannot write the {what} {}: {e}", path.display()),
                format!("choose another file for {flag}"),
            )
        };
        let mode = if private { 0o600 } else { 0o666 };
        let out = File::options().write(true).create(true).truncate(true).mode(mode).open(path).map_err(refused)?;
        if private && out.metadata().is_ok_and(|it| it.is_file()) {
            out.set_permissions(Permissions::from_mode(mode)).map_err(refused)?; // Of a file that was there.
        }
        let (batches, waiting) = sync_channel(MOST_WAITING);
        let file = Arc::new(BackgroundFile {
            about,
            path: path.to_owned(),
            batches: Mutex::new(Some(batches)),
            left_out: Mutex::new(0),
            failure: Mutex::new(None),
        });
        let told = Arc::clone(&file);
        let thread = std::thread::spawn(move || match process::drop_privileges() {
            // Capabilities belong to a thread, and this one needs none: the file is open.
            Ok(()) => told.write(out, &waiting, write),
            Err(failure) => told.fail(&io::Error::other(failure.to_string())),
        });
        Ok(Self { file, thread: Some(thread) })
    }

    /// What is to be filled.
    pub(super) fn file(&self) -> Arc<BackgroundFile<T>> {
        Arc::clone(&self.file)
    }

    /// What went wrong since the last call, in words.
    pub(super) fn take_failure(&self) -> Option<String> {
        lock(&self.file.failure).take()
    }

    /// Writes `last` and what is still in memory, and ends the file.
    pub(super) fn finish(&mut self, last: T) {
        if let Some(batches) = lock(&self.file.batches).take() {
            // A thread that has ended has said why.
            let _ = batches.send(last);
        }
        if let Some(thread) = self.thread.take() {
            // It ends once all is written or cannot be; a panic there has lost no more than the file.
            let _ = thread.join();
        }
        let left_out = core::mem::take(&mut *lock(&self.file.left_out));
        if left_out > 0 {
            let (About { what, unit, .. }, path) = (self.file.about, self.file.path.display());
            let words = format!("the {what} {path} lacks {left_out} {unit}: the disk was too slow for them");
            lock(&self.file.failure).get_or_insert(words);
        }
    }
}

impl<T> BackgroundFile<T> {
    /// Returns `true` if the disk takes any more.
    pub(super) fn is_open(&self) -> bool {
        lock(&self.batches).is_some()
    }

    /// Hands `batch` to the thread. If that is behind by too much, it is left out, and counts as
    /// `many`.
    pub(super) fn hand_over(&self, batch: T, many: u64) {
        let batches = lock(&self.batches);
        if let Some(Err(TrySendError::Full(_))) = batches.as_ref().map(|batches| batches.try_send(batch)) {
            *lock(&self.left_out) += many;
        }
    }

    /// The thread's work.
    fn write(&self, mut file: File, batches: &Receiver<T>, mut write: impl FnMut(&mut File, T) -> io::Result<()>) {
        let done = batches.iter().try_for_each(|batch| write(&mut file, batch));
        if let Err(error) = done {
            self.fail(&error);
        }
    }

    fn fail(&self, error: &io::Error) {
        *lock(&self.batches) = None;
        let words = format!("the {} {} ends here: {error}; all else goes on", self.about.what, self.path.display());
        lock(&self.failure).get_or_insert(words);
    }
}

/// What a thread that panicked left is as good as before: each batch is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
