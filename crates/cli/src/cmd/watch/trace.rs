//! `--trace FILE`: events as they happen.

use super::background::{About, Background, BackgroundFile, lock};
use crate::failure::{Failure, Outcome};
use braidcast_core::Instant;
use braidcast_core::events::{EventSink, TraceEvent};
use braidcast_trace::{QlogHeader, QlogWriter};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Events that go to the thread at once. With 256 batches that wait at most, it may be behind by
/// 131,072 events: half a minute of a stream of 20 Mbit/s.
const BATCH: usize = 512;
/// Events wait no longer than this for others to go along.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// What happened, when, and to which connection.
type Told = (Instant, u32, TraceEvent);

/// A trace that is being written. Events are put into words by a thread of its own: that takes longer
/// than what they tell of.
pub(crate) struct TraceFile {
    background: Background<Vec<Told>>,
    shared: Arc<Shared>,
}

/// What the machines tell.
struct Shared {
    file: Arc<BackgroundFile<Vec<Told>>>,
    state: Mutex<State>,
}

struct State {
    told: Vec<Told>,
    handed: Instant,
}

impl TraceFile {
    /// Makes the file anew, and begins it.
    pub(crate) fn create(path: &Path, command: &str, now: Instant) -> Outcome<Self> {
        let age = jiff::SignedDuration::from_nanos(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX));
        let wall_clock = jiff::Timestamp::now().checked_sub(age).map_or_else(|_| String::new(), |at| at.to_string());
        let title = format!("braidcast {command}");
        let header = QlogHeader { title: &title, vantage: command, wall_clock: &wall_clock, simulated: false };
        let writer = QlogWriter::new(Vec::new(), &header);
        let mut writer =
            writer.map_err(|e| Failure::new(format!("cannot begin the trace: {e}"), "leave out --trace"))?;
        let about = About { what: "trace", flag: "--trace", private: false, unit: "events" };
        let background = Background::create(path, about, move |file, batch: Vec<Told>| {
            batch.iter().try_for_each(|(now, connection, event)| writer.event(*now, *connection, event))?;
            file.write_all(writer.get_mut())?;
            writer.get_mut().clear();
            Ok(())
        })?;
        let state = Mutex::new(State { told: Vec::with_capacity(BATCH), handed: now });
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
        let last = core::mem::take(&mut lock(&self.shared.state).told);
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
        let mut state = lock(&self.state);
        state.told.push((now, connection, *event));
        if state.told.len() < BATCH && now.since(state.handed) < LONGEST_WAIT {
            return;
        }
        state.handed = now;
        let batch = core::mem::replace(&mut state.told, Vec::with_capacity(BATCH));
        drop(state);
        let many = batch.len() as u64;
        self.file.hand_over(batch, many);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braidcast_core::PathId;
    use braidcast_core::events::SctpEvent;
    use std::io::Read;

    fn event(n: u64) -> TraceEvent {
        SctpEvent::PathRemoved { path: PathId(n as u16) }.into()
    }

    #[test]
    fn all_that_is_told_is_in_the_file_in_order() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut trace = TraceFile::create(file.path(), "send", Instant::ZERO).unwrap_or_else(|e| panic!("{e}"));
        let sink = trace.sink();
        let (mut expected, header) = (Vec::new(), QlogHeader::default());
        let mut writer = QlogWriter::new(&mut expected, &header).unwrap();
        // Some batches that are full, and one that is not.
        for n in 0..3 * BATCH as u64 + 7 {
            sink.tell(Instant::from_micros(n), 9, &event(n % 200));
            writer.event(Instant::from_micros(n), 9, &event(n % 200)).unwrap();
        }
        drop(sink);
        trace.finish();
        assert_eq!(trace.take_failure(), None);
        let written = std::fs::read(file.path()).unwrap();
        let events = |bytes: &[u8]| bytes.split_inclusive(|it| *it == b'\n').skip(1).collect::<Vec<_>>().concat();
        assert_eq!(events(&written), events(&expected));
    }

    #[test]
    fn what_a_disk_is_too_slow_for_is_counted_and_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        // A reader that takes nothing yet: the pipe is full after 64 KiB, and then 256 batches wait.
        let mut reader = std::fs::File::options().read(true).write(true).open(&path).unwrap();
        let mut trace = TraceFile::create(&path, "send", Instant::ZERO).unwrap_or_else(|e| panic!("{e}"));
        let told = 300 * BATCH as u64;
        let sink = trace.sink();
        (0..told).for_each(|n| sink.tell(Instant::from_nanos(n), 9, &event(1)));
        let drained = std::thread::spawn(move || {
            let (mut buf, mut lines) = ([0; 65_536], 0);
            while let Ok(len @ 1..) = reader.read(&mut buf) {
                lines += buf[..len].iter().filter(|it| **it == b'\n').count() as u64;
                if buf[..len].ends_with(b"the end\n") {
                    break;
                }
            }
            lines - 2
        });
        trace.finish();
        std::fs::File::options().write(true).open(&path).unwrap().write_all(b"the end\n").unwrap();
        let written = drained.join().unwrap();
        let words = trace.take_failure().unwrap_or_default();
        assert!(written < told && words.contains(&format!("lacks {} events", told - written)), "{written}: {words}");
    }
}
