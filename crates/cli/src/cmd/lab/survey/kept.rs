//! What is done of a survey, in a file until all is.

use crate::failure::{Failure, Outcome};
use braidcast_lab::survey::{SetResult, Survey};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    settings: usize,
    result: SetResult,
}

/// Results that are there. May be added to from any thread.
pub(super) struct Kept {
    path: PathBuf,
    /// By number of settings and set.
    all: Mutex<BTreeMap<(usize, u32), SetResult>>,
    /// Made with the first result.
    file: Mutex<Option<File>>,
}

impl Kept {
    /// Opens what an earlier run of the same survey by the same build left in `folder`. That survey
    /// may have had more or fewer sets.
    pub(super) fn open(folder: &Path, survey: &Survey) -> Outcome<Self> {
        let path = folder.join(format!("survey-{:016x}.part", key(survey)));
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(cannot("read", &path, &e)),
        };
        // A process that was killed may have left half a line: that set is run again.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let all = lines.map(|it| ((it.settings, it.result.index), it.result)).collect();
        Ok(Self { path, all: Mutex::new(all), file: Mutex::new(None) })
    }

    /// Returns `true` if a result is there.
    pub(super) fn has(&self, settings: usize, index: u32) -> bool {
        lock(&self.all).contains_key(&(settings, index))
    }

    /// Adds a result, here and in the file.
    pub(super) fn add(&self, settings: usize, result: SetResult) -> Outcome {
        let line = Line { settings, result };
        let text = serde_json::to_string(&line).map_err(|e| cannot("write", &self.path, &e))?;
        let mut file = lock(&self.file);
        let written = match &mut *file {
            Some(file) => Ok(file),
            none => append(&self.path).map(|it| none.insert(it)),
        };
        // In one piece, and on a line of its own whatever was left there.
        written
            .and_then(|it| it.write_all(format!("\n{text}\n").as_bytes()))
            .map_err(|e| cannot("write", &self.path, &e))?;
        lock(&self.all).insert((settings, line.result.index), line.result);
        Ok(())
    }

    /// The results for the settings of this number, in the order of `sets`.
    pub(super) fn results(&self, settings: usize, sets: &[u32]) -> Vec<SetResult> {
        let all = lock(&self.all);
        sets.iter().filter_map(|&index| all.get(&(settings, index)).cloned()).collect()
    }

    /// All is done and printed: the file goes.
    pub(super) fn remove(self) {
        // It may never have been made; and one that stays does no harm.
        let _ = std::fs::remove_file(self.path);
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    OpenOptions::new().create(true).append(true).open(path)
}

/// The same for the same survey by the same build: another build may do otherwise.
fn key(survey: &Survey) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{survey:?}").hash(&mut hasher);
    if let Ok(program) = std::env::current_exe().and_then(std::fs::metadata) {
        (program.len(), program.modified().ok()).hash(&mut hasher);
    }
    hasher.finish()
}

fn cannot(what: &str, path: &Path, e: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("cannot {what} {}: {e}", path.display()), "choose another folder with --results")
}

/// A run that panics is caught before it could leave a lock behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
