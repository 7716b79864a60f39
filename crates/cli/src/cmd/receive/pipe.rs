//! An output whose reader may be slow, or go and come back: stdout or a named pipe.

use crate::cmd::fifo;
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_driver::{Direction, Driver, InputId};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

/// What may wait for a slow reader before more is refused, in bytes.
const MAX_WAITING: usize = 8 << 20;
/// Bytes that a writable pipe takes at least without blocking (`PIPE_BUF`, pipe(7)).
const PIECE: usize = 4096;
/// What is written at once to a pipe that never waits: what it holds (pipe(7)).
const MOST: usize = 64 << 10;
/// How often a named pipe without a reader is tried.
const RETRY: Duration = Duration::from_millis(200);

/// A pipe, a terminal or the like.
pub(super) struct Pipe {
    name: String,
    /// Path to open it at again; `None` for stdout, which cannot be reopened.
    path: Option<PathBuf>,
    open: Option<(File, InputId)>,
    /// It says that it is full in place of waiting for its reader.
    never_waits: bool,
    retry_at: Instant,
    waiting: Vec<u8>,
    /// How much of `waiting` is written already.
    written: usize,
    armed: bool,
}

impl Pipe {
    /// Stdout, whose file this is.
    pub(super) fn stdout(file: File, driver: &mut Driver) -> io::Result<Self> {
        let mut pipe = Self::closed("stdout".into(), None);
        // Other programs have it too, whom it may not keep from waiting.
        let ours = fifo::writer(&file);
        pipe.never_waits = ours.is_some();
        pipe.register(ours.unwrap_or(file), driver)?;
        Ok(pipe)
    }

    /// The named pipe at `path`; its reader may come later.
    pub(super) fn named(path: PathBuf) -> Self {
        Self::closed(path.display().to_string(), Some(path))
    }

    const fn closed(name: String, path: Option<PathBuf>) -> Self {
        Self {
            name,
            path,
            open: None,
            never_waits: false,
            retry_at: Instant::ZERO,
            waiting: Vec::new(),
            written: 0,
            armed: false,
        }
    }

    fn register(&mut self, file: File, driver: &mut Driver) -> io::Result<()> {
        let token = driver.register(file.as_raw_fd(), Direction::Write)?;
        driver.pause(token)?;
        self.armed = false;
        self.open = Some((file, token));
        Ok(())
    }

    /// Opens a named pipe if it has a reader now. Returns `true` if a reader has just come.
    pub(super) fn try_open(&mut self, now: Instant, driver: &mut Driver) -> Outcome<bool> {
        let Some(path) = self.path.as_ref().filter(|_| self.open.is_none() && now >= self.retry_at) else {
            return Ok(false);
        };
        self.retry_at = now + RETRY;
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        // Without a reader it says so at once (ENXIO, fifo(7)).
        let Ok(file) = OpenOptions::new().write(true).custom_flags(flags).open(path) else { return Ok(false) };
        self.never_waits = true;
        self.register(file, driver).map_err(|e| self.failure(&e))?;
        self.arm(driver).map_err(|e| self.failure(&e))?;
        Ok(true)
    }

    /// When [`try_open`](Self::try_open) has something to do.
    pub(super) fn next_try(&self) -> Option<Instant> {
        (self.open.is_none() && self.path.is_some()).then_some(self.retry_at)
    }

    /// What people call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns `true` if it takes more.
    pub(super) const fn has_room(&self) -> bool {
        self.waiting.len() - self.written < MAX_WAITING
    }

    /// Returns `true` if anybody reads it.
    pub(super) const fn has_reader(&self) -> bool {
        self.open.is_some()
    }

    /// Writes as much of `bytes` as there is room for; the rest waits. An error comes with what is
    /// written next.
    pub(super) fn write(&mut self, driver: &mut Driver, bytes: &[u8]) -> Outcome {
        let mut rest = bytes;
        if let Some((file, _)) = self.open.as_mut().filter(|_| self.never_waits && self.waiting.is_empty()) {
            rest = &bytes[file.write(bytes).unwrap_or_default()..];
        }
        self.waiting.extend_from_slice(rest);
        self.arm(driver).map_err(|e| self.failure(&e))
    }

    /// Bytes that wait for the reader.
    pub(super) const fn waiting_bytes(&self) -> u64 {
        (self.waiting.len() - self.written) as u64
    }

    /// Returns `true` if nothing waits any more.
    pub(super) const fn is_drained(&self) -> bool {
        self.written >= self.waiting.len()
    }

    /// The driver says that `id` can be written to. Returns `true` if the reader of a named pipe is
    /// gone.
    pub(super) fn on_ready(&mut self, driver: &mut Driver, id: InputId) -> Outcome<bool> {
        if self.open.as_ref().is_none_or(|(_, token)| *token != id) {
            return Ok(false);
        }
        match self.write_piece().and_then(|()| self.arm(driver)) {
            Ok(()) => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe && self.path.is_some() => {
                driver.unregister(id).map_err(|e| self.failure(&e))?;
                // What a reader did not take in time is not for the next one.
                self.open = None;
                Ok(true)
            }
            Err(e) => {
                // Stdout stays open where others have it too, and would be reported again and again.
                driver.unregister(id).map_err(|e| self.failure(&e))?;
                Err(self.failure(&e))
            }
        }
    }

    /// Discards what waits.
    pub(super) fn forget(&mut self) {
        self.waiting.clear();
        self.written = 0;
    }

    /// Writes what waits, but if it might have to wait no more than a pipe takes for sure: a terminal or a socket
    /// that is shared with other programs cannot be made non-blocking.
    fn write_piece(&mut self) -> io::Result<()> {
        let Some((file, _)) = &mut self.open else { return Ok(()) };
        let most = if self.never_waits { MOST } else { PIECE };
        let end = self.waiting.len().min(self.written + most);
        match file.write(&self.waiting[self.written..end]) {
            Ok(n) => self.written += n,
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(e) => return Err(e),
        }
        if self.written == self.waiting.len() {
            self.forget();
        } else if self.written >= MAX_WAITING / 8 {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
        Ok(())
    }

    /// Waits for the reader exactly while something waits for it.
    fn arm(&mut self, driver: &mut Driver) -> io::Result<()> {
        let Some((_, token)) = self.open else { return Ok(()) };
        let wanted = !self.waiting.is_empty();
        if wanted != self.armed {
            if wanted {
                driver.resume(token)?
            } else {
                driver.pause(token)?
            }
            self.armed = wanted;
        }
        Ok(())
    }

    fn failure(&self, error: &io::Error) -> Failure {
        match &self.path {
            None if error.kind() == io::ErrorKind::BrokenPipe => Failure::reader_gone(),
            None => Failure::stdout(error),
            Some(_) => Failure::new(format!("cannot write {}: {error}", self.name), "check what the pipe leads to"),
        }
    }
}
