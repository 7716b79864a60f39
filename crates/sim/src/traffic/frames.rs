use super::gop::frame_time;
use super::{Emission, Kind};
use core::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Most of a file that is read; enough for the most frames.
const MAX_BYTES: u64 = 64 << 20;

/// Most frames that a recording may have.
const MAX_FRAMES: usize = 1 << 22;

/// A list of video frames, recorded from a film or an encoder: lines of `type,bytes`, where the
/// type is `I`, `P` or `B`.
///
/// Empty lines, lines that start with `#` and a first line `type,bytes` are skipped.
#[derive(Clone, PartialEq, Debug)]
pub struct FrameTrace {
    name: String,
    fps: f64,
    frames: Vec<(Kind, u32)>,
}

/// Why a list of frames cannot be used; names the file and the line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FrameTraceError(String);

impl fmt::Display for FrameTraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for FrameTraceError {}

impl FrameTrace {
    /// Reads the file at `path`, to be played at `fps` frames a second.
    pub fn load(path: &Path, fps: f64) -> Result<Self, FrameTraceError> {
        let name = path.display().to_string();
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
        read.map_err(|error| FrameTraceError(format!("{name}: {error}")))?;
        Self::parse(&name, &text, fps)
    }

    /// Takes the list from `text`, which errors call `name`.
    pub fn parse(name: &str, text: &str, fps: f64) -> Result<Self, FrameTraceError> {
        let mut frames = Vec::new();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') || (number == 0 && line == "type,bytes") {
                continue;
            }
            let fail = |what| Err(FrameTraceError(format!("{name}, line {}: {what}", number + 1)));
            let Some((kind, bytes)) = line.split_once(',') else { return fail("not a frame, for example I,9968") };
            let Some(kind) = picture(kind.trim()) else { return fail("the type of a frame is I, P or B") };
            match bytes.trim().parse() {
                Ok(bytes) if bytes > 0 => frames.push((kind, bytes)),
                _ => return fail("the bytes of a frame are a whole number from 1"),
            }
            if frames.len() > MAX_FRAMES {
                return fail("more frames than 4194304");
            }
        }
        if frames.is_empty() {
            return Err(FrameTraceError(format!("{name}: no frames")));
        }
        if !(fps.is_finite() && fps > 0.0) {
            return Err(FrameTraceError(format!("{name}: frames a second are more than 0")));
        }
        Ok(Self { name: name.to_owned(), fps, frames })
    }

    /// What errors and descriptions call it: its path.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Frames a second.
    pub const fn fps(&self) -> f64 {
        self.fps
    }

    /// Type and bytes of each frame.
    pub fn frames(&self) -> &[(Kind, u32)] {
        &self.frames
    }
}

/// Returns the type of frame called `name`.
pub(super) fn picture(name: &str) -> Option<Kind> {
    match name {
        "I" => Some(Kind::I),
        "P" => Some(Kind::P),
        "B" => Some(Kind::B),
        _ => None,
    }
}

/// Plays a recording once.
#[derive(Debug)]
pub(super) struct Frames {
    trace: Arc<FrameTrace>,
    next: usize,
}

impl Frames {
    pub(super) const fn new(trace: Arc<FrameTrace>) -> Self {
        Self { trace, next: 0 }
    }
}

impl Iterator for Frames {
    type Item = Emission;

    fn next(&mut self) -> Option<Emission> {
        let &(kind, bytes) = self.trace.frames.get(self.next)?;
        let frame = self.next as u64;
        self.next += 1;
        Some(Emission { at: frame_time(frame, self.trace.fps)?, bytes: bytes as usize, kind, flow: 0, frame })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn a_recording_is_played_at_its_pace() -> Result<(), FrameTraceError> {
        let trace = FrameTrace::parse("a.csv", "type,bytes\n# a film\nI,9000\n\nB, 500\nP,2000\n", 25.0)?;
        let played: Vec<_> = Frames::new(trace.into()).map(|e| (e.at, e.kind, e.bytes)).collect();
        let ms = Duration::from_millis;
        assert_eq!(played, [(ms(0), Kind::I, 9000), (ms(40), Kind::B, 500), (ms(80), Kind::P, 2000)]);
        Ok(())
    }

    #[test]
    fn a_file_is_read_and_a_missing_one_named() {
        let directory = std::env::temp_dir().join(format!("braidcast-frames-{}", std::process::id()));
        let path = directory.join("film.csv");
        assert!(std::fs::create_dir_all(&directory).and_then(|()| std::fs::write(&path, "I,9000\nB,500\n")).is_ok());
        let words = format!("frames:{},30fps", path.display());
        let read = words.parse::<crate::traffic::Traffic>().map(|traffic| traffic.to_string());
        assert_eq!(read, Ok(words.clone()));
        assert!(std::fs::remove_dir_all(&directory).is_ok());
        let missing = FrameTrace::load(&path, 30.0).map_err(|error| error.to_string());
        assert!(missing.is_err_and(|error| error.starts_with(&path.display().to_string())));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let error = |text, fps| FrameTrace::parse("a.csv", text, fps).map_err(|e| e.to_string()).err();
        assert_eq!(error("I,5\nX,5", 25.0).as_deref(), Some("a.csv, line 2: the type of a frame is I, P or B"));
        assert_eq!(
            error("I,0", 25.0).as_deref(),
            Some("a.csv, line 1: the bytes of a frame are a whole number from 1")
        );
        assert_eq!(error("# nothing", 25.0).as_deref(), Some("a.csv: no frames"));
        assert!(error("I,1", 0.0).is_some() && error("I,1", f64::NAN).is_some() && error("I", 1.0).is_some());
    }
}
