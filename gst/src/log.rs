//! What became of each frame, as CSV.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

/// The file. Errors while writing end the log and nothing else.
#[derive(Debug)]
pub(crate) struct Log(Option<BufWriter<File>>);

impl Log {
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, String> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = File::create(path)
            .map_err(|e| format!("cannot write {}: {e}\nhint: choose another file", path.display()))?;
        let mut log = Self(Some(BufWriter::new(file)));
        log.line(format_args!("seconds,what,allowed_bits,bits"));
        Ok(log)
    }

    /// A frame was left out.
    pub(crate) fn left_out(&mut self, at: Duration) {
        self.line(format_args!("{:.3},left out,0,0", at.as_secs_f64()));
    }

    /// A frame came out of the encoder.
    pub(crate) fn encoded(&mut self, at: Duration, allowed: u64, bits: u64) {
        self.line(format_args!("{:.3},encoded,{allowed},{bits}", at.as_secs_f64()));
    }

    fn line(&mut self, words: std::fmt::Arguments<'_>) {
        if self.0.as_mut().is_some_and(|out| writeln!(out, "{words}").and_then(|()| out.flush()).is_err()) {
            self.0 = None;
        }
    }
}
