//! `--stats`: a line of JSON for each interval, written by a thread of its own, so that a slow reader holds up nothing.

use super::figures::Figures;
use crate::args::values::{Stats, StatsTarget};
use crate::failure::{Failure, Outcome};
use crate::process;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Lines that wait for the reader at most; more are left out.
const MOST_WAITING: usize = 64;
/// At the end a reader has so long to take the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line, and how many lines before it the reader was too slow for.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    figures: &'a Figures,
    lost_lines: u64,
}

/// Where the lines go.
pub(crate) struct StatsFile {
    lines: Option<SyncSender<String>>,
    done: Receiver<()>,
    lost: u64,
    failure: Arc<Mutex<Option<String>>>,
}

impl StatsFile {
    /// Opens it. A named pipe waits for its reader in the thread.
    pub(crate) fn open(stats: &Stats) -> Outcome<Self> {
        let (lines, waiting) = sync_channel::<String>(MOST_WAITING);
        let (told_done, done) = channel();
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        let target = stats.target.clone();
        let file = match &target {
            StatsTarget::File(path) if !is_pipe(path) => Some(File::create(path).map_err(|error| {
                let what = format!("cannot write the statistics {}: {error}", path.display());
                Failure::new(what, "choose another file for --stats")
            })?),
            _ => None,
        };
        std::thread::spawn(move || {
            if let Err(error) = write(file, &target, &waiting) {
                let words = format!("the statistics in {target} end here: {error}; all else goes on");
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(words);
            }
            drop(waiting);
            let _ = told_done.send(());
        });
        Ok(Self { lines: Some(lines), done, lost: 0, failure })
    }

    /// Writes a line, or counts it where the reader is too far behind.
    pub(crate) fn tell(&mut self, figures: &Figures) {
        let Some(lines) = &self.lines else { return };
        let Ok(mut line) = serde_json::to_string(&Line { figures, lost_lines: self.lost }) else { return };
        line.push('\n');
        match lines.try_send(line) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.lost += 1,
            Err(TrySendError::Disconnected(_)) => self.lines = None,
        }
    }

    /// What went wrong, in words, once.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Has the last lines written, if anybody takes them.
    pub(crate) fn finish(&mut self) {
        if self.lines.take().is_some() {
            let _ = self.done.recv_timeout(PATIENCE);
        }
    }
}

fn is_pipe(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.file_type().is_fifo())
}

/// The thread's work.
fn write(file: Option<File>, target: &StatsTarget, lines: &Receiver<String>) -> io::Result<()> {
    process::drop_privileges().map_err(|failure| io::Error::other(failure.to_string()))?;
    let mut out: Box<dyn Write> = match (file, target) {
        (Some(file), _) => Box::new(file),
        (None, StatsTarget::File(path)) => Box::new(OpenOptions::new().write(true).open(path)?),
        (None, StatsTarget::Stdout) => Box::new(io::stdout()),
    };
    for line in lines {
        out.write_all(line.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::Command;

    #[test]
    fn a_reader_that_is_too_slow_is_told_how_many_lines_it_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let (each, target) = (Duration::from_secs(1), StatsTarget::File(path.clone()));
        let mut file = StatsFile::open(&Stats { each, target }).unwrap();
        let mut reader = BufReader::new(File::open(&path).unwrap());
        // Far more than a pipe and the lines that may wait hold.
        (0..5000).for_each(|_| file.tell(&Figures::default()));
        let lost = file.lost;
        assert!(lost > 1000, "{lost}");
        let mut line = String::new();
        let told = |line: &str| {
            line.rsplit_once(':').and_then(|(_, it)| it.trim_end().trim_end_matches('}').parse::<u64>().ok())
        };
        while told(&line).is_none_or(|it| it < lost) {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0);
            file.tell(&Figures::default());
        }
        file.finish();
    }
}
