//! `--stats`, `--rate-report`: a line of JSON for each interval, written by a thread of its own, so
//! that a slow reader holds up nothing.

use crate::args::values::StatsTarget;
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
/// Time at the end that a reader has to take the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line, and how many lines before it the reader was too slow for.
#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(flatten)]
    figures: &'a T,
    lost_lines: u64,
}

/// Destination of the lines.
pub(crate) struct StatsFile {
    lines: Option<SyncSender<String>>,
    done: Receiver<()>,
    lost: u64,
    failure: Arc<Mutex<Option<String>>>,
}

impl StatsFile {
    /// Opens it. A named pipe waits for its reader in the thread. `what`: what is in it, and the flag that asks for it.
    pub(crate) fn open(target: &StatsTarget, what: &'static str, flag: &str) -> Outcome<Self> {
        let file = match target {
            StatsTarget::File(path) if !is_pipe(path) => Some(File::create(path).map_err(|error| {
                let refused = format!("cannot write the {what} {}: {error}", path.display());
                Failure::new(refused, format!("choose another file for {flag}"))
            })?),
            _ => None,
        };
        let (target, name) = (target.clone(), format!("the {what} in {target}"));
        Ok(Self::spawn(name, move || match (file, target) {
            (Some(file), _) => Ok(Box::new(file)),
            (None, StatsTarget::File(path)) => Ok(Box::new(OpenOptions::new().write(true).open(path)?)),
            (None, StatsTarget::Stdout) => Ok(Box::new(io::stdout())),
        }))
    }

    /// Writes into `pipe`, which `name` is for.
    pub(crate) fn into_pipe(pipe: impl Write + Send + 'static, name: &str) -> Self {
        Self::spawn(name.into(), move || Ok(Box::new(pipe)))
    }

    fn spawn(name: String, open: impl FnOnce() -> io::Result<Box<dyn Write>> + Send + 'static) -> Self {
        let (lines, waiting) = sync_channel::<String>(MOST_WAITING);
        let (told_done, done) = channel();
        let failure = Arc::new(Mutex::new(None));
        let failed = Arc::clone(&failure);
        std::thread::spawn(move || {
            if let Err(error) = write(open, &waiting) {
                let words = format!("{name} end here: {error}; all else goes on");
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(words);
            }
            drop(waiting);
            let _ = told_done.send(());
        });
        Self { lines: Some(lines), done, lost: 0, failure }
    }

    /// Writes a line, or counts it if the reader is too far behind.
    pub(crate) fn tell(&mut self, figures: &impl Serialize) {
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
fn write(open: impl FnOnce() -> io::Result<Box<dyn Write>>, lines: &Receiver<String>) -> io::Result<()> {
    process::drop_privileges().map_err(|failure| io::Error::other(failure.to_string()))?;
    let mut out = open()?;
    for line in lines {
        out.write_all(line.as_bytes())?;
        out.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::figures::Figures;
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::Command;

    #[test]
    fn a_reader_that_is_too_slow_is_told_how_many_lines_it_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let mut file = StatsFile::open(&StatsTarget::File(path.clone()), "statistics", "--stats").unwrap();
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
