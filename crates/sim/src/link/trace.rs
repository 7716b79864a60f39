use core::fmt;
use core::time::Duration;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Bytes that one delivery opportunity carries.
pub const OPPORTUNITY_BYTES: usize = 1500;

/// Most opportunities that a trace may have: 64 MiB of memory.
pub const MAX_OPPORTUNITIES: usize = 1 << 24;

/// Longest line of a trace file, in bytes.
const MAX_LINE: u64 = 256;

/// A recorded link in mahimahi's format: one line per opportunity to deliver 1500 bytes, each the time of
/// that opportunity in whole milliseconds, never falling. The recording repeats after its last timestamp.
///
/// Empty lines and lines that start with `#` are skipped.
#[derive(Clone, PartialEq, Eq)]
pub struct Trace {
    millis: Vec<u32>,
}

impl Trace {
    /// Reads the file at `path`.
    pub fn load(path: &Path) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::read(&name, BufReader::new(file)),
            Err(error) => Err(TraceError { name, line: 0, fault: Fault::Io(error) }),
        }
    }

    /// Reads a trace from `source`, which errors call `name`.
    pub fn read(name: &str, mut source: impl BufRead) -> Result<Self, TraceError> {
        let fail = |line, fault| TraceError { name: name.to_owned(), line, fault };
        let (mut millis, mut bytes, mut number) = (Vec::<u32>::new(), Vec::new(), 0);
        loop {
            bytes.clear();
            number += 1;
            let read = source.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes);
            if read.map_err(|error| fail(number, Fault::Io(error)))? == 0 {
                break;
            }
            let line = String::from_utf8_lossy(&bytes);
            let text = line.trim();
            if bytes.len() as u64 == MAX_LINE && !bytes.ends_with(b"\n") {
                return Err(fail(number, Fault::NotATime(text.chars().take(20).collect())));
            }
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let time = text.parse().map_err(|_| fail(number, Fault::NotATime(text.chars().take(20).collect())))?;
            if let Some(&before) = millis.last().filter(|before| **before > time) {
                return Err(fail(number, Fault::Backwards { before, time }));
            }
            if millis.len() == MAX_OPPORTUNITIES {
                return Err(fail(number, Fault::TooLong));
            }
            millis.push(time);
        }
        let fault = if millis.is_empty() { Fault::Empty } else { Fault::NoTime };
        Self::from_millis(millis).ok_or_else(|| fail(number - 1, fault))
    }

    /// A trace with opportunities at `millis`; `None` if they fall, are more than [`MAX_OPPORTUNITIES`] or do
    /// not end after 0.
    pub fn from_millis(millis: Vec<u32>) -> Option<Self> {
        let lasts = millis.last().is_some_and(|last| *last > 0);
        (lasts && millis.is_sorted() && millis.len() <= MAX_OPPORTUNITIES).then_some(Self { millis })
    }

    /// The same recording, turned so that it begins `from` its start and goes round; `None` if that
    /// lies behind its end, or nothing would be left of it.
    pub fn beginning_at(self, from: Duration) -> Option<Self> {
        let period = self.period_millis();
        let from = u64::try_from(from.as_millis()).ok().filter(|from| *from < period)?;
        if from == 0 {
            return Some(self);
        }
        let (before, after): (Vec<u64>, Vec<u64>) =
            self.millis.iter().map(|at| u64::from(*at)).partition(|at| *at < from);
        let turned = after.iter().map(|at| at - from).chain(before.iter().map(|at| at + period - from));
        Self::from_millis(turned.filter_map(|at| u32::try_from(at).ok()).collect())
    }

    /// When the opportunities are, in milliseconds from the start.
    pub fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// Milliseconds after which the recording repeats; at least 1.
    pub fn period_millis(&self) -> u64 {
        self.millis.last().map_or(1, |last| u64::from(*last))
    }

    /// Mean capacity in bit/s.
    pub fn mean_bits_per_second(&self) -> u64 {
        (self.millis.len() * OPPORTUNITY_BYTES * 8) as u64 * 1_000 / self.period_millis()
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trace({} opportunities in {} ms)", self.millis.len(), self.period_millis())
    }
}

/// Why a file is not a trace.
#[derive(Debug)]
pub struct TraceError {
    name: String,
    line: usize,
    fault: Fault,
}

#[derive(Debug)]
enum Fault {
    Io(io::Error),
    NotATime(String),
    Backwards { before: u32, time: u32 },
    TooLong,
    Empty,
    NoTime,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.fault, self.line) {
            (Fault::Io(_), 0) => write!(f, "cannot open {}", self.name)?,
            (Fault::Empty, 0) => return write!(f, "{} is empty", self.name),
            (Fault::Empty, _) => write!(f, "{}", self.name)?,
            (_, line) => write!(f, "{} line {line}", self.name)?,
        }
        match &self.fault {
            Fault::Io(error) => write!(f, ": {error}"),
            Fault::NotATime(text) => {
                write!(f, ": `{text}` is not a time; each line is whole milliseconds, for example 1250")
            }
            Fault::Backwards { before, time } => {
                write!(f, ": {time} comes after {before}; times must not fall (sort -n)")
            }
            Fault::TooLong => write!(f, ": more than {MAX_OPPORTUNITIES} opportunities; cut the trace (head)"),
            Fault::Empty => write!(f, ": there is no time in it"),
            Fault::NoTime => write!(f, ": the trace ends at 0 ms; it needs at least one time above 0"),
        }
    }
}

impl core::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.fault {
            Fault::Io(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        Trace::read("cell.up", text.as_bytes()).expect_err("must not parse").to_string()
    }

    #[test]
    fn lines_become_opportunities() {
        let trace = Trace::read("t", &b"# made by hand\n0\r\n5\n5\n\n10"[..]).unwrap();
        assert_eq!(trace.millis(), [0, 5, 5, 10]);
        assert_eq!(trace.mean_bits_per_second(), 4 * 12_000 * 100);
    }

    #[test]
    fn a_recording_can_begin_anywhere_within() {
        let trace = || Trace::from_millis(vec![0, 5, 5, 10]).unwrap();
        let from = |ms| trace().beginning_at(Duration::from_millis(ms));
        assert_eq!(from(0), Some(trace()));
        assert_eq!(from(6).unwrap().millis(), [4, 4, 9, 9]);
        assert_eq!(from(10), None);
    }

    #[test]
    fn errors_name_file_line_and_what_would_be_right() {
        assert_eq!(
            message("1\nx\n"),
            "cell.up line 2: `x` is not a time; each line is whole milliseconds, for example 1250"
        );
        assert_eq!(message("1\n7\n6\n"), "cell.up line 3: 6 comes after 7; times must not fall (sort -n)");
        assert_eq!(message("0\n0\n"), "cell.up line 2: the trace ends at 0 ms; it needs at least one time above 0");
        assert!(message("4294967296").contains("not a time"));
        assert!(message(&"9".repeat(100_000)).starts_with("cell.up line 1: `99999999999999999999` is not a time"));
        let missing = Trace::load(Path::new("/nowhere/at.all")).unwrap_err().to_string();
        assert!(missing.starts_with("cannot open /nowhere/at.all: No such file"), "{missing}");
    }
}
