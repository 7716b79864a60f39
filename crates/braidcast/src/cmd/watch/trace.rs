//! `--trace FILE`: events as they happen.

use super::background::{BATCH, Background, BackgroundFile, lock};
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_core::events::{EventSink, TraceEvent};
use braidcast_trace::{QlogHeader, QlogWriter};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Events wait no longer than this for others to go along.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// A trace that is being written.
pub(crate) struct TraceFile {
    background: Background,
    shared: Arc<Shared>,
}

/// What the machines tell.
struct Shared {
    file: Arc<BackgroundFile>,
    state: Mutex<State>,
}

struct State {
    writer: QlogWriter<Vec<u8>>,
    handed: Instant,
}

impl TraceFile {
    /// Makes the file anew, and begins it.
    pub(crate) fn create(path: &Path, command: &str, now: Instant) -> Outcome<Self> {
        let background = Background::create(path, "trace", "--trace", false)?;
        let age = jiff::SignedDuration::from_nanos(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let wall_clock = jiff::Timestamp::now().checked_sub(age).map_or_else(|_| String::new(), |at| at.to_string());
        let title = format!("braidcast {command}");
        let header = QlogHeader { title: &title, vantage: command, wall_clock: &wall_clock, simulated: false };
        let writer = QlogWriter::new(Vec::new(), &header);
        let writer = writer.map_err(|e| Failure::new(format!("cannot begin the trace: {e}"), "leave out --trace"))?;
        let state = Mutex::new(State { writer, handed: now });
        let shared = Arc::new(Shared { file: background.file(), state });
        Ok(Self { background, shared })
    }

    /// Returns the sink that writes this file.
    pub(crate) fn sink(&self) -> Arc<dyn EventSink> {
        Arc::clone(&self.shared) as Arc<dyn EventSink>
    }

    /// What went wrong since the last call, in words.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.background.take_failure()
    }

    /// Writes what is still in memory, and ends the file.
    pub(crate) fn finish(&mut self) {
        let last = core::mem::take(lock(&self.shared.state).writer.get_mut());
        self.background.finish(last);
    }
}

impl Drop for TraceFile {
    fn drop(&mut self) {
        self.finish();
    }
}

impl EventSink for Shared {
    fn tell(&self, now: Instant, connection: u32, event: &TraceEvent) {
        if !self.file.is_open() {
            return;
        }
        let mut state = lock(&self.state);
        // A buffer in memory takes everything.
        let _ = state.writer.event(now, connection, event);
        if state.writer.get_mut().len() >= BATCH || now.since(state.handed) >= LONGEST_WAIT {
            state.handed = now;
            self.file.hand_over(core::mem::take(state.writer.get_mut()));
        }
    }
}
