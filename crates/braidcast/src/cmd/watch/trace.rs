//! `--trace FILE`: events as they happen, written by a thread of its own, so that a slow disk holds up nothing.

use crate::failure::{Failure, Outcome};
use crate::process;
use braidcast_core::Instant;
use braidcast_core::events::{EventSink, TraceEvent};
use braidcast_trace::{QlogHeader, QlogWriter};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes that go to the thread at once.
const BATCH: usize = 64 * 1024;
/// Batches that wait for the disk at most; what comes beyond is left out.
const MOST_WAITING: usize = 256;
/// Events wait no longer than this for others to go along.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A trace that is being written.
pub(crate) struct TraceFile {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the machines tell, and the thread is told.
struct Shared {
    path: PathBuf,
    state: Mutex<State>,
    failure: Mutex<Option<String>>,
}

struct State {
    writer: QlogWriter<Vec<u8>>,
    /// `None` once it is over, or the disk takes no more.
    batches: Option<SyncSender<Vec<u8>>>,
    handed: Instant,
    left_out: u64,
}

impl TraceFile {
    /// Makes the file anew, and begins it.
    pub(crate) fn create(path: &Path, command: &str, now: Instant) -> Outcome<Self> {
        let refused = |e: &dyn std::fmt::Display| {
            Failure::new(format!("cannot write the trace {}: {e}", path.display()), "choose another file for --trace")
        };
        let file = File::create(path).map_err(|e| refused(&e))?;
        let age = jiff::SignedDuration::from_nanos(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let wall_clock = jiff::Timestamp::now().checked_sub(age).map_or_else(|_| String::new(), |at| at.to_string());
        let title = format!("braidcast {command}");
        let header = QlogHeader { title: &title, vantage: command, wall_clock: &wall_clock, simulated: false };
        let writer = QlogWriter::new(Vec::new(), &header).map_err(|e| refused(&e))?;
        let (batches, waiting) = sync_channel(MOST_WAITING);
        let state = State { writer, batches: Some(batches), handed: now, left_out: 0 };
        let shared = Shared { path: path.to_owned(), state: Mutex::new(state), failure: Mutex::new(None) };
        let shared = Arc::new(shared);
        let told = Arc::clone(&shared);
        let thread = std::thread::spawn(move || match process::drop_privileges() {
            // Capabilities belong to a thread, and this one needs none: the file is open.
            Ok(()) => told.write(file, &waiting),
            Err(failure) => told.fail(&io::Error::other(failure.to_string())),
        });
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What tells this file.
    pub(crate) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.shared) as Arc<dyn EventSink>
    }

    /// What went wrong since the last call, in words.
    pub(crate) fn take_failure(&self) -> Option<String> {
        lock(&self.shared.failure).take()
    }

    /// Writes what is still in memory, and ends the file.
    pub(crate) fn finish(&mut self) {
        let (batches, last, left_out) = {
            let mut state = lock(&self.shared.state);
            (state.batches.take(), std::mem::take(state.writer.get_mut()), state.left_out)
        };
        if let Some(batches) = batches {
            // A thread that has ended has said why.
            let _ = batches.send(last);
        }
        if let Some(thread) = self.thread.take() {
            // It ends once all is written or cannot be; a panic there has lost no more than the trace.
            let _ = thread.join();
        }
        if left_out > 0 {
            let path = self.shared.path.display();
            let words = format!("the trace {path} lacks {left_out} batches of events: the disk was too slow for them");
            lock(&self.shared.failure).get_or_insert(words);
        }
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Shared {
    /// The thread's work.
    fn write(&self, mut file: File, batches: &Receiver<Vec<u8>>) {
        let done = batches.iter().try_for_each(|batch| file.write_all(&batch));
        if let Err(error) = done {
            self.fail(&error);
        }
    }

    fn fail(&self, error: &io::Error) {
        lock(&self.state).batches = None;
        let words = format!("the trace {} ends here: {error}; all else goes on", self.path.display());
        lock(&self.failure).get_or_insert(words);
    }
}

impl State {
    /// Hands what has been written to the thread. If that is behind by too much, it is left out.
    fn hand_over(&mut self) {
        let Some(batches) = &self.batches else { return };
        let batch = std::mem::take(self.writer.get_mut());
        if let Err(TrySendError::Full(_)) = batches.try_send(batch) {
            self.left_out += 1;
        }
    }
}

impl EventSink for Shared {
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
        let mut state = lock(&self.state);
        if state.batches.is_none() {
            return;
        }
        // A buffer in memory takes everything.
        let _ = state.writer.event(now, connection, event);
        if state.writer.get_mut().len() >= BATCH || now.since(state.handed) >= LONGEST_WAIT {
            state.handed = now;
            state.hand_over();
        }
    }
}

/// What a thread that panicked left is as good as before: each batch is whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
