use crate::failure::{Failure, Outcome};
use braidcast_session::LogEntry;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The header of the CSV. Times are seconds of the receiver's clock, which starts at 0; `pts` counts 90 kHz.
const HEAD: &str = "sequence,kind,reference,bytes,pts,captured_s,due_s,arrived_s,path,on_time,used";

/// A line of CSV for each unit.
pub(super) struct Log {
    name: String,
    file: BufWriter<File>,
}

impl Log {
    /// Makes the file anew.
    pub(super) fn create(path: &Path) -> Outcome<Self> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| {
            Failure::new(
                format!("cannot write the log {name}: {e}"),
                "check that the folder exists and may be written to",
            )
        })?;
        let mut log = Self { name, file: BufWriter::new(file) };
        writeln!(log.file, "{HEAD}").map_err(|e| log.full(&e))?;
        Ok(log)
    }

    /// Adds a line.
    pub(super) fn add(&mut self, entry: &LogEntry) -> Outcome {
        let LogEntry { sequence, kind, reference, bytes, pts, captured, due, arrived, path, on_time, used } = entry;
        let pts = pts.map_or_else(String::new, |pts| pts.to_string());
        let [captured, due, arrived] = [captured, due, arrived].map(|at| at.as_secs_f64());
        let [reference, on_time, used] = [reference, on_time, used].map(|it| u8::from(*it));
        writeln!(
            self.file,
            "{sequence},{kind},{reference},{bytes},{pts},{captured:.6},{due:.6},{arrived:.6},{path},{on_time},{used}"
        )
        .map_err(|e| self.full(&e))
    }

    /// Writes out what is buffered.
    pub(super) fn finish(&mut self) -> Outcome {
        self.file.flush().map_err(|e| self.full(&e))
    }

    fn full(&self, error: &io::Error) -> Failure {
        Failure::new(format!("cannot write the log {}: {error}", self.name), "make room, or leave out --log")
    }
}
